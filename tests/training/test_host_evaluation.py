"""Tests evaluation in environments on the host."""

import numpy as np
import pytest
from scripted import Scripted, host_collector, small, small_groups, trainer_of

from multihorizon.training import trainer as trainers
from multihorizon.training.host_evaluation import HostEvaluator
from multihorizon.training.keys import EVALUATION, environment_seeds
from multihorizon.training.schedule import Schedule
from multihorizon.training.state import Episodes
from multihorizon.training.trainer import Iteration, Report, Trainer

ITERATION = Iteration(number=0, seed=0, first_cycle=0, learns_from=0, last_step=400, is_last=True)


def evaluated(trainer: Trainer, steps: int, report: Report = lambda progress: None) -> Episodes:
    state = trainer.init(0)
    assert trainer.evaluator is not None
    return trainer.evaluator.evaluate(state.learner.parameters, state.keys.evaluation, ITERATION, steps, report)


@pytest.mark.parametrize("environments", [3, 4, 8])
def test_evaluation_finishes_every_episode_that_starts_in_the_first_50_steps(environments: int) -> None:
    trainer = trainer_of(small(), evaluation_environments=environments)
    episodes_ = evaluated(trainer, steps=50)
    groups = small_groups(environments)
    assert trainer.evaluator.environments.groups == groups
    size = environments // groups
    twins = [Scripted(size) for _ in range(groups)]
    for twin, seeds in zip(
        twins, environment_seeds(0, 1, 0, EVALUATION, environments).reshape(groups, size), strict=True
    ):
        twin.reset(seeds)
    steps, episodes, active = 0, 0, np.ones((groups, size), bool)
    while active.any():
        for group, twin in enumerate(twins):
            if active[group].any():
                twin.send(np.zeros(size, int))
                moves = twin.receive()
                over = moves.terminated | moves.truncated
                steps += active[group].sum()
                episodes += (over & active[group]).sum()
                active[group] &= ~(over & (steps >= 50))
    assert (episodes_.lengths[0], episodes_.ended[0]) == (steps, episodes)
    assert steps >= 50


def test_evaluation_reports_its_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trainers, "SECONDS_BETWEEN_REPORTS", 0.0)
    trainer, told = trainer_of(small()), []
    count = evaluated(trainer, 50, told.append)
    far = [progress.evaluated for progress in told]
    assert far == sorted(far)
    assert far[0] == (3, 0)  # one step of each environment
    assert far[-1] == (count.lengths[0], count.ended[0])
    assert told[-1].returns == [pytest.approx(count.returns[0] / count.ended[0])]


def test_evaluation_cuts_off_endless_episodes() -> None:
    class Endless(Scripted):
        def reset(self, seeds: np.ndarray) -> np.ndarray:
            frames = super().reset(seeds)
            self._lengths[:] = 10**9
            return frames

    collector = host_collector(small(), make=Endless)
    evaluator = HostEvaluator(collector.core.learner, Endless, 1, 3, most_steps=30)
    count = evaluated(Trainer(collector, Schedule(1, 400, 20), evaluator), 20)
    assert (count.lengths[0], count.ended[0]) == (90, 3)
