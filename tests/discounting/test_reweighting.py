import inspect
import math
import re
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from multihorizon.discounting import FitMethod, Horizons, discount, hazard, minimax_grid, reweight
from multihorizon.errors import InputError

HEADS = Horizons(np.array([0.0, 0.5, 0.9, 0.97, 0.99]), np.full(5, 0.2))


@settings(max_examples=20)
@given(st.lists(st.floats(0, 1), min_size=5, max_size=5), st.sampled_from(list(FitMethod)))
def test_expressible_discounts_are_recovered_exactly(weights: list[float], method: FitMethod) -> None:
    if sum(weights) < 1e-3:
        return
    held = Horizons(HEADS.gammas, np.array(weights))
    found = reweight(HEADS, held.discount, t_max=300, method=method)
    assert found.max_error < 1e-7 * sum(weights)
    assert np.array_equal(found.horizons.gammas, HEADS.gammas)
    np.testing.assert_allclose(found.horizons.discount(np.arange(300)), held.discount(np.arange(300)), atol=1e-6)


def test_reweighting_a_minimax_grid_returns_its_weights() -> None:
    wanted = discount.hyperbolic(0.05)
    grid = minimax_grid(wanted, 4, gamma_max=0.999, t_max=500)
    found = reweight(Horizons(grid.gammas, np.ones(4)), wanted, t_max=500)
    assert found.max_error == pytest.approx(grid.fit(wanted, 500).max_error, rel=2e-3)
    np.testing.assert_allclose(found.horizons.weights, grid.weights, atol=1e-3)


def test_weight_of_one_head_matches_a_numerical_search_and_a_formula() -> None:
    wanted, t = discount.hyperbolic(0.1), np.arange(101)
    found = reweight(Horizons(np.array([0.9]), np.ones(1)), wanted, t_max=100, tolerance=0.5)
    searched = minimize_scalar(lambda w: np.abs(w * 0.9**t - wanted(t)).max(), bounds=(0, 2), method="bounded")
    assert found.max_error == pytest.approx(searched.fun, rel=1e-4)
    assert found.horizons.weights[0] == pytest.approx(searched.x, rel=1e-3)
    squares = reweight(
        Horizons(np.array([0.9]), np.ones(1)), wanted, t_max=100, method=FitMethod.LEAST_SQUARES, tolerance=0.5
    )
    assert squares.horizons.weights[0] == pytest.approx((0.9**t @ wanted(t)) / (0.9**t @ 0.9**t), rel=1e-9)


