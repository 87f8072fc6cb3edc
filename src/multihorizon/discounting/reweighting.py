"""Finds new weights for given discount factors, so that a trained agent can act by another discount.

The heads of a trained agent have fixed γ's. Any discount that Σ wᵢ γᵢ^t can express needs new weights only. The best
weights for fixed γ's solve a linear program (or a non-negative least-squares problem).
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import numpy as np
from jaxtyping import Float
from scipy.optimize import linprog, nnls

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.horizons import Horizons
from multihorizon.discounting.minimax import MOST_RATE, fitted_steps, grow, minimax_grid, problem_at
from multihorizon.discounting.sources import as_discount, sampled
from multihorizon.errors import InputError, at_least, positive

MOST_SIGNED = 10.0  # largest Σ|wᵢ|, in units of d(0), if weights may be negative
ALL_STEPS = 400  # up to this many, the linear program has a row for every step
DENSE = 150  # discount factors that represent any number of heads
MOST_SUGGESTED = 12  # heads
LONGEST_SUGGESTED = 1e6  # effective horizon, in steps
PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}
# Tried in turn: each solver gives up on some programs with nearly equal columns.
SOLVERS: tuple[tuple[str, dict[str, float]], ...] = (
    ("highs", PRECISE),
    ("highs-ipm", PRECISE),
    ("highs-ds", PRECISE),
    ("highs-ipm", {}),
    ("highs-ds", {}),
)


class FitMethod(Enum):
    """The criterion for the best weights.

    Attributes:
        MINIMAX: Weights of at least 0 that minimise the largest error.
        LEAST_SQUARES: Weights of at least 0 that minimise the mean squared error. Compared with MINIMAX, the largest
            error is larger and the mean squared error smaller.
        SIGNED_MINIMAX: Weights of either sign that minimise the largest error, for discounts that are not a mixture
            of exponentials. Σ|wᵢ| is at most 10 · d(0), since it multiplies the errors of the learned values.
    """

    MINIMAX = "weights of at least 0 that minimise the largest error"
    LEAST_SQUARES = "weights of at least 0 that minimise the mean squared error"
    SIGNED_MINIMAX = "weights of either sign that minimise the largest error"


@dataclass(frozen=True)
class Reweighting:
    """Horizons with new weights, and how well they express the requested discount.

    Attributes:
        horizons: The given discount factors with their new weights. `horizons.discount` is the discount they reach.
        target: The requested discount.
        t_max: The last step over which the error is measured.
        max_error: The largest |Σ wᵢ γᵢ^t - d(t)| over t = 0, 1, ..., t_max.
        max_error_at: The step at which it occurs.
    """

    horizons: Horizons
    target: Discount
    t_max: int
    max_error: float
    max_error_at: int

    def __str__(self) -> str:
        return (
            f"{self.target}, expressed by {_counted(len(self.horizons))} with γ ≤ {self.horizons.gammas.max():.6g}: "
            f"largest error {self.max_error:.3g} at t = {self.max_error_at}, over t = 0..{self.t_max}"
        )


def reweight(
    horizons: Horizons,
    discount: Discount | Prior | Callable[[float], float],
    *,
    t_max: int = 1000,
    method: FitMethod = FitMethod.MINIMAX,
    tolerance: float = 0.05,
) -> Reweighting:
    """Finds the weights with which the given discount factors best express a discount.

    Args:
        horizons: The discount factors. Their weights are not used.
        discount: The discount to express: a `Discount`, such as `discount.deadline(100)`, a hazard `Prior`, or a
            Python function of t.
        t_max: The last step over which the error is measured, at least 1. Give the length of an episode.
        method: The criterion for the best weights.
        tolerance: The largest error that is accepted, as a share of d(0).

    Returns:
        The same discount factors with new weights, the largest error, and the step at which it occurs.

    Raises:
        InputError: If the discount rises or is not positive at 0; or if the largest error exceeds `tolerance` ·
            d(0). The message then says how many heads, or which largest γ, would suffice, or that none would.
    """
    wanted = as_discount(discount, "a change of discount")
    values = sampled(wanted, at_least("t_max", t_max, 1))
    allowed = positive("tolerance", tolerance) * values[0]
    weights = values[0] * best_weights(horizons.gammas, values / values[0], method)
    found = Horizons(horizons.gammas, weights)
    fit = found.fit(wanted, t_max)
    if fit.max_error > allowed:
        raise InputError(
            f"{_counted(len(horizons))} with γ ≤ {horizons.gammas.max():.6g} cannot express {wanted}: the largest "
            f"error over t = 0..{t_max} is {fit.max_error:.3g} at t = {fit.max_error_at}, the tolerance is "
            f"{allowed:.3g}; " + _remedy(horizons, wanted, values, allowed, method)
        )
    return Reweighting(found, wanted, int(t_max), fit.max_error, fit.max_error_at)


def best_weights(
    gammas: Float[np.ndarray, " H"], target: Float[np.ndarray, " every_step"], method: FitMethod
) -> Float[np.ndarray, " H"]:
    """Returns the weights for which Σ wᵢ γᵢ^t is closest to `target` at t = 0, 1, ...; target[0] is 1."""
    every_step = np.arange(len(target))
    if method is FitMethod.LEAST_SQUARES:
        return np.asarray(nnls(np.power.outer(gammas, every_step).T, target)[0])
    chosen = every_step if len(every_step) <= ALL_STEPS else fitted_steps(len(every_step) - 1)
    while True:
        weights = minimax_weights(np.power.outer(gammas, chosen).T, target[chosen], method is FitMethod.SIGNED_MINIMAX)
        missed = np.abs(weights @ np.power.outer(gammas, every_step) - target)
        worst = int(np.argmax(missed))
        if worst in chosen or missed[worst] <= missed[chosen].max() * 1.001 + 1e-12:
            return weights
        chosen = np.union1d(chosen, worst)  # the error peaks between two fitted steps


def minimax_weights(
    terms: Float[np.ndarray, "T H"], target: Float[np.ndarray, " T"], signed: bool = False
) -> Float[np.ndarray, " H"]:
    """Solves the linear program min e with |terms · w - target| ≤ e, and w ≥ 0 or Σ|w| ≤ MOST_SIGNED."""
    count = terms.shape[1]
    columns = np.concatenate([terms, -terms], axis=1) if signed else terms
    ceiling = -np.ones((len(target), 1))
    rows, bounds = np.block([[columns, ceiling], [-columns, ceiling]]), np.concatenate([target, -target])
    if signed:
        rows = np.vstack([rows, np.append(np.ones(2 * count), 0.0)])
        bounds = np.append(bounds, MOST_SIGNED)
    objective = np.append(np.zeros(columns.shape[1]), 1.0)
    for method, options in SOLVERS:
        solved = linprog(objective, A_ub=rows, b_ub=bounds, method=method, options=options)
        if solved.x is not None:
            break
    else:
        raise InputError(f"the weights could not be computed ({solved.message}); use fewer heads or another t_max")
    weights = np.maximum(solved.x[:-1], 0.0)
    return weights[:count] - weights[count:] if signed else weights


def least_error(target: Float[np.ndarray, " every_step"], cap: float) -> float:
    """Returns the smallest error that any number of heads with γ ≤ cap and weights ≥ 0 can reach; target[0] is 1.

    A dense set of γ's represents any number of heads, and up to 150 steps represent all steps.
    """
    chosen = fitted_steps(len(target) - 1, DENSE)
    rates = np.geomspace(-np.log(cap), MOST_RATE, DENSE)
    terms = np.exp(-np.multiply.outer(chosen, rates))
    weights = minimax_weights(terms, target[chosen])
    return float(np.abs(terms @ weights - target[chosen]).max())


def _remedy(horizons: Horizons, wanted: Discount, values: np.ndarray, allowed: float, method: FitMethod) -> str:
    """Describes what would express the discount: more heads, a larger cap, or signed weights."""
    target, share = values / values[0], allowed / values[0]
    cap = float(np.clip(horizons.gammas.max(), 1e-6, 1 - 1 / LONGEST_SUGGESTED))
    if least_error(target, cap) <= share:
        return (
            f"{_enough_heads(wanted, values, cap, allowed)} with the same largest γ, chosen by minimax_grid, "
            "would suffice"
        )
    longest = 1 - 1 / LONGEST_SUGGESTED
    floor = least_error(target, longest)
    if floor <= share:
        low, high = np.log(1 / (1 - cap)), np.log(LONGEST_SUGGESTED)  # log of the effective horizon; longer is better
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if least_error(target, 1 - np.exp(-middle)) <= 0.98 * share else (middle, high)
        needed = 1 - float(f"{0.95 * np.exp(-high):.1e}")
        return (
            f"no number of heads with γ ≤ {cap:.6g} would suffice; with a largest γ of {needed:.7g}, "
            f"{_enough_heads(wanted, values, needed, allowed)} chosen by minimax_grid would"
        )
    words = (
        f"heads with weights of at least 0 cannot reach an error below {floor * values[0]:.3g}, "
        "because this discount is not a mixture of exponentials"
    )
    if method is not FitMethod.SIGNED_MINIMAX:
        weights = best_weights(horizons.gammas, target, FitMethod.SIGNED_MINIMAX)
        signed = Horizons(horizons.gammas, weights * values[0]).fit(wanted, len(values) - 1).max_error
        words += f"; FitMethod.SIGNED_MINIMAX reaches {signed:.3g} with these heads"
    return f"{words}; otherwise raise the tolerance"


def _enough_heads(wanted: Discount, values: np.ndarray, cap: float, allowed: float) -> str:
    """Returns the number of heads with γ ≤ cap that express the discount, in words."""
    steps = fitted_steps(len(values) - 1)
    problem = problem_at(steps, values[None], cap)
    for count, heads in enumerate(grow(problem, MOST_SUGGESTED)):
        if problem.error(heads) <= allowed:
            error = minimax_grid(wanted, count, gamma_max=cap, t_max=len(values) - 1).fit(wanted, len(values) - 1)
            if error.max_error <= allowed:
                return _counted(count)
    return f"more than {MOST_SUGGESTED} heads"


def _counted(heads: int) -> str:
    return "1 head" if heads == 1 else f"{heads} heads"
