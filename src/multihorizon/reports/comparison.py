"""Compares agents: the improvement of one agent over another, and each agent's aggregates over all games."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial

import numpy as np
from jaxtyping import Float

from multihorizon.reports import statistics
from multihorizon.reports.scores import Scores, Statistic, has_human_score
from multihorizon.reports.statistics import IntervalEstimate, Strata, Value

THRESHOLDS = np.linspace(0, 8, 81)  # human-normalised scores at which performance profiles are computed


class Measure(Enum):
    """An aggregate of an agent's human-normalised scores over games."""

    MEDIAN = "median"
    IQM = "IQM"
    MEAN = "mean"
    OPTIMALITY_GAP = "optimality gap"

    @property
    def lower_is_better(self) -> bool:
        return self is Measure.OPTIMALITY_GAP


FUNCTIONS: dict[Measure, Callable[[Strata], Value]] = {
    Measure.MEDIAN: statistics.median,
    Measure.IQM: statistics.iqm,
    Measure.MEAN: statistics.mean,
    Measure.OPTIMALITY_GAP: statistics.optimality_gap,
}


@dataclass(frozen=True)
class ScoreChange:
    """The mean scores of a baseline and its challenger in one environment."""

    environment: str
    baseline: float
    challenger: float

    @property
    def percent(self) -> float | None:
        """The improvement in percent of the absolute value of the baseline's score.

        Equal scores give 0. Otherwise, a baseline score of 0 gives None.
        """
        if self.challenger == self.baseline:
            return 0.0
        return 100 * (self.challenger - self.baseline) / abs(self.baseline) if self.baseline else None


@dataclass(frozen=True)
class Comparison:
    """A challenger and its baseline in all environments that both have played."""

    baseline: str
    challenger: str
    statistic: Statistic
    changes: list[ScoreChange]
    win_probability: IntervalEstimate
    # Agents whose seeds all have the same score in every environment. Empty if `win_probability` has no interval.
    tied: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return f"{self.challenger} over {self.baseline}"

    @property
    def num_better(self) -> int:
        return sum(change.challenger > change.baseline for change in self.changes)

    @property
    def num_ties(self) -> int:
        return sum(change.challenger == change.baseline for change in self.changes)

    @property
    def tally(self) -> str:
        """The number of environments in which the challenger is better, in words."""
        tied = f" with {self.num_ties} tie{'s' if self.num_ties > 1 else ''}" if self.num_ties else ""
        return f"{self.num_better} of {len(self.changes)}{tied}"


@dataclass(frozen=True)
class Aggregate:
    """One agent's aggregates under one statistic."""

    agent: str
    statistic: Statistic
    measures: dict[Measure, IntervalEstimate]
    seeds: tuple[int, ...]  # number of seeds in each game
    is_tied: bool  # whether all seeds have the same score in every game
    profile: Float[np.ndarray, " X"]  # the share of runs that score above each threshold
    profile_low: Float[np.ndarray, " X"] | None
    profile_high: Float[np.ndarray, " X"] | None


@dataclass(frozen=True)
class Aggregates:
    """The aggregates of each agent under each statistic."""

    environments: dict[Statistic, list[str]]
    entries: list[Aggregate]
    excluded: list[str]  # environments without human scores

    @property
    def agents(self) -> list[str]:
        return list(dict.fromkeys(entry.agent for entry in self.entries))

    @property
    def statistics(self) -> list[Statistic]:
        return [s for s in Statistic if any(entry.statistic is s for entry in self.entries)]

    @property
    def warning(self) -> str:
        """A warning if an agent has too few seeds, or if all its seeds have the same score. Otherwise empty."""
        with_intervals = [entry for entry in self.entries if entry.profile_low is not None]
        counts = sorted({entry.seeds for entry in with_intervals})
        tied = dict.fromkeys(entry.agent for entry in with_intervals if entry.is_tied)
        warnings = [*map(statistics.describe_coverage, counts), statistics.describe_ties(list(tied))]
        return " ".join(filter(None, warnings))


