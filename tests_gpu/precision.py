"""Bounds on the rounding error of a result, derived from the number types alone.

Take a sum of K products a·b. Each factor has a relative error u, and each addition has a relative error 2⁻²³, because
tensor cores may truncate. The sum lies within (2u + u² + K·2⁻²³) Σ|a||b| of the exact sum. Rounding the result to its
type adds u_out |result|.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

TYPES = ("float32", "bfloat16")
ADDITION = 2.0**-23
# Tensor cores read float32 as TF32, which has 11 significant bits. Factors in bfloat16 are exact.
FACTOR = {"float32": 2.0**-10, "bfloat16": 0.0}
RESULT = {"float32": 2.0**-24, "bfloat16": 2.0**-8}


def product_error(dtype: str, terms: int) -> float:
    """Returns the largest error of a sum of products, in units of Σ|a||b|."""
    factor = FACTOR[dtype]
    return 2 * factor + factor**2 + terms * ADDITION


def exact(values: Array) -> Float[np.ndarray, "..."]:
    return np.asarray(values.astype(jnp.float32), np.float64)


def plain(array: Array) -> np.ndarray:
    """Converts an array of any type, including bfloat16 and random keys, to NumPy."""
    if jnp.issubdtype(array.dtype, jax.dtypes.prng_key):
        return np.asarray(jax.random.key_data(array))
    return np.asarray(array.astype(jnp.float32) if array.dtype == jnp.bfloat16 else array)


def check(ours: Array, wanted: Float[np.ndarray, "..."], bound: Float[np.ndarray, "..."] | float) -> None:
    """Asserts that every entry lies within its bound."""
    difference = np.abs(exact(ours) - wanted)
    assert np.all(np.isfinite(difference))
    worst = np.max(difference / np.maximum(bound, 1e-30))
    assert worst <= 1, f"the error of an entry is {worst:.3g} times its bound"
