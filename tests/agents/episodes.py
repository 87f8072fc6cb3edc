"""Random episodes as lists, replay buffers with these episodes, and transitions computed by hand."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from multihorizon.agents import replay as replays
from multihorizon.agents.replay import Replay, ReplayShape, Rows
from multihorizon.envs.timing import Timing

CONTINUES, TERMINATED, TRUNCATED, FINAL = range(4)


class Row(NamedTuple):
    frame: np.ndarray
    action: int
    reward: float
    end: int
    first: bool
    duration: float = 1.0
    survival: float = 1.0


def random_stream(rng: np.random.Generator, rows: int, frame_shape: tuple[int, ...]) -> list[Row]:
    """Returns episodes of 1 to 9 steps. Truncated episodes have a final row."""
    stream: list[Row] = []
    while len(stream) < rows:
        length = int(rng.integers(1, 10))
        ending = int(rng.choice([TERMINATED, TRUNCATED]))
        for step in range(length):
            end = ending if step == length - 1 else CONTINUES
            stream.append(Row(_frame(rng, frame_shape), int(rng.integers(5)), rng.normal(), end, step == 0))
        if ending == TRUNCATED:
            stream.append(Row(_frame(rng, frame_shape), 0, 0.0, FINAL, False))
    return stream


def timed(rng: np.random.Generator, stream: list[Row]) -> list[Row]:
    """Adds random durations (0.1 to 4) and random survivals (0.5 to 1) to the steps."""
    return [row._replace(duration=rng.uniform(0.1, 4), survival=rng.uniform(0.5, 1)) for row in stream]


def filled(shape: ReplayShape, streams: list[list[Row]], steps: int) -> tuple[Replay, list[int]]:
    """Returns a replay buffer with `steps` steps of every stream, and the number of rows of each stream."""
    add = jax.jit(partial(replays.add, shape), donate_argnums=0)
    add_finals = jax.jit(partial(replays.add_finals, shape), donate_argnums=0)
    replay, taken = replays.init(shape), [0] * len(streams)
    for _ in range(steps):
        now = [stream[t] for stream, t in zip(streams, taken, strict=True)]
        timing = Timing(
            jnp.array([r.duration for r in now]) if shape.timing.duration else None,
            jnp.array([r.survival for r in now]) if shape.timing.survival else None,
        )
        replay = add(
            replay,
            Rows(
                jnp.stack([r.frame for r in now]),
                jnp.array([r.action for r in now], jnp.int32),
                jnp.array([r.reward for r in now], jnp.float32),
                jnp.array([r.end for r in now], jnp.uint8),
                jnp.array([r.first for r in now]),
                timing,
            ),
        )
        following = [stream[t + 1] for stream, t in zip(streams, taken, strict=True)]
        cut_off = [row.end == FINAL for row in following]
        if any(cut_off):
            replay = add_finals(replay, jnp.stack([r.frame for r in following]), jnp.array(cut_off))
        taken = [t + 1 + final for t, final in zip(taken, cut_off, strict=True)]
    return replay, taken


def _frame(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(1, 255, size=shape, dtype=np.uint8)  # never 0, so that frames differ from blanks


def stack_by_hand(stream: list[Row], t: int, stack: int) -> np.ndarray:
    frames = []
    for back in range(stack - 1, -1, -1):
        crossed = any(stream[t - j].first for j in range(back))
        frames.append(np.zeros_like(stream[t].frame) if crossed else stream[t - back].frame)
    return np.concatenate(frames, axis=-1)


def transition_by_hand(stream: list[Row], t: int, n_steps: int, stack: int) -> dict[str, object]:
    rewards, steps, terminated = [0.0] * n_steps, 0, False
    for j in range(n_steps):
        rewards[j] = stream[t + j].reward
        steps += 1
        if stream[t + j].end != CONTINUES:
            terminated = stream[t + j].end == TERMINATED
            break
    return {
        "observation": stack_by_hand(stream, t, stack),
        "action": stream[t].action,
        "rewards": rewards,
        "steps": steps,
        "terminated": terminated,
        "next_observation": stack_by_hand(stream, t + steps, stack),
    }
