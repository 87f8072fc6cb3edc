"""GPU kernels, written with Pallas for Triton."""

from typing import Any

import jax
from jax.experimental.pallas import triton

from multihorizon.errors import is_on

SWITCH = "MULTIHORIZON_KERNELS"


def in_use() -> bool:
    """Returns whether the kernels are used: on a GPU, unless MULTIHORIZON_KERNELS is `off` (for debugging)."""
    return is_on(SWITCH) and jax.default_backend() == "gpu"


def options(**parameters: int) -> dict[str, Any]:
    """Returns the options of a Pallas call. Without a GPU a kernel is interpreted, which is slow."""
    if jax.default_backend() != "gpu":
        return {"interpret": True}
    return {"compiler_params": triton.CompilerParams(**parameters)}
