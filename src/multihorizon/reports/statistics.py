"""Statistics of a few seeds in several environments, with bootstrap intervals (Agarwal et al., 2021).

Strata hold one array for each environment, with seeds on the last axis. All functions keep the axes before it, so the
same function computes a statistic of one sample or of many resamples.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, stdtrit

Strata = Sequence[Float[np.ndarray, "... _"]]
Value = Float[np.ndarray, "..."] | float  # of one sample, or of each of many samples
REPLICATIONS = 2_000
LEVEL = 0.95


@dataclass(frozen=True)
class IntervalEstimate:
    """A statistic and its 95% interval; `low` and `high` are None if no interval can be computed."""

    value: float
    low: float | None = None
    high: float | None = None


def iqm(strata: Strata, share: float | None = None) -> Value:
    """Returns the interquartile mean: the mean of the middle half of all runs.

    Args:
        strata: Scores by environment.
        share: The fraction of runs trimmed at each end; the runs at the edges may have fractional weights. By default,
            a quarter of the runs, rounded down to whole runs, as in rliable.
    """
    runs = np.sort(np.concatenate(strata, axis=-1), axis=-1)
    count = runs.shape[-1]
    cut = count // 4 if share is None else count * share
    place = np.arange(count)
    weights = np.clip(np.minimum(place + 1 - cut, count - cut - place), 0, 1)
    return runs @ (weights / weights.sum())


def trimmed_share(strata: Strata) -> float:
    """Returns the fraction of runs that the IQM trims at each end.

    Resamples have fewer runs. Rounding a quarter of those down again would trim a different fraction, so the interval
    would be for a different statistic.
    """
    count = sum(scores.shape[-1] for scores in strata)
    return (count // 4) / count


def median(strata: Strata) -> Value:
    """Returns the median over environments of the mean over seeds."""
    return np.median(_means(strata), axis=0)


def mean(strata: Strata) -> Value:
    """Returns the mean over environments of the mean over seeds."""
    return _means(strata).mean(axis=0)


def optimality_gap(strata: Strata) -> Value:
    """Returns the mean shortfall from 1, the human score. Scores above 1 do not compensate for scores below 1."""
    return _means([np.maximum(1 - scores, 0) for scores in strata]).mean(axis=0)


def profile(strata: Strata, thresholds: Float[np.ndarray, " X"]) -> Float[np.ndarray, "... X"]:
    """Returns the share of runs that score above each threshold, with equal weight for every environment."""
    above = [_means([(scores > x).astype(float) for scores in strata]).mean(axis=0) for x in thresholds]
    return np.stack(above, axis=-1)


def probability_of_improvement(challenger: Strata, baseline: Strata) -> Value:
    """Returns the probability that a run of the challenger beats a run of the baseline in a random environment.

    A tie counts as half a win (Mann & Whitney, 1947).
    """
    wins = [
        np.mean((x[..., :, None] > y[..., None, :]) + 0.5 * (x[..., :, None] == y[..., None, :]), axis=(-2, -1))
        for x, y in zip(challenger, baseline, strict=True)
    ]
    return np.mean(wins, axis=0)


def resampled(
    strata: Strata, rng: np.random.Generator, replications: int = REPLICATIONS, fewer: int = 1
) -> list[Float[np.ndarray, "R _"]]:
    """Draws S − `fewer` of each environment's S seeds with replacement, `replications` times.

    With draws of S seeds, the variance is (S − 1)/S of the true one. A 95% interval from three seeds then contains the
    true value in only 74% of cases with one environment, and in 88% with 26 environments. With draws of S − 1, the
    variance is right (McCarthy & Snowden, 1985). `fewer=0` is the plain bootstrap, as in rliable.
    """
    return [scores[rng.integers(0, len(scores), (replications, max(1, len(scores) - fewer)))] for scores in strata]


def interval(replicated: Value, freedom: float = np.inf) -> Float[np.ndarray, "2 ..."]:
    """Returns the 95% percentile interval of replications, which are on the first axis.

    With few degrees of freedom the percentiles are more extreme, to match the wider tails of Student's t-distribution
    (Hesterberg, 2015).
    """
    tail = ndtr(stdtrit(freedom, (1 - LEVEL) / 2)) if np.isfinite(freedom) else (1 - LEVEL) / 2
    return np.quantile(replicated, [tail, 1 - tail], axis=0)


def freedom(*samples: Strata) -> float:
    """Returns the degrees of freedom: the number of seeds less one, summed over all samples and environments."""
    return float(sum(scores.shape[-1] - 1 for strata in samples for scores in strata))


def largest_coverage(seeds: Sequence[int]) -> float:
    """Returns the largest coverage that an interval can have: how often it contains the true value, 0.95 at most.

    A bootstrap interval never extends beyond the lowest and the highest score. In one environment with S seeds, all
    scores lie on one side of the true value with probability p^S + (1 - p)^S ≥ 2^(1 - S), where p is the probability
    that a score lies above it. The interval then misses the true value, whatever the distribution of the scores.

    Args:
        seeds: The number of seeds of each environment. With several environments, there is no such bound.
    """
    return min(LEVEL, 1 - 2.0 ** (1 - seeds[0])) if len(seeds) == 1 else LEVEL


def describe_coverage(seeds: Sequence[int]) -> str:
    """Returns a warning for readers if intervals cannot have the coverage that they state, and otherwise nothing."""
    if largest_coverage(seeds) == LEVEL:
        return ""
    return (
        f"With {seeds[0]} seeds in one environment, a 95% interval of a score contains the true value in at most "
        f"{largest_coverage(seeds):.0%} of cases, not in 95%."
    )


def varies(strata: Strata) -> bool:
    """Returns whether the seeds of at least one environment have different scores."""
    return any(np.any(scores != scores[..., :1]) for scores in strata)


def describe_ties(agents: Sequence[str]) -> str:
    """Returns a warning for readers about agents whose seeds all have the same score, and nothing if there are none.

    Resamples of such an agent are all equal, so the interval treats its scores as exact. That is wrong if the scores
    tie at the largest possible score, which other runs may miss. In simulations, nearly all intervals of the
    probability of improvement that miss the true value are of this kind (benchmarks/interval_coverage.py).

    Args:
        agents: The labels of these agents. By at least one statistic, all seeds of such an agent have the same score in
            each environment.
    """
    if not agents:
        return ""
    return (
        f"All seeds of {' and of '.join(agents)} have the same score in each environment compared, by at least one "
        "statistic. An interval treats such scores as exact, so it may contain the true value in far fewer than 95% of "
        "cases."
    )


def can_resample(*samples: Strata) -> bool:
    """Returns whether every environment has more than one seed."""
    return all(len(scores) > 1 for strata in samples for scores in strata)


def _means(strata: Strata) -> Float[np.ndarray, "G *many"]:
    return np.stack([scores.mean(axis=-1) for scores in strata])
