"""How long a run takes, and how much it writes: roughly, before it is begun."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax

from multihorizon.experiments.sweep import PlannedRun
from multihorizon.runs.checkpoint import KEPT
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.configure import made


@dataclass(frozen=True)
class Rate:
    """Training steps a second: of one seed alone, and of as many seeds side by side as fill the device. A step of
    evaluation takes so many times as long: it is not learned from, but waits for its actions."""

    one_seed: float
    all_seeds: float
    evaluation: float = 0.25


# By device and environment, the longest name that fits. On other devices than these, times differ.
# gpu: one NVIDIA H200. MinAtar: ten seeds of ten heads, alone on it; games not measured go by the slowest. Atari:
#      the mean of machines 1 to 7 of results/speed with 80 environments, a step is four frames; 16 cores play for all
#      seeds, so that more seeds bring little. Of the steps of evaluation that are asked for each took 1.3 to 2.5 times
#      as long as one of training, since all environments go on until the last episode is over. The small worlds on a
#      GPU wait for its launches, not for its arithmetic: they go by MinAtar's.
# cpu: two cores. MinAtar: results/cpu (one seed). Atari: results/cpu, "The whole training loop". Foraging and
#      Pathworld: `multihorizon sweep hazard` and `sweep pathworld`, the rate that their metrics.jsonl tell.
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
    seconds: float
    kept_bytes: int  # weights, which stay
    working_bytes: int  # checkpoints, while it trains


def estimate(one: PlannedRun, device: str, sizes: "Sizes") -> RunCost:
    """Of what is left of a run; a finished one has only what it keeps."""
    configuration, schedule = one.configuration, one.configuration.schedule
    size = sizes.of(configuration)
    kept = size.parameters * (1 + schedule.iterations // configuration.weights_every)
    if one.finished:
        return RunCost(0.0, kept, 0)
    filled = min(1.0, schedule.steps / configuration.agent.replay_capacity) if configuration.checkpoint_replay else 0.0
    checkpoint = round(size.replay * filled) + size.learner
    # The newest is written before the oldest goes, and the latest weights lie beside them.
    return RunCost(seconds(one, device), kept, (KEPT + 1) * checkpoint + size.parameters)


def seconds(one: PlannedRun, device: str) -> float:
    rates = RATES.get(device, RATES["gpu"])
    rate = rates[max((name for name in rates if one.run.environment.startswith(name)), key=len)]
    schedule, seeds = one.configuration.schedule, one.configuration.seeds
    left = 1 - one.status().step / schedule.steps
    evaluation = rate.evaluation * schedule.iterations * schedule.evaluation_steps
    steps = max(0.0, left) * (schedule.steps + evaluation) * seeds
    return START_SECONDS + steps / min(seeds * rate.one_seed, rate.all_seeds)


class Size(NamedTuple):
    """Bytes of all seeds' parts of a state."""

    replay: int
    learner: int
    parameters: int


class Sizes:
    """Of configurations, each looked at once; Atari's games differ in their actions only, and go by one of them."""

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
