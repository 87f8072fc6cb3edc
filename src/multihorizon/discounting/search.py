"""Searches for the discount factors that best express one or several discounts, adding one head at a time.

A descent from arbitrary discount factors ends in a local optimum. The search therefore starts from the best H - 1 heads
and adds a head where it helps most.

Because γ is bounded, each discount has an error that no number of heads can remove: its floor. The search reduces the
largest error over all discounts. When the largest error is near the largest floor, the search reduces the errors of the
other discounts towards their own floors.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from multihorizon.discounting.descent import Descent, Heads, Problem, descend, problem_at, weighted
from multihorizon.discounting.fitting import fitted_steps, peaks

# Let m be the largest error of a discount over all times, f the floor of this discount, and F the largest floor of all
# discounts. For each discount, take the larger of m - f and STEEPNESS · (m - F). The search minimises the maximum of
# this number over all discounts.
STEEPNESS = 20.0
# The search stops if this maximum is at most STEEPNESS · GOOD_ENOUGH, or at most NEAR_FLOOR · F. A smaller error would
# not matter, because the Q-values that agents learn have larger errors.
GOOD_ENOUGH, NEAR_FLOOR = 1e-5, 0.01
FITTED_TIMES = 1000
DESCENTS, FINE_DESCENTS = 25, 60
FINE_GAIN = 1e-6  # in `settled`, an improvement is small if it is below FINE_GAIN times the error
MOST_REFINEMENTS = 20
MISSED = 1e-4  # `settled` adds a time if its residual exceeds the allowed residual by more than this fraction
PRICED = 240  # number of candidate rates for a new head
INSERTIONS = 2  # number of these candidates from which a descent begins
FIRST_STARTS = 9
FEW = 4  # with at most this number of heads, one descent begins with heads whose ln λ is evenly spaced
FASTEST = 1.0  # largest rate λ of these heads
FAILURES = 2  # the search ends if this number of added heads in a row brings no improvement
SMALLEST_GAIN = 1e-6  # smaller relative improvements are treated as no improvement
NO_WEIGHT = 1e-12  # weights below NO_WEIGHT · d(0) are treated as 0


def search(wanted: Float[np.ndarray, "D every_step"], cap: float, floors: Float[np.ndarray, " D"]) -> Iterator[Heads]:
    """Yields the best result with one head, then with at most two heads, and so on.

    The search ends when the error is good enough, or when two added heads in a row do not help.
    """
    problem = problem_at(fitted_steps(wanted, FITTED_TIMES), wanted, cap, floors, STEEPNESS)
    goal = max(STEEPNESS * GOOD_ENOUGH, NEAR_FLOOR * problem.top)
    best = descend(problem, _first(problem), DESCENTS, goal=goal)
    failures, count = 0, 1
    while failures < FAILURES:
        yield best.heads
        if best.error <= goal:
            return
        count += 1
        found = min(
            (descend(problem, start, DESCENTS, goal=goal) for start in _starts(problem, best, count)), key=_error
        )
        failures = 0 if found.error < best.error * (1 - SMALLEST_GAIN) else failures + 1
        best = found if failures == 0 else best


def settled(
    best: Heads, wanted: Float[np.ndarray, "D every_step"], cap: float, floors: Float[np.ndarray, " D"]
) -> Heads:
    """Refines the heads. Times at which the residual is too large are added to the times of the fit."""
    every_step = np.arange(wanted.shape[1])
    chosen = fitted_steps(wanted, FITTED_TIMES)
    for _ in range(MOST_REFINEMENTS):
        problem = problem_at(chosen, wanted, cap, floors, STEEPNESS)
        best = descend(problem, weighted(problem, best.log_rates), FINE_DESCENTS, FINE_GAIN).heads
        missed = np.abs(best.missed(every_step.astype(float), wanted))
        worst = missed.argmax(axis=1)
        is_high = missed.max(axis=1) > problem.allowed(problem.error(best)) * (1 + MISSED)
        added = np.setdiff1d(worst[is_high], chosen)
        if len(added) == 0:
            break
        chosen = np.union1d(chosen, added)
    return best


def _error(found: Descent) -> float:
    return found.error


def _first(problem: Problem) -> Heads:
    """Returns the best single head among a few candidates."""
    tried = (weighted(problem, np.array([rate])) for rate in np.linspace(problem.low, problem.high, FIRST_STARTS))
    return min(tried, key=problem.error)


def _starts(problem: Problem, best: Descent, count: int) -> Iterator[Heads]:
    """Yields heads from which descents begin.

    Some descents begin with the best heads so far and a new head at a promising rate. One descent begins with `count`
    heads whose rates interpolate the rates of the best heads. If `count` is small, another descent begins with heads
    whose ln λ is evenly spaced.
    """
    rates = np.linspace(problem.high, problem.low, PRICED)
    helps = np.maximum(best.dual @ Heads(rates, np.empty((0, PRICED))).terms(problem.t), 0).sum(axis=0)
    for rate in rates[peaks(helps, INSERTIONS)]:
        yield weighted(problem, np.append(best.heads.log_rates, rate))
    held = np.sort(best.heads.log_rates)
    yield weighted(problem, np.interp(np.linspace(0, 1, count), np.linspace(0, 1, len(held)), held))
    if count <= FEW:
        yield weighted(problem, np.linspace(problem.low, max(np.log(FASTEST), problem.low + 1), count))


def fill_gaps(gammas: Float[np.ndarray, " used"], heads: int, cap: float) -> Float[np.ndarray, " H"]:
    """Adds discount factors in the widest gaps of the log effective horizons. Returns all factors in order."""
    while len(gammas) < heads:
        spread = np.log(np.concatenate([[1.0], 1 / (1 - np.sort(gammas)), [1 / (1 - cap)]]))
        widest = int(np.argmax(np.diff(spread)))
        gammas = np.append(gammas, 1 - np.exp(-(spread[widest] + spread[widest + 1]) / 2))
    return np.sort(gammas)
