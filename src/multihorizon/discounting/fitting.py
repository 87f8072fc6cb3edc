"""Finds the best weights for given discount factors, and the smallest error that any discount factors can reach.

A linear program finds the weights that minimise the largest error. Its matrix has a column γ^t for each head. With many
heads, the columns are nearly equal, and solvers fail or lose precision. `minimax_weights` therefore starts with a few
columns, and adds the columns that reduce the error according to the dual solution. The dual solution also gives a lower
bound on the error that any number of heads can reach.
"""

import math
from enum import Enum
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from scipy.optimize import linprog

from multihorizon.errors import InputError

MOST_SIGNED = 10.0  # largest Σ|wᵢ|, in units of d(0), if weights may be negative
MOST_RATE = 40.0  # largest rate λ; e^{-40} is below the rounding error of 1
ALL_STEPS = 400  # the linear program uses all steps if there are at most ALL_STEPS
FITTED_TIMES = 250
MOST_ADDED = 20  # at most this number of steps is added at once
JUMP = 1e-4  # a second difference above JUMP · d(0) is treated as a jump of the discount
FIRST_COLUMNS, MOST_COLUMNS, ADDED_COLUMNS = 8, 20, 4
MOST_ROUNDS = 100
SMALLEST_GAIN = 1e-4  # smaller relative improvements of the error are treated as no improvement
NEGLIGIBLE = 1e-9  # errors below NEGLIGIBLE · d(0) are treated as 0
# If least squares gives too large a Σ|wᵢ|, the equation Σ|wᵢ| = MOST_SIGNED is added to the problem. The weight of this
# equation is HEAVY times the norm of the other equations.
HEAVY = 100.0
RIDGE = 1e-6  # ridge penalty, which changes the root mean squared error by at most 1e-5
SAME = 1e-12  # smaller relative improvements of a sum of squares are treated as rounding errors
BLOCK = 4096  # number of steps in one block of the QR factorisation
CANDIDATES, BOUNDED = 300, 4000  # numbers of discount factors in the fit and in the bound of `least_error`
STEEPEST = 0.31  # largest |∂²e^{-λt} / ∂(ln λ)²|


class FitMethod(Enum):
    """The criterion for the best weights.

    Attributes:
        MINIMAX: Weights of at least 0 that minimise the largest error.
        LEAST_SQUARES: Weights of at least 0 that minimise the mean squared error.
        SIGNED_MINIMAX: Weights of either sign that minimise the largest error. They suit smooth discounts that are not
            a mixture of exponentials. The weights multiply errors of the learned values by up to Σ|wᵢ|, so Σ|wᵢ| is
            limited to 10 · d(0).
        SIGNED_LEAST_SQUARES: Weights of either sign that minimise the mean squared error, with Σ|wᵢ| ≤ 10 · d(0). They
            suit discounts that jump, such as a deadline: every sum of exponentials has a large error at a jump.
    """

    MINIMAX = "weights of at least 0 that minimise the largest error"
    LEAST_SQUARES = "weights of at least 0 that minimise the mean squared error"
    SIGNED_MINIMAX = "weights of either sign that minimise the largest error"
    SIGNED_LEAST_SQUARES = "weights of either sign that minimise the mean squared error"

    @property
    def most(self) -> float | None:
        """The largest Σ|wᵢ| in units of d(0), or None if weights must be at least 0."""
        return MOST_SIGNED if self in (FitMethod.SIGNED_MINIMAX, FitMethod.SIGNED_LEAST_SQUARES) else None


class MinimaxFit(NamedTuple):
    """Weights, their largest error, and the dual solution y.

    A new head γ with a small weight w reduces the error by about w Σ y_t γ^t.
    """

    weights: Float[np.ndarray, " H"]
    error: float
    dual: Float[np.ndarray, " T"]


def best_weights(
    gammas: Float[np.ndarray, " H"], target: Float[np.ndarray, " every_step"], method: FitMethod
) -> Float[np.ndarray, " H"]:
    """Returns the best weights for a discount with the values `target` at t = 0, 1, ..., where target[0] is 1."""
    if method in (FitMethod.LEAST_SQUARES, FitMethod.SIGNED_LEAST_SQUARES):
        return least_squares_weights(gammas, target, method.most)
    order = np.argsort(gammas)
    fit, _ = _minimax_fit(gammas[order], target, method.most)
    return fit.weights[np.argsort(order)]


def _minimax_fit(
    gammas: Float[np.ndarray, " H"], target: Float[np.ndarray, " every_step"], most: float | None = None
) -> tuple[MinimaxFit, Int[np.ndarray, " T"]]:
    """Returns the minimax fit for increasing discount factors, and the times t in the last linear program."""
    every_step = np.arange(len(target))
    chosen = every_step if len(every_step) <= ALL_STEPS else fitted_steps(target[None], FITTED_TIMES)
    while True:
        fit = minimax_weights(np.power.outer(gammas, chosen).T, target[chosen], most)
        missed = target.copy()
        for gamma, weight in zip(gammas, fit.weights, strict=True):  # in a loop to save memory
            if weight:
                missed -= weight * np.power(gamma, every_step)
        added = peaks(np.abs(missed), MOST_ADDED)
        added = np.setdiff1d(added[np.abs(missed[added]) > fit.error * 1.001 + NEGLIGIBLE], chosen)
        if len(added) == 0:
            return fit, chosen
        chosen = np.union1d(chosen, added)


