"""Compares the convolution kernels and their gradients with NumPy in float64, at the sizes of the paper's network."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float
from precision import RESULT, TYPES, check, exact, product_error

from multihorizon.kernels.fused_convolution import LEAST, convolve_and_rectify

pytestmark = pytest.mark.kernel
BATCH = 32
LAYERS = [(84, 4, 8, 4, 32), (21, 32, 4, 2, 64), (11, 64, 3, 1, 64)]  # side, inputs, size, stride, outputs
Numbers = Float[np.ndarray, "..."]


def patches(images: Numbers, size: int, stride: int) -> Numbers:
    """Returns the patches [B places taps] of images [B h w I], with SAME padding."""
    batch, side, _, channels = images.shape
    out = -(-side // stride)
    total = max((out - 1) * stride + size - side, 0)
    before = total // 2
    padded = np.pad(images, ((0, 0), (before, total - before), (before, total - before), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (size, size), (1, 2))[:, ::stride, ::stride]
    return np.moveaxis(windows, 3, -1).reshape(batch, out * out, size * size * channels)


def scatter(rows: Numbers, side: int, channels: int, size: int, stride: int) -> Numbers:
    """Applies the transpose of `patches`."""
    batch, out = rows.shape[0], -(-side // stride)
    total = max((out - 1) * stride + size - side, 0)
    padded = np.zeros((batch, side + total, side + total, channels))
    rows = rows.reshape(batch, out, out, size, size, channels)
    for down in range(size):
        for right in range(size):
            view = padded[:, down : down + out * stride : stride, right : right + out * stride : stride]
            view += rows[:, :, :, down, right]
    before = total // 2
    return padded[:, before : before + side, before : before + side]


def layer(dtype: str, seeds: int, side: int, inputs: int, size: int, stride: int, outputs: int) -> Any:
    keys = jax.random.split(jax.random.key(0), 4)
    out = -(-side // stride)
    shapes = [
        (seeds, BATCH, side, side, inputs),
        (seeds, size, size, inputs, outputs),
        (seeds, outputs),
        (seeds, BATCH, out, out, outputs),
    ]
    made = [jax.random.normal(key, shape).astype(dtype) for key, shape in zip(keys, shapes, strict=True)]
    made[1] = made[1] / jnp.asarray(size * np.sqrt(inputs), dtype)
    return made


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("sizes", LAYERS)
def test_layer_and_gradient_errors_stay_within_rounding_bounds(sizes: tuple[int, ...], dtype: str, seeds: int) -> None:
    side, inputs, size, stride, outputs = sizes
    images, weights, biases, slopes = layer(dtype, seeds, *sizes)

    @jax.jit
    def run(images: Any, weights: Any, biases: Any, slopes: Any) -> Any:
        over_batch = jax.vmap(lambda x, w, b: convolve_and_rectify(x, w, b, stride), (0, None, None))
        out, backward = jax.vjp(jax.vmap(over_batch), images, weights, biases)
        return out, *backward(slopes)

    out, of_images, of_weights, of_biases = run(images, weights, biases, slopes)
    for s in range(seeds):
        rows = patches(exact(images[s]), size, stride)
        matrix, bias = exact(weights[s]).reshape(-1, outputs), exact(biases[s])
        terms, places = rows.shape[2], rows.shape[1]
        sums = rows @ matrix + bias
        scale = np.abs(rows) @ np.abs(matrix) + np.abs(bias)
        bound = product_error(dtype, terms) * scale + RESULT[dtype] * np.abs(sums)
        check(out[s].reshape(BATCH, places, outputs), np.maximum(sums, 0), bound)

        # The ReLU passes a gradient only where its output is positive. The test uses the kernel's output, because a sum
        # near 0 may have a different sign in float64.
        passed = np.where(exact(out[s]) > 0, exact(slopes[s]), 0).reshape(BATCH, places, outputs)
        flat, flat_slopes = rows.reshape(-1, terms), passed.reshape(-1, outputs)
        size_of_sum = np.abs(flat).T @ np.abs(flat_slopes)
        # The gradient of each image is rounded, and then the sum over the batch is rounded.
        relative = product_error(dtype, places + BATCH) + 3 * RESULT[dtype]
        check(of_weights[s].reshape(terms, outputs), flat.T @ flat_slopes, relative * size_of_sum)
        check(of_biases[s], flat_slopes.sum(axis=0), relative * np.abs(flat_slopes).sum(axis=0))
        if inputs >= LEAST:
            back = partial(scatter, side=side, channels=inputs, size=size, stride=stride)
            wanted, scale = back(passed @ matrix.T), back(np.abs(passed) @ np.abs(matrix).T)
            relative = product_error(dtype, outputs * (size // stride) ** 2) + RESULT[dtype]
            check(of_images[s], wanted, relative * scale)
