"""Rough estimates of the time and the disk space of a run."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax

from multihorizon.experiments.sweep import PlannedRun
from multihorizon.runs.checkpoint import KEPT
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.configure import made


@dataclass(frozen=True)
class Rate:
    """Training steps per second.

    Attributes:
        one_seed: The rate of one seed alone.
        all_seeds: The largest total rate of many seeds together.
        evaluation: The time of an evaluation step divided by the time of a training step.
    """

    one_seed: float
    all_seeds: float
    evaluation: float = 0.25


# Rates by device and by prefix of the environment's name. The longest matching prefix applies.
# gpu: one NVIDIA H200. MinAtar was measured with ten seeds and ten heads. Environments without a measured rate use the
#      slowest rate. Atari is the mean of machines 1 to 7 in results/speed, with 80 environments. In Atari, an
#      evaluation step took 1.3 to 2.5 times as long as a training step, because all environments run until the last
#      episode ends.
# cpu: two cores. MinAtar and Atari are from results/cpu. Foraging and Pathworld are from the metrics.jsonl of
#      `multihorizon sweep hazard` and `multihorizon sweep pathworld`.
RATES = {
    "gpu": {
        "minatar/breakout": Rate(9_400, 94_000),
        "minatar/asterix": Rate(5_800, 58_000),
        "minatar": Rate(5_300, 53_000),
        "atari": Rate(14_000, 16_100, evaluation=1.8),
        "": Rate(5_300, 53_000),
    },
    "cpu": {
        "minatar": Rate(1_800, 1_800),
        "atari": Rate(90, 90),
        "foraging": Rate(2_000, 2_000),
        "pathworld": Rate(2_000, 2_000),
        "": Rate(90, 90),
    },
}
START_SECONDS = 20  # imports and compilation


@dataclass(frozen=True)
class RunCost:
    """The estimated time and disk space of a run."""

    seconds: float
    kept_bytes: int  # weights that remain after the run
    working_bytes: int  # checkpoints and latest weights, of which most are deleted at the end


def estimate(one: PlannedRun, device: str, sizes: "Sizes") -> RunCost:
    """Estimates the remaining cost of a run. A finished run only occupies disk space."""
    configuration, schedule = one.configuration, one.configuration.schedule
    size = sizes.of(configuration)
    kept = size.parameters * (1 + schedule.iterations // configuration.weights_every)
    if one.finished:
        return RunCost(0.0, kept, 0)
    filled = min(1.0, schedule.steps / configuration.agent.replay_capacity) if configuration.checkpoint_replay else 0.0
    checkpoint = round(size.replay * filled) + size.learner
    # The newest checkpoint is written before the oldest is deleted.
    return RunCost(seconds(one, device), kept, (KEPT + 1) * checkpoint + size.parameters)


def seconds(one: PlannedRun, device: str) -> float:
    """Estimates the remaining time of a run in seconds."""
    rates = RATES.get(device, RATES["gpu"])
    rate = rates[max((name for name in rates if one.run.environment.startswith(name)), key=len)]
    schedule, seeds = one.configuration.schedule, one.configuration.seeds
    left = 1 - one.status().step / schedule.steps
    evaluation = rate.evaluation * schedule.iterations * schedule.evaluation_steps
    steps = max(0.0, left) * (schedule.steps + evaluation) * seeds
    return START_SECONDS + steps / min(seeds * rate.one_seed, rate.all_seeds)


class Size(NamedTuple):
    """The size in bytes of each part of the training state, for all seeds together."""

    replay: int
    learner: int
    parameters: int


class Sizes:
    """Computes and caches the sizes of training states. All Atari games share one entry."""

    def __init__(self) -> None:
        self._known: dict[Any, Size] = {}

    def of(self, configuration: Configuration) -> Size:
        agent = configuration.agent
        environment = configuration.environment
        shape = (agent.replay_capacity, len(agent.horizons), agent.loss, type(agent.optimiser), agent.compute_dtype)
        key = ("atari" if environment.startswith("atari/") else environment, *shape, configuration.torso)
        if key not in self._known:
            with made(replace(configuration, seeds=1, environments=1)) as trainer:
                state: Any = jax.eval_shape(lambda: trainer.init(0))
            self._known[key] = Size(*map(_bytes, (state.replay, state.learner, state.learner.parameters)))
        return Size(*(configuration.seeds * part for part in self._known[key]))


def _bytes(tree: Any) -> int:
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))
