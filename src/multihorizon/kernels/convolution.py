"""A convolution with SAME padding, bias and ReLU, computed by a GPU kernel or in plain JAX.

Functions take one image; vmap adds the batch and the seeds.
"""

from enum import Enum
from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from multihorizon import kernels
from multihorizon.kernels import fused_convolution


class Convolve(Enum):
    """How a convolution is computed. The method does not change weights or results, only the speed."""

    PLAIN = "XLA's convolution: fastest on a CPU outside compiled loops"
    PRODUCTS = "gathered patches and one matrix product: fastest on a CPU inside compiled loops"
    FUSED = "our GPU kernels if they support the sizes, otherwise `PRODUCTS`"


def convolve_for(in_loop: bool) -> Convolve:
    """Returns the fastest implementation on this device. `in_loop` means inside a compiled loop."""
    if kernels.in_use():
        return Convolve.FUSED
    return Convolve.PLAIN if jax.default_backend() == "cpu" and not in_loop else Convolve.PRODUCTS


def convolve_and_rectify(
    x: Float[Array, "h w I"], weight: Float[Array, "k k I O"], bias: Float[Array, " O"], stride: int, how: Convolve
) -> Float[Array, "h2 w2 O"]:
    """Returns ReLU(x * weight + bias)."""
    if how is Convolve.PLAIN:
        return jax.nn.relu(fused_convolution.plain(x, weight, stride) + bias)
    if how is Convolve.FUSED and fused_convolution.fits(weight.shape, stride):
        return fused_convolution.convolve_and_rectify(x, weight, bias, stride)
    return jax.nn.relu(_products(x, weight, stride) + bias)


def _products(x: Float[Array, "h w I"], weight: Float[Array, "k k I O"], stride: int) -> Float[Array, "h2 w2 O"]:
    height, width, channels = x.shape
    size, outputs = weight.shape[0], weight.shape[-1]
    patches = gather_patches(x.reshape(-1, channels), height, width, size, stride)
    product = patches.reshape(patches.shape[0], -1) @ weight.reshape(-1, outputs)
    return product.reshape(-(-height // stride), -(-width // stride), outputs)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3, 4))
def gather_patches(
    pixels: Float[Array, "hw I"], height: int, width: int, size: int, stride: int
) -> Float[Array, "out taps I"]:
    """Returns the patch at each output position of a convolution with SAME padding.

    The custom gradient is a gather. Automatic differentiation would produce a scatter, which is slow on a GPU.
    """
    return _rows(pixels, _places(height, width, size, stride)[0])


def _patches_forward(
    pixels: Array, height: int, width: int, size: int, stride: int
) -> tuple[Float[Array, "out taps I"], None]:
    return gather_patches(pixels, height, width, size, stride), None


def _patches_backward(
    height: int, width: int, size: int, stride: int, residual: None, gradient: Float[Array, "out taps I"]
) -> tuple[Float[Array, "hw I"]]:
    del residual
    seen_by = _places(height, width, size, stride)[1]
    return (_rows(gradient.reshape(-1, gradient.shape[-1]), seen_by).sum(axis=1),)


gather_patches.defvjp(_patches_forward, _patches_backward)


def _rows(table: Float[Array, "m I"], which: Int[np.ndarray, "..."]) -> Float[Array, "... I"]:
    """Returns rows of a table, and zeros for indices past its end."""
    return _gathered(table, jnp.asarray(which))


@jax.custom_batching.custom_vmap
def _gathered(table: Float[Array, "m I"], which: Int[Array, "..."]) -> Float[Array, "... I"]:
    return jnp.take(table, which, axis=0, mode="fill", fill_value=0)


@_gathered.def_vmap
def _gathered_from_many(
    count: int, batched: list[bool], tables: Float[Array, "B m I"], which: Int[Array, "..."]
) -> tuple[Float[Array, "B ... I"], bool]:
    """Concatenates the tables and gathers from all of them at once.

    The default batching rule of a gather needs a transposition, which costs more on a GPU than the gather itself. On a
    CPU the default rule is faster.
    """
    assert batched == [True, False]
    if jax.default_backend() == "cpu":
        return jax.vmap(lambda table: jnp.take(table, which, axis=0, mode="fill", fill_value=0))(tables), True
    rows = tables.shape[1]
    offsets = jnp.arange(count).reshape(-1, *[1] * which.ndim) * rows
    at = jnp.where(which < rows, which + offsets, count * rows)
    return _gathered(tables.reshape(count * rows, -1), at), True


@lru_cache
def _places(
    height: int, width: int, size: int, stride: int
) -> tuple[Int[np.ndarray, "out taps"], Int[np.ndarray, "hw m"]]:
    """Returns the pixel that each (position, tap) pair reads, and the (position, tap) pairs that read each pixel.

    A tap is one of the size × size cells of the filter. An index past the end means no pixel or no pair.
    """

    def along(length: int) -> Int[np.ndarray, "out size"]:
        out = -(-length // stride)
        before = max((out - 1) * stride + size - length, 0) // 2
        seen = np.arange(out)[:, None] * stride + np.arange(size) - before
        return np.where((seen >= 0) & (seen < length), seen, -1)

    rows, columns = along(height)[:, None, :, None], along(width)[None, :, None, :]
    none = height * width
    sees = np.where((rows >= 0) & (columns >= 0), rows * width + columns, none).reshape(-1, size * size)
    seers: list[list[int]] = [[] for _ in range(none + 1)]
    for place_and_tap, pixel in enumerate(sees.reshape(-1)):
        seers[pixel].append(place_and_tap)
    most = max(map(len, seers[:none]))
    seen_by = np.array([one + [sees.size] * (most - len(one)) for one in seers[:none]])
    return sees, seen_by
