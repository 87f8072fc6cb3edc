"""Improves the discount factors that one or several discounts share. Each discount has its own weights.

Given the rates λᵢ = -ln γᵢ, a linear program finds the best weights. The residuals are almost linear in small changes
of ln λ and of the weights, so a second linear program finds the best change within a trust region.

Each linear program bounds the residuals only at some times t: first at the times of the largest residuals. If the
residuals of the solution are too large at other times, these times are added, and the program is solved again.
"""

from typing import NamedTuple

import numpy as np
import scipy.sparse
from jaxtyping import Bool, Float, Int
from scipy.optimize import linprog

from multihorizon.discounting.fitting import MOST_RATE

SEARCH_GAIN = 1e-3  # an improvement is small if it is below SEARCH_GAIN times the error
MOST_SMALL_GAINS = 3  # a descent ends after this number of small improvements in a row
FIRST_RADIUS, LARGEST_RADIUS, SMALLEST_RADIUS = 0.3, 2.0, 1e-9  # radii of the trust region
CONVERGED = 1e-7  # a descent ends if the predicted improvement is below CONVERGED times the error
MOST_CUTS = 8  # a linear program is solved at most MOST_CUTS times, each time with more constraints
CUT_GAP = 0.01  # relative tolerance between the actual and the predicted error of a solution
STEPS_KEPT = 20  # with more than 2 · STEPS_KEPT constraints per discount, constraints with dual value 0 are dropped


class Heads(NamedTuple):
    """The rates λᵢ of the sums Σ wᵢ e^{-λᵢ t}, and the weights wᵢ for each of D discounts."""

    log_rates: Float[np.ndarray, " H"]
    weights: Float[np.ndarray, "D H"]

    def gammas(self, cap: float) -> Float[np.ndarray, " H"]:
        """Returns the discount factors. Values below 1e-15 become 0."""
        found = np.minimum(np.exp(-np.exp(self.log_rates)), cap)
        return np.where(found < 1e-15, 0.0, found)

    def terms(self, t: Float[np.ndarray, " T"]) -> Float[np.ndarray, "T H"]:
        return np.exp(-np.multiply.outer(t, np.exp(self.log_rates)))

    def missed(self, t: Float[np.ndarray, " T"], target: Float[np.ndarray, "D T"]) -> Float[np.ndarray, "D T"]:
        return target - self.weights @ self.terms(t).T


class Problem(NamedTuple):
    """Discounts at some times, the bounds on ln λ, and the definition of the error.

    Let m be the largest absolute residual of discount d. The error of d is the larger of m - floors[d] and
    steepness · (m - top). `floors` are errors that no number of heads can remove, and `top` is the largest floor.
    """

    t: Float[np.ndarray, " T"]
    target: Float[np.ndarray, "D T"]
    low: float  # smallest ln λ, given by gamma_max
    high: float  # largest ln λ
    floors: Float[np.ndarray, " D"]
    top: float
    steepness: float

    def error(self, heads: Heads) -> float:
        return float(self.errors(heads.missed(self.t, self.target)).max())

    def errors(self, missed: Float[np.ndarray, "D T"]) -> Float[np.ndarray, " D"]:
        largest = np.abs(missed).max(axis=1)
        return np.maximum(largest - self.floors, self.steepness * (largest - self.top))

    def allowed(self, error: float) -> Float[np.ndarray, " D"]:
        """Converts an error to the largest absolute residual of each discount."""
        return np.minimum(self.floors + error, self.top + error / self.steepness)


class Descent(NamedTuple):
    """The heads at the end of a descent, their error, and the dual solution y of the last linear program.

    A new head with rate λ and a small weight w for discount d reduces the error by about w Σ_t y[d, t] e^{-λt}.
    """

    heads: Heads
    error: float
    dual: Float[np.ndarray, "D T"]


