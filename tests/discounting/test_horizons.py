"""The paper's grid to its published digits, quadrature, and what horizons say of themselves."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multihorizon.discounting import Form, Horizons, Sum, discount, gauss_grid, hazard, paper_grid, single
from multihorizon.discounting.hazard import Dirac, Exponential, Gamma, Mixture, Samples, Uniform

ATARI = discount.hyperbolic(0.01)


def _paper_grid_by_hand(k: float, n: int, gamma_max: float) -> tuple[list[float], list[float]]:
    """The authors' recipe, written out one number at a time."""
    b = math.exp(math.log(1 - gamma_max ** (1 / k)) / n)
    nodes = [1 - b**i for i in range(n)]
    closed = [*nodes, 1.0]
    return [x**k for x in nodes], [closed[i + 1] - closed[i] for i in range(n)]


@pytest.mark.parametrize(("k", "n", "gamma_max"), [(0.05, 100, 0.999), (0.01, 10, 0.99), (0.2, 7, 0.9), (2.0, 5, 0.9)])
def test_paper_grid_is_the_authors_recipe(k: float, n: int, gamma_max: float) -> None:
    gammas, weights = _paper_grid_by_hand(k, n, gamma_max)
    ours = paper_grid(Exponential(k), n, gamma_max)
    np.testing.assert_allclose(ours.gammas, gammas, atol=1e-13)
    np.testing.assert_allclose(ours.weights, weights, atol=1e-13)


def test_upper_sum_leaves_out_the_first_node_and_the_last_interval() -> None:
    gammas, lower = _paper_grid_by_hand(0.05, 20, 0.99)
    ours = paper_grid(Exponential(0.05), 20, 0.99, sum_=Sum.UPPER)
    np.testing.assert_allclose(ours.gammas, gammas, atol=1e-13)
    np.testing.assert_allclose(ours.weights, [0, *lower[:-1]], atol=1e-13)


@given(st.floats(0.01, 0.9), st.integers(2, 40), st.floats(0.05, 3))
def test_lower_sums_lie_below_and_upper_sums_above(k: float, n: int, hazards_at_the_cap: float) -> None:
    t = np.arange(1, 200)
    gamma_max = math.exp(-k * hazards_at_the_cap)
    for form in Form:
        lower = paper_grid(Exponential(k), n, gamma_max, form)
        assert np.all(lower.discount(t) <= discount.hyperbolic(k)(t) + 1e-12)
    # The upper sum covers [0, x_{n-1}] alone, so it lies above the integral up to there.
    upper = paper_grid(Exponential(k), n, gamma_max, sum_=Sum.UPPER)
    top = upper.gammas[-1] ** (1 / k)
    assert np.all(upper.discount(t) >= top ** (k * t + 1) / (1 + k * t) - 1e-12)


def test_both_forms_converge_to_the_discount() -> None:
    for form in Form:
        for sum_ in Sum:
            errors = [
                paper_grid(Exponential(0.05), n, 0.99999, form, sum_).fit(discount.hyperbolic(0.05), 200).max_error
                for n in (100, 400, 1600)
            ]
            assert errors[2] < errors[1] < errors[0]
            assert errors[2] < (0.15 if form is Form.LAPLACE else 0.02)  # the form the paper found worse


def test_published_atari_grid_is_not_hyperbolic() -> None:
    grid = paper_grid(ATARI.prior, 10, 0.99)
    assert grid.gammas[0] == 0
    assert grid.gammas[-1] == pytest.approx(0.98917, abs=5e-6)
    assert grid.weights[-1] == pytest.approx(0.664, abs=5e-4)
    assert grid.discount(100) == pytest.approx(0.27, abs=5e-3)
    assert ATARI(100) == 0.5
    assert grid.fit(ATARI, 100).max_error == pytest.approx(0.227, abs=5e-4)
    assert grid.fit(ATARI, 1000).max_error == pytest.approx(0.249, abs=5e-4)


@given(st.floats(0.01, 1), st.integers(1, 12))
def test_gauss_on_the_exponential_prior_is_gauss_legendre(k: float, n: int) -> None:
    x, w = np.polynomial.legendre.leggauss(n)
    grid = gauss_grid(Exponential(k), n)
    np.testing.assert_allclose(grid.gammas, ((1 + x) / 2) ** k, rtol=1e-12)
    np.testing.assert_allclose(grid.weights, w / 2, rtol=1e-12)


