"""Wrappers of jax.jit and jax.lax.scan, with compiler options for each device."""

import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

Options = dict[str, dict[str, bool | str]]  # by device

OPTIONS: Options = {
    # The first option disables YNNPACK. Eigen's convolutions are faster: 36 ms per update instead of 42 ms. The second
    # option skips LLVM passes that do not speed up these programs. Compilation then takes 0.7 to 0.9 times as long.
    "cpu": {
        "xla_cpu_experimental_ynn_fusion_type": "",
        "xla_backend_optimization_level": "2",
    },
    # The first option selects cuBLAS, because XLA's own products copy matrices. An update takes 364 µs, not 407 µs.
    # The second option lets independent work overlap, such as the passes of the online and the target network.
    "gpu": {"xla_gpu_enable_triton_gemm": False, "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"},
}

# An additional option for programs that only update the learner. With this option, XLA does not copy every weight in
# each update, so an update takes 47 ms instead of 57 ms. Other programs must not have this option. In a program that
# stores transitions, the option made XLA remove a necessary copy, so wrong observations were stored (jaxlib 0.10.2
# without fusion emitters).
UPDATE_OPTIONS: Options = {"cpu": {"xla_cpu_copy_insertion_use_region_analysis": True}}

# The largest number of updates in one CUDA graph. Updates in one graph share the launch cost, and sampling for an
# update overlaps with Adam of the previous update. An update then takes 172 µs instead of 192 µs.
IN_ONE_GRAPH = {"gpu": 10}


def updates(one: Callable[[Any, Any], tuple[Any, Any]], held: Any, given: Any) -> tuple[Any, Any]:
    """Runs updates with jax.lax.scan, which is partly unrolled on a GPU.

    A fully unrolled loop would be slower: its single CUDA graph would be rebuilt whenever the state moves in memory.
    """
    half = jax.tree.leaves(given)[0].shape[0] // 2
    together = min(IN_ONE_GRAPH.get(jax.default_backend(), 1), half)
    return jax.lax.scan(one, held, given, unroll=max(1, together))


@cache
def keep_programs() -> None:
    """Caches compiled programs in the user's cache folder, unless JAX is configured with another folder."""
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        if not home.startswith("~"):  # the path starts with ~ if the user has no home directory
            jax.config.update("jax_compilation_cache_dir", os.path.join(home, "multihorizon", "programs"))


def compiled(function: Callable[..., Any], only_updates: bool = False, **arguments: Any) -> Callable[..., Any]:
    """Returns jax.jit of a function with the options for the default device, and enables the cache on disk.

    `only_updates` adds the options for programs that only update the learner. An option in XLA_FLAGS takes precedence.

    Donate only arrays that the program changes. Suppose that a program returns a donated array A unchanged, together
    with a copy of A. XLA then writes the copy into the memory of another donated array B of the same shape, and moves B
    elsewhere. On a GPU (jaxlib 0.11.2), XLA writes the copy before it moves B, so the values of B are lost.
    """
    keep_programs()
    return jax.jit(function, compiler_options=options_for(jax.default_backend(), only_updates), **arguments)


def call(program: Any, *given: Any) -> Any:
    """Calls a compiled function. Inside another traced program, the function is inlined."""
    inside = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(given))
    return (program.__wrapped__ if inside else program)(*given)


@cache
def options_for(backend: str, only_updates: bool) -> dict[str, bool | str]:
    """Returns the compiler options for a device, without the options that the user has set in XLA_FLAGS."""
    options = OPTIONS.get(backend, {}) | (UPDATE_OPTIONS.get(backend, {}) if only_updates else {})
    flags = {flag.partition("=")[0] for flag in os.environ.get("XLA_FLAGS", "").split()}
    options = {name: value for name, value in options.items() if f"--{name}" not in flags}
    try:
        jax.jit(lambda x: x + 1, compiler_options=options)(jnp.zeros(()))
    except (ValueError, jax.errors.JaxRuntimeError) as problem:  # this version of XLA does not support the options
        warnings.warn(f"XLA does not support {', '.join(options)}, so programs will be slower: {problem}", stacklevel=2)
        return {}
    return options
