from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest

from multihorizon.discounting import Horizons, design_horizons, discount, hazard, minimax_grid, reweight
from multihorizon.errors import InputError


def test_design_with_two_heads_is_as_good_as_a_brute_force_search() -> None:
    family = [discount.hyperbolic(0.1), discount.exponential(0.95), discount.hyperbolic(0.5)]
    design = design_horizons(family, 2, gamma_max=0.9999, t_max=100)
    gammas = np.exp(-np.geomspace(0.003, 1.5, 16))
    best = min(
        max(reweight(Horizons(np.array(pair), np.ones(2)), one, t_max=100, tolerance=9).max_error for one in family)
        for pair in combinations(gammas, 2)
    )
    assert design.max_error <= best * 1.001
    assert design.max_error == pytest.approx(max(fit.max_error for fit in design.fits))
    assert design.worst.max_error == design.max_error


def test_design_for_two_equal_discounts_matches_their_minimax_grid() -> None:
    wanted = discount.hyperbolic(0.1)
    design = design_horizons([wanted, wanted], 3, gamma_max=0.999, t_max=200)
    alone = minimax_grid(wanted, 3, gamma_max=0.999, t_max=200).fit(wanted, 200).max_error
    assert design.max_error == pytest.approx(alone, rel=0.02)


def test_design_for_a_range_of_k_reports_possible_improvements() -> None:
    design = design_horizons((0.01, 1.0), 3, gamma_max=0.98, t_max=100)
    assert [fit.target.label for fit in design.fits][:: len(design.fits) - 1] == [
        "hyperbolic(k=0.01)",
        "hyperbolic(k=1)",
    ]
    assert len(design.gammas) == 3
    assert np.all(np.diff(design.gammas) > 0)
    assert design.gammas.max() <= 0.98
    assert np.all(design.horizons.weights >= 0)
    assert design.least_error <= design.one_more_head * 1.001
    assert design.one_more_head <= design.max_error * 1.001
    assert design.doubled_cap < design.max_error
    between = reweight(design.horizons, discount.hyperbolic(0.137), t_max=100)
    assert between.max_error <= design.max_error
    report = design.report()
    for words in (f"with 4 heads: {design.one_more_head:.3g}", "with γ ≤ 0.99:", "any number of heads"):
        assert words in report


def test_design_reports_the_largest_error_over_the_whole_range_of_k() -> None:
    design = design_horizons((0.05, 1.0), 3, t_max=100)
    between = np.geomspace(0.05, 1.0, 31)
    largest = max(reweight(design.horizons, discount.hyperbolic(float(k)), t_max=100).max_error for k in between)
    assert design.max_error == pytest.approx(largest, rel=0.01)
    # The search uses only a few values of k. The largest error at these values is clearly below the largest error over
    # the whole range of k.
    assert max(fit.max_error for fit in design.fits) < 0.95 * largest
    assert design.worst in design.between


def test_late_deadline_does_not_worsen_the_fit_of_other_discounts() -> None:
    """Heads cannot express the deadline exactly. Each of the exponential discounts needs one head."""
    family = [discount.deadline(100), discount.exponential(0.5), discount.exponential(0.6)]
    design = design_horizons(family, 3, gamma_max=0.995, t_max=300)
    deadline, *others = (fit.max_error for fit in design.fits)
    assert deadline == pytest.approx(design.least_error, rel=1e-3)
    assert max(others) < 0.005


def test_range_of_k_may_consist_of_numpy_numbers() -> None:
    plain = design_horizons((0.05, 1.0), 2)
    for given in (np.array([0.05, 1.0]), (np.float64(0.05), 1.0)):
        np.testing.assert_array_equal(design_horizons(given, 2).gammas, plain.gammas)


def test_design_accepts_priors_and_functions_of_time() -> None:
    design = design_horizons([hazard.Gamma(0.1, 2.0), lambda t: 3 * 0.9**t], 3, gamma_max=0.99, t_max=60)
    assert design.max_error < 0.01
    assert design.fits[1].horizons.discount(0) == pytest.approx(3, rel=0.01)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: design_horizons((1.0, 0.1), 3), "the smaller first"),
        (lambda: design_horizons((0.0, 0.1), 3), "two positive numbers"),
        (lambda: design_horizons([discount.hyperbolic(0.1)], 3), "two or more discounts"),
        (lambda: design_horizons((0.1, 1.0), 0), "heads must"),
        (lambda: design_horizons((0.1, 1.0), 3, gamma_max=1.0), "gamma_max must"),
        (lambda: design_horizons((0.1, 1.0), 3, t_max=0), "t_max must"),
        (lambda: design_horizons([lambda t: 1.0 if t != 2 else 0.5] * 2, 3), "must not rise"),
    ],
)
def test_invalid_input_is_rejected_with_a_message(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
