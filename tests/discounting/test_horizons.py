import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multihorizon.discounting import Form, Horizons, Sum, discount, gauss_grid, hazard, paper_grid, single
from multihorizon.discounting.hazard import Dirac, Exponential, Gamma, Mixture, Samples, Uniform

ATARI = discount.hyperbolic(0.01)


def _paper_grid_by_hand(k: float, n: int, gamma_max: float) -> tuple[list[float], list[float]]:
    b = math.exp(math.log(1 - gamma_max ** (1 / k)) / n)
    nodes = [1 - b**i for i in range(n)]
    closed = [*nodes, 1.0]
    return [x**k for x in nodes], [closed[i + 1] - closed[i] for i in range(n)]


@pytest.mark.parametrize(("k", "n", "gamma_max"), [(0.05, 100, 0.999), (0.01, 10, 0.99), (0.2, 7, 0.9), (2.0, 5, 0.9)])
def test_paper_grid_matches_the_authors_code(k: float, n: int, gamma_max: float) -> None:
    gammas, weights = _paper_grid_by_hand(k, n, gamma_max)
    ours = paper_grid(Exponential(k), n, gamma_max=gamma_max)
    np.testing.assert_allclose(ours.gammas, gammas, atol=1e-13)
    np.testing.assert_allclose(ours.weights, weights, atol=1e-13)


def test_upper_sum_gives_each_weight_of_the_lower_sum_to_the_next_node() -> None:
    gammas, lower = _paper_grid_by_hand(0.05, 20, 0.99)
    ours = paper_grid(Exponential(0.05), 20, gamma_max=0.99, sum_=Sum.UPPER)
    np.testing.assert_allclose(ours.gammas, gammas, atol=1e-13)
    np.testing.assert_allclose(ours.weights, [0, *lower[:-1]], atol=1e-13)


@given(st.floats(0.01, 0.9), st.integers(2, 40), st.floats(0.05, 2.99))
def test_lower_sums_lie_below_the_integral_and_upper_sums_above_it(k: float, n: int, hazards_at_the_cap: float) -> None:
    t = np.arange(1, 200)
    gamma_max = math.exp(-k * hazards_at_the_cap)
    for form in Form:
        lower = paper_grid(Exponential(k), n, gamma_max=gamma_max, form=form)
        assert np.all(lower.discount(t) <= discount.hyperbolic(k)(t) + 1e-12)
    # The upper sum covers only [0, x_{n-1}], and lies above the integral over this interval.
    upper = paper_grid(Exponential(k), n, gamma_max=gamma_max, sum_=Sum.UPPER)
    top = upper.gammas[-1] ** (1 / k)
    assert np.all(upper.discount(t) >= top ** (k * t + 1) / (1 + k * t) - 1e-12)


def test_power_and_laplace_forms_of_the_paper_grid_converge_to_the_discount() -> None:
    for form in Form:
        for sum_ in Sum:
            wanted = discount.hyperbolic(0.05)
            grids = [paper_grid(wanted, n, gamma_max=0.99999, form=form, sum_=sum_) for n in (100, 400, 1600)]
            errors = [grid.fit(wanted, 200).max_error for grid in grids]
            assert errors[2] < errors[1] < errors[0]
            assert errors[2] < (0.15 if form is Form.LAPLACE else 0.02)  # the paper found LAPLACE worse


def test_published_atari_grid_is_not_hyperbolic() -> None:
    grid = paper_grid(ATARI, 10, gamma_max=0.99)
    assert grid.gammas[0] == 0
    assert grid.gammas[-1] == pytest.approx(0.98917, abs=5e-6)
    assert grid.weights[-1] == pytest.approx(0.664, abs=5e-4)
    assert grid.discount(100) == pytest.approx(0.27, abs=5e-3)
    assert ATARI(100) == 0.5
    assert grid.fit(ATARI, 100).max_error == pytest.approx(0.227, abs=5e-4)
    assert grid.fit(ATARI, 1000).max_error == pytest.approx(0.249, abs=5e-4)


@given(st.floats(0.01, 1), st.integers(1, 12))
def test_gauss_grid_of_an_exponential_prior_is_gauss_legendre_quadrature(k: float, n: int) -> None:
    x, w = np.polynomial.legendre.leggauss(n)
    grid = gauss_grid(Exponential(k), n)
    np.testing.assert_allclose(grid.gammas, ((1 + x) / 2) ** k, rtol=1e-12)
    np.testing.assert_allclose(grid.weights, w / 2, rtol=1e-12)


def test_errors_of_gauss_grids_match_known_values() -> None:
    assert gauss_grid(ATARI, 3).fit(ATARI, 100).max_error == pytest.approx(0.004, abs=5e-4)
    assert gauss_grid(ATARI, 3).fit(ATARI, 1000).max_error == pytest.approx(0.006, abs=5e-4)
    assert gauss_grid(ATARI, 3).gammas[-1] == pytest.approx(0.99880, abs=5e-6)
    assert gauss_grid(ATARI, 5).fit(ATARI, 1000).max_error <= 0.0015
    assert gauss_grid(ATARI, 5).gammas[-1] == pytest.approx(0.99952, abs=5e-6)


