"""From an observation to the outputs of all heads: a torso, and one linear layer for every horizon and action.

Written for one observation; vmap adds the batch and the seeds. The only file that knows of equinox layers.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from multihorizon.errors import InputError


class Convolve(Enum):
    """How a convolution is computed: the same weights and results, but not the same speed everywhere."""

    PLAIN = "XLA's convolution: fastest on a CPU, except inside compiled loops, where it has no threads"
    PRODUCTS = (
        "space-to-depth, shifted slices and one matrix product: fastest on a GPU, in loops and over vmapped seeds"
    )


def convolve_for(backend: str, in_loop: bool) -> Convolve:
    return Convolve.PLAIN if backend == "cpu" and not in_loop else Convolve.PRODUCTS


def _uniform(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[Array, "..."]:
    bound = 1 / np.sqrt(np.prod(shape[:-1]))  # fan-in: all axes but the output's
    return jax.random.uniform(key, shape, minval=-bound, maxval=bound)


class Dense(eqx.Module):
    weight: Float[Array, "I O"]
    bias: Float[Array, " O"]

    def __init__(self, key: Key[Array, ""], inputs: int, outputs: int) -> None:
        self.weight = _uniform(key, (inputs, outputs))
        self.bias = jnp.zeros(outputs)

    def __call__(self, x: Float[Array, " I"]) -> Float[Array, " O"]:
        return x @ self.weight + self.bias


class Convolution(eqx.Module):
    """A square kernel whose size is a multiple of its stride, with SAME padding."""

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
        if self.convolve is Convolve.PRODUCTS:
            return self._products(x) + self.bias
        out = jax.lax.conv_general_dilated(
            x[None], self.weight, (self.stride, self.stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        return out[0] + self.bias

    def _products(self, x: Float[Array, "h w I"]) -> Float[Array, "h2 w2 O"]:
        size, s = self.weight.shape[0], self.stride
        folds = size // s  # kernel size after folding s × s blocks into channels
        height, width = (-(-n // s) for n in x.shape[:2])
        pads = [max((out - 1) * s + size - n, 0) for out, n in zip((height, width), x.shape[:2], strict=True)]
        x = jnp.pad(x, [(p // 2, p - p // 2) for p in pads] + [(0, 0)])
        x = x.reshape(height + folds - 1, s, width + folds - 1, s, -1)
        x = x.transpose(0, 2, 1, 3, 4).reshape(height + folds - 1, width + folds - 1, -1)  # space to depth
        shifted = [x[i : i + height, j : j + width] for i in range(folds) for j in range(folds)]
        weight = self.weight.reshape(folds, s, folds, s, *self.weight.shape[2:]).transpose(0, 2, 1, 3, 4, 5)
        return jnp.concatenate(shifted, axis=-1) @ weight.reshape(-1, self.weight.shape[-1])


Torso = Callable[[Key[Array, ""], tuple[int, ...], Convolve], eqx.Module]
"""Makes a module from one observation, of the shape given, to its features [F]."""


class _Convolutional(eqx.Module):
    layers: list[Convolution]
    hidden: Dense

    def __call__(self, x: Float[Array, "h w c"]) -> Float[Array, " F"]:
        for layer in self.layers:
            x = jax.nn.relu(layer(x))
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


class Network(eqx.Module):
    """Outputs [H A], or [H A Z] where the loss has atoms."""

    torso: Any
    heads: Dense
    output_shape: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, observation: Array) -> Float[Array, "H A *Z"]:
        dtype = self.heads.weight.dtype
        scale = 1 / 255 if observation.dtype == jnp.uint8 else 1.0
        features = self.torso(observation.astype(dtype) * jnp.asarray(scale, dtype))
        return self.heads(features).reshape(self.output_shape)


def make_network(
    key: Key[Array, ""],
    torso: Torso,
    observation_shape: tuple[int, ...],
    output_shape: tuple[int, ...],
    convolve: Convolve = Convolve.PLAIN,
) -> Network:
    """`output_shape` is (H, A) or (H, A, Z)."""
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
    return Network(made, Dense(head_key, features.shape[0], int(np.prod(output_shape))), output_shape)


def cast(network: Any, dtype: Any) -> Any:
    """The same network, or parameters, with all weights in another precision."""
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, network)
