"""Agents beside one another: what one gains over another, and what each earns over all environments."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from jaxtyping import Float

from multihorizon.report import statistics
from multihorizon.report.scores import Scores, Statistic, has_human_score
from multihorizon.report.statistics import Estimate, Strata, Value

MEASURES: dict[str, Callable[[Strata], Value]] = {
    "median": statistics.median,
    "IQM": statistics.iqm,
    "mean": statistics.mean,
    "optimality gap": statistics.optimality_gap,
}
THRESHOLDS = np.linspace(0, 8, 81)


@dataclass(frozen=True)
class Change:
    """What a challenger earns beside its baseline in one environment."""

    environment: str
    baseline: float
    challenger: float

    @property
    def percent(self) -> float | None:
        """Of the size of the baseline's score; there is none where that is 0 and the challenger's is not."""
        if self.challenger == self.baseline:
            return 0.0
        return 100 * (self.challenger - self.baseline) / abs(self.baseline) if self.baseline else None


@dataclass(frozen=True)
class Pair:
    """A challenger and its baseline in all environments that both have played, and how likely the first is to win."""

    baseline: str
    challenger: str
    statistic: Statistic
    changes: list[Change]
    wins: Estimate

    @property
    def better(self) -> int:
        return sum(change.challenger > change.baseline for change in self.changes)

    @property
    def ties(self) -> int:
        return sum(change.challenger == change.baseline for change in self.changes)

    @property
    def counted(self) -> str:
        tied = f" with {self.ties} tie{'s' if self.ties > 1 else ''}" if self.ties else ""
        return f"{self.better} of {len(self.changes)}{tied}"


@dataclass(frozen=True)
class Aggregate:
    """An agent's human-normalised scores over all games that have them."""

    agent: str
    statistic: Statistic
    measures: dict[str, Estimate]
    profile: Float[np.ndarray, " X"]
    profile_low: Float[np.ndarray, " X"] | None
    profile_high: Float[np.ndarray, " X"] | None


@dataclass(frozen=True)
class Aggregates:
    environments: dict[Statistic, list[str]]  # that all these agents have played and humans too
    of: list[Aggregate]
    left_out: list[str]  # environments, for want of a human score


def compare(scores: Scores, pair: tuple[str, str], statistic: Statistic, rng: np.random.Generator) -> Pair | None:
    """None where no environment has both."""
    baseline, challenger = pair
    shared = scores.shared(statistic, pair)
    if not shared:
        return None
    theirs, ours = (scores.strata(statistic, agent, shared) for agent in pair)
    changes = [
        Change(environment, float(b.mean()), float(c.mean()))
        for environment, b, c in zip(shared, theirs, ours, strict=True)
    ]
    value = float(statistics.probability_of_improvement(ours, theirs))
    wins = Estimate(value)
    if statistics.can_resample(ours, theirs):
        drawn = [statistics.resampled(strata, rng) for strata in (ours, theirs)]
        low, high = statistics.interval(statistics.probability_of_improvement(*drawn), statistics.freedom(ours, theirs))
        if low < high:  # where all seeds of one beat all of the other there is nothing to resample
            wins = Estimate(value, float(low), float(high))
    return Pair(baseline, challenger, statistic, changes, wins)


def aggregate(scores: Scores, rng: np.random.Generator, whole: bool = False) -> Aggregates:
    """Only over games that every agent has played; the paper's figures are among them where ours are as long."""
    agents = [agent for agent in scores.agents if whole or not agent.startswith("paper's")]
    human = [environment for environment in scores.environments if has_human_score(environment)]
    left_out = [environment for environment in scores.environments if environment not in human]
    environments, found = {}, []
    for statistic in Statistic:
        having = [agent for agent in agents if any((agent, e) in scores.by_seed[statistic] for e in human)]
        shared = [environment for environment in scores.shared(statistic, having) if environment in human]
        environments[statistic] = shared if having else []
        if having and shared:
            found += [_aggregated(scores, agent, statistic, shared, rng) for agent in having]
    return Aggregates(environments, found, left_out)


def _aggregated(
    scores: Scores, agent: str, statistic: Statistic, environments: list[str], rng: np.random.Generator
) -> Aggregate:
    strata = scores.normalised(statistic, agent, environments)
    profile = statistics.profile(strata, THRESHOLDS)
    values = {name: float(measure(strata)) for name, measure in MEASURES.items()}
    if not statistics.can_resample(strata):
        estimates = {name: Estimate(value) for name, value in values.items()}
        return Aggregate(agent, statistic, estimates, profile, None, None)
    drawn, free = statistics.resampled(strata, rng), statistics.freedom(strata)
    estimates = {}
    alike = MEASURES | {"IQM": partial(statistics.iqm, share=statistics.trimmed_share(strata))}
    for name, measure in alike.items():
        low, high = statistics.interval(measure(drawn), free)
        estimates[name] = Estimate(values[name], float(low), float(high))
    low, high = statistics.interval(statistics.profile(drawn, THRESHOLDS), free)
    return Aggregate(agent, statistic, estimates, profile, low, high)