def fitted_steps(wanted: Float[np.ndarray, "D every_step"], count: int) -> Int[np.ndarray, " T"]:
    """Returns about `count` values of t, densest near 0, and the values of t around jumps of the discounts."""
    spread = np.unique(np.round(np.geomspace(1, wanted.shape[1], count)).astype(int)) - 1
    bends = np.abs(np.diff(wanted, n=2)).max(axis=0)  # at t = 1, 2, ...
    jumps = 1 + peaks(np.where(bends > JUMP, bends, -np.inf), MOST_ADDED)
    return np.union1d(spread, np.concatenate([jumps - 1, jumps, jumps + 1]))


def minimax_weights(
    terms: Float[np.ndarray, "T H"], target: Float[np.ndarray, " T"], most: float | None = None
) -> MinimaxFit:
    """Minimises the largest |terms · w - target| over w ≥ 0, or, if `most` is given, over all w with Σ|w| ≤ `most`."""
    columns = terms if most is None else np.concatenate([terms, -terms], axis=1)
    count = columns.shape[1]
    weights, error = np.zeros(count), float(np.abs(target).max())
    dual, cost = np.zeros(len(target)), 0.0
    used = np.zeros(count, bool)
    used[np.linspace(0, count - 1, min(count, FIRST_COLUMNS)).astype(int)] = True
    solved = stalled = False
    for _ in range(MOST_ROUNDS):
        found = _improved(columns[:, used], target - columns @ weights, weights[used], error, most)
        gained = False
        if found is not None:
            solved = True
            candidate = weights.copy()
            candidate[used], dual, cost = found
            left = float(np.abs(target - columns @ candidate).max())
            gained = left < error * (1 - SMALLEST_GAIN)
            if left < error:
                weights, error = candidate, left
        if error < NEGLIGIBLE or (stalled and not gained):
            break
        prices = np.where(used, -np.inf, dual @ columns - cost)
        added = peaks(prices, ADDED_COLUMNS)
        added = added[prices[added] > SMALLEST_GAIN * error]
        if len(added) == 0 and found is not None and not gained:
            break
        stalled = not gained
        if stalled or used.sum() > MOST_COLUMNS:
            used &= weights > 0
        used[added] = True
    if not solved:
        raise InputError("the weights could not be computed; use fewer heads or another t_max")
    half = terms.shape[1]
    return MinimaxFit(weights if most is None else weights[:half] - weights[half:], error, dual)


def _improved(
    columns: Float[np.ndarray, "T C"],
    missed: Float[np.ndarray, " T"],
    weights: Float[np.ndarray, " C"],
    error: float,
    most: float | None,
) -> tuple[Float[np.ndarray, " C"], Float[np.ndarray, " T"], float] | None:
    """Solves the linear program for the change of the weights. Returns None if the solver fails.

    Residuals are divided by the current error e, and changes of the weights by √e. The fixed tolerances of the solver
    then suffice for any e.
    """
    count, unit = len(weights), np.sqrt(error)
    moves, ceiling = columns * (unit / error), -np.ones((len(missed), 1))
    rows, bounds = np.block([[moves, ceiling], [-moves, ceiling]]), np.concatenate([missed, -missed]) / error
    if most is not None:
        rows = np.vstack([rows, np.append(np.ones(count), 0.0)])
        bounds = np.append(bounds, (most - weights.sum()) / unit)
    solved = linprog(
        np.append(np.zeros(count), 1.0),
        A_ub=rows,
        b_ub=bounds,
        bounds=np.stack([np.append(-weights / unit, 0.0), np.full(count + 1, np.inf)], axis=1),
        method="highs-ds",
    )
    if solved.x is None:
        return None
    changed = np.maximum(weights + unit * solved.x[:-1], 0.0)
    if most is not None:
        changed *= min(1.0, most / max(changed.sum(), 1e-300))
    above, below = solved.ineqlin.marginals[: 2 * len(missed)].reshape(2, -1)
    cost = 0.0 if most is None else -solved.ineqlin.marginals[-1] * error / unit
    return changed, above - below, float(cost)


def peaks(values: Float[np.ndarray, " N"], most: int) -> Int[np.ndarray, " P"]:
    """Returns the indices of the `most` largest local maxima."""
    padded = np.concatenate([[-np.inf], values, [-np.inf]])
    is_peak = (values >= padded[:-2]) & (values >= padded[2:]) & (values > -np.inf)
    places = np.flatnonzero(is_peak)
    return places[np.argsort(-values[places], kind="stable")][:most]


