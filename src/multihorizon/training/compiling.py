"""jax.jit and jax.lax.scan with compiler options for each device."""

import os
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

OPTIONS: dict[str, dict[str, bool | str]] = {
    # Without the first option XLA copies every weight before an optimiser writes to it: 57 ms per update instead of 47.
    # The second disables YNNPACK, because Eigen's convolutions are faster: 36 ms instead of 42. The third skips LLVM
    # passes that make none of these programs faster: compilation takes 0.7 to 0.9 times as long.
    "cpu": {
        "xla_cpu_copy_insertion_use_region_analysis": True,
        "xla_cpu_experimental_ynn_fusion_type": "",
        "xla_backend_optimization_level": "2",
    },
    # cuBLAS is faster for these matrices than XLA's own products, which pad and copy them: 364 µs instead of 407.
    # Concurrent scheduling lets independent work overlap, such as the passes of the online and the target network.
    "gpu": {"xla_gpu_enable_triton_gemm": False, "xla_gpu_command_buffer_scheduling_mode": "CONCURRENT"},
}


# The largest number of updates in one CUDA graph. Within a graph, sampling and the target network of one update overlap
# with Adam of the previous one, and the cost of launching is shared: 172 µs per update instead of 192.
IN_ONE_GRAPH = {"gpu": 10}


def updates(one: Callable[[Any, Any], tuple[Any, Any]], held: Any, given: Any) -> tuple[Any, Any]:
    """Runs updates by jax.lax.scan, partly unrolled on a GPU. A loop of two or more updates is never fully unrolled.

    A fully unrolled loop would be a single CUDA graph. It would be slower, because such a graph is rebuilt whenever the
    state moves in memory.
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


def compiled(function: Callable[..., Any], **arguments: Any) -> Callable[..., Any]:
    """Returns jax.jit of a function with the options for the default device, and enables the cache on disk.

    Donate only what the program changes. If the program returns a donated array unchanged and also returns a copy of
    it, XLA puts the copy into the memory of another donated array of the same shape and moves that other array
    elsewhere. On a GPU (jaxlib 0.11.2), these two steps happen in the wrong order, and the values of one array are
    lost.
    """
    keep_programs()
    return jax.jit(function, compiler_options=_options(jax.default_backend()), **arguments)


def call(program: Any, *given: Any) -> Any:
    """Calls a compiled function. While another program is traced, the function becomes a part of that program."""
    inside = any(isinstance(leaf, jax.core.Tracer) for leaf in jax.tree.leaves(given))
    return (program.__wrapped__ if inside else program)(*given)


@cache
def _options(backend: str) -> dict[str, bool | str] | None:
    options = OPTIONS.get(backend)
    if options is not None:
        try:
            jax.jit(lambda x: x + 1, compiler_options=options)(jnp.zeros(()))
        except (ValueError, jax.errors.JaxRuntimeError) as problem:  # this version of XLA does not support them
            warnings.warn(
                f"XLA does not support {', '.join(options)}, so programs will be slower: {problem}", stacklevel=2
            )
            return None
    return options
