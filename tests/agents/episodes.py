"""Random episodes, and a replay buffer as a plain list."""

from typing import NamedTuple

import numpy as np

CONTINUES, TERMINATED, TRUNCATED, FINAL = range(4)


class Row(NamedTuple):
    frame: np.ndarray
    action: int
    reward: float
    end: int
    first: bool


def random_stream(rng: np.random.Generator, rows: int, frame_shape: tuple[int, ...]) -> list[Row]:
    """Episodes of 1 to 9 steps that terminate, or are truncated and have a final row."""
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


def _frame(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(1, 255, size=shape, dtype=np.uint8)  # never 0: blanks can be told apart


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
