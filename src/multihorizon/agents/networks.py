"""Networks: a torso, which maps an observation to features, and one linear layer for all heads and actions.

Networks are written for one observation; vmap adds the batch and the seeds.
"""

import inspect
import math
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from enum import Enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from multihorizon.errors import InputError, at_least, short_text, shown, store
from multihorizon.kernels import fused_convolution
from multihorizon.kernels.convolution import Convolve, convolve_and_rectify


class Initial(Enum):
    """The initial distribution of weights. Biases start at 0."""

    FAN_IN = "uniform with variance 1 / (√3 · fan-in), as in the authors' C51 and Rainbow"
    XAVIER = "uniform within √(6 / (fan-in + fan-out)) (Glorot & Bengio, 2010), as in the authors' DQN"


def _uniform(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
    at_least("the number of weights of a layer", math.prod(shape), 1, MOST_WEIGHTS)
    bound = _bound(math.prod(shape[:-1]))  # all axes except the output axis
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


def _bound(fan_in: int) -> float:
    return math.sqrt(math.sqrt(3) / fan_in)


class Dense(eqx.Module):
    """A dense layer.

    The weight has the same layout [O I] as its gradient. With different layouts, the optimiser's strided reads took a
    third of an update's time on a CPU.
    """

    weight: Float[Array, "O I"]
    bias: Float[Array, " O"]

    def __init__(self, key: Key[Array, ""], inputs: int, outputs: int) -> None:
        self.weight = _uniform(key, (inputs, outputs)).T
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, " I"]) -> Float[Array, " O"]:
        return self.weight @ x + self.bias


@jax.custom_jvp
def product_in_full(weight: Float[Array, "O I"], x: Float[Array, " I"]) -> Float[Array, " O"]:
    """Returns weight @ x, accumulated in float32. Gradients have the dtype of the inputs."""
    if jax.default_backend() == "cpu":  # XLA does not support some products with mixed dtypes
        weight, x = weight.astype(jnp.float32), x.astype(jnp.float32)
    return jnp.dot(weight, x, preferred_element_type=jnp.float32)


@product_in_full.defjvp
def _product_jvp(primals: tuple[Array, Array], tangents: tuple[Array, Array]) -> tuple[Array, Array]:
    (weight, x), (dweight, dx) = primals, tangents
    return product_in_full(weight, x), (weight @ dx + dweight @ x).astype(jnp.float32)


class Convolution(eqx.Module):
    """A convolution with a square kernel, SAME padding and a ReLU."""

    weight: Float[Array, "k k I O"]
    bias: Float[Array, " O"]
    stride: int = eqx.field(static=True)
    convolve: Convolve = eqx.field(static=True)

    def __init__(
        self,
        key: Key[Array, ""],
        inputs: int,
        outputs: int,
        size: int,
        stride: int,
        convolve: Convolve = Convolve.PLAIN,
    ) -> None:
        self.weight = _uniform(key, (size, size, inputs, outputs))
        self.bias = jnp.zeros(outputs)
        self.stride, self.convolve = stride, convolve

    def __call__(self, x: Float[Array, "h w I"]) -> Float[Array, "h2 w2 O"]:
        return convolve_and_rectify(x, self.weight, self.bias, self.stride, self.convolve)


WIDEST = 2**20  # largest number of outputs of a layer
MOST_LAYERS = 100
LARGEST_OBSERVATION = 2**31 - 1  # largest number of values in an observation
MOST_WEIGHTS = 2**40  # largest number of weights of a layer; XLA aborts the process if an array's size overflows

Torso = Callable[[Key[Array, ""], tuple[int, ...]], eqx.Module]
"""Makes a module that maps one observation of the given shape to features [F]."""


@dataclass(frozen=True)
class OwnNetwork:
    """A placeholder for a user's own network, which is not stored with a run."""

    name: str

    def __post_init__(self) -> None:
        short_text("the name of a network", self.name)

    def __call__(self, key: Key[Array, ""], shape: tuple[int, ...]) -> eqx.Module:
        del key, shape
        raise InputError(f"the network {self.name} is user-defined and was not stored; pass it again with network=")


class _Function(eqx.Module):
    function: Callable[[Array], Array] = eqx.field(static=True)

    def __call__(self, x: Array) -> Array:
        return self.function(x)


def as_torso(network: Any) -> Torso:
    """Converts a user's network to a function that makes a module.

    Args:
        network: `ConvTorso` or `MlpTorso`, a function `(key, observation_shape)` that makes an equinox module, a
            function `observation -> features`, or an equinox module. If `network` is a module, all seeds start with the
            weights of the module.

    Raises:
        InputError: If `network` is none of these.
    """
    if isinstance(network, ConvTorso | MlpTorso | OwnNetwork):
        return network
    if isinstance(network, eqx.Module) and callable(network):
        return lambda key, shape: network
    if callable(network):
        with suppress(ValueError, TypeError):  # some built-in functions have no signature
            takes = [p for p in inspect.signature(network).parameters.values() if p.default is p.empty]
            if len(takes) == 2:
                return network
            if len(takes) == 1 and not isinstance(network, type):
                return lambda key, shape: _Function(network)
    raise InputError(
        "a network must be an equinox module, a function (key, observation_shape) that makes a module, or a function "
        f"from an observation to features, got {shown(network)}"
    )


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


def _as_tuple(name: str, value: Any, of: str) -> tuple[Any, ...]:
    try:
        return tuple(value)
    except TypeError:
        raise InputError(f"{name} must be a tuple of {of}, got {shown(value)}") from None


