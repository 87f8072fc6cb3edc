"""GPU kernels for a convolution with SAME padding, bias and ReLU, and for its gradients.

XLA takes twice as long: it writes the patches to memory, broadcasts the bias and transposes the result. The kernels
take one image; vmap adds the batch and the seeds to the grid. The tests compare the kernels with ReLU(`plain` + bias).
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Bool, Float, Int

from multihorizon.kernels import options

TAPS = 64  # a matrix product covers 64 inputs of each output position
LEAST = 16  # Triton's matrix products need at least 16 rows and 16 columns
PLACES = 32  # a program computes 32 pixels of the output or of the image's gradient


def fits(weight_shape: tuple[int, ...], stride: int) -> bool:
    """Returns whether the kernels support these sizes.

    Matrix products need powers of two. The gradient of the image needs a filter size that is a multiple of the stride.
    """
    size, _, inputs, outputs = weight_shape
    powers = all(n & (n - 1) == 0 for n in (inputs, outputs))
    return powers and (size * size * inputs) % TAPS == 0 and outputs >= LEAST and size % stride == 0


@dataclass(frozen=True)
class Geometry:
    """The sizes of a convolution."""

    height: int
    width: int
    inputs: int
    size: int
    stride: int
    outputs: int

    @property
    def out_height(self) -> int:
        return -(-self.height // self.stride)

    @property
    def out_width(self) -> int:
        return -(-self.width // self.stride)

    @property
    def places(self) -> int:
        return self.out_height * self.out_width

    @property
    def taps(self) -> int:
        """The number of inputs of one output position, over all channels."""
        return self.size * self.size * self.inputs

    @property
    def above(self) -> int:
        return max((self.out_height - 1) * self.stride + self.size - self.height, 0) // 2

    @property
    def before(self) -> int:
        return max((self.out_width - 1) * self.stride + self.size - self.width, 0) // 2

    def patches(self, image: Any, places: Int[Array, " m"], first_tap: Any) -> Float[Array, "m taps"]:
        """Returns `TAPS` inputs of each output position, starting with input `first_tap`."""
        taps = first_tap + jnp.arange(TAPS)
        tap, channel = _divided(taps, self.inputs)
        down, right = _divided(tap, self.size)
        place_y, place_x = _divided(places, self.out_width)
        y = (place_y * self.stride - self.above)[:, None] + down[None, :]
        x = (place_x * self.stride - self.before)[:, None] + right[None, :]
        inside = (y >= 0) & (y < self.height) & (x >= 0) & (x < self.width) & (places < self.places)[:, None]
        return _read(image, (y * self.width + x) * self.inputs + channel[None, :], inside)


def _geometry(image: Float[Array, "h w I"], weight: Float[Array, "k k I O"], stride: int) -> Geometry:
    height, width, inputs = image.shape
    return Geometry(height, width, inputs, weight.shape[0], stride, weight.shape[-1])


def _divided(number: Any, by: int) -> tuple[Any, Any]:
    """Returns quotient and remainder of non-negative numbers. Triton does not support Python's // and %."""
    quotient = jax.lax.div(number, jnp.full_like(number, by))
    return quotient, number - quotient * by


def _read(ref: Any, where: Int[Array, "m k"], inside: Bool[Array, "m k"]) -> Float[Array, "m k"]:
    return triton.load(ref.at[where], mask=inside, other=0)


def _of_places(geometry: Geometry, places: Int[Array, " m"]) -> tuple[Int[Array, "m O"], Bool[Array, "m O"]]:
    where = places[:, None] * geometry.outputs + jnp.arange(geometry.outputs)[None, :]
    return where, jnp.broadcast_to((places < geometry.places)[:, None], where.shape)


def _rectified(out: Any, gradient: Any, where: Any, inside: Any) -> Float[Array, "m O"]:
    """Returns the gradient with respect to the input of the ReLU."""
    slope = _read(gradient, where, inside)
    return jnp.where(_read(out, where, inside) > 0, slope, jnp.zeros_like(slope))