def problem_at(
    chosen: Int[np.ndarray, " T"],
    wanted: Float[np.ndarray, "D every_step"],
    cap: float,
    floors: Float[np.ndarray, " D"],
    steepness: float,
) -> Problem:
    """Returns the problem of fitting the discounts at the chosen times, with γ ≤ `cap`."""
    low = min(np.log(-np.log(cap)), np.log(MOST_RATE) - 1e-3)
    times, target = chosen.astype(float), wanted[:, chosen]
    return Problem(times, target, float(low), float(np.log(MOST_RATE)), floors, float(floors.max()), steepness)


def weighted(problem: Problem, log_rates: Float[np.ndarray, " H"]) -> Heads:
    """Returns heads with the given rates and the best weights for each discount."""
    heads = Heads(log_rates, np.zeros((len(problem.target), len(log_rates))))
    none = np.zeros(problem.target.shape, bool)
    for _ in range(2):  # the second pass is more precise: the solver's tolerance is relative to the remaining error
        heads = _reweighted(problem, heads, np.ones(len(problem.target), bool), _Rows(none, none))
    return heads


def descend(problem: Problem, heads: Heads, steps: int, gain: float = SEARCH_GAIN, goal: float = 0.0) -> Descent:
    """Reduces the largest error over all discounts by sequential linear programming. Stops at the error `goal`."""
    radius, small = FIRST_RADIUS, 0
    missed = heads.missed(problem.t, problem.target)
    errors = problem.errors(missed)
    dual = np.zeros_like(missed)
    rows = _Rows(np.zeros(missed.shape, bool), np.zeros(missed.shape, bool))
    for _ in range(steps):
        error = float(errors.max())
        if error <= goal:
            break
        rows = rows.joined(_extremes(missed))
        found, rows = _best_change(problem, heads, missed, errors, rows, radius)
        if found is None:  # the solver failed; try a smaller trust region
            radius /= 2.5
            if radius < SMALLEST_RADIUS:
                break
            continue
        dual = found.dual
        rows = rows.thinned(dual)
        candidate = Heads(
            np.clip(heads.log_rates + found.log_rates, problem.low, problem.high),
            np.maximum(heads.weights + found.weights, 0),
        )
        # Only discounts with large errors need the best weights.
        is_large = ~(problem.errors(candidate.missed(problem.t, problem.target)) < 0.8 * error)
        candidate = _reweighted(problem, candidate, is_large, rows)
        left = candidate.missed(problem.t, problem.target)
        new_errors = problem.errors(left)
        new_error = float(new_errors.max())
        share = (error - new_error) / max(error - found.error, 1e-300)
        if new_error < error:
            small = small + 1 if new_error > error * (1 - gain) else 0
            heads, missed, errors = candidate, left, new_errors
        radius = min(2 * radius, LARGEST_RADIUS) if share > 0.5 else radius / 2.5 if share < 0.25 else radius
        if found.error > error * (1 - CONVERGED) or radius < SMALLEST_RADIUS or small == MOST_SMALL_GAINS:
            break
    return Descent(heads, float(errors.max()), dual)


class _Rows(NamedTuple):
    """The times at which a linear program bounds the residual of each discount from above and from below."""

    above: Bool[np.ndarray, "D T"]
    below: Bool[np.ndarray, "D T"]

    def joined(self, other: "_Rows") -> "_Rows":
        return _Rows(self.above | other.above, self.below | other.below)

    def thinned(self, dual: Float[np.ndarray, "D T"]) -> "_Rows":
        if self.above.sum() + self.below.sum() <= 2 * STEPS_KEPT * len(dual):
            return self
        return _Rows(self.above & (dual != 0), self.below & (dual != 0))


def _extremes(missed: Float[np.ndarray, "D T"]) -> _Rows:
    """Returns the times of positive maxima and negative minima of the residuals, plus the first and last time."""

    def peaks(values: Float[np.ndarray, "D T"]) -> Bool[np.ndarray, "D T"]:
        padded = np.pad(values, ((0, 0), (1, 1)), constant_values=-np.inf)
        found = (values >= padded[:, :-2]) & (values >= padded[:, 2:]) & (values > 0)
        found[:, [0, -1]] = True
        return found

    return _Rows(peaks(missed), peaks(-missed))


