"""Tests complete updates: sampling, gradients, optimiser, new priorities, and copies of the target network."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from filled_replay import ACTIONS, SHAPE, filled
from precision import TYPES, plain

from multihorizon import kernels
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import NATURE
from multihorizon.agents.presets import preset
from multihorizon.discounting import hazard, paper_grid, single
from multihorizon.kernels.convolution import Convolve
from multihorizon.training.host_collector import Programs
from multihorizon.training.state import Core

UPDATES, IN_A_CYCLE, COPIES = 200, 10, 5
UNTRAINED = np.log(51)


def run(dtype: str, heads: int, seeds: int, fused: bool, nudge: float = 0.0) -> tuple[Any, Any]:
    """Makes updates as in training, and returns the state and the mean losses of each cycle [cycles S]."""
    horizons = single(0.99) if heads == 1 else paper_grid(hazard.Exponential(0.01), heads, gamma_max=0.99)
    agent = replace(
        preset("multi-rainbow"), horizons=horizons, compute_dtype=dtype, target_period_steps=4 * UPDATES // COPIES
    )
    learner = Learner(agent, ACTIONS, (84, 84, 4), NATURE, Convolve.FUSED if fused else Convolve.PLAIN)
    core = Core(learner, SHAPE)
    programs = Programs(core, IN_A_CYCLE)
    state = programs.init(jnp.arange(seeds))._replace(replay=jax.tree.map(jnp.copy, filled(seeds)))
    parameters = jax.tree.map(lambda x: x * (1 + nudge), state.learner.parameters)
    state = state._replace(learner=state.learner._replace(parameters=parameters))
    sums = [np.zeros(seeds)]
    for first in range(0, UPDATES, IN_A_CYCLE):
        state = programs.learn(state, first, at_once=True)
        sums.append(np.asarray(state.tally.losses, float).mean(axis=1))
    return state, np.diff(sums, axis=0) / IN_A_CYCLE


def distance(a: Any, b: Any) -> float:
    squares = [jnp.sum((x - y) ** 2) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)]
    return float(jnp.sqrt(sum(squares)))


@pytest.mark.parametrize(("heads", "seeds"), [(1, 1), (10, 3)])
@pytest.mark.parametrize("dtype", TYPES)
def test_updates_with_and_without_kernels_agree(
    monkeypatch: pytest.MonkeyPatch, dtype: str, heads: int, seeds: int
) -> None:
    """Rounding errors grow during training, so the final weights cannot be compared with a fixed tolerance.

    The kernels may change the final weights at most twice as much as a tiny change of the initial weights does.
    """
    with_kernels, losses = run(dtype, heads, seeds, fused=True)
    monkeypatch.setenv(kernels.SWITCH, "off")
    plain, plain_losses = run(dtype, heads, seeds, fused=False)
    nudged, _ = run(dtype, heads, seeds, fused=False, nudge=2.0**-11 if dtype == "float32" else 2.0**-8)
    assert np.all(np.isfinite(losses))
    assert losses.max() < 1.5 * UNTRAINED
    np.testing.assert_allclose(losses[0], plain_losses[0], rtol=0.02)
    np.testing.assert_allclose(losses[-5:].mean(axis=0), plain_losses[-5:].mean(axis=0), rtol=0.05)
    apart = distance(with_kernels.learner.parameters, plain.learner.parameters)
    assert apart <= 2 * distance(nudged.learner.parameters, plain.learner.parameters)


@pytest.mark.parametrize(("heads", "seeds"), [(1, 1), (10, 3)])
@pytest.mark.parametrize("dtype", TYPES)
def test_repeated_updates_are_bitwise_identical(dtype: str, heads: int, seeds: int) -> None:
    first, first_losses = run(dtype, heads, seeds, fused=True)
    second, second_losses = run(dtype, heads, seeds, fused=True)
    np.testing.assert_array_equal(first_losses, second_losses)
    named = jax.tree_util.tree_leaves_with_path(first)
    differ = [
        jax.tree_util.keystr(path)
        for (path, a), b in zip(named, jax.tree.leaves(second), strict=True)
        if not np.array_equal(plain(a), plain(b))
    ]
    assert not differ, f"not identical: {', '.join(differ)}"
