"""Whole updates as training runs them: sampling, both passes, optimiser and new priorities in one compiled loop."""

from dataclasses import replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from precision import TYPES

from multihorizon import kernels
from multihorizon.agents import replay as replays
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import NATURE
from multihorizon.agents.presets import preset
from multihorizon.agents.replay import ReplayShape
from multihorizon.discounting import hazard, paper_grid, single
from multihorizon.kernels.convolution import Convolve
from multihorizon.training.compiling import compiled, updates

UPDATES, ACTIONS = 200, 18
UNTRAINED = np.log(51)


@cache
def filled(seeds: int) -> tuple[ReplayShape, Any]:
    """Returns a replay buffer of block images. Rewards depend on the images, so that there is something to learn."""
    shape = ReplayShape(16_000, 80, (84, 84, 1), "uint8", 4, 3, 32)

    def one(key: Any) -> Any:
        replay = replays.init(shape)
        keys = jax.random.split(key, 4)
        count = replay.actions.shape[0]
        blocks = jax.random.randint(keys[0], (count, 7, 7, 1), 0, 256).astype(jnp.uint8)
        frames = jnp.repeat(jnp.repeat(blocks, 12, axis=1), 12, axis=2)
        priorities = jax.random.uniform(keys[1], replay.priorities.shape, minval=0.1)
        return replay._replace(
            frames=frames,
            actions=jax.random.randint(keys[2], (count,), 0, ACTIONS),
            rewards=(blocks[:, 3, 3, 0] > 200).astype(jnp.float32),
            ends=jax.random.bernoulli(keys[3], 0.01, (count,)).astype(jnp.uint8),
            ages=jnp.full(count, 100, jnp.uint8),
            priorities=priorities,
            block_sums=priorities.sum(axis=1),
            written=jnp.full(shape.streams, shape.rows, jnp.int32),
        )

    return shape, jax.jit(jax.vmap(one))(jax.random.split(jax.random.key(3), seeds))


def run(dtype: str, heads: int, seeds: int, fused: bool, nudge: float = 0.0) -> tuple[Any, Any]:
    """Returns the state and replay after the updates, and the loss [S U] of each update."""
    horizons = single(0.99) if heads == 1 else paper_grid(hazard.Exponential(0.01), heads, gamma_max=0.99)
    agent = replace(preset("multi-rainbow"), horizons=horizons, compute_dtype=dtype)
    learner = Learner(agent, ACTIONS, (84, 84, 4), NATURE, Convolve.FUSED if fused else Convolve.PLAIN)
    shape, replay = filled(seeds)

    def many(key: Any, replay: Any) -> Any:
        state = learner.init(key)
        state = state._replace(parameters=jax.tree.map(lambda x: x * (1 + nudge), state.parameters))

        def one(held: Any, key: Any) -> Any:
            state, replay, metrics = learner.learn(shape, *held, key)
            return (state, replay), metrics.losses.mean()

        return updates(one, (state, replay), jax.random.split(key, UPDATES))

    (state, replay), losses = compiled(jax.vmap(many))(jax.random.split(jax.random.key(5), seeds), replay)
    return (state, replay), np.asarray(losses)


def distance(a: Any, b: Any) -> float:
    squares = [jnp.sum((x - y) ** 2) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)]
    return float(jnp.sqrt(sum(squares)))


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("heads", [1, 10])
@pytest.mark.parametrize("dtype", TYPES)
def test_updates_with_kernels_agree_with_updates_without_them(
    monkeypatch: pytest.MonkeyPatch, dtype: str, heads: int, seeds: int
) -> None:
    """Training is chaotic: a rounding error in the first update grows.

    The weights with and without kernels may therefore be twice as far apart as those of two runs without kernels, one
    of which starts from slightly changed weights.
    """
    (with_kernels, _), losses = run(dtype, heads, seeds, fused=True)
    monkeypatch.setenv(kernels.SWITCH, "off")
    (plain, _), plain_losses = run(dtype, heads, seeds, fused=False)
    (nudged, _), _ = run(dtype, heads, seeds, fused=False, nudge=2.0**-11 if dtype == "float32" else 2.0**-8)
    assert np.all(np.isfinite(losses))
    assert losses.max() < 1.5 * UNTRAINED
    np.testing.assert_allclose(losses[:, :5], plain_losses[:, :5], rtol=0.02)
    np.testing.assert_allclose(losses[:, -50:].mean(axis=1), plain_losses[:, -50:].mean(axis=1), rtol=0.05)
    apart = distance(with_kernels.parameters, plain.parameters)
    assert apart <= 2 * distance(nudged.parameters, plain.parameters)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("heads", [1, 10])
@pytest.mark.parametrize("dtype", TYPES)
def test_repeated_updates_are_bitwise_identical(dtype: str, heads: int, seeds: int) -> None:
    first, first_losses = run(dtype, heads, seeds, fused=True)
    second, second_losses = run(dtype, heads, seeds, fused=True)
    np.testing.assert_array_equal(first_losses, second_losses)
    named = jax.tree_util.tree_leaves_with_path(first)
    differ = [
        jax.tree_util.keystr(path)
        for (path, a), b in zip(named, jax.tree.leaves(second), strict=True)
        if not np.array_equal(np.asarray(a), np.asarray(b))
    ]
    assert not differ, f"these differ: {', '.join(differ)}"