class _Change(NamedTuple):
    log_rates: Float[np.ndarray, " H"]
    weights: Float[np.ndarray, "D H"]
    error: float  # predicted
    dual: Float[np.ndarray, "D T"]


def _best_change(
    problem: Problem,
    heads: Heads,
    missed: Float[np.ndarray, "D T"],
    errors: Float[np.ndarray, " D"],
    rows: _Rows,
    radius: float,
) -> tuple[_Change | None, _Rows]:
    """Solves the linear program, adds the times at which the solution has too large an error, and repeats."""
    error = errors.max()
    large = errors > 0.5 * error  # a smaller error cannot become the largest error within one iteration
    terms = heads.terms(problem.t)
    slopes = -np.multiply.outer(problem.t, np.exp(heads.log_rates)) * terms  # ∂e^{-λt} / ∂ln λ
    found = None
    for _ in range(MOST_CUTS):
        used = _Rows(rows.above & large[:, None], rows.below & large[:, None])
        found = _solved(problem, heads, missed, (terms, slopes), used, error, radius)
        if found is None:
            break
        left = missed - found.weights @ terms.T - (heads.weights * found.log_rates) @ slopes.T
        gain = error - found.error
        if np.all(problem.errors(left)[large] <= found.error + 5 * CUT_GAP * gain + 1e-12):
            break
        is_beyond = np.abs(left) > problem.allowed(found.error + CUT_GAP * gain)[:, None]
        peaks = _extremes(left)
        is_beyond &= large[:, None]
        rows = rows.joined(_Rows(peaks.above & is_beyond, peaks.below & is_beyond))
    return found, rows


def _solved(
    problem: Problem,
    heads: Heads,
    missed: Float[np.ndarray, "D T"],
    model: tuple[Float[np.ndarray, "T H"], Float[np.ndarray, "T H"]],
    rows: _Rows,
    error: float,
    radius: float,
) -> _Change | None:
    """Minimises the largest linearised error at the times in `rows`. Returns None if the solver fails.

    The variables are the changes of the weights, the changes of ln λ, and the error. Residuals are divided by the
    largest residual r, and weights by √r.
    """
    terms, slopes = model
    discounts = np.flatnonzero(rows.above.any(axis=1) | rows.below.any(axis=1))
    place = np.searchsorted(discounts, np.arange(len(missed)))
    count = len(heads.log_rates)
    size = len(discounts) * count
    scale = float(np.abs(missed[discounts]).max())
    unit = np.sqrt(scale)
    blocks, bounds, kept = [], [], []
    for sign, mask in ((1.0, rows.above), (-1.0, rows.below)):
        d, t = np.nonzero(mask)
        block = np.zeros((len(d), size + count + 1))
        block[np.arange(len(d))[:, None], place[d][:, None] * count + np.arange(count)] = -sign * terms[t] * unit
        block[:, size:-1] = -sign * slopes[t] * heads.weights[d]
        block[:, -1] = -scale
        # The residual has two upper bounds: A = floor + error, and B = top + error / steepness. When the error falls,
        # A falls faster than B. If A is already smaller than B, it stays smaller, and B needs no constraint.
        is_steep = problem.top + error / problem.steepness < problem.floors[d] + error
        steep = block[is_steep]
        steep[:, -1] /= problem.steepness
        blocks += [block, steep]
        bounds += [problem.floors[d] - sign * missed[d, t], problem.top - sign * missed[d, t][is_steep]]
        kept += [(sign, d, t), (sign, d[is_steep], t[is_steep])]
    now = heads.weights[discounts].reshape(-1)
    unbounded = np.array([np.inf])
    lower = [-np.minimum(now, radius) / unit, np.maximum(-radius, problem.low - heads.log_rates), -unbounded]
    upper = [np.full(size, radius / unit), np.minimum(radius, problem.high - heads.log_rates), unbounded]
    solved = linprog(
        np.append(np.zeros(size + count), 1.0),
        A_ub=np.vstack(blocks) / scale,
        b_ub=np.concatenate(bounds) / scale,
        bounds=np.stack([np.concatenate(lower), np.concatenate(upper)], axis=1),
        method="highs-ds",
    )
    if solved.x is None:
        return None
    dual = np.zeros_like(missed)
    parts = np.split(solved.ineqlin.marginals, np.cumsum([len(block) for block in blocks])[:-1])
    for part, (sign, d, t) in zip(parts, kept, strict=True):
        np.add.at(dual, (d, t), -sign * part)
    weights = np.zeros_like(heads.weights)
    weights[discounts] = unit * solved.x[:size].reshape(-1, count)
    return _Change(solved.x[size:-1], weights, float(solved.x[-1]) * scale, dual)


