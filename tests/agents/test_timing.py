"""Compares learning targets with loops over steps that have durations and survivals."""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes import TERMINATED, TRUNCATED, Row, filled, random_stream, timed
from hypothesis import given, settings
from hypothesis import strategies as st

from multihorizon.agents import replay as replays
from multihorizon.agents.learner import Learner
from multihorizon.agents.losses import Huber
from multihorizon.agents.networks import MlpTorso
from multihorizon.agents.presets import preset
from multihorizon.agents.replay import ReplayShape
from multihorizon.agents.returns import bootstrap_factors, n_step_returns
from multihorizon.discounting import Horizons
from multihorizon.envs.timing import Timing, TimingFields

FRAME = (2,)
GAMMAS = np.array([0.0, 0.6, 0.99, 1.0])
BOTH = TimingFields(duration=True, survival=True)


def shape_of(streams: int, n_steps: int, timing: TimingFields, batch: int = 30) -> ReplayShape:
    return ReplayShape(45 * streams, streams, FRAME, "uint8", 1, n_steps, batch, timing)


def target_by_hand(stream: list[Row], t: int, n_steps: int, gamma: float, timing: TimingFields) -> tuple[float, float]:
    """Returns the n-step return from t, and the factor of the bootstrap value."""
    total, factor = 0.0, 1.0
    for row in stream[t : t + n_steps]:
        total += factor * row.reward
        factor *= gamma ** (row.duration if timing.duration else 1.0) * (row.survival if timing.survival else 1.0)
        if row.end == TERMINATED:
            return total, 0.0
        if row.end == TRUNCATED:
            break
    return total, factor


@settings(max_examples=5)
@given(
    st.integers(0, 10_000),
    st.integers(1, 3),
    st.integers(1, 5),
    st.integers(30, 90),
    st.sampled_from([BOTH, TimingFields(duration=True), TimingFields(survival=True), TimingFields()]),
)
def test_targets_match_a_loop(seed: int, streams: int, n_steps: int, rows: int, timing: TimingFields) -> None:
    """Some replay buffers are full, and some episodes end within the n steps."""
    rng = np.random.default_rng(seed)
    steps = [timed(rng, random_stream(rng, 2 * rows + 1, FRAME)) for _ in range(streams)]
    shape = shape_of(streams, n_steps, timing)
    replay, taken = filled(shape, steps, rows)
    batch = jax.jit(partial(replays.sample, shape))(replay, jax.random.key(seed))
    gammas = jnp.asarray(GAMMAS, jnp.float32)
    found = jax.vmap(
        lambda one: (
            n_step_returns(one.rewards, gammas, one.timing),
            bootstrap_factors(gammas, one.steps, one.terminated, one.timing),
        )
    )(batch.transitions)
    for b, index in enumerate(np.asarray(batch.indices)):
        row, n = int(index) // streams, int(index) % streams
        t = row + shape.rows * ((taken[n] - 1 - row) // shape.rows)  # the latest step at this index
        for h, gamma in enumerate(GAMMAS):
            wanted = target_by_hand(steps[n], t, n_steps, gamma, timing)
            np.testing.assert_allclose([found[0][b, h], found[1][b, h]], wanted, rtol=1e-4, atol=1e-5)


def test_the_huber_loss_matches_a_target_computed_by_hand() -> None:
    """The target of each head's Huber loss is r₀ + γ^{dt₀} s₀ r₁ + γ^{dt₀ + dt₁} s₀ s₁ max Q."""
    rng = np.random.default_rng(3)
    horizons = Horizons(np.array([0.5, 0.9, 0.99]), np.ones(3))
    agent = replace(preset("multi-dqn"), horizons=horizons, n_steps=2, loss=Huber())
    learner = Learner(agent, 3, FRAME, MlpTorso((8,)))
    state = learner.init(jax.random.key(0))
    seen, ahead = jnp.asarray(rng.normal(size=(2, *FRAME)), jnp.float32)
    rewards, durations, survivals = np.array([0.3, -0.2]), np.array([0.5, 3.0]), np.array([0.8, 0.6])
    timing = Timing(jnp.asarray(durations, jnp.float32), jnp.asarray(survivals, jnp.float32))
    transition = replays.Transition(
        seen, jnp.array(1), jnp.asarray(rewards, jnp.float32), jnp.array(2), jnp.array(False), ahead, timing
    )
    losses, values = learner.transition_losses(state.parameters, state.target, transition)
    best = np.asarray(learner.values(state.parameters, ahead)).max(axis=1)
    for h, gamma in enumerate(horizons.gammas):
        goal = 0.3 + gamma**0.5 * 0.8 * -0.2 + gamma**3.5 * 0.8 * 0.6 * best[h]
        assert float(losses[h]) == pytest.approx(0.5 * (goal - float(values[h])) ** 2, rel=1e-4)
    plain = transition._replace(timing=Timing())
    ones = transition._replace(timing=Timing(jnp.ones(2), jnp.ones(2)))
    compared = [learner.transition_losses(state.parameters, state.target, one)[0] for one in (plain, ones)]
    np.testing.assert_allclose(*compared, rtol=1e-6)
    assert np.all(np.abs(np.asarray(losses - compared[0])) > 1e-4)


def test_the_replay_buffer_stores_only_the_timing_fields_of_the_environment() -> None:
    def names(timing: TimingFields) -> set[str]:
        leaves = jax.tree_util.tree_leaves_with_path(jax.eval_shape(lambda: replays.init(shape_of(2, 3, timing))))
        return {jax.tree_util.keystr(path) for path, _ in leaves}

    arrays = ["frames", "actions", "rewards", "ends", "ages", "priorities", "block_sums", "largest_priority", "written"]
    assert names(TimingFields()) == {f".{name}" for name in arrays}
    assert names(BOTH) - names(TimingFields()) == {".timing.duration", ".timing.survival"}
    assert names(TimingFields(survival=True)) - names(TimingFields()) == {".timing.survival"}
    assert shape_of(2, 3, BOTH).bytes - shape_of(2, 3, TimingFields()).bytes == 2 * 4 * 90


@pytest.mark.parametrize("steps", [0, 3, 100])
def test_smallest_and_largest_values_ignore_unwritten_rows(steps: int) -> None:
    """In a restored replay buffer, unwritten rows contain 0."""
    rng = np.random.default_rng(5)
    shape = shape_of(2, 1, BOTH)
    streams = [timed(rng, random_stream(rng, 210, FRAME)) for _ in range(2)]
    replay, taken = filled(shape, streams, steps)
    durations = np.array(replay.timing.duration).reshape(shape.rows, 2)
    held = [stream[max(0, rows - shape.rows) : rows] for stream, rows in zip(streams, taken, strict=True)]
    wanted = [row.duration if row.end < 3 else 1.0 for row in held[0] + held[1]] or [1.0]
    for n, rows in enumerate(taken):
        durations[rows:, n] = 0.0
    found = replays.extremes(jnp.asarray(durations.reshape(-1)), replay.written)
    np.testing.assert_allclose(found, [min(wanted), max(wanted)], rtol=1e-6)
