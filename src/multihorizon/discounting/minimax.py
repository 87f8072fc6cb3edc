"""The minimax grid: the discount factors and non-negative weights whose largest error is smallest.

Finding the best sum of H exponentials is not a convex problem, but two facts make it tractable. First, the error falls
fast with H, so the search adds one head at a time, tries it in every gap, and starts close to the optimum. Second, near
a set of heads the error is almost linear in small changes of ln λ and of the weights, so a linear program finds the
best change (sequential linear programming with a trust region). A least-squares fit, which is smooth, comes first.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy.optimize import least_squares, linprog

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.horizons import MOST_HEADS, Horizons
from multihorizon.discounting.sources import as_discount, sampled
from multihorizon.errors import at_least, inside

MOST_RATE = 40.0  # e^{-40 t} is 0 in float precision from t = 1 on
GOOD_ENOUGH = 1e-5  # relative to d(0); learned values are less exact than that, and below it the search is slow
FITTED_TIMES = 250
MOST_REFINEMENTS = 50
EXACT = 1e-14
SMALLEST_GAIN = 1e-6  # relative; below it another head does not help


class Heads(NamedTuple):
    """Sums Σ wᵢ e^{-λᵢ t} in the variables of the search: one set of rates, and weights for each of D discounts."""

    log_rates: Float[np.ndarray, " H"]
    weights: Float[np.ndarray, "D H"]

    def terms(self, t: np.ndarray) -> Float[np.ndarray, "T H"]:
        return np.exp(-np.multiply.outer(t, np.exp(self.log_rates)))

    def slopes(self, t: np.ndarray) -> Float[np.ndarray, "D T H"]:
        """Returns ∂(wᵢ e^{-λᵢ t}) / ∂ ln λᵢ."""
        return -np.multiply.outer(t, np.exp(self.log_rates)) * self.terms(t) * self.weights[:, None]

    def missed(self, t: np.ndarray, target: np.ndarray) -> Float[np.ndarray, "D T"]:
        return target - self.weights @ self.terms(t).T


class Problem(NamedTuple):
    """Discounts at some times, and the bounds on ln λ."""

    t: Float[np.ndarray, " T"]
    target: Float[np.ndarray, "D T"]
    low: float  # smallest ln λ, given by gamma_max
    high: float  # largest ln λ
    floors: Float[np.ndarray, " D"]  # the unavoidable error of each discount, which does not count

    def error(self, heads: Heads) -> float:
        """Returns the largest error beyond the floor of its discount."""
        return float((np.abs(heads.missed(self.t, self.target)).max(axis=1) - self.floors).max())


def minimax_grid(
    source: Discount | Prior | Callable[[float], float], heads: int, *, gamma_max: float = 0.99, t_max: int = 1000
) -> Horizons:
    """Finds the discount factors γ ≤ `gamma_max` and weights ≥ 0 that minimise the largest error.

    The error is |Σ wᵢ γᵢ^t - d(t)|, and the largest is taken over the steps t = 0, 1, ..., t_max.

    With a bound on γ, a few heads often reach the smallest error that any number of heads can reach, or an error of
    1e-5 · d(0), at which the search stops. The other heads then have weight 0 and fill the gaps between the rest: an
    agent learns them but does not act by them. The weights need not sum to d(0).

    Args:
        source: The discount to approximate: a `Discount`, a `Prior`, or a Python function of t, which
            `discount.from_function` wraps.
        heads: The number of discount factors.
        gamma_max: The upper bound on γ, in (0, 1).
        t_max: The last step at which the error is measured, at least 1.

    Returns:
        The horizons, γ increasing [H].

    Raises:
        InputError: If the source has another type, if the discount rises or is not positive at 0, or if another
            argument lies outside its range.
    """
    discount = as_discount(source, "minimax_grid")
    heads = at_least("heads", heads, 1, MOST_HEADS)
    cap = inside("gamma_max", gamma_max, 0, 1)
    wanted = sampled(discount, at_least("t_max", t_max, 1))[None]
    *_, best = grow(problem_at(fitted_steps(t_max), wanted, cap), heads)
    return _as_horizons(refine(best, wanted, cap), heads, cap)


def fitted_steps(t_max: int, count: int = FITTED_TIMES) -> Int[np.ndarray, " T"]:
    """Returns steps from 0 to t_max, dense where discounts change fast. `refine` adds steps where the error peaks."""
    return np.unique(np.round(np.geomspace(1, t_max + 1, count)).astype(int)) - 1


def problem_at(
    chosen: Int[np.ndarray, " T"],
    wanted: Float[np.ndarray, "D every_step"],
    cap: float,
    floors: Float[np.ndarray, " D"] | None = None,
) -> Problem:
    """Returns the problem at the chosen steps, given the discounts at every step and the largest γ."""
    low = min(np.log(-np.log(cap)), np.log(MOST_RATE) - 1e-3)
    return Problem(
        chosen.astype(float), wanted[:, chosen], float(low), float(np.log(MOST_RATE)), _floors(wanted, floors)
    )


def _floors(wanted: np.ndarray, given: np.ndarray | None) -> Float[np.ndarray, " D"]:
    return np.zeros(len(wanted)) if given is None else given


def refine(
    best: Heads,
    wanted: Float[np.ndarray, "D every_step"],
    cap: float,
    chosen: Int[np.ndarray, " T"] | None = None,
    floors: Float[np.ndarray, " D"] | None = None,
) -> Heads:
    """Adds steps at which the error peaks and fits again, until no peak lies between the fitted steps."""
    every_step = np.arange(wanted.shape[1])
    chosen = fitted_steps(len(every_step) - 1) if chosen is None else chosen
    for _ in range(MOST_REFINEMENTS):
        missed = (np.abs(best.missed(every_step, wanted)) - _floors(wanted, floors)[:, None]).max(axis=0)
        worst = int(np.argmax(missed))
        if worst in chosen or missed[worst] <= missed[chosen].max() * 1.001:
            break
        chosen = np.union1d(chosen, worst)
        best = descend(problem_at(chosen, wanted, cap, floors), best)
    return best


def grow(problem: Problem, heads: int) -> Iterator[Heads]:
    """Yields the best sets of zero, one, two, ... heads for a single discount, until one more head does not help."""
    best = Heads(np.empty(0), np.empty((1, 0)))
    error = problem.error(best)
    yield best
    for _ in range(heads):
        starts = [
            Heads(np.append(best.log_rates, gap), np.append(best.weights, [[1e-3]], axis=1))
            for gap in gaps(problem, best)
        ]
        fitted = [_least_squares(problem, start) for start in starts]
        candidate = descend(problem, min(fitted, key=problem.error))
        new_error = problem.error(candidate)
        if new_error > error * (1 - SMALLEST_GAIN):
            break
        best, error = candidate, new_error
        yield best
        if error < GOOD_ENOUGH * problem.target[0, 0]:
            break


def gaps(problem: Problem, heads: Heads) -> Float[np.ndarray, " gaps"]:
    """Returns the middle of each gap between two heads, or between a head and a bound, in ln λ."""
    edges = np.concatenate([[problem.low], np.sort(heads.log_rates), [problem.high]])
    return (edges[1:] + edges[:-1]) / 2


def _least_squares(problem: Problem, start: Heads) -> Heads:
    count = len(start.log_rates)

    def heads(x: np.ndarray) -> Heads:
        return Heads(x[:count], np.exp(x[None, count:]))

    def residual(x: np.ndarray) -> np.ndarray:
        return -heads(x).missed(problem.t, problem.target)[0]

    def jacobian(x: np.ndarray) -> np.ndarray:
        h = heads(x)
        return np.concatenate([h.slopes(problem.t)[0], h.terms(problem.t) * h.weights], axis=1)

    lower = np.concatenate([np.full(count, problem.low), np.full(count, -30.0)])
    upper = np.concatenate([np.full(count, problem.high), np.full(count, 5.0)])
    x = np.concatenate([start.log_rates, np.log(np.maximum(start.weights[0], 1e-6))])
    margin = 1e-9 * (upper - lower)
    found = least_squares(
        residual,
        np.clip(x, lower + margin, upper - margin),
        jacobian,
        (lower, upper),
        xtol=1e-15,
        ftol=1e-14,
        gtol=1e-15,
        max_nfev=300,
        x_scale="jac",
    )
    return heads(found.x)


def descend(problem: Problem, heads: Heads, steps: int = 60) -> Heads:
    """Reduces the largest error over all discounts by sequential linear programming."""
    discounts, count = heads.weights.shape
    size = discounts * count  # number of weights; the changes of ln λ follow them in the vector
    error = problem.error(heads)
    if error < EXACT:
        return heads
    radius = 0.3
    objective = np.append(np.zeros(size + count), 1.0)
    for _ in range(steps):
        # In units of the current error the program is well scaled, however small the error is.
        residual = heads.missed(problem.t, problem.target).reshape(-1) / error
        spare = np.repeat(problem.floors / error, len(problem.t))
        by_weights = np.kron(np.eye(discounts), heads.terms(problem.t))
        columns = np.concatenate([by_weights, heads.slopes(problem.t).reshape(-1, count)], axis=1)
        unit = error / np.maximum(np.abs(columns).max(axis=0), 1e-300)
        move = columns * unit / error
        ceiling = -np.ones((len(residual), 1))
        lower = np.concatenate([-heads.weights.reshape(-1), np.maximum(-radius, problem.low - heads.log_rates)]) / unit
        upper = np.concatenate(
            [np.full(size, np.inf), np.minimum(radius, problem.high - heads.log_rates) / unit[size:]]
        )
        solved = linprog(
            objective,
            A_ub=np.block([[move, ceiling], [-move, ceiling]]),
            b_ub=np.concatenate([spare + residual, spare - residual]),
            bounds=np.stack([np.append(lower, 0.0), np.append(upper, np.inf)], axis=1),
            method="highs",
        )
        if solved.x is None:  # the solver can fail where heads coincide; keep the best so far
            break
        step = solved.x[:-1] * unit
        predicted = error * solved.x[-1]
        candidate = Heads(
            np.clip(heads.log_rates + step[size:], problem.low, problem.high),
            np.maximum(heads.weights + step[:size].reshape(discounts, count), 0),
        )
        new_error = problem.error(candidate)
        share = (error - new_error) / max(error - predicted, 1e-300)  # achieved share of the predicted gain
        converged = predicted > error * (1 - 1e-7)
        if new_error < error:
            heads, error = candidate, new_error
        radius = min(2 * radius, 4.0) if share > 0.5 else radius / 2.5 if share < 0.25 else radius
        if converged or radius < 1e-9 or error < EXACT:
            break
    return heads


def _as_horizons(best: Heads, heads: int, cap: float) -> Horizons:
    used = best.weights[0] > 1e-12
    log_rates, weights = best.log_rates[used], best.weights[0, used]
    gammas = np.minimum(np.exp(-np.exp(log_rates)), cap)
    gammas[gammas < 1e-15] = 0.0
    while len(gammas) < heads:  # put unused heads in the middle of the widest gap in log effective horizon
        spread = np.log(np.concatenate([[1.0], 1 / (1 - np.unique(gammas)), [1 / (1 - cap)]]))
        widest = int(np.argmax(np.diff(spread)))
        horizon = np.exp((spread[widest] + spread[widest + 1]) / 2)
        gammas, weights = np.append(gammas, 1 - 1 / horizon), np.append(weights, 0.0)
    order = np.argsort(gammas)
    return Horizons(gammas[order], weights[order])