def describe_ties(comparisons: list[Comparison]) -> str:
    """Returns a warning if all seeds of an agent have the same score, otherwise an empty string."""
    return statistics.describe_ties(list(dict.fromkeys(agent for one in comparisons for agent in one.tied)))


def compare(scores: Scores, pair: tuple[str, str], statistic: Statistic, rng: np.random.Generator) -> Comparison | None:
    """Compares a baseline with a challenger, or returns None if they share no environment.

    The win probability has no interval if an environment has a single seed, or if all resamples give the same result.
    """
    baseline, challenger = pair
    shared = scores.find_shared(statistic, pair)
    if not shared:
        return None
    theirs, ours = (scores.select(statistic, agent, shared) for agent in pair)
    changes = [
        ScoreChange(environment, float(b.mean()), float(c.mean()))
        for environment, b, c in zip(shared, theirs, ours, strict=True)
    ]
    value = float(statistics.probability_of_improvement(ours, theirs))
    estimate = IntervalEstimate(value)
    tied: tuple[str, ...] = ()
    if statistics.can_resample(ours, theirs):
        drawn = [statistics.resampled(strata, rng) for strata in (ours, theirs)]
        low, high = statistics.interval(statistics.probability_of_improvement(*drawn), statistics.freedom(ours, theirs))
        if low < high:
            estimate = IntervalEstimate(value, float(low), float(high))
            tied = tuple(
                agent for agent, strata in zip(pair, (theirs, ours), strict=True) if not statistics.varies(strata)
            )
    return Comparison(baseline, challenger, statistic, changes, estimate, tied)


def aggregate(scores: Scores, rng: np.random.Generator, full_length: bool = False) -> Aggregates:
    """Aggregates human-normalised scores over the games that every agent has played.

    The scores in the paper's table are included only if the runs are as long as the paper's runs (`full_length`).
    """
    agents = scores.find_comparable(full_length)
    human = [environment for environment in scores.environments if has_human_score(environment)]
    excluded = [environment for environment in scores.environments if environment not in human]
    environments, entries = {}, []
    for statistic in Statistic:
        having = [agent for agent in agents if any((agent, e) in scores.by_seed[statistic] for e in human)]
        shared = [environment for environment in scores.find_shared(statistic, having) if environment in human]
        environments[statistic] = shared if having else []
        if having and shared:
            entries += [_aggregate_agent(scores, agent, statistic, shared, rng) for agent in having]
    return Aggregates(environments, entries, excluded)


def _aggregate_agent(
    scores: Scores, agent: str, statistic: Statistic, environments: list[str], rng: np.random.Generator
) -> Aggregate:
    strata = scores.normalise(statistic, agent, environments)
    seeds, is_tied = tuple(len(one) for one in strata), not statistics.varies(strata)
    profile = statistics.profile(strata, THRESHOLDS)
    values = {measure: float(function(strata)) for measure, function in FUNCTIONS.items()}
    if not statistics.can_resample(strata):
        estimates = {measure: IntervalEstimate(value) for measure, value in values.items()}
        return Aggregate(agent, statistic, estimates, seeds, is_tied, profile, None, None)
    drawn, freedom = statistics.resampled(strata, rng), statistics.freedom(strata)
    estimates = {}
    resample_functions = FUNCTIONS | {Measure.IQM: partial(statistics.iqm, share=statistics.trimmed_share(strata))}
    for measure, function in resample_functions.items():
        low, high = statistics.interval(function(drawn), freedom)
        estimates[measure] = IntervalEstimate(values[measure], float(low), float(high))
    low, high = statistics.interval(statistics.profile(drawn, THRESHOLDS), freedom)
    return Aggregate(agent, statistic, estimates, seeds, is_tied, profile, low, high)
