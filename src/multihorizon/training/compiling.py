"""jax.jit and jax.lax.scan, with the options that pay where the program runs."""

import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

OPTIONS: dict[str, dict[str, bool | str]] = {
    # Without the first XLA copies every weight before an optimiser may write to it in place: 57 ms an update instead of
    # 47. The second leaves out YNNPACK: Eigen's convolutions are faster, 36 ms instead of 42. The third has LLVM
    # leave out what makes none of these programs faster: they compile in 0.7 to 0.9 of the time.
    "cpu": {
        "xla_cpu_copy_insertion_use_region_analysis": True,
        "xla_cpu_experimental_ynn_fusion_type": "",
        "xla_backend_optimization_level": "2",
    },
    # cuBLAS is faster for these matrices than XLA's own products, which pad and copy them first: 364 µs instead of 407.
    # The two networks' passes, and much else, need not wait for one another.
    "gpu": {"xla_gpu_enable_triton_gemm": False, "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"},
}


# Updates in one CUDA graph, at most: the next one draws its batch, and its target network looks at it, while Adam still
# writes the weights of the one before; and a graph takes its time to begin. 172 µs an update instead of 192.
IN_ONE_GRAPH = {"gpu": 10}


def updates(one: Callable[[Any, Any], tuple[Any, Any]], held: Any, given: Any) -> tuple[Any, Any]:
    """jax.lax.scan of updates. It stays a loop, of two rounds at least: as a single graph, which would have to change
    whenever the state lies elsewhere in memory, they are slower again."""
    half = jax.tree.leaves(given)[0].shape[0] // 2
    together = min(IN_ONE_GRAPH.get(jax.default_backend(), 1), half)
    return jax.lax.scan(one, held, given, unroll=max(1, together))


@cache
def keep_programs() -> None:
    """Keeps compiled programs between processes, in the user's cache folder, unless JAX was told of another."""
    if jax.config.jax_compilation_cache_dir is None:  # type: ignore[attr-defined]
        home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        if not home.startswith("~"):  # as it does for a user without a home
            jax.config.update("jax_compilation_cache_dir", os.path.join(home, "multihorizon", "programs"))


def compiled(function: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
    keep_programs()
    return jax.jit(function, compiler_options=_options(jax.default_backend()), **arguments)


def call(program: Any, *given: Any) -> Any:
    """Of something compiled; inside another program, whose options hold for all of it, as a part of that one."""
    inside = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(given))
    return (program.__wrapped__ if inside else program)(*given)


@cache
def _options(backend: str) -> dict[str, bool | str] | None:
    options = OPTIONS.get(backend)
    if options is not None:
        try:
            jax.jit(lambda x: x + 1, compiler_options=options)(jnp.zeros(()))
        except (ValueError, jax.errors.JaxRuntimeError) as problem:  # a version of XLA that does not know them
            warnings.warn(f"compiling without {', '.join(options)}, so slower: {problem}", stacklevel=2)
            return None
    return options
