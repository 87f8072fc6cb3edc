"""Computes the values of tasks that never end, if s(t) d(t) falls more slowly than any exponential.

Here s(t) is the survival, and d(t) is the discount. The expected reward E[R_t] of a finite Markov chain becomes
periodic in t. Each phase of the period then contributes its expected reward, times the sum of s(t) d(t) over the times
of the phase. The Euler-Maclaurin formula gives this sum.
"""

import math
from itertools import pairwise

import numpy as np
from jaxtyping import Float
from scipy import sparse
from scipy.sparse import csgraph

from multihorizon.discounting.hazard.prior import Values
from multihorizon.errors import InputError
from multihorizon.mdp.model import HazardousMDP

MOST_TERMS = 2_000_000
TOO_LONG = f"episodes under this policy are too long to sum: more than {MOST_TERMS:,} steps contribute to the value"
MOST_KEPT = 50_000_000  # largest number of expected rewards in memory
REPEATS = 1e-14  # relative tolerance within which expected rewards are treated as equal
SETTLED = 1024  # the Euler-Maclaurin formula is used for times after SETTLED periods, where it is accurate
MARGIN = 1e-6  # if s·d falls as t^{-a}, its sum is accepted as finite only for a > 1 + MARGIN
SETTLING = 1e-5  # `tail_sums` compares the exponent at the longest time T with the exponent at the time SETTLING · T
TAIL = 1e-10  # largest relative error that times beyond the longest time T may cause
X, W = np.polynomial.legendre.leggauss(20)


def refuse_infinite_sums(mdp: HazardousMDP, state: int) -> None:
    """Raises an InputError unless Σ s(t) d(t) is known to be finite: s·d must fall faster than 1/t."""
    if mdp.discount.prior is not None and _exponent(mdp, _longest(mdp)) > 1 + MARGIN:
        return
    raise InputError(
        f"the values can be infinite: from state {state} this policy earns for ever, and the sum of s(t) d(t) over all "
        f"times is not known to be finite for the discount '{mdp.discount.label}' under hazard {mdp.hazard}; use an "
        "episodic task, a discount that falls faster than 1/t, or a hazard that is bounded away from 0"
    )


def endless_series(
    mdp: HazardousMDP, chain: sparse.csr_array, rewards: Float[np.ndarray, " S"], first: sparse.csr_array
) -> Float[np.ndarray, "S A"]:
    """Returns Σ_t s(t) d(t) E[R_t] [S A]. The discount must have a prior, and Σ s(t) d(t) must be finite."""
    period = _period(chain)
    if 1 + SETTLED * period > MOST_TERMS or period * mdp.states > MOST_KEPT:
        raise InputError(TOO_LONG)
    total = mdp.discount(0.0) * mdp.rewards.reshape(-1)
    expected = rewards
    earlier = np.full((period, mdp.states), np.nan)  # the expected rewards of the previous block
    # `start` stays 1 modulo the period, so that all blocks begin at the same phase.
    start, end = 1, 1 + SETTLED * period
    while end <= MOST_TERMS:
        recent = np.empty((period, mdp.states))
        for t, share in enumerate(np.asarray(_shares(mdp, np.arange(start, end))), start):
            total = total + share * (first @ expected)
            recent[(t - 1) % period] = expected
            expected = chain @ expected
        # The rows of `chain` have rounding errors, which add up over the steps.
        same = REPEATS + end * np.finfo(float).eps
        if np.abs(recent - earlier).max() <= same * np.abs(rewards).max():  # false while `earlier` is NaN
            rest = tail_sums(mdp, end, period)
            return (total + first @ (recent.T @ rest)).reshape(mdp.rewards.shape)
        earlier, start, end = recent, end, 2 * end - 1
    raise InputError(TOO_LONG)


def tail_sums(mdp: HazardousMDP, start: int, period: int) -> Float[np.ndarray, " period"]:
    """Returns Σ_j c(start + i + j · period) for i = 0, ..., period - 1, where c = s·d.

    By the Euler-Maclaurin formula, each sum is (∫c) / p + c/2 - p c'/12 for the period p. The omitted terms are of
    order (p / start)^4, which is negligible if start ≥ 1024 p.
    """
    at, longest = start + np.arange(period, dtype=float), _longest(mdp)
    c = _shares(mdp, at)
    between = np.array([_integral(mdp, a, b) for a, b in pairwise(at)])
    covered = _integral(mdp, at[-1], longest)
    exponent = _exponent(mdp, longest)
    beyond = longest * float(_shares(mdp, longest)) / (exponent - 1)
    unsettled = abs(exponent - _exponent(mdp, SETTLING * longest)) / (exponent - 1)
    if beyond * unsettled > TAIL * (covered + beyond):
        raise InputError(
            f"the values cannot be computed: {mdp.discount.label} under hazard {mdp.hazard} falls so slowly that "
            f"times beyond {longest:g} matter; use an episodic task or a discount that falls faster"
        )
    integrals = covered + beyond + np.append(np.cumsum(between[::-1])[::-1], 0.0)
    return integrals / period + c / 2 + period * _rate(mdp, at) * c / 12


def _longest(mdp: HazardousMDP) -> float:
    """Returns T, the longest time at which s(t) and d(t) are accurate."""
    assert mdp.discount.prior is not None
    return min(mdp.hazard.longest_time, mdp.discount.prior.longest_time)


def _exponent(mdp: HazardousMDP, t: float) -> float:
    """Returns -d ln c / d ln t for c(t) = s(t) d(t). If c falls as t^{-a}, the result is the exponent a."""
    return t * float(_rate(mdp, t))


def _shares(mdp: HazardousMDP, t: np.ndarray | float) -> Values:
    return np.exp(mdp.hazard.log_survival(t) + mdp.discount.log(t))


def _rate(mdp: HazardousMDP, t: np.ndarray | float) -> Values:
    """Returns -c'(t) / c(t)."""
    assert mdp.discount.prior is not None
    return mdp.hazard.hazard_rate(t) + mdp.discount.prior.hazard_rate(t)


def _integral(mdp: HazardousMDP, low: float, high: float) -> float:
    """Integrates c(t) by Gauss-Legendre quadrature over ln t, in panels of width at most 1."""
    edges = np.linspace(math.log(low), math.log(high), math.ceil(math.log(high / low)) + 1)
    half = np.diff(edges)[:, None] / 2
    t = np.exp(edges[:-1, None] + half * (1 + X))
    return float((_shares(mdp, t) * t * half * W).sum())


def _period(chain: sparse.csr_array) -> int:
    """Returns the least common multiple of the periods of the closed classes."""
    count, label = csgraph.connected_components(chain, connection="strong")
    arrows = sparse.coo_array(chain)
    starts, ends = (x[arrows.data > 0] for x in arrows.coords)
    closed = np.ones(count, dtype=bool)
    closed[label[starts[label[starts] != label[ends]]]] = False
    period = 1
    for one in np.flatnonzero(closed):
        inside = label[starts] == one
        if not np.any(inside):  # a state that ends the episode
            continue
        root = int(np.flatnonzero(label == one)[0])
        steps = csgraph.dijkstra(chain, indices=root, unweighted=True)
        # The period of a class is the greatest common divisor of its cycle lengths. The numbers
        # steps[start] + 1 - steps[end] of all transitions have the same divisor as the cycle lengths.
        lengths = np.abs(steps[starts[inside]] + 1 - steps[ends[inside]]).astype(int)
        period = math.lcm(period, int(np.gcd.reduce(lengths)))
    return period