def _reweighted(problem: Problem, heads: Heads, chosen: Bool[np.ndarray, " D"], rows: _Rows) -> Heads:
    terms = heads.terms(problem.t)
    missed = heads.missed(problem.t, problem.target)
    errors = np.abs(missed).max(axis=1)
    d = np.flatnonzero(chosen & (errors > 1e-12))
    if len(d) == 0:
        return heads
    missed, best, errors = missed[d], heads.weights[d], errors[d]
    target, rows = problem.target[d], _Rows(rows.above[d], rows.below[d]).joined(_extremes(missed))
    now, least = best, errors
    for _ in range(MOST_CUTS):
        found = _best_weights(terms, missed, now, errors, rows)
        if found is None:
            break
        weights, predicted = found
        left = target - weights @ terms.T
        reached = np.abs(left).max(axis=1)
        best = np.where((reached < least)[:, None], weights, best)
        least = np.minimum(reached, least)
        if np.all(reached <= predicted * (1 + CUT_GAP) + 1e-12):
            break
        peaks, beyond = _extremes(left), np.abs(left) > predicted[:, None]
        rows = rows.joined(_Rows(peaks.above & beyond, peaks.below & beyond))
    every_weight = heads.weights.copy()
    every_weight[d] = best
    return Heads(heads.log_rates, every_weight)


def _best_weights(
    terms: Float[np.ndarray, "T H"],
    missed: Float[np.ndarray, "D T"],
    weights: Float[np.ndarray, "D H"],
    errors: Float[np.ndarray, " D"],
    rows: _Rows,
) -> tuple[Float[np.ndarray, "D H"], Float[np.ndarray, " D"]] | None:
    """Returns the best weights and the error for each discount, from one block-diagonal linear program."""
    discounts, count = weights.shape
    units = np.sqrt(errors)
    (d_above, t_above), (d_below, t_below) = np.nonzero(rows.above), np.nonzero(rows.below)
    d, t = np.concatenate([d_above, d_below]), np.concatenate([t_above, t_below])
    sign = np.repeat([1.0, -1.0], [len(d_above), len(d_below)])
    block = np.column_stack([-sign[:, None] * terms[t] / units[d, None], -np.ones(len(d))])
    columns = d[:, None] * (count + 1) + np.arange(count + 1)
    starts = np.arange(len(d) + 1) * (count + 1)
    lower = np.column_stack([-weights / units[:, None], np.zeros(discounts)]).reshape(-1)
    solved = linprog(
        np.tile(np.append(np.zeros(count), 1.0), discounts),
        A_ub=scipy.sparse.csr_array((block.reshape(-1), columns.reshape(-1), starts), (len(d), len(lower))),
        b_ub=-sign * missed[d, t] / errors[d],
        bounds=np.stack([lower, np.full(len(lower), np.inf)], axis=1),
        method="highs-ds",
    )
    if solved.x is None:
        return None
    found = solved.x.reshape(discounts, count + 1)
    return np.maximum(weights + units[:, None] * found[:, :-1], 0), errors * found[:, -1]
