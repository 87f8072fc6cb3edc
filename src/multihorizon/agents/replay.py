"""The replay buffer on the device. It stores each frame once, rebuilds stacks when sampling, and samples by priority.

Each environment has one stream, and each step is one row of that stream. A truncated episode has an extra row with its
last frame, so streams may differ in length. Targets bootstrap from this frame, but no transition starts at this frame.
The functions are written for one seed; vmap adds more seeds.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from multihorizon import kernels
from multihorizon.envs.timing import Timing, TimingFields
from multihorizon.errors import InputError
from multihorizon.kernels import fused_replay

# The end code of a row. INTERRUPTED means that the collector cut the episode off at the end of an iteration. FINAL
# marks the extra row of a truncated or interrupted episode.
CONTINUES, TERMINATED, TRUNCATED, FINAL, INTERRUPTED = range(5)
# The age of a row is the number of earlier frames in its episode. Ages above OLDEST are stored as OLDEST, to fit into
# uint8. Ages only show which frames of a stack belong to the episode, and a stack has far fewer than 255 frames.
OLDEST = 255


def end_codes(terminated: Any, truncated: Any) -> Any:
    """Returns the end code of each step, for NumPy or JAX arrays. A terminated episode does not count as truncated."""
    return TERMINATED * terminated + TRUNCATED * (truncated & ~terminated)


def has_final(ends: Any) -> Any:
    """Returns whether a FINAL row follows each step."""
    return (ends == TRUNCATED) | (ends == INTERRUPTED)


class Transition(NamedTuple):
    """An n-step transition.

    Rewards are not discounted. `next_observation` comes `steps` steps after `observation`. Near the end of an
    episode, `steps` is less than n. After the end of the episode, rewards and durations are 0, and survivals are 1.
    """

    observation: Array
    action: Int[Array, ""]
    rewards: Float[Array, " n"]
    steps: Int[Array, ""]
    terminated: Bool[Array, ""]
    next_observation: Array
    timing: Timing = Timing()


class Rows(NamedTuple):
    """One step of several streams, ready to be stored."""

    frame: Array  # [m ...]
    action: Int[Array, " m"]
    reward: Float[Array, " m"]
    end: UInt8[Array, " m"]
    first: Bool[Array, " m"]  # whether the frame is the first of its episode
    timing: Timing = Timing()  # [m] for each field that the replay buffer stores


class Replay(NamedTuple):
    """The contents of the buffer. Row t of stream n is at index t·N + n.

    Priorities are stored in blocks. When a priority changes, the sum of its block is recomputed from all entries of the
    block, so rounding errors do not accumulate.
    """

    frames: Array  # [L·N ...]
    actions: Int[Array, " LN"]
    rewards: Float[Array, " LN"]
    ends: UInt8[Array, " LN"]
    ages: UInt8[Array, " LN"]
    priorities: Float[Array, "blocks width"]
    block_sums: Float[Array, " blocks"]
    largest_priority: Float[Array, ""]
    written: Int[Array, " N"]  # number of rows written to each stream
    timing: Timing = Timing()  # [LN] for each field that the environment reports


class Batch(NamedTuple):
    """A sampled batch, with the index and the priority of each transition."""

    transitions: Transition  # [B ...]
    indices: Int[Array, " B"]
    priorities: Float[Array, " B"]


@dataclass(frozen=True)
class ReplayShape:
    """The sizes of a replay buffer."""

    capacity: int
    streams: int
    frame_shape: tuple[int, ...]
    frame_dtype: str
    stack: int
    n_steps: int
    batch: int
    timing: TimingFields = TimingFields()

    def __post_init__(self) -> None:
        longest = self.n_steps + self.stack
        needed = max(self.batch + longest, (longest + 1) * self.streams)
        if self.capacity < needed:
            raise InputError(
                f"a replay buffer of {self.capacity} frames is too small for batches of {self.batch} with "
                f"{self.n_steps}-step returns (number of environments: {self.streams}, frames per observation: "
                f"{self.stack}); use {needed} or more frames"
            )

    @property
    def rows(self) -> int:
        return self.capacity // self.streams

    @property
    def rows_per_block(self) -> int:
        """The number of rows in a block. A block has about as many entries as there are blocks, for a fast search."""
        return max(1, round(np.sqrt(self.rows * self.streams) / self.streams))

    @property
    def blocks(self) -> int:
        return -(-self.rows // self.rows_per_block)

    @property
    def bytes(self) -> int:
        shapes = jax.eval_shape(lambda: init(self))
        return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(shapes))


def init(shape: ReplayShape) -> Replay:
    """Returns an empty buffer."""
    size = shape.rows * shape.streams
    return Replay(
        frames=jnp.zeros((size, *shape.frame_shape), shape.frame_dtype),
        actions=jnp.zeros(size, jnp.int32),
        rewards=jnp.zeros(size),
        ends=jnp.zeros(size, jnp.uint8),
        ages=jnp.zeros(size, jnp.uint8),
        priorities=jnp.zeros((shape.blocks, shape.rows_per_block * shape.streams)),
        block_sums=jnp.zeros(shape.blocks),
        largest_priority=jnp.ones(()),
        written=jnp.zeros(shape.streams, jnp.int32),
        timing=shape.timing.fill(lambda: jnp.ones(size)),
    )


def add(shape: ReplayShape, replay: Replay, rows: Rows, first: Int[Array, ""] | int = 0) -> Replay:
    """Writes one step of consecutive streams, starting with stream `first`."""
    return _write(shape, replay, rows, jnp.ones(rows.frame.shape[0], bool), first)


def add_finals(
    shape: ReplayShape, replay: Replay, frames: Array, truncated: Bool[Array, " m"], first: Int[Array, ""] | int = 0
) -> Replay:
    """Writes the last frames [m ...] of truncated episodes. Streams without a truncated episode do not change."""
    none = jnp.zeros(frames.shape[0])
    actions, ends = none.astype(int), jnp.full(frames.shape[0], FINAL, jnp.uint8)
    timing = shape.timing.fill(lambda: jnp.ones(frames.shape[0]))
    rows = Rows(frames, actions, none, ends, none.astype(bool), timing)
    return _write(shape, replay, rows, truncated, first)


def _write(
    shape: ReplayShape, replay: Replay, rows: Rows, which: Bool[Array, " m"], first: Int[Array, ""] | int
) -> Replay:
    """Writes a row to some streams. The transition that starts n rows earlier can then be sampled."""
    streams = first + jnp.arange(rows.frame.shape[0])
    row = replay.written[streams] % shape.rows
    before = replay.ages[((row - 1) % shape.rows) * shape.streams + streams]
    age = jnp.where(rows.first, 0, jnp.minimum(before, OLDEST - 1) + 1)
    nowhere = shape.rows * shape.streams
    places = jnp.where(which, row * shape.streams, nowhere) + streams

    def write(into: Array, values: Array) -> Array:
        return into.at[places].set(values.astype(into.dtype), mode="drop", unique_indices=True)

    replay = replay._replace(
        frames=write(replay.frames, rows.frame),
        actions=write(replay.actions, rows.action),
        rewards=write(replay.rewards, rows.reward),
        ends=write(replay.ends, rows.end),
        ages=write(replay.ages, age),
        written=replay.written.at[streams].add(which),
        timing=jax.tree.map(write, replay.timing, rows.timing),
    )
    # The new row cannot be sampled yet, because its return is unknown. In a full buffer, the rows after the new row are
    # the oldest rows. These rows cannot be sampled, because frames of their stacks have been overwritten.
    lost = (row + jnp.arange(shape.stack)[:, None]) % shape.rows  # [k m]
    ready = (row - shape.n_steps) % shape.rows
    is_step = replay.ends[ready * shape.streams + streams] != FINAL
    known = jnp.where(is_step & (replay.written[streams] > shape.n_steps), replay.largest_priority, 0.0)
    changed = jnp.concatenate([lost, ready[None]])
    priorities = jnp.concatenate([jnp.zeros(lost.shape), known[None]])
    blocks = jnp.where(which, changed // shape.rows_per_block, shape.blocks).reshape(-1)
    leaves = ((changed % shape.rows_per_block) * shape.streams + streams).reshape(-1)
    return _prioritise(replay, blocks, leaves, priorities.reshape(-1))


def _prioritise(
    replay: Replay, blocks: Int[Array, " m"], leaves: Int[Array, " m"], values: Float[Array, " m"]
) -> Replay:
    """Sets priorities, and ignores entries whose block is out of range."""
    priorities = replay.priorities.at[blocks, leaves].set(values, mode="drop")
    sums = priorities.at[blocks].get(mode="fill", fill_value=0.0).sum(axis=1)
    return replay._replace(priorities=priorities, block_sums=replay.block_sums.at[blocks].set(sums, mode="drop"))


def sample(shape: ReplayShape, replay: Replay, key: Key[Array, ""]) -> Batch:
    """Samples a batch by priority, with one transition from each of B equal parts of the total priority."""
    draws = jax.random.uniform(key, (2, shape.batch))
    parts = (jnp.arange(shape.batch) + draws[0]) / shape.batch
    draw = fused_replay.draw if kernels.in_use() else _draw
    indices, priorities = draw(replay.priorities, replay.block_sums, parts, draws[1])
    transitions = jax.vmap(lambda index: _transition(shape, replay, index))(indices)
    return Batch(transitions, indices, priorities)


def _draw(
    priorities: Float[Array, "blocks width"],
    block_sums: Float[Array, " blocks"],
    parts: Float[Array, " B"],
    within: Float[Array, " B"],
) -> tuple[Int[Array, " B"], Float[Array, " B"]]:
    """Returns the indices and the priorities of the drawn entries.

    Each draw has a fraction p in `parts` and a fraction q in `within`, and makes two searches. The first search finds
    the block in which the running sum of all priorities exceeds p times the total. The second search finds the entry at
    which the running sum within this block exceeds q times the sum of the block. A single search over all entries would
    need more precision than float32.
    """
    blocks = _search(jnp.cumsum(block_sums)[None], parts[:, None])
    leaves = _search(jnp.cumsum(priorities[blocks], axis=1), within[:, None])
    return blocks * priorities.shape[1] + leaves, priorities[blocks, leaves]


def _search(sums: Float[Array, "#B width"], share: Float[Array, "B 1"]) -> Int[Array, " B"]:
    """Returns the first index whose cumulative sum exceeds the fraction `share` of the total.

    The entry at this index is never 0. Even if the sums are not finite, the index is valid.
    """
    whole = sums[:, -1:]
    before = jnp.sum(sums <= jnp.minimum(share * whole, whole * fused_replay.ALMOST), axis=1)
    return jnp.minimum(before, sums.shape[1] - 1)


def _transition(shape: ReplayShape, replay: Replay, index: Int[Array, ""]) -> Transition:
    row, stream = index // shape.streams, index % shape.streams
    window = ((row + jnp.arange(shape.n_steps)) % shape.rows) * shape.streams + stream
    ends = replay.ends[window]
    running = jnp.concatenate([jnp.ones(1, bool), jnp.cumprod(ends[:-1] == CONTINUES).astype(bool)])
    steps = running.sum()
    durations, survivals = replay.timing
    return Transition(
        observation=_stack(shape, replay, row, stream),
        action=replay.actions[index],
        rewards=jnp.where(running, replay.rewards[window], 0.0),
        steps=steps,
        terminated=jnp.any(running & (ends == TERMINATED)),
        next_observation=_stack(shape, replay, row + steps, stream),
        timing=Timing(
            duration=None if durations is None else jnp.where(running, durations[window], 0.0),
            survival=None if survivals is None else jnp.where(running, survivals[window], 1.0),
        ),
    )


def _stack(shape: ReplayShape, replay: Replay, row: Int[Array, ""], stream: Int[Array, ""]) -> Array:
    """Returns the stack that ends at `row`, oldest frame first. Frames before the start of the episode are 0."""
    back = jnp.arange(shape.stack - 1, -1, -1)
    indices = ((row - back) % shape.rows) * shape.streams + stream
    age = replay.ages[(row % shape.rows) * shape.streams + stream]
    frames = replay.frames[indices]  # [k ...]
    seen = (age >= back).reshape(-1, *[1] * (frames.ndim - 1))
    frames = jnp.where(seen, frames, jnp.zeros((), frames.dtype))
    return jnp.moveaxis(frames, 0, -2).reshape(*shape.frame_shape[:-1], -1)


def extremes(values: Float[Array, " LN"], written: Int[Array, " N"]) -> tuple[Float[Array, ""], Float[Array, ""]]:
    """Returns the smallest and the largest of `values` over the rows written so far.

    If no row has been written, the results are 1. If a value is NaN, the results are NaN.
    """
    row, stream = jnp.divmod(jnp.arange(values.shape[0]), written.shape[0])
    held = jnp.where(row < written[stream], values, values[0])
    # XLA's minimum and maximum of many values may skip NaN, so NaN is detected separately.
    is_empty, has_nan = written[0] == 0, jnp.isnan(held).any()

    def checked(value: Float[Array, ""]) -> Float[Array, ""]:
        return jnp.where(is_empty, 1.0, jnp.where(has_nan, jnp.nan, value))

    return checked(held.min()), checked(held.max())


def reprioritise(
    shape: ReplayShape, replay: Replay, indices: Int[Array, " B"], priorities: Float[Array, " B"]
) -> Replay:
    """Sets new priorities for sampled transitions that have not been overwritten."""
    if kernels.in_use():
        written, sums = fused_replay.write(replay.priorities, replay.block_sums, indices, priorities)
        replay = replay._replace(priorities=written, block_sums=sums)
    else:
        width = replay.priorities.shape[1]
        blocks, leaves = indices // width, indices % width
        kept = jnp.where(replay.priorities[blocks, leaves] > 0, priorities, 0.0)
        replay = _prioritise(replay, blocks, leaves, kept)
    return replay._replace(largest_priority=jnp.maximum(replay.largest_priority, priorities.max()))


def importance_weights(priorities: Float[Array, " B"]) -> Float[Array, " B"]:
    """Returns 1 / √p, divided by the largest weight of the batch."""
    weights = 1 / jnp.sqrt(priorities + 1e-10)
    return weights / weights.max()
