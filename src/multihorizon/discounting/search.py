"""Searches for the discount factors that express one or several discounts best, adding one head at a time.

The best sum of H exponentials has no formula, and descents from arbitrary factors end in local optima. The best sum of
H - 1 exponentials says where another head helps most, and a descent from there nearly always ends in the best sum of H.
Two other starts cover the remaining cases: the H - 1 factors spread out to H, and evenly spaced factors.

With a bound on γ, each discount has an error that even infinitely many heads cannot remove: its floor. The search
reduces the largest error over all discounts. Once that error is near the largest floor, little can be gained, and the
search also brings the errors of the other discounts closer to their own floors.
"""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float

from multihorizon.discounting.descent import Descent, Heads, Problem, descend, problem_at, weighted
from multihorizon.discounting.fitting import fitted_steps, peaks

GOOD_ENOUGH = 1e-5  # relative to d(0); learned values are less exact than that, and below it the search is slow
NEAR_FLOOR = 0.01  # relative to the largest floor; errors this close to their floors are good enough too
STEEPNESS = 20.0  # weight of a residual's excess over the largest floor; its excess over its discount's floor weighs 1
FITTED_TIMES = 1000
DESCENTS, FINE_DESCENTS = 25, 60
FINE_GAIN = 1e-6  # relative
MOST_REFINEMENTS = 20
MISSED = 1e-4  # relative; a peak between the fitted steps counts only if it exceeds the allowed error by more than this
PRICED = 240  # rates at which the value of another head is computed
INSERTIONS = 2  # the number of these rates that are tried as starts
FIRST_STARTS = 9
FEW = 4  # up to this many heads, evenly spaced heads are tried as a start
FASTEST = 1.0  # the largest hazard of evenly spaced heads
FAILURES = 2  # the search ends after this many consecutive heads that do not help
SMALLEST_GAIN = 1e-6  # relative; a smaller one is no help
NO_WEIGHT = 1e-12  # relative to d(0)


def search(wanted: Float[np.ndarray, "D every_step"], cap: float, floors: Float[np.ndarray, " D"]) -> Iterator[Heads]:
    """Yields the best heads found for several discounts: with up to one, two, ... heads.

    It ends when the error is good enough, or when two more heads in a row do not help.

    Args:
        wanted: The discounts at every step; d(0) is 1.
        cap: The largest γ.
        floors: The smallest error that any number of heads can reach, for each discount.
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
    """Descends further, down to smaller gains, and adds steps at which an error peaks between the fitted ones."""
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
    """Returns the best single head among a few."""
    tried = (weighted(problem, np.array([rate])) for rate in np.linspace(problem.low, problem.high, FIRST_STARTS))
    return min(tried, key=problem.error)


def _starts(problem: Problem, best: Descent, count: int) -> Iterator[Heads]:
    """Yields heads to descend from: another head where it helps most, the same heads spread out, and even spacing."""
    rates = np.linspace(problem.high, problem.low, PRICED)
    helps = np.maximum(best.dual @ Heads(rates, np.empty((0, PRICED))).terms(problem.t), 0).sum(axis=0)
    for rate in rates[peaks(helps, INSERTIONS)]:
        yield weighted(problem, np.append(best.heads.log_rates, rate))
    held = np.sort(best.heads.log_rates)
    yield weighted(problem, np.interp(np.linspace(0, 1, count), np.linspace(0, 1, len(held)), held))
    if count <= FEW:
        yield weighted(problem, np.linspace(problem.low, max(np.log(FASTEST), problem.low + 1), count))


def fill_gaps(gammas: Float[np.ndarray, " used"], heads: int, cap: float) -> Float[np.ndarray, " H"]:
    """Adds discount factors, each in the middle of the widest gap in log effective horizon. Returns them in order."""
    while len(gammas) < heads:
        spread = np.log(np.concatenate([[1.0], 1 / (1 - np.sort(gammas)), [1 / (1 - cap)]]))
        widest = int(np.argmax(np.diff(spread)))
        gammas = np.append(gammas, 1 - np.exp(-(spread[widest] + spread[widest + 1]) / 2))
    return np.sort(gammas)
