"""Environments whose every frame says where it is from, so that anything out of place shows."""

import numpy as np

from multihorizon.envs.vector import Moves

ACTIONS = 3


class Scripted:
    """Frames [environment's seed mod 251, episode mod 251, time, 1]. Episodes last 3 to 12 steps; how they end, and the
    reward of a step, follow from the seed alone. Action a pays a on top."""

    frame_shape, frame_dtype, stack, actions = (4,), "uint8", 2, ACTIONS
    most_steps = 12

    def __init__(self, count: int) -> None:
        self.count = count
        self.received: list[np.ndarray] = []

    def reset(self, seeds: np.ndarray) -> np.ndarray:
        self._rngs = [np.random.default_rng(int(seed)) for seed in seeds]
        self._seeds = np.asarray(seeds) % 251
        self._episodes, self._times = np.zeros(self.count, int), np.zeros(self.count, int)
        self._lengths = np.array([rng.integers(3, 13) for rng in self._rngs])
        return self._frames()

    def _frames(self) -> np.ndarray:
        ones = np.ones(self.count, int)
        return np.stack([self._seeds, self._episodes % 251, self._times, ones], axis=1).astype(np.uint8)

    def send(self, actions: np.ndarray) -> None:
        self.received.append(np.array(actions))

    def receive(self) -> Moves:
        self._times += 1
        over = self._times == self._lengths
        finals = self._frames()
        terminated = over & (self._episodes % 2 == 0)
        for n in np.flatnonzero(over):
            self._episodes[n] += 1
            self._times[n] = 0
            self._lengths[n] = self._rngs[n].integers(3, 13)
        rewards = np.array([rng.normal() for rng in self._rngs], np.float32) * 0.1 + self.received[-1]
        return Moves(self._frames(), rewards.astype(np.float32), terminated, over & ~terminated, finals)

    def close(self) -> None:
        self.received.clear()
