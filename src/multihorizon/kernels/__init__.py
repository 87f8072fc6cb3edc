"""Whether kernels of our own are used, and how they are made: by Pallas, for Triton."""

from typing import Any

import jax
from jax.experimental.pallas import triton

from multihorizon.errors import is_on

SWITCH = "MULTIHORIZON_KERNELS"


def in_use() -> bool:
    """On a GPU, unless the environment variable is `off`: to find out whether they are to blame for something."""
    return is_on(SWITCH) and jax.default_backend() == "gpu"


def options(**parameters: int) -> dict[str, Any]:
    """Returns the options of a Pallas call. Without a GPU a kernel is interpreted, which is slow."""
    if jax.default_backend() != "gpu":
        return {"interpret": True}
    return {"compiler_params": triton.CompilerParams(**parameters)}
