"""What the two loops share: training in iterations, the pace of steps and updates, and what is told of them."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner, Metrics
from multihorizon.agents.replay import Replay, ReplayShape
from multihorizon.errors import InputError, at_least


@dataclass(frozen=True)
class Schedule:
    """Iterations, each some training and then evaluation with the weights frozen. The paper's, if nothing is said."""

    iterations: int = 200
    training_steps: int = 250_000
    evaluation_steps: int = 125_000  # 0: none; episodes begin until these are played, and all that began are finished

    def __post_init__(self) -> None:
        at_least("iterations", self.iterations, 1)
        at_least("training_steps", self.training_steps, 1)
        at_least("evaluation_steps", self.evaluation_steps, 0)

    @property
    def steps(self) -> int:
        """Of training, for each seed."""
        return self.iterations * self.training_steps


@dataclass(frozen=True)
class Pace:
    """The shortest pattern with one update for every `update_period_steps` steps of all environments together: some
    rows, a step of every environment each, and then some updates."""

    rows: int
    updates: int
    steps: int
    warm_up: int  # cycles without updates

    def cycles(self, steps: int) -> int:
        """As many as hold so many steps."""
        return -(-steps // self.steps)

    def learns_from(self, first: int, held_steps: int) -> int:
        """The cycle with the first updates, when cycle `first` is next and replay holds so many steps: it is warmed up
        again where it was not kept."""
        missing = min(first, self.warm_up) - held_steps // self.steps
        return max(self.warm_up, first + max(0, missing))

    def updates_before(self, cycle: Any) -> Any:
        """A cycle that learns: the number of its first update, in a run in which none was left out."""
        return (cycle - self.warm_up) * self.updates


def pace_of(agent: AgentConfig, environments: int, at_once: int | None = None) -> Pace:
    """Of environments of which so many, or else all, step at once."""
    at_least("the number of environments", environments, 1)
    at_once = environments if at_once is None else at_once
    least = agent.batch + agent.n_steps * environments
    if agent.warm_up_steps < least:
        raise InputError(
            f"warm_up_steps must fill a batch and its returns, {least} steps, got {agent.warm_up_steps}; "
            "use fewer environments or a longer warm-up"
        )
    period = agent.update_period_steps
    common = math.gcd(period, at_once)
    steps = period // common * at_once
    return Pace(period // common, at_once // common, steps, -(-agent.warm_up_steps // steps))


class Tally(NamedTuple):
    """Of the updates of one iteration."""

    first: Int[Array, ""]  # number of the first of them in the whole run
    updates: Int[Array, ""]
    losses: Float[Array, " H"]  # sums over updates
    values: Float[Array, " H"]
    opening: Float[Array, " H"]  # losses of the first update
    bad: Int[Array, ""]  # the first update whose loss was not finite; -1: none

    @staticmethod
    def none(heads: int, first: int = 0) -> "Tally":
        none = jnp.zeros((), jnp.int32)
        zeros = jnp.zeros(heads)
        return Tally(none + first, none, zeros, zeros, zeros, none - 1)

    @property
    def next_update(self) -> Int[Array, ""]:
        return self.first + self.updates

    def add(self, metrics: Metrics) -> "Tally":
        fails = ~jnp.all(jnp.isfinite(metrics.losses)) & (self.bad < 0)
        bad = jnp.where(fails, self.next_update, self.bad)
        opening = jnp.where(self.updates == 0, metrics.losses, self.opening)
        losses, values = self.losses + metrics.losses, self.values + metrics.values
        return Tally(self.first, self.updates + 1, losses, values, opening, bad)


@dataclass(frozen=True)
class Progress:
    """Where a run stands; lists are by seed."""

    step: int  # of the whole run
    returns: list[float | None]  # mean over the episodes that ended in this iteration
    loss: float | None  # mean over heads, updates and seeds of this iteration
    epsilon: float
    steps_per_second: float  # of all seeds together
    evaluated: tuple[int, int] | None = None  # steps and episodes: then returns and speed are the evaluation's too


@dataclass(frozen=True)
class Outcome:
    """Of one iteration; lists are by seed."""

    iteration: int
    step: int  # of the whole run, at its end
    episodes: list[int]
    returns: list[float | None]  # mean over the episodes that ended; None where none did
    evaluation_episodes: list[int]
    evaluation_returns: list[float | None]
    updates: int
    losses: list[list[float]]  # by seed and head; empty before the first update
    values: list[list[float]]
    steps_per_second: float  # of training, all seeds together
    seconds: float  # of the whole iteration

    def line(self) -> dict[str, Any]:
        return dict(vars(self))


Report = Callable[[Progress], None]


@runtime_checkable
class Trainer(Protocol):
    """Trains several seeds of an agent side by side. The state after every few iterations is all there is to keep, and
    `iterate` gives up the one that it is handed."""

    agent: AgentConfig
    learner: Learner
    shape: ReplayShape
    seeds: int
    environments: int
    schedule: Schedule
    pace: Pace
    cycles: int  # of one iteration
    whole_every: int  # iterations: only then is nothing under way but what is in the state
    guard: Any  # checks the state at every report

    def init(self, seed: int) -> Any:
        """Run s of several is the same as a single run with seed + s."""

    def iterate(self, training: Any, iteration: int, seed: int, report: Report) -> tuple[Any, Outcome]: ...


MOST_EVALUATION_STEPS = 27_000  # of an episode; one that is not over then counts as it stands
EVALUATION_KEYS = 0x6576616C  # set apart from the keys of training, which come from the same seeds


def evaluation_keys(seed: int, seeds: int, iteration: int) -> Key[Array, " S"]:
    def one(seed: Int[Array, ""]) -> Key[Array, ""]:
        return jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), EVALUATION_KEYS), iteration)

    return jax.vmap(one)(jnp.arange(seed, seed + seeds))


def held_steps(replay: Replay) -> int:
    """Of the seed whose replay holds fewest."""
    return int(np.asarray(replay.written).sum(axis=-1).min())


def mean_loss(tally: Tally) -> float | None:
    updates = int(np.asarray(tally.updates).max())
    return float(np.asarray(tally.losses).mean()) / updates if updates else None


def ratios(sums: Any, counts: Any) -> list[float | None]:
    return [float(s / n) if n else None for s, n in zip(np.asarray(sums), np.asarray(counts), strict=True)]


def outcome_of(
    trainer: Trainer, iteration: int, tally: Tally, played: Any, evaluated: Any, trained_seconds: float, seconds: float
) -> Outcome:
    """`played` and `evaluated` count the episodes that ended, and the sums of their returns, by seed; the latter may be
    None."""
    updates = int(np.asarray(tally.updates).max())
    steps = trainer.cycles * trainer.pace.steps
    ended = np.zeros(trainer.seeds, int) if evaluated is None else np.asarray(evaluated.ended)

    def means(sums: Array) -> list[list[float]]:
        return (np.asarray(sums, float) / updates).tolist() if updates else []

    return Outcome(
        iteration=iteration,
        step=(iteration + 1) * steps,
        episodes=np.asarray(played.ended).tolist(),
        returns=ratios(played.returns, played.ended),
        evaluation_episodes=ended.tolist(),
        evaluation_returns=[None] * trainer.seeds if evaluated is None else ratios(evaluated.returns, ended),
        updates=updates,
        losses=means(tally.losses),
        values=means(tally.values),
        steps_per_second=steps * trainer.seeds / trained_seconds,
        seconds=seconds,
    )