def least_squares_weights(
    gammas: Float[np.ndarray, " H"], target: Float[np.ndarray, " every_step"], most: float | None = None
) -> Float[np.ndarray, " H"]:
    """Returns least-squares weights w ≥ 0, or, if `most` is given, weights of either sign with Σ|w| ≤ `most`."""
    matrix, aim = _triangular(gammas, target)
    if most is None:
        return _nonnegative(matrix, aim)
    apart = RIDGE * math.sqrt(len(target)) * np.eye(len(gammas))
    matrix, aim = np.concatenate([matrix, apart]), np.append(aim, np.zeros(len(gammas)))
    matrix = np.concatenate([matrix, -matrix], axis=1)
    weights = _nonnegative(matrix, aim)
    if weights.sum() > most:  # an added equation of large weight enforces Σ|w| = `most`
        heavy = HEAVY * np.linalg.norm(matrix)
        weights = _nonnegative(np.vstack([matrix, np.full(matrix.shape[1], heavy)]), np.append(aim, heavy * most))
        weights *= min(1.0, most / weights.sum())
    return weights[: len(gammas)] - weights[len(gammas) :]


def _nonnegative(matrix: Float[np.ndarray, "N H"], aim: Float[np.ndarray, " N"]) -> Float[np.ndarray, " H"]:
    """Minimises |matrix · w - aim|² over w ≥ 0 by the active-set method of Lawson and Hanson."""
    count = matrix.shape[1]
    weights, free, blocked = np.zeros(count), np.zeros(count, bool), np.zeros(count, bool)
    square = float(aim @ aim)
    while True:
        slopes = np.where(free | blocked, -np.inf, matrix.T @ (aim - matrix @ weights))
        best = int(np.argmax(slopes))
        if slopes[best] <= 0:
            return weights
        candidate, kept = _without_negatives(matrix, aim, weights, free | (np.arange(count) == best))
        missed = aim - matrix @ candidate
        if missed @ missed >= square * (1 - SAME):
            blocked[best] = True
            continue
        weights, free, square = candidate, kept, float(missed @ missed)
        blocked[:] = False


def _without_negatives(
    matrix: Float[np.ndarray, "N H"], aim: Float[np.ndarray, " N"], weights: Float[np.ndarray, " H"], free: np.ndarray
) -> tuple[Float[np.ndarray, " H"], Bool[np.ndarray, " H"]]:
    free = free.copy()
    while True:
        wanted = np.zeros(len(weights))
        wanted[free] = np.linalg.lstsq(matrix[:, free], aim, rcond=SAME)[0]
        if np.all(wanted >= 0):
            return wanted, free
        falls = wanted < 0
        shares = weights[falls] / (weights[falls] - wanted[falls])
        weights = weights + shares.min() * (wanted - weights)
        ends = np.flatnonzero(falls)[shares <= shares.min()]
        weights[ends] = 0.0
        free[ends] = False


def _triangular(
    gammas: Float[np.ndarray, " H"], target: Float[np.ndarray, " every_step"]
) -> tuple[Float[np.ndarray, "N H"], Float[np.ndarray, " N"]]:
    """Reduces the least-squares problem to at most H + 1 rows, by QR factorisation in blocks."""
    held = np.empty((0, len(gammas) + 1))
    for start in range(0, len(target), BLOCK):
        steps = np.arange(start, min(start + BLOCK, len(target)))
        block = np.column_stack([np.power.outer(gammas, steps).T, target[steps]])
        held = np.asarray(np.linalg.qr(np.vstack([held, block]), mode="r"))
    return held[:, :-1], held[:, -1]


def least_error(target: Float[np.ndarray, " every_step"], cap: float) -> float:
    """Returns a lower bound on the error of any number of heads with γ ≤ cap and weights of at least 0.

    `target[0]` must be 1. For any y with Σ|y_t| ≤ 1, the error is at least Σ y_t (d(t) - Σ wᵢ γᵢ^t). The dual solution
    y of a fit with many γ's makes this bound nearly equal to the smallest error.
    """
    low = np.log(min(-np.log(cap), MOST_RATE))
    width = np.log(MOST_RATE) - low
    fit, chosen = _minimax_fit(np.exp(-np.exp(np.linspace(np.log(MOST_RATE), low, CANDIDATES))), target)
    dual = fit.dual / max(np.abs(fit.dual).sum(), 1e-300)
    # Between the points of the grid of ln λ, Σ y_t γ^t exceeds its largest grid value by at most STEEPEST · step² / 8.
    step = width / (BOUNDED - 1)
    largest = (dual @ _decays(np.linspace(np.log(MOST_RATE), low, BOUNDED), chosen)).max() + STEEPEST * step**2 / 8
    # The best weights add up to at most d(0) plus the error.
    return max(0.0, float(dual @ target[chosen]) - max(largest, 0.0) * (1 + fit.error))


def _decays(log_rates: Float[np.ndarray, " H"], t: Int[np.ndarray, " T"]) -> Float[np.ndarray, "T H"]:
    return np.exp(-np.multiply.outer(t, np.exp(log_rates)))
