from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog

from multihorizon.discounting import Discount, Horizons, discount, minimax_grid
from multihorizon.discounting.hazard import Exponential, Gamma, Mixture, Uniform

ATARI = discount.hyperbolic(0.01)
OTHERS = [
    discount.hyperbolic(1.0),
    discount.uniform(0.1),
    discount.generalised_hyperbolic(0.05, 0.5),
    discount.from_prior(Mixture([Exponential(0.1), Uniform(0.01)], [0.5, 0.5])),
    discount.from_prior(Gamma(0.02, 4.0)),
]


def least_error_of_any_number_of_heads(wanted: Discount, cap: float, t_max: int, columns: int = 1200) -> float:
    """Returns the least error of a fit with very many γ's. More γ's would reduce the error only slightly."""
    t = np.arange(t_max + 1)
    terms = np.exp(-np.outer(t, np.geomspace(-np.log(cap), 40, columns)))
    d, ceiling = np.asarray(wanted(t)), -np.ones((len(t), 1))
    matrix = np.block([[terms, ceiling], [-terms, ceiling]])
    solved = linprog(np.append(np.zeros(columns), 1), A_ub=matrix, b_ub=np.concatenate([d, -d]), method="highs")
    return float(solved.fun)


def test_three_heads_reach_the_least_error_under_a_cap_of_0_997() -> None:
    """With γ ≤ 0.997 and non-negative weights, the least error of any number of heads is about 0.0042."""
    grid = minimax_grid(ATARI, 3, gamma_max=0.997, t_max=300)
    error = grid.fit(ATARI, 300).max_error
    assert error <= 0.0042
    assert error == pytest.approx(least_error_of_any_number_of_heads(ATARI, 0.997, 300), rel=1e-3)
    assert minimax_grid(ATARI, 3, gamma_max=0.9971, t_max=300).fit(ATARI, 300).max_error <= 0.004


def test_three_minimax_heads_have_a_smaller_error_than_the_papers_ten_heads() -> None:
    assert minimax_grid(ATARI, 3, gamma_max=0.99, t_max=1000).fit(ATARI, 1000).max_error < 0.2
    assert minimax_grid(ATARI, 1, gamma_max=0.99, t_max=1000).fit(ATARI, 1000).max_error == pytest.approx(
        0.192, abs=5e-4
    )
    assert minimax_grid(ATARI, 3, gamma_max=0.999, t_max=1000).fit(ATARI, 1000).max_error < 0.001


@pytest.mark.parametrize("cap", [0.95, 0.997])
@pytest.mark.parametrize("wanted", [ATARI, *OTHERS], ids=repr)
def test_eight_heads_nearly_reach_the_least_error_of_any_number_of_heads(wanted: Discount, cap: float) -> None:
    bound = least_error_of_any_number_of_heads(wanted, cap, 200)
    error = minimax_grid(wanted, 8, gamma_max=cap, t_max=200).fit(wanted, 200).max_error
    assert error <= bound * 1.02 + 1.05e-5


@pytest.mark.parametrize("wanted", [ATARI, *OTHERS], ids=repr)
def test_two_minimax_heads_are_as_good_as_a_brute_force_search(wanted: Discount) -> None:
    cap, t = 0.999, np.arange(0, 301)
    gammas = np.exp(-np.geomspace(-np.log(cap), 2, 25))
    d = np.asarray(wanted(t))
    best = np.inf
    ceiling = -np.ones((len(t), 1))
    for i, high in enumerate(gammas):
        for low in gammas[i + 1 :]:
            terms = np.stack([high**t, low**t], axis=1)
            matrix = np.block([[terms, ceiling], [-terms, ceiling]])
            best = min(best, linprog([0, 0, 1], A_ub=matrix, b_ub=np.concatenate([d, -d])).fun)
    assert minimax_grid(wanted, 2, gamma_max=cap, t_max=300).fit(wanted, 300).max_error <= best * 1.001


def _alternations(grid: Horizons, wanted: Discount, t_max: int) -> int:
    """Returns the number of successive extremes of the error with alternating signs."""
    t = np.arange(t_max + 1)
    error = grid.discount(t) - wanted(t)
    peaks = np.sign(error[np.abs(error) > 0.98 * np.abs(error).max()])
    return 1 + int(np.sum(peaks[1:] != peaks[:-1]))


@pytest.mark.parametrize("wanted", [ATARI, *OTHERS[:3]], ids=repr)
@pytest.mark.parametrize("heads", [1, 2, 4])
def test_error_of_a_minimax_grid_equioscillates(wanted: Discount, heads: int) -> None:
    grid = minimax_grid(wanted, heads, gamma_max=0.99999, t_max=400)
    assert _alternations(grid, wanted, 400) >= 2 * heads + 1


def test_more_heads_and_larger_caps_never_increase_the_error() -> None:
    by_heads = [minimax_grid(ATARI, n, gamma_max=0.9995, t_max=500).fit(ATARI, 500).max_error for n in range(1, 7)]
    assert all(b <= a * (1 + 1e-9) for a, b in pairwise(by_heads))
    by_cap = [
        minimax_grid(ATARI, 2, gamma_max=cap, t_max=500).fit(ATARI, 500).max_error
        for cap in (0.9, 0.97, 0.99, 0.999, 0.9999)
    ]
    assert all(b <= a * (1 + 1e-6) for a, b in pairwise(by_cap))


@pytest.mark.parametrize(("heads", "cap"), [(1, 0.5), (3, 0.9), (10, 0.99), (5, 0.9999)])
def test_grid_respects_the_number_of_heads_and_the_cap_and_has_no_negative_weights(heads: int, cap: float) -> None:
    grid = minimax_grid(ATARI, heads, gamma_max=cap, t_max=200)
    assert len(grid) == heads
    assert len(np.unique(grid.gammas)) == heads
    assert np.all((grid.gammas >= 0) & (grid.gammas <= cap))
    assert np.all(grid.weights >= 0)


def test_sums_of_exponentials_are_recovered_exactly() -> None:
    for wanted, heads in [(discount.exponential(0.9), 1), (discount.quasi_hyperbolic(0.7, 0.95), 2)]:
        assert minimax_grid(wanted, heads, gamma_max=0.99, t_max=100).fit(wanted, 100).max_error < 1e-6


def test_minimax_grid_fits_a_python_function_over_5000_steps() -> None:
    wanted = discount.from_function(lambda t: float(np.exp(-np.sqrt(t) / 20)))
    assert minimax_grid(wanted, 5, gamma_max=0.9999, t_max=5000).fit(wanted, 5000).max_error < 0.005


@pytest.mark.parametrize(
    ("heads", "cap", "t_max", "words"),
    [(0, 0.99, 9, "heads must"), (3, 1.0, 9, "gamma_max must"), (3, 0.99, 0, "t_max must"), (3, -0.1, 9, "gamma_max")],
)
def test_invalid_input_is_rejected_with_a_message(heads: int, cap: float, t_max: int, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        minimax_grid(ATARI, heads, gamma_max=cap, t_max=t_max)


def test_rising_discount_is_rejected() -> None:
    with pytest.raises(ValueError, match="a discount must not rise"):
        minimax_grid(lambda t: 0.3 if 0 < t < 5 else 0.9, 3)
