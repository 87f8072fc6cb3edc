"""Statistics of a few seeds in several environments, with bootstrap intervals (Agarwal et al., 2021).

Strata are sequences with one array of scores for each environment. The last axis of each array holds the seeds. Any
other axes, such as an axis of resamples, are also axes of the results.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, stdtrit

Strata = Sequence[Float[np.ndarray, "... _"]]
Value = Float[np.ndarray, "..."] | float  # one number, or one number for each resample
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

    `share` is the fraction of runs to trim at each end; a run at the edge may be trimmed in part. The default is a
    quarter, rounded down to whole runs, as in rliable.
    """
    runs = np.sort(np.concatenate(strata, axis=-1), axis=-1)
    count = runs.shape[-1]
    cut = count // 4 if share is None else count * share
    place = np.arange(count)
    weights = np.clip(np.minimum(place + 1 - cut, count - cut - place), 0, 1)
    return runs @ (weights / weights.sum())


def trimmed_share(strata: Strata) -> float:
    """Returns the fraction of runs that the IQM trims at each end.

    The IQM of a resample trims the same fraction. A resample has fewer runs, so a quarter of its runs could be rounded
    to a different fraction.
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

    Draws of S − 1 seeds give the right variance (McCarthy & Snowden, 1985). `fewer=0` is the ordinary bootstrap, as in
    rliable. The variance of the ordinary bootstrap is too small by the factor (S − 1)/S. With three seeds, its 95%
    intervals contain the true value in only 74% of cases in one environment, and in 88% in 26 environments.
    """
    return [scores[rng.integers(0, len(scores), (replications, max(1, len(scores) - fewer)))] for scores in strata]


def interval(replicated: Value, freedom: float = np.inf) -> Float[np.ndarray, "2 ..."]:
    """Returns the 95% percentile interval over the first axis.

    With few degrees of freedom, the interval ends at more extreme percentiles than 2.5% and 97.5% (Hesterberg, 2015).
    If the values are normally distributed, this multiplies the width of the interval by the ratio of Student's t
    quantile to the normal quantile.
    """
    tail = ndtr(stdtrit(freedom, (1 - LEVEL) / 2)) if np.isfinite(freedom) else (1 - LEVEL) / 2
    return np.quantile(replicated, [tail, 1 - tail], axis=0)


def freedom(*samples: Strata) -> float:
    """Returns the degrees of freedom: the number of seeds less one, summed over all samples and environments."""
    return float(sum(scores.shape[-1] - 1 for strata in samples for scores in strata))


def largest_coverage(seeds: Sequence[int]) -> float:
    """Returns an upper bound on the coverage of a 95% interval: how often it contains the true value.

    A bootstrap interval lies between the lowest and the highest score. Let p be the probability that a score is above
    the true value. In one environment with S seeds, all scores lie on one side of the true value with probability
    p^S + (1 - p)^S ≥ 2^(1 - S). The interval then misses the true value. With several environments, the bound is 0.95.
    """
    return min(LEVEL, 1 - 2.0 ** (1 - seeds[0])) if len(seeds) == 1 else LEVEL


def describe_coverage(seeds: Sequence[int]) -> str:
    """Returns a warning if intervals cannot reach a coverage of 95%, otherwise an empty string."""
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
    """Returns a warning about agents whose seeds all have the same score, or an empty string if there are none.

    If all seeds have the same score, all resamples are equal, and the interval treats the score as exact. This is wrong
    if the score is the largest possible score, because further runs may score less. In simulations of the probability
    of improvement (benchmarks/interval_coverage.py), such agents cause most of the intervals that miss the true value.
    """
    if not agents:
        return ""
    return (
        f"All seeds of {' and of '.join(agents)} have the same score (best or last 5) in each environment. An interval "
        "treats these scores as exact, so it may contain the true value in far fewer than 95% of cases."
    )


def can_resample(*samples: Strata) -> bool:
    """Returns whether every environment has more than one seed."""
    return all(len(scores) > 1 for strata in samples for scores in strata)


def _means(strata: Strata) -> Float[np.ndarray, "G *many"]:
    return np.stack([scores.mean(axis=-1) for scores in strata])