@pytest.mark.parametrize(
    "prior",
    [Gamma(0.1, 2.0), Uniform(0.2), Uniform(0.2, 0.1), Mixture([Exponential(0.1), Uniform(0.01)], [0.3, 0.7])],
)
def test_paper_and_gauss_grids_accept_any_continuous_prior(prior: hazard.Prior) -> None:
    wanted = discount.from_prior(prior)
    assert gauss_grid(prior, 30).fit(wanted, 300).max_error < 3e-3
    if prior.support[0] == 0:
        assert paper_grid(prior, 300, gamma_max=0.9999).fit(wanted, 300).max_error < 0.05
        assert paper_grid(prior, 1000, gamma_max=0.9999, form=Form.LAPLACE).fit(wanted, 300).max_error < 0.05


def test_gauss_grid_merges_equal_heads() -> None:
    grid = gauss_grid(Dirac(0.1), 8)
    np.testing.assert_allclose(grid.gammas, [math.exp(-0.1)])
    np.testing.assert_allclose(grid.weights, [1.0])
    capped = gauss_grid(ATARI, 5, gamma_max=0.99)
    assert capped.gammas.max() == 0.99
    assert len(capped) == 3
    assert capped.weights.sum() == pytest.approx(1)


def test_gauss_grid_reproduces_point_masses_exactly() -> None:
    quasi = discount.quasi_hyperbolic(0.7, 0.99)
    assert gauss_grid(quasi, 2).fit(quasi, 1000).max_error < 1e-12


def test_paper_grid_with_one_head_uses_the_largest_allowed_gamma() -> None:
    grid = paper_grid(Exponential(0.01), 1, gamma_max=0.99)
    assert grid.gammas.tolist() == [0.99]
    assert grid.weights.tolist() == [1.0]


def test_horizons_compute_their_discount_and_their_fit() -> None:
    horizons = Horizons(np.array([0.0, 0.5, 0.9]), np.array([0.2, 0.3, 0.5]))
    assert horizons.discount(0) == pytest.approx(1.0)
    assert horizons.discount(2) == pytest.approx(0.3 * 0.25 + 0.5 * 0.81)
    np.testing.assert_allclose(horizons.effective_horizons, [1, 2, 10])
    fit = horizons.fit(discount.exponential(0.9), 50)
    errors = [abs(horizons.discount(t) - 0.9**t) for t in range(51)]
    assert fit.max_error == pytest.approx(max(errors))
    assert fit.max_error_at == int(np.argmax(errors))
    assert single(0.9).fit(discount.exponential(0.9), 1000).max_error < 1e-12


def test_horizons_are_immutable() -> None:
    given_array = np.array([0.5])
    horizons = Horizons(given_array, np.ones(1))
    given_array[0] = 0.7
    assert horizons.gammas.tolist() == [0.5]
    with pytest.raises(ValueError, match="read-only"):
        horizons.gammas[0] = 0.9


def test_horizons_with_equal_values_are_equal() -> None:
    a, b = (Horizons(np.array([0.0, 0.9]), np.array([0.4, 0.6])) for _ in range(2))
    assert a == b
    assert len({a, b, Horizons(np.array([-0.0, 0.9]), np.array([0.4, 0.6]))}) == 1
    assert a != Horizons(np.array([0.0, 0.9]), np.array([0.6, 0.4]))
    assert a != Horizons(np.array([0.9]), np.array([0.4]))
    assert a != "horizons"


def test_horizons_repr_shows_six_digits_and_shortens_long_lists() -> None:
    assert repr(single(0.99)) == "Horizons(gammas=[0.99], weights=[1])"
    two = Horizons(np.array([0.5, 0.98917231]), np.array([1 / 3, 2 / 3]))
    assert repr(two) == "Horizons(gammas=[0.5, 0.989172], weights=[0.333333, 0.666667])"
    many = repr(Horizons(np.linspace(0, 0.99, 100), np.full(100, 0.01)))
    assert many.startswith("Horizons(gammas=[0, 0.01, 0.02, ... 94 more ..., 0.97, 0.98, 0.99], weights=[0.01, ")


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: paper_grid(Exponential(0.01), 0), "heads must be a whole number of at least 1"),
        (lambda: paper_grid(Exponential(0.01), 10, gamma_max=1.0), r"gamma_max must lie in \(0, 1\), got 1"),
        (lambda: paper_grid(Exponential(0.01), 10, gamma_max=0.0), "gamma_max must lie in"),
        (lambda: paper_grid(Uniform(0.2, 0.1), 10), "use gauss or minimax"),
        (lambda: paper_grid(Samples([0.0, 0.1]), 10), "point masses"),
        (lambda: paper_grid(Exponential(2.0), 10, gamma_max=0.9, form=Form.LAPLACE), "grows without bound"),
        (lambda: gauss_grid(Exponential(0.01), 5, gamma_max=1.5), "gamma_max must lie in"),
        (lambda: gauss_grid(Exponential(0.01), 0), "heads must be"),
        (lambda: Horizons(np.array([1.2]), np.ones(1)), r"in \[0, 1\]"),
        (lambda: Horizons(np.array([0.5]), np.array([np.nan])), "weights must be 1 finite numbers"),
        (lambda: single(0.9).fit(ATARI, 0), "t_max must be a whole number of at least 1"),
    ],
)
def test_invalid_input_is_rejected_with_a_message(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]