def _forward_kernel(geometry: Geometry, image: Any, weight: Any, bias: Any, out: Any) -> None:
    places = pl.program_id(0) * PLACES + jnp.arange(PLACES)

    def add(i: Any, sums: Any) -> Any:
        return sums + triton.dot(geometry.patches(image, places, i * TAPS), weight[pl.ds(i * TAPS, TAPS), :])

    sums = jax.lax.fori_loop(0, geometry.taps // TAPS, add, jnp.zeros((PLACES, geometry.outputs), jnp.float32))
    sums = jnp.maximum(sums + bias[...].astype(jnp.float32)[None, :], 0)
    where, inside = _of_places(geometry, places)
    triton.store(out.at[where], sums.astype(out.dtype), mask=inside)


def _weight_kernel(
    geometry: Geometry, image: Any, out: Any, gradient: Any, weight_gradient: Any, bias_gradient: Any
) -> None:
    first_tap = pl.program_id(0) * TAPS

    def add(i: Any, sums: Any) -> Any:
        places = i * 2 * PLACES + jnp.arange(2 * PLACES)
        slopes = _rectified(out, gradient, *_of_places(geometry, places))
        product = triton.dot(geometry.patches(image, places, first_tap), slopes, trans_a=True)
        return sums[0] + product, sums[1] + slopes.astype(jnp.float32).sum(axis=0)

    nothing = jnp.zeros((TAPS, geometry.outputs), jnp.float32), jnp.zeros(geometry.outputs, jnp.float32)
    sums, bias_sums = jax.lax.fori_loop(0, pl.cdiv(geometry.places, 2 * PLACES), add, nothing)
    weight_gradient[...] = sums.astype(weight_gradient.dtype)

    @pl.when(pl.program_id(0) == 0)
    def _() -> None:
        bias_gradient[...] = bias_sums.astype(bias_gradient.dtype)


def _image_kernel(geometry: Geometry, weight: Any, out: Any, gradient: Any, image_gradient: Any) -> None:
    """Computes the gradient of the image. Pixels whose coordinates are equal modulo the stride use the same taps."""
    row, column = _divided(pl.program_id(0), geometry.stride)
    y, x = _divided(pl.program_id(1) * PLACES + jnp.arange(PLACES), -(-geometry.width // geometry.stride))
    y, x = y * geometry.stride + row, x * geometry.stride + column
    inside_image = (y < geometry.height) & (x < geometry.width)
    channels = jnp.arange(geometry.outputs)[None, :]
    across = geometry.size // geometry.stride  # taps that cover a pixel, along one axis

    def add(i: Any, sums: Any) -> Any:
        down, right = _divided(i, across)
        down = _divided(row + geometry.above, geometry.stride)[1] + down * geometry.stride
        right = _divided(column + geometry.before, geometry.stride)[1] + right * geometry.stride
        place_y = _divided(y + geometry.above - down, geometry.stride)[0]
        place_x = _divided(x + geometry.before - right, geometry.stride)[0]
        seen = (y + geometry.above >= down) & (x + geometry.before >= right) & inside_image
        seen = seen & (place_y < geometry.out_height) & (place_x < geometry.out_width)
        where = (place_y * geometry.out_width + place_x)[:, None] * geometry.outputs + channels
        slopes = _rectified(out, gradient, where, jnp.broadcast_to(seen[:, None], where.shape))
        taps = weight[pl.ds((down * geometry.size + right) * geometry.inputs, geometry.inputs), :]
        return sums + triton.dot(slopes, taps, trans_b=True)

    nothing = jnp.zeros((PLACES, geometry.inputs), jnp.float32)
    sums = jax.lax.fori_loop(0, across * across, add, nothing)
    where = (y * geometry.width + x)[:, None] * geometry.inputs + jnp.arange(geometry.inputs)[None, :]
    inside = jnp.broadcast_to(inside_image[:, None], where.shape)
    triton.store(image_gradient.at[where], sums.astype(image_gradient.dtype), mask=inside)


def _call(kernel: Any, grid: tuple[int, ...], shapes: Any, specs: Any) -> Any:
    made = options(num_warps=4, num_stages=3)
    return pl.pallas_call(kernel, grid=grid, out_shape=shapes, out_specs=specs, **made)


def plain(image: Float[Array, "h w I"], weight: Float[Array, "k k I O"], stride: int) -> Float[Array, "h2 w2 O"]:
    """Returns XLA's convolution."""
    numbers = ("NHWC", "HWIO", "NHWC")
    return jax.lax.conv_general_dilated(image[None], weight, (stride, stride), "SAME", dimension_numbers=numbers)[0]


@partial(jax.custom_vjp, nondiff_argnums=(3,))
def convolve_and_rectify(
    image: Float[Array, "h w I"], weight: Float[Array, "k k I O"], bias: Float[Array, " O"], stride: int
) -> Float[Array, "h2 w2 O"]:
    """Returns ReLU(image * weight + bias), computed by one kernel."""
    geometry = _geometry(image, weight, stride)
    shape = jax.ShapeDtypeStruct((geometry.places * geometry.outputs,), image.dtype)
    call = _call(partial(_forward_kernel, geometry), (pl.cdiv(geometry.places, PLACES),), shape, pl.no_block_spec)
    out = call(image.reshape(-1), weight.reshape(geometry.taps, geometry.outputs), bias)
    return out.reshape(geometry.out_height, geometry.out_width, geometry.outputs)


def _forward(image: Array, weight: Array, bias: Array, stride: int) -> tuple[Array, Any]:
    out = convolve_and_rectify(image, weight, bias, stride)
    return out, (image, weight, out)


def _backward(stride: int, kept: Any, gradient: Array) -> tuple[Array, Array, Array]:
    image, weight, out = kept
    geometry = _geometry(image, weight, stride)
    flat, out, gradient = weight.reshape(geometry.taps, geometry.outputs), out.reshape(-1), gradient.reshape(-1)
    shapes = [jax.ShapeDtypeStruct(flat.shape, weight.dtype), jax.ShapeDtypeStruct((geometry.outputs,), weight.dtype)]
    specs = [
        pl.BlockSpec((TAPS, geometry.outputs), lambda i: (i, 0)),
        pl.BlockSpec((geometry.outputs,), lambda i: (0,)),
    ]
    grid: tuple[int, ...] = (geometry.taps // TAPS,)
    of_weight, of_bias = _call(partial(_weight_kernel, geometry), grid, shapes, specs)(image.reshape(-1), out, gradient)
    if geometry.inputs < LEAST:  # in a first layer, nothing uses the gradient of the image, so XLA removes it
        slopes = jnp.where(out > 0, gradient, jnp.zeros_like(gradient)).reshape(
            geometry.out_height, geometry.out_width, -1
        )
        (of_image,) = jax.vjp(lambda image: plain(image, weight, stride), image)[1](slopes)
        return of_image, of_weight.reshape(weight.shape), of_bias
    grid = (stride * stride, pl.cdiv(-(-geometry.height // stride) * -(-geometry.width // stride), PLACES))
    shape = jax.ShapeDtypeStruct((image.size,), image.dtype)
    of_image = _call(partial(_image_kernel, geometry), grid, shape, pl.no_block_spec)(flat, out, gradient)
    return of_image.reshape(image.shape), of_weight.reshape(weight.shape), of_bias


convolve_and_rectify.defvjp(_forward, _backward)
