"""Compares the replay buffer with lists of steps."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from episodes import FINAL, Row, filled, random_stream, transition_by_hand
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from multihorizon.agents import replay as replays
from multihorizon.agents.replay import ReplayShape, Rows

FRAME = (3, 2, 1)


def shape_of(capacity: int, streams: int, stack: int, n_steps: int, batch: int = 64) -> ReplayShape:
    return ReplayShape(capacity, streams, FRAME, "uint8", stack, n_steps, batch)


def valid_by_hand(shape: ReplayShape, streams: list[list[Row]], taken: list[int]) -> set[tuple[int, int]]:
    """Returns (time, stream) of the rows that can be sampled.

    The oldest `stack - 1` rows of a full buffer cannot be sampled, because their frame stacks are incomplete.
    """
    valid = set()
    for n, (stream, rows) in enumerate(zip(streams, taken, strict=True)):
        earliest = max(0, rows + shape.stack - 1 - shape.rows)
        valid |= {(t, n) for t in range(earliest, rows - shape.n_steps) if stream[t].end != FINAL}
    return valid


@settings(max_examples=5)
@given(st.integers(0, 10_000), st.integers(1, 4), st.integers(1, 4), st.integers(1, 5), st.integers(30, 90))
@example(0, 1, 3, 1, 39)  # the buffer is almost full
def test_samples_match_a_list_of_steps(seed: int, n_streams: int, stack: int, n_steps: int, rows: int) -> None:
    rng = np.random.default_rng(seed)
    streams = [random_stream(rng, 2 * rows + 1, FRAME) for _ in range(n_streams)]
    shape = shape_of(capacity=45 * n_streams, streams=n_streams, stack=stack, n_steps=n_steps, batch=35)
    replay, taken = filled(shape, streams, rows)
    np.testing.assert_array_equal(replay.written, taken)
    width = replay.priorities.shape[1]
    valid = valid_by_hand(shape, streams, taken)
    held = {(i // n_streams, i % n_streams) for i in np.flatnonzero(np.asarray(replay.priorities).reshape(-1))}
    assert held == {(t % shape.rows, n) for t, n in valid}
    batch = jax.jit(partial(replays.sample, shape))(replay, jax.random.key(seed))
    assert width * replay.priorities.shape[0] >= shape.rows * n_streams
    by_row = {(t % shape.rows, n): t for t, n in valid}
    for b, index in enumerate(np.asarray(batch.indices)):
        n = int(index) % n_streams
        expected = transition_by_hand(streams[n], by_row[int(index) // n_streams, n], n_steps, stack)
        if expected["terminated"]:
            del expected["next_observation"]  # targets use no next observation after termination
        for name, value in expected.items():
            np.testing.assert_allclose(np.asarray(getattr(batch.transitions, name)[b]), value, rtol=1e-6, err_msg=name)


def test_draw_frequencies_are_proportional_to_priorities() -> None:
    rng = np.random.default_rng(0)
    shape = shape_of(capacity=400, streams=2, stack=1, n_steps=1, batch=50)
    replay, _ = filled(shape, [random_stream(rng, 301, FRAME) for _ in range(2)], 150)
    held = np.flatnonzero(np.asarray(replay.priorities).reshape(-1))
    chosen = rng.permutation(held)[:100]
    priorities = rng.uniform(0.05, 3, size=100).astype(np.float32)
    replay = replays.reprioritise(shape, replay, jnp.asarray(chosen), jnp.asarray(priorities))
    expected = np.asarray(replay.priorities, dtype=float).reshape(-1)
    draws = jax.jit(jax.vmap(lambda key: replays.sample(shape, replay, key)))(jax.random.split(jax.random.key(1), 800))
    np.testing.assert_allclose(np.asarray(draws.priorities), expected[np.asarray(draws.indices)], rtol=1e-6)
    counts = np.bincount(np.asarray(draws.indices).reshape(-1), minlength=len(expected))
    assert np.all(counts[expected == 0] == 0)
    held_counts, held_shares = counts[expected > 0], expected[expected > 0] / expected.sum()
    # Stratified draws vary less than independent draws, so the chi-square test is lenient.
    assert stats.chisquare(held_counts, held_shares * counts.sum()).pvalue > 1e-3
    # The total priority is divided into equal parts, which give one draw each, in order. So the blocks are in order.
    assert np.all(np.diff(np.asarray(draws.indices) // replay.priorities.shape[1], axis=1) >= 0)


def test_block_sums_stay_exact_after_many_updates() -> None:
    rng = np.random.default_rng(3)
    shape = shape_of(capacity=300, streams=1, stack=2, n_steps=3, batch=32)
    replay, _ = filled(shape, [random_stream(rng, 1_001, FRAME)], 500)

    @jax.jit
    def with_new_priorities(replay: Any, key: Any, sizes: Any) -> Any:
        return replays.reprioritise(shape, replay, replays.sample(shape, replay, key).indices, sizes)

    for i in range(200):
        sizes = jnp.asarray(10.0 ** rng.uniform(-6, 6, size=32), jnp.float32)
        replay = with_new_priorities(replay, jax.random.key(i), sizes)
    np.testing.assert_array_equal(replay.block_sums, np.asarray(replay.priorities.sum(axis=1)))


def test_new_transitions_get_the_largest_priority_and_invalid_rows_keep_priority_0() -> None:
    rng = np.random.default_rng(4)
    stream = random_stream(rng, 200, FRAME)
    shape = shape_of(capacity=120, streams=1, stack=1, n_steps=1, batch=32)
    replay, (rows,) = filled(shape, [stream], 60)
    first = int(np.flatnonzero(np.asarray(replay.priorities).reshape(-1))[0])
    replay = replays.reprioritise(shape, replay, jnp.array([first]), jnp.array([7.0]))
    row = Rows(
        jnp.asarray(stream[61].frame)[None],
        jnp.zeros(1, int),
        jnp.zeros(1),
        jnp.zeros(1, jnp.uint8),
        jnp.zeros(1, bool),
    )
    replay = replays.add(shape, replay, row)
    replay = replays.add(shape, replay, row)
    assert replay.priorities.reshape(-1)[rows] == 7.0
    empty = int(np.flatnonzero(np.asarray(replay.priorities).reshape(-1) == 0)[-1])
    replay = replays.reprioritise(shape, replay, jnp.array([empty]), jnp.array([3.0]))
    assert replay.priorities.reshape(-1)[empty] == 0


def test_importance_weights_match_values_computed_by_hand() -> None:
    np.testing.assert_allclose(replays.importance_weights(jnp.array([1.0, 4.0, 16.0])), [1, 0.5, 0.25], rtol=1e-6)


def test_a_replay_buffer_needs_at_most_3_percent_more_memory_than_its_frames() -> None:
    shape = ReplayShape(1_000_000, 128, (84, 84, 1), "uint8", 4, 3, 32)
    frames = 1_000_000 * 84 * 84
    assert frames * 0.999 < shape.bytes <= frames * 1.03


@pytest.mark.parametrize(("capacity", "streams"), [(10, 1), (60, 20)])
def test_a_replay_buffer_that_is_too_small_is_rejected(capacity: int, streams: int) -> None:
    with pytest.raises(ValueError, match="too small for batches of 64"):
        shape_of(capacity, streams, stack=4, n_steps=3)
