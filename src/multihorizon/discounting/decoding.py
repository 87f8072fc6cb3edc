"""Estimates when an agent expects reward, from its Q-values for several horizons.

Q_γ = Σ_t γ^t r(t) is a discrete Laplace transform of the expected rewards r(t). Its inverse is ill-posed: a few heads
with errors determine r(t) only coarsely, and later rewards more coarsely than early ones. Rewards are therefore
estimated by regularised least squares, in time bins that are wider further ahead. Each bin states its resolution.
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
PER_DECADE = 8  # bins for each factor of ten in time
LONGEST = 3.0  # default length of a timeline, in effective horizons
FURTHEST = 1_000_000  # largest number of steps in a timeline
CENTRAL = (0.1, 0.9)  # quantiles of a squared averaging kernel (see `_central_times`) that bound the resolution
NEGATIVE = 0.05  # by default rewards may be negative if a Q-value lies below minus this share of the row's largest |Q|
UNSEEN = 1e-20  # share of the largest squared response; bins that respond less are not resolved


@dataclass(frozen=True, eq=False)
class RewardTimeline:
    """Expected rewards over future time. The times of a bin are `starts` ≤ t < `ends`; t = 0 is the present step.

    Attributes:
        starts: The first step of each bin [bins].
        ends: The step after the last step of each bin [bins].
        rewards: The expected reward in each bin, summed over its steps [*B bins].
        earliest: The first time of each bin's resolution [bins]. The resolution is the range of times to which the
            bin's estimate mostly responds. Take the squared responses of the estimate to a unit reward in each bin:
            the range contains the central 80% of their sum.
        latest: The last time of each bin's resolution [bins].
        max_errors: The largest difference between the given Q-values and those of the timeline [*B].
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

    The rewards x of the bins minimise ‖A x - Q‖² + noise² ‖x‖², where A holds the mean of γ^t over each bin. Suppose
    that the Q-values are exact, that the true rewards are constant within each bin and add up to rᵢ in bin i, and that
    x is allowed to be negative (see `signed`) if some rᵢ is negative. Then ‖A x - Q‖ ≤ noise · ‖r‖.

    All heads must value the same policy, as those of an agent with `Bootstrap.ACTING` do. With the paper's
    `Bootstrap.OWN`, each head values its own best policy, and the timeline mixes them.

    Args:
        q_values: Each head's value of one action [*B H].
        gammas: The discount factors of the heads [H], three or more different ones.
        t_max: The last step of the timeline; by default three times the longest effective horizon 1 / (1 - γ).
        noise: The size of errors in Q, relative to the rewards. More noise gives a smoother timeline.
        signed: Whether rewards may be negative. By default each row of Q-values decides for itself: its rewards may be
            negative if one of its Q-values is below -0.05 times its largest |Q|, because rewards of at least 0 cannot
            produce such a value. With False, such Q-values give rewards near 0 and large `max_errors`.

    Returns:
        Rewards in bins of time and their resolution. There are about eight bins per decade, and at most 40.

    Raises:
        InputError: The shapes do not match, a value is not finite, or there are fewer than three different γ's.
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
    for i, row in enumerate(flat):  # each row alone, so that the others do not change its rewards
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
    """Returns the edges of bins that cover 0..t_max. They are whole numbers, so that no bin is shorter than a step."""
    count = min(MOST_BINS, math.ceil(PER_DECADE * math.log10(t_max + 1)) + 1)
    spaced = np.geomspace(1, t_max + 1, count)
    return np.unique(np.concatenate([[0], np.round(spaced).astype(int)]))


def _binned(values: Float[np.ndarray, " steps"], starts: Int[np.ndarray, " bins"]) -> Float[np.ndarray, " bins"]:
    """Returns the mean over each bin's steps."""
    return np.add.reduceat(values, starts) / np.diff(np.append(starts, len(values)))


def _central_times(
    kernels: Float[np.ndarray, "bins bins"], starts: Int[np.ndarray, " bins"], ends: Int[np.ndarray, " bins"]
) -> tuple[Float[np.ndarray, " bins"], Float[np.ndarray, " bins"]]:
    """Returns the times between which the central 80% of each squared averaging kernel lies.

    Row i of `kernels`, the averaging kernel of bin i, holds the response of its estimate to a unit reward in each bin.
    If an estimate responds to no reward, its range covers all times.
    """
    shares = np.cumsum(kernels**2, axis=1)
    totals = shares[:, -1]
    seen = totals > UNSEEN * totals.max()
    shares[seen] /= totals[seen, None]
    low = np.where(seen, [int(np.searchsorted(row, CENTRAL[0])) for row in shares], 0)
    last = len(ends) - 1
    high = np.where(seen, [min(int(np.searchsorted(row, CENTRAL[1])), last) for row in shares], last)
    return starts[low].astype(float), ends[high] - 1.0