@settings(max_examples=15)
@given(st.floats(0.01, 1), st.integers(0, 1000))
def test_random_weights_have_no_smaller_error_than_the_best_weights(k: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    wanted, t = discount.hyperbolic(k), np.arange(201)
    found = {method: reweight(HEADS, wanted, t_max=200, method=method, tolerance=1.0) for method in FitMethod}
    minimax, squares = found[FitMethod.MINIMAX], found[FitMethod.LEAST_SQUARES]
    assert found[FitMethod.SIGNED_MINIMAX].max_error <= minimax.max_error * (1 + 1e-6)
    assert np.abs(found[FitMethod.SIGNED_MINIMAX].horizons.weights).sum() <= 10 * (1 + 1e-9)
    for best in (minimax, squares):
        assert np.all(best.horizons.weights >= 0)
    for scale in (1e-3, 1e-2, 0.1):
        other = Horizons(HEADS.gammas, np.maximum(minimax.horizons.weights + scale * rng.normal(size=5), 0))
        assert other.fit(wanted, 200).max_error >= minimax.max_error * (1 - 1e-6)
        other = Horizons(HEADS.gammas, np.maximum(squares.horizons.weights + scale * rng.normal(size=5), 0))
        square = [float(((h.discount(t) - wanted(t)) ** 2).sum()) for h in (other, squares.horizons)]
        assert square[0] >= square[1] * (1 - 1e-9)


def test_largest_error_over_20000_steps_is_correct() -> None:
    wanted = discount.hyperbolic(0.001)
    heads = Horizons(np.array([0.99, 0.998, 0.9995, 0.9999]), np.ones(4))
    found = reweight(heads, wanted, t_max=20_000)
    assert found.max_error == pytest.approx(
        np.abs(found.horizons.discount(np.arange(20_001)) - wanted(np.arange(20_001))).max()
    )
    assert found.max_error < 0.02


def test_wanted_discounts_may_be_priors_deadlines_or_functions() -> None:
    prior = hazard.Gamma(0.05, 2.0)
    assert reweight(HEADS, prior, t_max=100).max_error < 0.01
    assert "survival under Gamma" in str(reweight(HEADS, prior, t_max=100))
    deadline = reweight(HEADS, discount.deadline(50), t_max=200, method=FitMethod.LEAST_SQUARES, tolerance=0.7)
    reached = deadline.horizons.discount([0, 200])
    assert reached[0] > 0.7
    assert reached[1] < 0.3
    doubled = reweight(HEADS, lambda t: 2 / (1 + 0.05 * t), t_max=100)
    plain = reweight(HEADS, discount.hyperbolic(0.05), t_max=100)
    np.testing.assert_allclose(doubled.horizons.weights, 2 * plain.horizons.weights, atol=1e-8)
    assert doubled.max_error == pytest.approx(2 * plain.max_error, rel=1e-6)


def test_error_message_suggests_a_sufficient_cap() -> None:
    with pytest.raises(
        InputError, match=r"No number of heads with γ ≤ 0.99 would suffice. With a largest γ of \S+, \d+ heads? "
    ) as e:
        reweight(HEADS, discount.hyperbolic(0.003), t_max=300)
    words = str(e.value)
    cap, heads = words.split("a largest γ of ")[1].split()[:2]
    assert (
        minimax_grid(discount.hyperbolic(0.003), int(heads), gamma_max=float(cap.rstrip(",")), t_max=300)
        .fit(discount.hyperbolic(0.003), 300)
        .max_error
        <= 0.05
    )
    assert "\n" not in words


@pytest.mark.parametrize("wanted", [discount.none(), discount.exponential(1 - 1e-7), discount.hyperbolic(1e-7)])
def test_error_message_suggests_a_sufficient_cap_for_very_slow_discounts(wanted: discount.Discount) -> None:
    t_max, tolerance = 10_000, 1e-4
    with pytest.raises(InputError, match="cannot express") as problem:
        reweight(Horizons(np.array([0.99]), np.ones(1)), wanted, t_max=t_max, tolerance=tolerance)
    words = re.search(
        r"largest γ of (0\.\d+), (\d) heads? .* suffice \(effective horizon: (\S+) steps", str(problem.value)
    )
    assert words
    assert 1 / (1 - float(words[1])) == pytest.approx(float(words[3]), rel=0.01)
    assert float(words[3]) > 1e6
    grid = minimax_grid(wanted, int(words[2]), gamma_max=float(words[1]), t_max=t_max)
    assert grid.fit(wanted, t_max).max_error <= tolerance


def test_a_gamma_just_below_1_is_not_shown_as_1() -> None:
    near = Horizons(np.array([1 - 1e-7]), np.ones(1))
    assert "exponential(γ=0.9999999), expressed by 1 head with γ ≤ 0.9999999: " in str(reweight(near, near.discount))


def test_error_message_suggests_a_sufficient_number_of_heads() -> None:
    two = Horizons(np.array([0.2, 0.99]), np.ones(2))
    with pytest.raises(InputError, match=r"With the same largest γ, 2 heads chosen by minimax_grid would suffice"):
        reweight(two, discount.hyperbolic(0.1), t_max=200, tolerance=0.04)


def test_error_message_for_a_deadline_suggests_two_ways_to_accept_the_deadline() -> None:
    wanted = discount.deadline(50)
    with pytest.raises(InputError, match=r"reach an error below 0.4\d+, .*not a mixture") as problem:
        reweight(HEADS, wanted, t_max=200)
    words = str(problem.value)
    other = re.search(
        r"set method=FitMethod.SIGNED_LEAST_SQUARES, tolerance=(\S+); the largest error is then (\S+) at", words
    )
    same = re.search(r"Set tolerance=(\S+) to accept this error\. .* If episodes are shorter", words)
    assert other
    assert same
    signed = reweight(
        HEADS, wanted, t_max=200, method=FitMethod.SIGNED_LEAST_SQUARES, tolerance=float(other[1])
    ).max_error
    assert f"{signed:.3g}" == other[2]
    assert reweight(HEADS, wanted, t_max=200, tolerance=float(same[1])).max_error <= float(same[1])


def test_signed_weights_express_a_smooth_discount_without_a_prior() -> None:
    wanted = discount.from_function(lambda t: math.exp(-((t / 40) ** 1.3)))
    with pytest.raises(InputError, match=r"With these heads, method=FitMethod.SIGNED_MINIMAX reaches 0.0\d+"):
        reweight(HEADS, wanted, t_max=200, tolerance=0.03)
    assert reweight(HEADS, wanted, t_max=200, tolerance=0.03, method=FitMethod.SIGNED_MINIMAX).max_error < 0.03


def test_signed_least_squares_fits_a_deadline_better_than_the_other_methods() -> None:
    """Compares the methods by the largest absolute partial sum of the errors."""
    wanted, t = discount.deadline(30), np.arange(201)
    heads = Horizons(np.array([0.05, 0.35, 0.68, 0.88, 0.957, 0.983, 0.994, 0.998]), np.ones(8))
    wrong = {}
    for method in FitMethod:
        found = reweight(heads, wanted, t_max=200, method=method, tolerance=1.0).horizons
        wrong[method] = np.abs(np.cumsum(found.discount(t) - wanted(t))).max() / 31
    assert wrong[FitMethod.SIGNED_LEAST_SQUARES] < 0.7 * min(wrong[FitMethod.MINIMAX], wrong[FitMethod.LEAST_SQUARES])
    assert wrong[FitMethod.SIGNED_LEAST_SQUARES] < 0.7 * wrong[FitMethod.SIGNED_MINIMAX]


@pytest.mark.parametrize("method", ["least_squares", "LEAST_SQUARES", None, 1])
def test_the_argument_method_must_be_a_member_of_its_enum(method: object) -> None:
    allowed = "FitMethod.MINIMAX, FitMethod.LEAST_SQUARES, FitMethod.SIGNED_MINIMAX, FitMethod.SIGNED_LEAST_SQUARES"
    with pytest.raises(InputError, match=f"^method must be one of {allowed}, got "):
        # `unwrap` removes the tests' type checker, which would reject the method first.
        inspect.unwrap(reweight)(HEADS, discount.hyperbolic(0.1), method=method)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wanted", "words"),
    [
        (
            lambda t: 1.0 if t < 3 else 0.2 if t < 9 else 0.4,
            "must not rise, but .* goes from 0.2 at t = 8 to 0.4 at t = 9",
        ),
        (lambda t: -1.0, "must start at a positive number"),
        (lambda t: math.nan, "must start at a positive number"),
        (Horizons(np.array([0.5, 0.9]), np.array([1.0, -1.0])).discount, r"start at a positive number.*d\(0\) = 0"),
    ],
)
def test_invalid_discounts_are_rejected(wanted: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        reweight(HEADS, wanted, t_max=20)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: reweight(HEADS, discount.hyperbolic(0.1), t_max=0), "t_max must"),
        (lambda: reweight(HEADS, discount.hyperbolic(0.1), tolerance=0.0), "tolerance must be a positive"),
    ],
)
def test_invalid_input_is_rejected_with_a_message(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()


def test_difficult_inputs_do_not_make_the_solver_fail() -> None:
    with pytest.raises(InputError, match=r"largest error over t = 0..100 is 0\.0981"):
        reweight(Horizons(np.array([0.99]), np.ones(1)), discount.hyperbolic(0.01), t_max=100)
    gammas = 1 - 1 / np.geomspace(1, 1000, 50)
    horizons = Horizons(gammas, np.ones(50) / 50)
    assert reweight(horizons, discount.rachlin(0.05, 0.8), t_max=300, method=FitMethod.SIGNED_MINIMAX).max_error < 1e-6