@dataclass(frozen=True)
class ConvTorso:
    """Convolutions followed by a dense layer, for images.

    Args:
        layers: The convolutions, each as (channels, kernel size, stride).
        hidden: The width of the dense layer.

    Raises:
        InputError: If a size is not a whole number of at least 1, or there are too many layers.
    """

    layers: tuple[tuple[int, int, int], ...]
    hidden: int

    def __post_init__(self) -> None:
        names = ("channels", "kernel size", "stride")
        layers = []
        for given in _as_tuple("layers", self.layers, "convolutions (channels, kernel size, stride)"):
            layer = _as_tuple("a convolution", given, "numbers (channels, kernel size, stride)")
            if len(layer) != len(names):
                raise InputError(f"a convolution must have (channels, kernel size, stride), got {shown(given)}")
            pairs = zip(names, layer, strict=True)
            layers.append(tuple(at_least(f"the {name} of a convolution", value, 1, WIDEST) for name, value in pairs))
        at_least("the number of convolutions", len(layers), 0, MOST_LAYERS)
        store(self, layers=tuple(layers), hidden=at_least("the width of the dense layer", self.hidden, 1, WIDEST))

    def __call__(self, key: Key[Array, ""], shape: tuple[int, ...]) -> eqx.Module:
        if len(shape) != 3:
            raise InputError(
                f"a convolutional torso takes images [height width channels], not {list(shape)}; use MlpTorso"
            )
        *conv_keys, dense_key = jax.random.split(key, len(self.layers) + 1)
        height, width, channels = shape
        layers = []
        for layer_key, (outputs, size, stride) in zip(conv_keys, self.layers, strict=True):
            layers.append(Convolution(layer_key, channels, outputs, size, stride))
            height, width, channels = -(-height // stride), -(-width // stride), outputs
        return _Convolutional(layers, Dense(dense_key, height * width * channels, self.hidden))


@dataclass(frozen=True)
class MlpTorso:
    """Dense layers, for observations of any shape.

    Args:
        widths: The width of each layer.

    Raises:
        InputError: If a width is not a whole number of at least 1, or there are too many layers.
    """

    widths: tuple[int, ...]

    def __post_init__(self) -> None:
        widths = _as_tuple("widths", self.widths, "whole numbers")
        at_least("the number of layers", len(widths), 0, MOST_LAYERS)
        store(self, widths=tuple(at_least("the width of a layer", width, 1, WIDEST) for width in widths))

    def __call__(self, key: Key[Array, ""], shape: tuple[int, ...]) -> eqx.Module:
        sizes = (math.prod(shape), *self.widths)
        keys = jax.random.split(key, len(self.widths))
        return _Dense([Dense(k, i, o) for k, i, o in zip(keys, sizes[:-1], sizes[1:], strict=True)])


NATURE = ConvTorso(((32, 8, 4), (64, 4, 2), (64, 3, 1)), 512)
SMALL = ConvTorso(((16, 3, 1),), 128)
MLP = MlpTorso((128, 128))

LANES = 8  # on a GPU, XLA copies a matrix whose number of columns is not a multiple of 8


class Network(eqx.Module):
    """A torso with heads. Outputs [H A] or [H A Z] are float32, to preserve small differences between actions."""

    torso: Any
    heads: Dense
    output_shape: tuple[int, ...] = eqx.field(static=True)

    def features(self, observation: Array) -> Float[Array, " F"]:
        """Returns the torso's features of an observation; uint8 observations are scaled to [0, 1]."""
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
    """Makes a network with outputs (H, A) or (H, A, Z). `initial` does not affect a user's own layers."""
    at_least("the number of values of an observation", math.prod(observation_shape), 1, LARGEST_OBSERVATION)
    torso_key, head_key = jax.random.split(key)
    made = torso(torso_key, observation_shape)
    if not isinstance(made, eqx.Module) or not callable(made):
        raise InputError(f"a function that makes a network must return an equinox module, got {type(made).__name__}")
    made = _computed_by(made, convolve)
    call: Any = made
    try:
        features: Any = eqx.filter_eval_shape(call, jax.ShapeDtypeStruct(observation_shape, jnp.float32))
    except (TypeError, ValueError) as problem:
        raise InputError(
            f"the network cannot take observations of shape {list(observation_shape)}: {_in_one_line(problem)}"
        ) from problem
    if not hasattr(features, "shape"):
        raise InputError(f"a network must return a vector of features, but returns {type(features).__name__}")
    if len(features.shape) != 1:
        raise InputError(f"a network must return a vector of features, but returns shape {list(features.shape)}")
    outputs = -(-math.prod(output_shape) // LANES) * LANES
    heads = Dense(head_key, features.shape[0], outputs)
    if initial is Initial.XAVIER:
        made, heads = _as_xavier(made), _scaled(heads, features.shape[0], math.prod(output_shape[1:]))
    return Network(made, heads, output_shape)


def _in_one_line(problem: Exception) -> str:
    return " ".join(str(problem).split())


def _computed_by(torso: eqx.Module, convolve: Convolve) -> eqx.Module:
    def changed(layer: Any) -> Any:
        if isinstance(layer, Convolution):
            layer = copy(layer)
            object.__setattr__(layer, "convolve", convolve)  # the field is static, so tree_map does not reach it
        return layer

    return jax.tree.map(changed, torso, is_leaf=lambda node: isinstance(node, Convolution))


def _as_xavier(torso: eqx.Module) -> eqx.Module:
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
    """Returns whether the fused kernel supports at least one convolution of a network."""
    layers = jax.tree.leaves(network, is_leaf=lambda node: isinstance(node, Convolution))
    return any(
        isinstance(layer, Convolution) and fused_convolution.fits(layer.weight.shape, layer.stride) for layer in layers
    )


def cast(network: Any, dtype: Any) -> Any:
    """Converts all floating-point arrays of a network or of its parameters to `dtype`."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, network)
