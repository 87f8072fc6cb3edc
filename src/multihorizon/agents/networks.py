"""From an observation to the outputs of all heads: a torso, and one linear layer for every horizon and action.

Written for one observation; vmap adds the batch and the seeds. The only file that knows of equinox layers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache, partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from multihorizon.agents import fused_convolution, kernels
from multihorizon.errors import InputError


class Convolve(Enum):
    """How a convolution is computed: the same weights and results, but not the same speed everywhere."""

    PLAIN = "XLA's convolution: fastest on a CPU, except inside compiled loops, where it has no threads"
    PRODUCTS = "patches gathered and one matrix product: fastest in loops on a CPU, and fast everywhere"
    FUSED = "kernels of ours for a GPU, and one for the heads, where sizes fit them; products where they do not"


def convolve_for(in_loop: bool) -> Convolve:
    if kernels.in_use():
        return Convolve.FUSED
    return Convolve.PLAIN if jax.default_backend() == "cpu" and not in_loop else Convolve.PRODUCTS


class Initial(Enum):
    """How weights are drawn; biases start at 0."""

    FAN_IN = "uniform with variance 1/√3 over the fan-in: the reference's C51 and Rainbow"
    XAVIER = "uniform within √(6 / (fan-in + fan-out)) (Glorot & Bengio, 2010): the reference's DQN"


def _uniform(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
    bound = _bound(math.prod(shape[:-1]))  # all axes but the output's
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def _bound(fan_in: int) -> float:
    return math.sqrt(math.sqrt(3) / fan_in)


class Dense(eqx.Module):
    """Outputs come first, as in the gradient that differentiation makes: on a CPU an optimiser would read another
    order entry by entry, from as many cache lines, which took a third of an update."""

    weight: Float[Array, "O I"]
    bias: Float[Array, " O"]

    def __init__(self, key: Key[Array, ""], inputs: int, outputs: int) -> None:
        self.weight = _uniform(key, (inputs, outputs)).T
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, " I"]) -> Float[Array, " O"]:
        return self.weight @ x + self.bias


@jax.custom_jvp
def product_in_full(weight: Float[Array, "O I"], x: Float[Array, " I"]) -> Float[Array, " O"]:
    """A product in float32 of whatever type. Its gradients are of the type that is computed with."""
    if jax.default_backend() == "cpu":  # where XLA makes some programs with a product of two types that it cannot run
        weight, x = weight.astype(jnp.float32), x.astype(jnp.float32)
    return jnp.dot(weight, x, preferred_element_type=jnp.float32)


@product_in_full.defjvp
def _product_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (weight, x), (dweight, dx) = primals, tangents
    return product_in_full(weight, x), (weight @ dx + dweight @ x).astype(jnp.float32)


class Convolution(eqx.Module):
    """A square kernel whose size is a multiple of its stride, with SAME padding, and a ReLU."""

    weight: Float[Array, "k k I O"]
    bias: Float[Array, " O"]
    stride: int = eqx.field(static=True)
    convolve: Convolve = eqx.field(static=True)

    def __init__(
        self, key: Key[Array, ""], inputs: int, outputs: int, size: int, stride: int, convolve: Convolve
    ) -> None:
        self.weight = _uniform(key, (size, size, inputs, outputs))
        self.bias = jnp.zeros(outputs)
        self.stride, self.convolve = stride, convolve

    def __call__(self, x: Float[Array, "h w I"]) -> Float[Array, "h2 w2 O"]:
        if self.convolve is Convolve.PLAIN:
            return jax.nn.relu(fused_convolution.plain(x, self.weight, self.stride) + self.bias)
        if self.convolve is Convolve.FUSED and fused_convolution.fits(self.weight.shape):
            return fused_convolution.convolve_and_rectify(x, self.weight, self.bias, self.stride)
        return jax.nn.relu(self._products(x) + self.bias)

    def _products(self, x: Float[Array, "h w I"]) -> Float[Array, "h2 w2 O"]:
        height, width, channels = x.shape
        size, outputs = self.weight.shape[0], self.weight.shape[-1]
        patches = gather_patches(x.reshape(-1, channels), height, width, size, self.stride)
        product = patches.reshape(patches.shape[0], -1) @ self.weight.reshape(-1, outputs)
        return product.reshape(-(-height // self.stride), -(-width // self.stride), outputs)


@partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3, 4))
def gather_patches(
    pixels: Float[Array, "hw I"], height: int, width: int, size: int, stride: int
) -> Float[Array, "out taps I"]:
    """What a convolution with SAME padding sees at each of its places. Its gradient is a gather too, and not the
    scattered sum, slow on a GPU, that differentiation would make of it."""
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
    """Rows of a table; blank where there is none."""
    return _gathered(table, jnp.asarray(which))


@jax.custom_batching.custom_vmap
def _gathered(table: Float[Array, "m I"], which: Int[Array, "..."]) -> Float[Array, "... I"]:
    return jnp.take(table, which, axis=0, mode="fill", fill_value=0)


@_gathered.def_vmap
def _gathered_from_many(
    count: int, batched: list[bool], tables: Float[Array, "B m I"], which: Int[Array, "..."]
) -> tuple[Float[Array, "B ... I"], bool]:
    """One gather from all tables, laid end to end. What vmap makes by itself is gathered in another order, and to
    transpose it costs more on a GPU than the gather; on a CPU it is the faster of the two."""
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
    """Which pixel each tap of the kernel sees at each place, and which (place, tap) see each pixel; one beyond the last
    where there is none."""

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


Torso = Callable[[Key[Array, ""], tuple[int, ...], Convolve], eqx.Module]
"""Makes a module from one observation, of the shape given, to its features [F]."""


class _Convolutional(eqx.Module):
    layers: list[Convolution]
    hidden: Dense

    def __call__(self, x: Float[Array, "h w c"]) -> Float[Array, " F"]:
        for layer in self.layers:
            x = layer(x)
        return jax.nn.relu(self.hidden(x.reshape(-1)))


class _Dense(eqx.Module):
    layers: list[Dense]

    def __call__(self, x: Float[Array, "..."]) -> Float[Array, " F"]:
        x = x.reshape(-1)
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
        return x


@dataclass(frozen=True)
class ConvTorso:
    """Convolutions, each (channels, size, stride), then a dense layer."""

    layers: tuple[tuple[int, int, int], ...]
    hidden: int

    def __call__(self, key: Key[Array, ""], shape: tuple[int, ...], convolve: Convolve) -> eqx.Module:
        if len(shape) != 3:
            raise InputError(
                f"a convolutional torso takes images [height width channels], not {list(shape)}; use MlpTorso"
            )
        *conv_keys, dense_key = jax.random.split(key, len(self.layers) + 1)
        height, width, channels = shape
        layers = []
        for layer_key, (outputs, size, stride) in zip(conv_keys, self.layers, strict=True):
            layers.append(Convolution(layer_key, channels, outputs, size, stride, convolve))
            height, width, channels = -(-height // stride), -(-width // stride), outputs
        return _Convolutional(layers, Dense(dense_key, height * width * channels, self.hidden))


@dataclass(frozen=True)
class MlpTorso:
    """Dense layers of these widths, for observations of any shape."""

    widths: tuple[int, ...]

    def __call__(self, key: Key[Array, ""], shape: tuple[int, ...], convolve: Convolve) -> eqx.Module:
        del convolve
        sizes = (int(np.prod(shape)), *self.widths)
        keys = jax.random.split(key, len(self.widths))
        return _Dense([Dense(k, i, o) for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True)])


NATURE = ConvTorso(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 512)
SMALL = ConvTorso(((16, 3, 1),), 128)
MLP = MlpTorso((128, 128))


LANES = 8  # of a matrix product on a GPU: XLA would copy a larger matrix into one with a multiple of as many columns


class Network(eqx.Module):
    """Outputs [H A], or [H A Z] where the loss has atoms: in float32, since rounded ones would blur the small
    differences between actions."""

    torso: Any
    heads: Dense
    output_shape: tuple[int, ...] = eqx.field(static=True)

    def features(self, observation: Array) -> Float[Array, " F"]:
        dtype = self.heads.weight.dtype
        scale = 1 / 255 if observation.dtype == jnp.uint8 else 1.0
        return self.torso(observation.astype(dtype) * jnp.asarray(scale, dtype))

    def __call__(self, observation: Array) -> Float[Array, "H A *Z"]:
        features = self.features(observation)
        outputs = product_in_full(self.heads.weight, features) + self.heads.bias.astype(jnp.float32)
        return outputs[: math.prod(self.output_shape)].reshape(self.output_shape)


def make_network(
    key: Key[Array, ""],
    torso: Torso,
    observation_shape: tuple[int, ...],
    output_shape: tuple[int, ...],
    convolve: Convolve = Convolve.PLAIN,
    initial: Initial = Initial.FAN_IN,
) -> Network:
    """`output_shape` is (H, A) or (H, A, Z). `initial` draws the heads and those layers of a torso that are ours."""
    torso_key, head_key = jax.random.split(key)
    made = torso(torso_key, observation_shape, convolve)
    call: Any = made
    try:
        features: Any = eqx.filter_eval_shape(call, jnp.zeros(observation_shape))
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"the torso cannot take observations of shape {list(observation_shape)}: {problem}"
        ) from problem
    if len(features.shape) != 1:
        raise InputError(f"a torso must give a vector of features, but gives shape {list(features.shape)}")
    outputs = -(-math.prod(output_shape) // LANES) * LANES
    heads = Dense(head_key, features.shape[0], outputs)
    if initial is Initial.XAVIER:
        made, heads = _as_xavier(made), _scaled(heads, features.shape[0], math.prod(output_shape[1:]))
    return Network(made, heads, output_shape)


def _as_xavier(torso: eqx.Module) -> eqx.Module:
    """The same draws, within Xavier's bounds."""

    def scaled(layer: Any) -> Any:
        if isinstance(layer, Convolution):
            size, _, inputs, outputs = layer.weight.shape
            return _scaled(layer, size * size * inputs, size * size * outputs)
        if isinstance(layer, Dense):
            return _scaled(layer, layer.weight.shape[1], layer.weight.shape[0])
        return layer

    return jax.tree.map(scaled, torso, is_leaf=lambda node: isinstance(node, Convolution | Dense))


def _scaled(layer: Any, fan_in: int, fan_out: int) -> Any:
    ratio = math.sqrt(6 / (fan_in + fan_out)) / _bound(fan_in)
    return eqx.tree_at(lambda layer: layer.weight, layer, layer.weight * ratio)


def fuses_convolutions(network: Network) -> bool:
    """Whether any convolution of a network uses a kernel of ours."""
    layers = jax.tree.leaves(network, is_leaf=lambda node: isinstance(node, Convolution))
    return any(isinstance(layer, Convolution) and fused_convolution.fits(layer.weight.shape) for layer in layers)


def cast(network: Any, dtype: Any) -> Any:
    """The same network, or parameters, with all weights in another precision."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, network)
