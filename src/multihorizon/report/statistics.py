"""What may be said of agents from a few seeds in several environments, and how surely (Agarwal et al., 2021).

Strata hold one array for each environment, its seeds on the last axis. Any axes before it are carried through, so that
a statistic of one sample is also that of many resampled ones.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from scipy.special import ndtr, stdtrit

Strata = Sequence[Float[np.ndarray, "... _"]]
Value = Float[np.ndarray, "..."] | float  # of one sample, or of each of many
REPLICATIONS = 2_000
LEVEL = 0.95


@dataclass(frozen=True)
class Estimate:
    """A statistic and its interval; there is none where an environment has a single seed."""

    value: float
    low: float | None = None
    high: float | None = None


def iqm(strata: Strata, share: float | None = None) -> Value:
    """The interquartile mean: of the middle half of all runs. A quarter of them, rounded down, goes at either end;
    or a share, and then a run may count in part."""
    runs = np.sort(np.concatenate(strata, axis=-1), axis=-1)
    count = runs.shape[-1]
    cut = count // 4 if share is None else count * share
    place = np.arange(count)
    weights = np.clip(np.minimum(place + 1 - cut, count - cut - place), 0, 1)
    return runs @ (weights / weights.sum())


def trimmed_share(strata: Strata) -> float:
    """What the IQM leaves out at either end. Resamples have fewer runs: were a quarter of theirs rounded down again,
    another share would go, and the interval would be of another number than the estimate."""
    count = sum(scores.shape[-1] for scores in strata)
    return (count // 4) / count


def median(strata: Strata) -> Value:
    return np.median(_means(strata), axis=0)


def mean(strata: Strata) -> Value:
    return _means(strata).mean(axis=0)


def optimality_gap(strata: Strata) -> Value:
    """How far runs fall short of a score of 1, which is a human's; what is above it does not make up for it."""
    return _means([np.maximum(1 - scores, 0) for scores in strata]).mean(axis=0)


def profile(strata: Strata, thresholds: Float[np.ndarray, " X"]) -> Float[np.ndarray, "... X"]:
    """The share of runs that score above each threshold, every environment counted alike."""
    above = [_means([(scores > x).astype(float) for scores in strata]).mean(axis=0) for x in thresholds]
    return np.stack(above, axis=-1)


def probability_of_improvement(challenger: Strata, baseline: Strata) -> Value:
    """The chance that a run of the challenger beats one of the baseline in the same environment, which is drawn at
    random. A tie is half a win (Mann & Whitney)."""
    wins = [
        np.mean((x[..., :, None] > y[..., None, :]) + 0.5 * (x[..., :, None] == y[..., None, :]), axis=(-2, -1))
        for x, y in zip(challenger, baseline, strict=True)
    ]
    return np.mean(wins, axis=0)


def resampled(
    strata: Strata, rng: np.random.Generator, replications: int = REPLICATIONS, fewer: int = 1
) -> list[Float[np.ndarray, "R _"]]:
    """Each environment's S seeds drawn anew, S − `fewer` of them with replacement.

    Draws of S would have the variance (S − 1)/S of the true one, so that with three seeds a 95% interval covers 89%;
    draws of S − 1 have the right one (McCarthy & Snowden, 1985). `fewer=0` is the plain bootstrap, as in rliable.
    """
    return [scores[rng.integers(0, len(scores), (replications, max(1, len(scores) - fewer)))] for scores in strata]


def interval(replicated: Value, freedom: float = np.inf) -> Float[np.ndarray, "2 ..."]:
    """Between the percentiles of the replications, on the first axis, that leave out as much on either side. With few
    degrees of freedom they lie further out, as Student's quantiles do from the normal ones (Hesterberg, 2015)."""
    tail = ndtr(stdtrit(freedom, (1 - LEVEL) / 2)) if np.isfinite(freedom) else (1 - LEVEL) / 2
    return np.quantile(replicated, [tail, 1 - tail], axis=0)


def freedom(*samples: Strata) -> float:
    """Every seed of an environment but one is free."""
    return float(sum(scores.shape[-1] - 1 for strata in samples for scores in strata))


def can_resample(*samples: Strata) -> bool:
    return all(len(scores) > 1 for strata in samples for scores in strata)


def _means(strata: Strata) -> Float[np.ndarray, "G *many"]:
    return np.stack([scores.mean(axis=-1) for scores in strata])
