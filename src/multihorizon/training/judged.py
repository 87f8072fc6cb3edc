"""Training in one environment and evaluation in another, as in learning without hazard and being judged under it."""

import time
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Array, PyTree

from multihorizon.training.iterations import Outcome, Report, Schedule, ratios


class JudgedElsewhere:
    """A trainer whose evaluation is `judge`'s. The two environments have the same observations and actions, and
    `trainer` itself does not evaluate. Either may be on the device or on the host."""

    def __init__(self, trainer: Any, judge: Any, schedule: Schedule) -> None:
        self._trainer, self._judge, self.schedule = trainer, judge, schedule
        self.agent, self.learner, self.shape = trainer.agent, trainer.learner, trainer.shape
        self.guard = trainer.guard
        self.seeds, self.environments = trainer.seeds, trainer.environments
        self.pace, self.cycles, self.whole_every = trainer.pace, trainer.cycles, trainer.whole_every

    def init(self, seed: int) -> Any:
        return self._trainer.init(seed)

    def iterate(self, training: Any, iteration: int, seed: int, report: Report) -> tuple[Any, Outcome]:
        training, outcome = self._trainer.iterate(training, iteration, seed, report)
        steps = self.schedule.evaluation_steps
        if not steps:
            return training, outcome
        begun = time.perf_counter()
        played = self.evaluate(training.learner.parameters, iteration, seed, steps)
        ended = np.asarray(played.ended)
        judged = replace(
            outcome,
            evaluation_episodes=ended.tolist(),
            evaluation_returns=ratios(played.returns, ended),
            seconds=outcome.seconds + time.perf_counter() - begun,
        )
        return training, judged

    def evaluate(self, parameters: PyTree[Array], iteration: int, seed: int, steps: int) -> Any:
        return self._judge.evaluate(parameters, iteration, seed, steps)

    def close(self) -> None:
        for trainer in (self._trainer, self._judge):
            if hasattr(trainer, "close"):
                trainer.close()
