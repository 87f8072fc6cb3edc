"""Estimates when an agent expects reward, from its Q-values for several horizons.

Q_γ = Σ_t γ^t r(t) is a discrete Laplace transform of the expected rewards r(t). Its inverse is ill-posed, so a few
inexact Q-values determine r(t) only coarsely. Regularised least squares therefore estimates the reward in time bins,
which become wider with time.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike
from scipy.optimize import nnls

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.horizons import discount_factors
from multihorizon.discounting.sources import check_discount
from multihorizon.errors import InputError, at_least, numbers, positive, true_or_false

MOST_BINS = 40
PER_DECADE = 8  # number of time bins per decade
LONGEST = 3.0  # by default, a timeline is LONGEST times as long as the longest effective horizon
FURTHEST = 1_000_000  # largest number of steps in a timeline
CENTRAL = (0.1, 0.9)  # values of F[i, j] at which the resolution of bin i begins and ends (see `RewardTimeline`)
NEGATIVE = 0.05  # by default, a Q-value below -NEGATIVE · max |Q| allows negative rewards
# Bin i is not resolved if its sum Σ_j K[i, j]² is below UNSEEN times the largest sum of any bin (see `RewardTimeline`).
UNSEEN = 1e-20


@dataclass(frozen=True, eq=False)
class RewardTimeline:
    """Expected rewards over future time, in bins with the times `starts` ≤ t < `ends`. The present step is t = 0.

    The resolution of a bin is the range of times whose rewards determine most of the estimate for the bin. Let K[i, j]
    be the change of the estimate for bin i when the reward in bin j grows by 1. Let F[i, j] be the sum of K[i, k]² over
    k ≤ j, divided by the sum over all k. The resolution of bin i begins with the first bin j for which F[i, j] ≥ 0.1.
    The resolution ends with the first bin j for which F[i, j] ≥ 0.9.

    Attributes:
        starts: The first step of each bin [bins].
        ends: The step after the last step of each bin [bins].
        rewards: The expected reward in each bin, summed over the steps of the bin [*B bins].
        earliest: The first time in the resolution of each bin [bins].
        latest: The last time in the resolution of each bin [bins].
        max_errors: The largest difference between the given Q-values and the Q-values of the timeline [*B].
    """

    starts: Int[np.ndarray, " bins"]
    ends: Int[np.ndarray, " bins"]
    rewards: Float[np.ndarray, "*B bins"]
    earliest: Float[np.ndarray, " bins"]
    latest: Float[np.ndarray, " bins"]
    max_errors: Float[np.ndarray, "*B"]

    def value(self, discount: Discount) -> Float[np.ndarray, "*B"]:
        """Returns the value Σ_t d(t) r(t) of the timeline under any discount.

        The reward of a bin is spread evenly over its steps.

        Args:
            discount: The discount d(t).

        Returns:
            The values [*B].
        """
        check_discount(discount)
        return np.asarray(self.rewards @ _binned(np.asarray(discount(np.arange(self.ends[-1]))), self.starts))

    def __str__(self) -> str:
        if self.rewards.ndim > 1:
            return f"{len(self.rewards)} timelines of {len(self.starts)} bins to t = {self.ends[-1] - 1}"
        rows = zip(self.starts, self.ends - 1, self.rewards, self.earliest, self.latest, strict=True)
        lines = [f"{first:>5}..{last:<5}{reward:>9.3g}  {a:.0f}..{b:.0f}" for first, last, reward, a, b in rows]
        return "\n".join(["      steps     reward  resolution", *lines])


def decode_rewards(
    q_values: ArrayLike,
    gammas: ArrayLike,
    t_max: int | None = None,
    *,
    noise: float = 0.03,
    signed: bool | None = None,
) -> RewardTimeline:
    """Estimates the expected rewards over future time from the Q-values of several horizons.

    The rewards x of the bins minimise ‖A x - Q‖² + noise² ‖x‖², where A[h, i] is the mean of γ_h^t over bin i.

    All heads must value the same policy, which `Bootstrap.ACTING` ensures. With the paper's `Bootstrap.OWN`, each head
    values its own best policy, and the timeline mixes these policies.

    Args:
        q_values: The value of one action for each head [*B H].
        gammas: The discount factors of the heads [H]. At least three of them must differ.
        t_max: The last step of the timeline. The default is three times the longest effective horizon 1 / (1 - γ).
        noise: The size of errors in Q, relative to the rewards. A larger value gives a smoother timeline.
        signed: Whether rewards may be negative. By default, the rewards of a batch element may be negative if one of
            its Q-values is below -0.05 · max |Q|. With False, negative Q-values give rewards near 0 and large
            `max_errors`.

    Returns:
        The reward and the resolution of each time bin. There are about eight bins per decade, and at most 40.

    Raises:
        InputError: If the shapes do not match, a value is not finite, or fewer than three discount factors differ.
    """
    factors = discount_factors(gammas)
    values = numbers("q_values", q_values)
    if signed is not None:
        true_or_false("signed", signed)
    if len(np.unique(factors)) < 3:
        raise InputError(f"decoding rewards needs three or more different discount factors, got {factors.tolist()}")
    if values.ndim == 0 or values.shape[-1] != len(factors):
        raise InputError(f"q_values must have one value for each of {len(factors)} gammas, got shape {values.shape}")
    if not np.all(np.isfinite(values)):
        raise InputError("q_values must be finite")
    steps = longest_time(factors) if t_max is None else at_least("t_max", t_max, 2, FURTHEST)
    penalty = positive("noise", noise)
    edges = bin_edges(steps)
    starts, ends = edges[:-1], edges[1:]
    terms = np.stack([_binned(gamma ** np.arange(steps + 1), starts) for gamma in factors])  # [H bins]
    regularised = np.vstack([terms, penalty * np.eye(len(starts))])
    inverse = np.linalg.pinv(regularised)[:, : len(factors)]  # [bins H]; maps Q-values to signed rewards
    flat = values.reshape(-1, len(factors))
    padding = np.zeros(len(starts))
    rewards = np.empty((len(flat), len(starts)))
    for i, row in enumerate(flat):  # rows are independent
        may_be_negative = bool(row.min() < -NEGATIVE * np.abs(row).max()) if signed is None else signed
        rewards[i] = inverse @ row if may_be_negative else nnls(regularised, np.append(row, padding))[0]
    earliest, latest = _central_times(inverse @ terms, starts, ends)
    errors = np.abs(rewards @ terms.T - flat).max(axis=1)
    shape = values.shape[:-1]
    return RewardTimeline(starts, ends, rewards.reshape(*shape, len(starts)), earliest, latest, errors.reshape(shape))


def longest_time(gammas: Float[np.ndarray, " H"]) -> int:
    """Returns three times the longest effective horizon 1 / (1 - γ) of the heads with γ < 1."""
    slowest = float(gammas[gammas < 1].max())
    return int(min(max(math.ceil(LONGEST / (1 - slowest)), 2), FURTHEST))


def bin_edges(t_max: int) -> Int[np.ndarray, " edges"]:
    """Returns the edges of time bins that cover the steps 0..t_max."""
    count = min(MOST_BINS, math.ceil(PER_DECADE * math.log10(t_max + 1)) + 1)
    spaced = np.geomspace(1, t_max + 1, count)
    return np.unique(np.concatenate([[0], np.round(spaced).astype(int)]))


def _binned(values: Float[np.ndarray, " steps"], starts: Int[np.ndarray, " bins"]) -> Float[np.ndarray, " bins"]:
    return np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))


def _central_times(
    kernels: Float[np.ndarray, "bins bins"], starts: Int[np.ndarray, " bins"], ends: Int[np.ndarray, " bins"]
) -> tuple[Float[np.ndarray, " bins"], Float[np.ndarray, " bins"]]:
    """Returns the first and the last time in the resolution of each bin, given K (see `RewardTimeline`).

    If no reward changes the estimate for a bin, the resolution of the bin covers all times.
    """
    shares = np.cumsum(kernels**2, axis=1)
    totals = shares[:, -1]
    seen = totals > UNSEEN * totals.max()
    shares[seen] /= totals[seen, None]
    low = np.where(seen, [int(np.searchsorted(row, CENTRAL[0])) for row in shares], 0)
    last = len(ends) - 1
    high = np.where(seen, [min(int(np.searchsorted(row, CENTRAL[1])), last) for row in shares], last)
    return starts[low].astype(float), ends[high] - 1.0
