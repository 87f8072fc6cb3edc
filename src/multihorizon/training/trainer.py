"""Training in iterations. A collector gathers transitions and learns; an evaluator plays with frozen weights."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from multihorizon import interrupts
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner
from multihorizon.agents.replay import ReplayShape
from multihorizon.training.guard import Guard
from multihorizon.training.schedule import Pace, Schedule
from multihorizon.training.state import Core, Episodes, Tally, TrainingState

SECONDS_BETWEEN_REPORTS = 1.0


@dataclass(frozen=True)
class Progress:
    """The progress of a run within an iteration. Lists have one entry per seed."""

    step: int  # number of steps since the start of the run
    returns: list[float | None]  # mean over the episodes that ended in this iteration
    loss: float | None  # mean over heads, updates and seeds of this iteration
    epsilon: float
    steps_per_second: float  # of all seeds together
    # Steps and episodes of the current evaluation; None during training. During an evaluation, `loss` is None, and
    # `returns`, `epsilon` and `steps_per_second` describe the evaluation.
    evaluated: tuple[int, int] | None = None


Report = Callable[[Progress], None]


@dataclass(frozen=True)
class IterationMetrics:
    """The metrics of one iteration. Lists have one entry per seed."""

    iteration: int
    step: int  # number of steps since the start of the run
    episodes: list[int]
    returns: list[float | None]  # mean over the episodes that ended; None if no episode ended
    lengths: list[float | None]  # mean number of steps of the episodes that ended
    evaluation_episodes: list[int]
    evaluation_returns: list[float | None]
    evaluation_lengths: list[float | None]
    updates: int
    losses: list[list[float]]  # one list per seed, with one entry per head; empty without updates
    values: list[list[float]]
    steps_per_second: float  # of training, for all seeds together
    seconds: float  # for training and evaluation together

    def line(self) -> dict[str, Any]:
        return dict(vars(self))


class Iteration(NamedTuple):
    """The data of one iteration for the collector and the evaluator."""

    number: int
    seed: int  # first seed of the run
    first_cycle: int
    learns_from: int  # first cycle with updates
    last_step: int  # step of the run at the end of the iteration
    is_last: bool


@runtime_checkable
class Collector(Protocol):
    """Gathers transitions with the current policy and learns from them, for several seeds in parallel."""

    core: Core
    pace: Pace
    cycles: int  # number of cycles per iteration
    whole_every: int  # number of iterations between two states that can be checkpointed
    num_seeds: int
    num_envs: int

    def init(self, seed: int) -> TrainingState:
        """Returns the initial state of the seeds `seed`, `seed` + 1, ..."""

    def collect(self, state: TrainingState, iteration: Iteration, reporter: "Reporter") -> TrainingState:
        """Trains for one iteration. The given state is donated."""

    def close(self) -> None: ...


@runtime_checkable
class Evaluator(Protocol):
    """Plays episodes with frozen weights."""

    def evaluate(
        self, parameters: PyTree[Array], keys: Any, iteration: Iteration, steps: int, report: Report
    ) -> Episodes:
        """Returns the sums [S] over episodes that began in the first `steps` steps."""

    def close(self) -> None: ...


class Reporter:
    """Checks the training state and reports progress, about once a second."""

    def __init__(self, trainer: "Trainer", report: Report, step: int) -> None:
        self._trainer, self._report = trainer, report
        self._step, self._time = step, time.perf_counter()

    def is_due(self) -> bool:
        return time.perf_counter() - self._time > SECONDS_BETWEEN_REPORTS

    def tell(self, state: TrainingState, step: int) -> None:
        """Checks the state, and reports progress at a step of the run."""
        interrupts.check()
        trainer = self._trainer
        trainer.guard.check(state)
        now = time.perf_counter()
        speed = (step - self._step) * trainer.num_seeds / (now - self._time)
        self._step, self._time = step, now
        self._report(
            Progress(
                step=step,
                returns=mean_returns(state.episodes),
                loss=_mean_loss(state.tally),
                epsilon=float(trainer.agent.epsilon.at(step, trainer.agent.warm_up_steps)),
                steps_per_second=speed,
            )
        )

    def finish(self, state: TrainingState, step: int) -> None:
        """Checks the state at the end of an iteration, unless the last report checked it."""
        if step != self._step:
            self._trainer.guard.check(state)


class Trainer:
    """Trains several seeds of an agent in parallel, one iteration at a time."""

    def __init__(self, collector: Collector, schedule: Schedule, evaluator: Evaluator | None = None) -> None:
        self.collector, self.schedule, self.evaluator = collector, schedule, evaluator
        self.core = collector.core
        self.guard = Guard(self.core.learner)

    @property
    def agent(self) -> AgentConfig:
        return self.core.agent

    @property
    def learner(self) -> Learner:
        return self.core.learner

    @property
    def shape(self) -> ReplayShape:
        return self.core.shape

    @property
    def num_seeds(self) -> int:
        return self.collector.num_seeds

    @property
    def iteration_steps(self) -> int:
        """Steps of one iteration for each seed: the scheduled steps, rounded up to whole cycles."""
        return self.collector.cycles * self.collector.pace.steps

    @property
    def whole_every(self) -> int:
        """The number of iterations between two states that can be checkpointed."""
        return self.collector.whole_every

    def init(self, seed: int) -> TrainingState:
        return self.collector.init(seed)

    def iterate(
        self, state: TrainingState, number: int, seed: int, report: Report
    ) -> tuple[TrainingState, IterationMetrics]:
        """Trains and evaluates for one iteration. The given state is donated."""
        begun = time.perf_counter()
        iteration = self._begin(state, number, seed)
        first_update = self.collector.pace.updates_before(iteration.learns_from)
        state = state._replace(
            tally=self._for_each_seed(self.core.empty_tally(first_update)),
            episodes=self._for_each_seed(Episodes.empty()),
        )
        self.guard.begin(state)
        reporter = Reporter(self, report, number * self.iteration_steps)
        state = self.collector.collect(state, iteration, reporter)
        reporter.finish(state, iteration.last_step)
        jax.block_until_ready(state.tally)
        trained = time.perf_counter() - begun
        evaluated = self.evaluate(state, iteration, report)
        return state, self._metrics(state, iteration, evaluated, trained, time.perf_counter() - begun)

    def _begin(self, state: TrainingState, number: int, seed: int) -> Iteration:
        first_cycle = number * self.collector.cycles
        held_steps = int(np.asarray(state.replay.written).sum(axis=-1).min())  # minimum over the seeds
        learns_from = self.collector.pace.learns_from(first_cycle, held_steps)
        last_step, is_last = (number + 1) * self.iteration_steps, number + 1 == self.schedule.iterations
        return Iteration(number, seed, first_cycle, learns_from, last_step, is_last)

    def _for_each_seed(self, tree: Any) -> Any:
        return jax.tree.map(lambda leaf: jnp.repeat(leaf[None], self.num_seeds, axis=0), tree)

    def evaluate(self, state: TrainingState, iteration: Iteration, report: Report) -> Episodes | None:
        if self.evaluator is None or not self.schedule.evaluation_steps:
            return None
        evaluated = self.evaluator.evaluate(
            state.learner.parameters, state.keys.evaluation, iteration, self.schedule.evaluation_steps, report
        )
        self.guard.check_returns(evaluated.returns, "evaluation")
        return evaluated

    def _metrics(
        self, state: TrainingState, iteration: Iteration, evaluated: Episodes | None, trained: float, seconds: float
    ) -> IterationMetrics:
        updates = int(np.asarray(state.tally.updates).max())

        def means(sums: Array) -> list[list[float]]:
            return (np.asarray(sums, float) / updates).tolist() if updates else []

        judged = self._for_each_seed(Episodes.empty()) if evaluated is None else evaluated
        return IterationMetrics(
            iteration=iteration.number,
            step=iteration.last_step,
            episodes=np.asarray(state.episodes.ended).tolist(),
            returns=mean_returns(state.episodes),
            lengths=mean_lengths(state.episodes),
            evaluation_episodes=np.asarray(judged.ended).tolist(),
            evaluation_returns=mean_returns(judged),
            evaluation_lengths=mean_lengths(judged),
            updates=updates,
            losses=means(state.tally.losses),
            values=means(state.tally.values),
            steps_per_second=self.iteration_steps * self.num_seeds / trained,
            seconds=seconds,
        )

    def close(self) -> None:
        self.collector.close()
        if self.evaluator is not None:
            self.evaluator.close()


def mean_returns(episodes: Episodes) -> list[float | None]:
    """Returns each seed's mean return, or None if no episode ended."""
    return _means(episodes.returns, episodes.ended)


def mean_lengths(episodes: Episodes) -> list[float | None]:
    """Returns each seed's mean episode length, or None if no episode ended."""
    return _means(episodes.lengths, episodes.ended)


def _means(sums: Array | np.ndarray, counts: Array | np.ndarray) -> list[float | None]:
    pairs = zip(np.asarray(sums, float), np.asarray(counts), strict=True)
    return [float(total / count) if count else None for total, count in pairs]


def _mean_loss(tally: Tally) -> float | None:
    updates = int(np.asarray(tally.updates).max())
    return float(np.asarray(tally.losses).mean()) / updates if updates else None
