"""Environments whose frames contain the seed, the episode and the time, and trainers for these environments."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.networks import MlpTorso
from multihorizon.agents.presets import preset
from multihorizon.envs.timing import TimingFields
from multihorizon.envs.vector import Moves
from multihorizon.training.host_collector import HostCollector
from multihorizon.training.host_evaluation import HostEvaluator
from multihorizon.training.schedule import Schedule
from multihorizon.training.state import TrainingState
from multihorizon.training.trainer import IterationMetrics, Trainer
from multihorizon.training.worlds import world

ACTIONS = 3


class Scripted:
    """Environments with frames [seed mod 251, episode mod 251, time, 1].

    Episodes last 3 to 12 steps. Episodes with an even number terminate, and episodes with an odd number are truncated.
    The reward is the index of the action plus noise. The seed determines the noise and the lengths of the episodes.
    """

    frame_shape, frame_dtype, stack, actions = (4,), "uint8", 2, ACTIONS
    most_steps, timing = 12, TimingFields()

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


TORSO = MlpTorso((16,))


class Long(Scripted):
    """Environments that declare a larger limit on the episode length than `Scripted`."""

    most_steps = 250


def small(name: str = "dqn", **settings: Any) -> AgentConfig:
    classic = world("foraging").adapt(preset(name))
    return replace(classic, **({"replay_capacity": 1_200, "warm_up_steps": 120} | settings))


def small_groups(num_envs: int) -> int:
    """Returns 1, 2 or 4 groups."""
    return 1 if num_envs % 2 else 2 if num_envs % 8 else 4


def host_collector(
    agent: AgentConfig,
    environments: int = 4,
    steps: int = 400,
    iterations: int = 1,
    seeds: int = 1,
    make: type[Scripted] = Scripted,
    groups: Callable[[int], int] = small_groups,
) -> HostCollector:
    return HostCollector(agent, make, TORSO, Schedule(iterations, steps, 0), seeds, environments, groups)


def trainer_of(
    agent: AgentConfig,
    environments: int = 4,
    steps: int = 400,
    iterations: int = 1,
    seeds: int = 1,
    evaluation: int = 0,
    make: type[Scripted] = Scripted,
    evaluation_environments: int = 3,
) -> Trainer:
    collector = host_collector(agent, environments, steps, iterations, seeds, make)
    evaluator = HostEvaluator(collector.core.learner, make, seeds, evaluation_environments, small_groups)
    return Trainer(collector, Schedule(iterations, steps, evaluation), evaluator)


def after(trainer: Trainer, seed: int = 0, iterations: int = 1) -> tuple[TrainingState, IterationMetrics]:
    state = trainer.init(seed)
    for iteration in range(iterations):
        state, metrics = trainer.iterate(state, iteration, seed, lambda progress: None)
    return state, metrics
