"""Checks weights for random discount factors against slow solvers and against lower bounds on the error."""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from multihorizon.discounting import Discount, FitMethod, discount, hazard
from multihorizon.discounting.fitting import best_weights, least_error
from multihorizon.discounting.sources import sampled

MOST = 10.0
ABSOLUTE = 1e-7  # accepted rounding error, as a fraction of d(0)


def _gammas(rng: np.random.Generator) -> np.ndarray:
    """Returns 1 to 50 discount factors. Some are nearly equal to each other, and some are 0 or 1."""
    heads = int(rng.integers(1, 51))
    few = 1 - 10 ** rng.uniform(-3, 0, max(1, heads // 3))
    kinds = [
        1 - 1 / np.geomspace(1, 10 ** rng.uniform(0.5, 4), heads),
        rng.uniform(0, 1, heads),
        1 - 10 ** rng.uniform(-4, 0, heads),
        np.linspace(rng.uniform(0, 0.9), rng.uniform(0.9, 1), heads),
        rng.choice(few, heads) + rng.choice([0, 1e-6, 1e-9, 1e-12], heads),
        np.exp(-np.geomspace(10 ** rng.uniform(-5, -1), 10 ** rng.uniform(-1, 1.6), heads)),
    ]
    found = np.clip(kinds[rng.integers(len(kinds))], 0, 1)
    found[0] = 0.0 if rng.random() < 0.1 else found[0]
    found[-1] = 1.0 if rng.random() < 0.1 else found[-1]
    return found


def _discount(rng: np.random.Generator) -> Discount:
    k, s, gamma = 10 ** rng.uniform(-4, 1), rng.uniform(0.05, 0.99), 1 - 10 ** rng.uniform(-4, -0.5)
    makes = [
        lambda: discount.hyperbolic(k),
        lambda: discount.exponential(gamma),
        lambda: discount.generalised_hyperbolic(k, 10 ** rng.uniform(-1, 1)),
        lambda: discount.rachlin(k, s),
        lambda: discount.ebert_prelec(k, s),
        lambda: discount.deadline(int(10 ** rng.uniform(0, 3))),
        lambda: discount.quasi_hyperbolic(rng.uniform(0.1, 1), gamma),
        lambda: discount.uniform(k),
        discount.none,
        lambda: discount.from_prior(hazard.Mixture([hazard.Exponential(k), hazard.Dirac(0.1)])),
        lambda: discount.from_function(lambda t: 3 * math.exp(-((k * t) ** 2))),
    ]
    return makes[rng.integers(len(makes))]()


def _case(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns discount factors [H], their terms γ^t [T H], and a discount with d(0) = 1 [T]."""
    rng = np.random.default_rng(seed)
    gammas = _gammas(rng)
    values = sampled(_discount(rng), max(1, int(10 ** rng.uniform(0, 3))))
    return gammas, np.power.outer(gammas, np.arange(len(values))).T, values / values[0]


def _slow_least_error(terms: np.ndarray, target: np.ndarray, is_signed: bool) -> float:
    """Solves the linear program for all heads and steps with several solvers. Returns the smallest error."""
    columns = np.hstack([terms, -terms]) if is_signed else terms
    ceiling = -np.ones((len(target), 1))
    rows = np.block([[columns, ceiling], [-columns, ceiling]])
    bounds = np.concatenate([target, -target])
    if is_signed:
        rows, bounds = np.vstack([rows, np.append(np.ones(columns.shape[1]), 0)]), np.append(bounds, MOST)
    best = np.inf
    for method, tolerance in (("highs-ds", 1e-9), ("highs-ipm", 1e-9), ("highs-ds", 1e-7)):
        solved = linprog(
            np.append(np.zeros(columns.shape[1]), 1.0),
            A_ub=rows,
            b_ub=bounds,
            method=method,
            options={"primal_feasibility_tolerance": tolerance, "dual_feasibility_tolerance": tolerance},
        )
        if solved.x is not None:
            best = min(best, float(np.abs(columns @ np.maximum(solved.x[:-1], 0) - target).max()))
    return best


@pytest.mark.parametrize("seed", range(30))
def test_minimax_weights_are_as_good_as_the_weights_of_a_slow_solver(seed: int) -> None:
    gammas, terms, target = _case(seed)
    for method in (FitMethod.MINIMAX, FitMethod.SIGNED_MINIMAX):
        weights = best_weights(gammas, target, method)
        is_signed = method is FitMethod.SIGNED_MINIMAX
        assert np.abs(weights).sum() <= MOST * (1 + 1e-9) if is_signed else np.all(weights >= 0)
        error = np.abs(terms @ weights - target).max()
        assert error <= 1.0015 * _slow_least_error(terms, target, is_signed) + ABSOLUTE


@pytest.mark.parametrize("seed", range(60))
def test_least_squares_weights_are_nearly_optimal(seed: int) -> None:
    """For a convex f with optimum w*, f(w) - f(w*) ≤ ∇f(w) · (w - w*). The test bounds the unknown -∇f(w) · w*."""
    gammas, terms, target = _case(seed)
    for method in (FitMethod.LEAST_SQUARES, FitMethod.SIGNED_LEAST_SQUARES):
        weights = best_weights(gammas, target, method)
        missed = terms @ weights - target
        square, slope = missed @ missed / 2, terms.T @ missed
        if method is FitMethod.LEAST_SQUARES:
            assert np.all(weights >= 0)
            # The residual of w* at t = 0 is Σ w* - 1, and its square is at most 2 f(w).
            total = 1 + math.sqrt(2 * square)  # upper bound on Σ w*
            gap = slope @ weights + total * max(0.0, -slope.min())
        else:
            assert np.abs(weights).sum() <= MOST * (1 + 1e-9)
            gap = slope @ weights + MOST * np.abs(slope).max()
        assert gap <= 1e-3 * square + len(target) * ABSOLUTE


def test_fifty_heads_are_fitted_by_least_squares() -> None:
    """SciPy's active-set method reaches its iteration limit on this problem."""
    gammas, t = 1 - 1 / np.geomspace(1, 1000, 50), np.arange(301)
    target = 1 / (1 + 0.05 * t**0.8)
    weights = best_weights(gammas, target, FitMethod.LEAST_SQUARES)
    assert np.all(weights >= 0)
    assert np.sqrt(np.mean((np.power.outer(gammas, t).T @ weights - target) ** 2)) < 1e-4


@pytest.mark.parametrize("seed", range(20))
def test_minimax_error_of_800_heads_is_just_above_the_lower_bound(seed: int) -> None:
    rng = np.random.default_rng(seed)
    values = sampled(_discount(rng), max(1, int(10 ** rng.uniform(0.5, 3))))
    target, cap = values / values[0], 1 - 10 ** rng.uniform(-5, -0.3)
    dense = np.exp(-np.geomspace(-np.log(cap), 40, 800))
    weights = best_weights(dense, target, FitMethod.MINIMAX)
    reached = np.abs(np.power.outer(dense, np.arange(len(target))).T @ weights - target).max()
    bound = least_error(target, cap)
    assert bound <= reached
    assert reached <= 1.01 * bound + 1e-5


@pytest.mark.parametrize(("last", "steps", "cap"), [(100, 300, 0.995), (700, 1_000, 0.999), (737, 2_000, 0.99999)])
def test_the_lower_bound_is_tight_for_a_discount_with_a_late_jump(last: int, steps: int, cap: float) -> None:
    t = np.arange(steps + 1)
    target = np.where(t <= last, 1.0, 0.1)
    dense = np.exp(-np.geomspace(-np.log(cap), 40, 400))
    reached = _slow_least_error(np.power.outer(dense, t).T, target, is_signed=False)
    assert reached * 0.99 < least_error(target, cap) <= reached * (1 + 1e-6)
