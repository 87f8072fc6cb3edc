"""Compares interpreted GPU kernels with versions in plain JAX, and lowers the kernels for a GPU."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents import replay
from multihorizon.kernels import convolution, fused_convolution, fused_replay
from multihorizon.kernels.convolution import Convolve
from multihorizon.kernels.fused_convolution import convolve_and_rectify, fits, plain

LAYERS = [(20, 4, 8, 4, 32), (9, 32, 4, 2, 64), (7, 64, 3, 1, 64)]  # side, inputs, size, stride, outputs
WHOLE_LAYERS = [(84, *LAYERS[0][1:]), (21, *LAYERS[1][1:]), (11, *LAYERS[2][1:])]


def layer(side: int, inputs: int, size: int, stride: int, outputs: int, seeds: int = 2) -> tuple[Any, ...]:
    """Returns images, weights, biases and cotangents."""
    keys = jax.random.split(jax.random.key(0), 4)
    out = -(-side // stride), -(-(side + 1) // stride)
    return (
        jax.random.normal(keys[0], (seeds, 3, side, side + 1, inputs)),
        jax.random.normal(keys[1], (seeds, size, size, inputs, outputs)) / np.sqrt(size * size * inputs),
        jax.random.normal(keys[2], (seeds, outputs)),
        jax.random.normal(keys[3], (seeds, 3, *out, outputs)),
    )


def with_gradients(convolve: Any, images: Any, weights: Any, biases: Any, cotangents: Any) -> Any:
    over_images = jax.vmap(convolve, (0, None, None))
    out, backward = jax.vjp(jax.vmap(over_images), images, weights, biases)
    return out, *backward(cotangents)


@pytest.mark.parametrize(("side", "inputs", "size", "stride", "outputs"), LAYERS)
def test_fused_convolution_and_its_gradients_match_plain_jax(
    side: int, inputs: int, size: int, stride: int, outputs: int
) -> None:
    assert fits((size, size, inputs, outputs), stride)
    given = layer(side, inputs, size, stride, outputs)
    fused = jax.jit(partial(with_gradients, lambda x, w, b: convolve_and_rectify(x, w, b, stride)))(*given)
    expected = with_gradients(lambda x, w, b: jax.nn.relu(plain(x, w, stride) + b), *given)
    for ours, wanted in zip(fused, expected, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-4)


def test_convolution_kernels_reject_unsupported_sizes() -> None:
    assert not fits((3, 3, 4, 16), 1)  # MinAtar's convolution
    assert not fits((8, 8, 3, 32), 4)
    assert not fits((8, 8, 4, 48), 4)
    assert not fits((4, 4, 16, 32), 3)


@pytest.mark.parametrize("how", [Convolve.PRODUCTS, Convolve.FUSED])
@pytest.mark.parametrize(("size", "stride"), [(4, 3), (3, 2), (2, 3), (5, 1)])
def test_convolutions_of_any_size_and_stride_match_plain_jax(size: int, stride: int, how: Convolve) -> None:
    """The kernels support none of the tested sizes, so `FUSED` uses matrix products."""
    given = layer(9, 16, size, stride, 32)
    found = with_gradients(lambda x, w, b: convolution.convolve_and_rectify(x, w, b, stride, how), *given)
    expected = with_gradients(lambda x, w, b: jax.nn.relu(plain(x, w, stride) + b), *given)
    for ours, wanted in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-4)


def lowered(function: Any, *given: Any) -> str:
    shapes = jax.tree.map(lambda x: jax.ShapeDtypeStruct(x.shape, x.dtype), given)
    return jax.jit(function).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()


@pytest.fixture
def as_on_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")


@pytest.mark.usefixtures("as_on_a_gpu")
@pytest.mark.parametrize(("side", "inputs", "size", "stride", "outputs"), WHOLE_LAYERS)
def test_convolution_kernels_lower_for_a_gpu(side: int, inputs: int, size: int, stride: int, outputs: int) -> None:
    shapes = jax.eval_shape(lambda: layer(side, inputs, size, stride, outputs))
    given = [jax.ShapeDtypeStruct(shape.shape, jnp.bfloat16) for shape in shapes]
    text = lowered(partial(with_gradients, lambda x, w, b: convolve_and_rectify(x, w, b, stride)), *given)
    assert text.count("gpu.triton") >= 2 + (inputs >= fused_convolution.LEAST)


@pytest.mark.usefixtures("as_on_a_gpu")
def test_replay_kernels_lower_for_a_gpu() -> None:
    held = jnp.zeros((2, 1000, 1000)), jnp.zeros((2, 1000))
    batch = jnp.zeros((2, 32))
    assert "gpu.triton" in lowered(jax.vmap(fused_replay.draw), *held, batch, batch)
    assert "gpu.triton" in lowered(jax.vmap(fused_replay.write), *held, batch.astype(jnp.int32), batch)


def priorities(blocks: int, width: int) -> tuple[jax.Array, jax.Array]:
    """Returns priorities for two seeds, and the sums of their blocks. About 30% of the priorities are 0."""
    keys = jax.random.split(jax.random.key(3))
    held = jax.random.uniform(keys[0], (2, blocks, width)) * (jax.random.uniform(keys[1], (2, blocks, width)) > 0.3)
    return held, held.sum(axis=-1)


@pytest.mark.parametrize(("blocks", "width"), [(31, 33), (7, 13)])
def test_the_draw_kernel_matches_plain_jax(blocks: int, width: int) -> None:
    held, sums = priorities(blocks, width)
    parts, within = jax.random.uniform(jax.random.key(4), (2, 2, 200))
    fused = jax.vmap(fused_replay.draw)(held, sums, parts, within)
    plainly = jax.vmap(replay._draw)(held, sums, parts, within)
    assert (np.asarray(fused[0]) == np.asarray(plainly[0])).mean() > 0.99  # the running sums are rounded differently
    for s in range(2):
        np.testing.assert_array_equal(fused[1][s], held[s].reshape(-1)[fused[0][s]])
        assert fused[1][s].min() > 0


@pytest.mark.parametrize("bad", [np.inf, np.nan])
@pytest.mark.parametrize("draw", [fused_replay.draw, replay._draw])
def test_drawn_indices_stay_in_bounds_if_priorities_are_not_finite(draw: Any, bad: float) -> None:
    """Until divergence is detected, training writes to the drawn indices, so the indices must lie in bounds."""
    held, sums = priorities(10, 12)
    parts, within = jax.random.uniform(jax.random.key(4), (2, 2, 200))
    for block in (0, 4, 9):
        indices, _ = jax.vmap(draw)(held.at[:, block, 5].set(bad), sums.at[:, block].set(bad), parts, within)
        assert 0 <= indices.min() <= indices.max() < 120


def test_the_write_kernel_updates_block_sums_and_nonzero_priorities() -> None:
    held, sums = priorities(7, 13)
    indices = jnp.stack([jax.random.permutation(key, 91)[:32] for key in jax.random.split(jax.random.key(5))])
    indices = indices.at[:, 1].set(indices[:, 0])  # two entries have the same index and the same value
    values = jax.random.uniform(jax.random.key(6), (2, 32), minval=0.1).at[:, :2].set(0.7)
    written, written_sums = jax.vmap(fused_replay.write)(held, sums, indices, values)
    expected = np.asarray(held).reshape(2, -1).copy()
    for s in range(2):
        had_one = expected[s, indices[s]] > 0
        assert 0 < had_one.sum() < 32
        expected[s, indices[s]] = np.where(had_one, values[s], 0)
    np.testing.assert_array_equal(np.asarray(written).reshape(2, -1), expected)
    np.testing.assert_allclose(written_sums, expected.reshape(2, 7, 13).sum(axis=-1), rtol=1e-6)
