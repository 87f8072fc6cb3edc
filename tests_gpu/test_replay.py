"""Tests large replay buffers. Compares priorities with NumPy in float64, and checks the sampled frames."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents import replay as replays
from multihorizon.agents.replay import ReplayShape, Rows
from multihorizon.kernels import fused_replay

pytestmark = pytest.mark.kernel
BATCH = 32
SHAPES = {  # streams, capacity
    "80 environments": (80, 1_000_000),
    "160 environments": (160, 1_000_000),
    "one environment": (1, 1_000_000),
    "a small one": (8, 10_007),
}


def made(name: str, seeds: int) -> tuple[Any, Any]:
    """Returns priorities and block sums. A third of the priorities are 0. The others span six orders of magnitude."""
    streams, capacity = SHAPES[name]
    shape = ReplayShape(capacity, streams, (84, 84, 1), "uint8", 4, 3, BATCH)
    rng = np.random.default_rng(0)
    size = (seeds, shape.blocks, shape.rows_per_block * streams)
    priorities = np.where(rng.random(size) < 1 / 3, 0, 10 ** rng.uniform(-5, 1, size)).astype(np.float32)
    return jnp.asarray(priorities), jnp.asarray(priorities.astype(np.float64).sum(axis=2).astype(np.float32))


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("name", SHAPES)
def test_drawn_indices_match_running_sums_in_float64(name: str, seeds: int) -> None:
    priorities, sums = made(name, seeds)
    draw = jax.jit(jax.vmap(fused_replay.draw))
    for trial in range(20):
        shares = jax.random.uniform(jax.random.key(trial), (2, seeds, BATCH))
        parts = (jnp.arange(BATCH) + shares[0]) / BATCH
        indices, drawn = map(np.asarray, draw(priorities, sums, parts, shares[1]))
        for s in range(seeds):
            held, blocks = np.asarray(priorities[s]), np.asarray(sums[s], np.float64)
            width = held.shape[1]
            block, leaf = indices[s] // width, indices[s] % width
            np.testing.assert_array_equal(drawn[s], held[block, leaf])
            assert np.all(drawn[s] > 0)
            _bracketed(blocks, block, np.asarray(parts[s], np.float64))
            for b in range(BATCH):
                _bracketed(held[block[b]].astype(np.float64), leaf[b : b + 1], np.asarray(shares[1, s, b : b + 1]))


def _bracketed(values: Any, index: Any, share: Any) -> None:
    """Asserts that `share` of the total lies between the running sums before and after the index, up to rounding."""
    ends = np.cumsum(values)
    slack = (len(values) + 4) * 2.0**-24 * ends[-1] + 2e-7 * ends[-1]
    assert np.all(share * ends[-1] <= ends[index] + slack)
    assert np.all(share * ends[-1] >= ends[index] - values[index] - slack)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("name", SHAPES)
def test_written_priorities_and_block_sums_match_numpy(name: str, seeds: int) -> None:
    """Some indices repeat, and some lie in the same block. A priority of 0 marks an overwritten row and must stay 0."""
    priorities, sums = made(name, seeds)
    expected = np.asarray(priorities).copy()
    blocks, width = expected.shape[1:]
    rng = np.random.default_rng(1)
    write = jax.jit(jax.vmap(fused_replay.write))
    for _ in range(20):
        indices = rng.integers(blocks * width, size=(seeds, BATCH))
        indices[:, 8:16] = indices[:, :1] // width * width + rng.integers(width, size=(seeds, 8))
        indices[:, 16:20] = indices[:, 4:8]
        values = rng.uniform(0.1, 3.0, (seeds, BATCH)).astype(np.float32)
        for s in range(seeds):
            of = dict(zip(indices[s].tolist(), values[s].tolist(), strict=True))
            values[s] = [of[index] for index in indices[s].tolist()]  # equal indices get equal priorities
            for index, value in of.items():
                if expected[s, index // width, index % width] > 0:
                    expected[s, index // width, index % width] = value
        priorities, sums = write(priorities, sums, jnp.asarray(indices, jnp.int32), jnp.asarray(values))
        np.testing.assert_array_equal(np.asarray(priorities), expected)
        np.testing.assert_allclose(np.asarray(sums), expected.astype(np.float64).sum(axis=2), rtol=width * 2.0**-24)


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_full_replay_buffer_returns_the_stored_frames(seeds: int) -> None:
    """The frames take 7·10⁹ bytes, which 32-bit offsets cannot address. Each frame encodes its seed, row and stream."""
    shape = ReplayShape(1_000_000, 80, (84, 84, 1), "uint8", 4, 3, BATCH)
    streams = jnp.arange(shape.streams)

    def spelled(seed: Any, row: Any) -> Any:
        digits = jnp.stack([jnp.full_like(streams, seed), jnp.full_like(streams, row // 256), row % 256 + 0 * streams])
        named = jnp.concatenate([digits, streams[None]]).astype(jnp.uint8)  # [4 N]
        return jnp.repeat(named.T, 84 * 21, axis=1).reshape(shape.streams, 84, 84, 1)

    def fill(seed: Any) -> Any:
        def add(row: Any, replay: Any) -> Any:
            nothing = jnp.zeros(shape.streams)
            rows = Rows(
                frame=spelled(seed, row),
                action=nothing.astype(int),
                reward=nothing,
                end=nothing.astype(jnp.uint8),
                first=nothing.astype(bool),
            )
            return replays.add(shape, replay, rows)

        return jax.lax.fori_loop(0, shape.rows, add, replays.init(shape))

    replay = jax.jit(jax.vmap(fill))(jnp.arange(seeds))
    sample = jax.jit(jax.vmap(lambda replay, key: replays.sample(shape, replay, key)))
    for trial in range(20):
        batch = sample(replay, jax.random.split(jax.random.key(trial), seeds))
        index = np.asarray(batch.indices)
        row, stream = index // shape.streams, index % shape.streams
        for later, observed in ((0, batch.transitions.observation), (3, batch.transitions.next_observation)):
            seen = np.asarray(observed[:, :, ::21, 0])  # [S B 4 stack]: one pixel from each of the four parts
            for s in range(seeds):
                for back in range(4):
                    at = row[s] + later - 3 + back
                    wanted = np.stack([np.full(BATCH, s), at // 256, at % 256, stream[s]], axis=1)
                    np.testing.assert_array_equal(seen[s, :, :, back], wanted)