def test_gauss_reaches_its_figures() -> None:
    assert gauss_grid(ATARI.prior, 3).fit(ATARI, 100).max_error == pytest.approx(0.004, abs=5e-4)
    assert gauss_grid(ATARI.prior, 3).fit(ATARI, 1000).max_error == pytest.approx(0.006, abs=5e-4)
    assert gauss_grid(ATARI.prior, 3).gammas[-1] == pytest.approx(0.99880, abs=5e-6)
    assert gauss_grid(ATARI.prior, 5).fit(ATARI, 1000).max_error <= 0.0015
    assert gauss_grid(ATARI.prior, 5).gammas[-1] == pytest.approx(0.99952, abs=5e-6)


@pytest.mark.parametrize(
    "prior",
    [Gamma(0.1, 2.0), Uniform(0.2), Uniform(0.2, 0.1), Mixture([Exponential(0.1), Uniform(0.01)], [0.3, 0.7])],
)
def test_grids_serve_any_prior(prior: hazard.Prior) -> None:
    wanted = discount.from_prior(prior)
    assert gauss_grid(prior, 30).fit(wanted, 300).max_error < 3e-3
    if prior.support[0] == 0:
        assert paper_grid(prior, 300, 0.9999).fit(wanted, 300).max_error < 0.05
        assert paper_grid(prior, 1000, 0.9999, Form.LAPLACE).fit(wanted, 300).max_error < 0.05


def test_heads_that_coincide_become_one() -> None:
    grid = gauss_grid(Dirac(0.1), 8)
    np.testing.assert_allclose(grid.gammas, [math.exp(-0.1)])
    np.testing.assert_allclose(grid.weights, [1.0])
    capped = gauss_grid(ATARI.prior, 5, gamma_cap=0.99)
    assert capped.gammas.max() == 0.99
    assert len(capped) == 3
    assert capped.weights.sum() == pytest.approx(1)


def test_point_masses_are_their_own_quadrature() -> None:
    quasi = discount.quasi_hyperbolic(0.7, 0.99)
    assert gauss_grid(quasi.prior, 2).fit(quasi, 1000).max_error < 1e-12


def test_one_head_of_the_papers_grid_is_gamma_max() -> None:
    grid = paper_grid(Exponential(0.01), 1, 0.99)
    assert grid.gammas.tolist() == [0.99]
    assert grid.weights.tolist() == [1.0]


def test_horizons_say_what_they_add_up_to() -> None:
    horizons = Horizons(np.array([0.0, 0.5, 0.9]), np.array([0.2, 0.3, 0.5]))
    assert horizons.discount(0) == pytest.approx(1.0)
    assert horizons.discount(2) == pytest.approx(0.3 * 0.25 + 0.5 * 0.81)
    np.testing.assert_allclose(horizons.effective_horizons, [1, 2, 10])
    fit = horizons.fit(discount.exponential(0.9), 50)
    errors = [abs(horizons.discount(t) - 0.9**t) for t in range(51)]
    assert fit.max_error == pytest.approx(max(errors))
    assert fit.max_error_at == int(np.argmax(errors))
    assert single(0.9).fit(discount.exponential(0.9), 1000).max_error < 1e-12


def test_horizons_cannot_be_changed() -> None:
    given_array = np.array([0.5])
    horizons = Horizons(given_array, np.ones(1))
    given_array[0] = 0.7
    assert horizons.gammas.tolist() == [0.5]
    with pytest.raises(ValueError, match="read-only"):
        horizons.gammas[0] = 0.9


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: paper_grid(Exponential(0.01), 0, 0.99), "the number of heads must be a whole number of at least 1"),
        (lambda: paper_grid(Exponential(0.01), 10, 1.0), r"the cap on γ must lie in \(0, 1\), got 1"),
        (lambda: paper_grid(Exponential(0.01), 10, 0.0), "the cap on γ must lie in"),
        (lambda: paper_grid(Uniform(0.2, 0.1), 10, 0.99), "choose gauss or minimax"),
        (lambda: paper_grid(Samples([0.0, 0.1]), 10, 0.99), "point masses"),
        (lambda: paper_grid(Exponential(2.0), 10, 0.9, Form.LAPLACE), "grows without bound"),
        (lambda: gauss_grid(Exponential(0.01), 5, 1.5), "the cap on γ must lie in"),
        (lambda: gauss_grid(Exponential(0.01), 0), "the number of heads"),
        (lambda: Horizons(np.array([1.2]), np.ones(1)), r"in \[0, 1\]"),
        (lambda: Horizons(np.array([0.5]), np.array([np.nan])), "a finite weight"),
        (lambda: single(0.9).fit(ATARI, 0), "t_max must be a whole number of at least 1"),
    ],
)
def test_bad_input_is_said_in_words(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]
