import inspect
import math
import re
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

import multihorizon.discounting as mh
from multihorizon.discounting import Horizons, discount, gauss_grid, hazard, minimax_grid, paper_grid
from multihorizon.errors import InputError

GRIDS = [paper_grid, gauss_grid, minimax_grid]
each_grid = pytest.mark.parametrize("grid", GRIDS, ids=lambda grid: grid.__name__)


@each_grid
@pytest.mark.parametrize(
    "prior",
    [hazard.Exponential(0.05), hazard.Gamma(0.1, 2.0), hazard.Mixture([hazard.Exponential(0.1), hazard.Uniform(0.05)])],
    ids=str,
)
def test_a_prior_and_its_discount_give_the_same_horizons(grid: Callable[..., Horizons], prior: hazard.Prior) -> None:
    of_prior = grid(prior, 4)
    assert of_prior == grid(discount.from_prior(prior), 4)
    assert of_prior == grid(source=prior, heads=4)
    assert grid(prior, 4, gamma_max=0.9) == grid(discount.from_prior(prior), heads=4, gamma_max=0.9)
    assert grid(prior, 4, gamma_max=0.9).gammas.max() <= 0.9


@each_grid
def test_only_the_source_and_the_heads_are_positional_arguments(grid: Callable[..., Horizons]) -> None:
    with pytest.raises(TypeError, match="positional"):
        grid(discount.hyperbolic(0.05), 4, 0.99)


def test_grids_have_the_documented_defaults() -> None:
    wanted = mh.discount.hyperbolic(0.05)
    horizons = mh.minimax_grid(mh.discount.hyperbolic(0.05), heads=4)
    assert horizons == minimax_grid(wanted, heads=4, gamma_max=0.99, t_max=1000)
    assert len(horizons) == 4
    assert paper_grid(wanted, 10) == paper_grid(wanted, 10, gamma_max=0.99)
    assert gauss_grid(wanted, 10).gammas.max() > 0.999


def test_discount_without_a_prior_needs_the_minimax_grid() -> None:
    def halves(t: float) -> float:
        return 0.5**t

    assert minimax_grid(halves, 2) == minimax_grid(discount.from_function(halves), 2)
    for grid in (paper_grid, gauss_grid):
        words = f"{grid.__name__} needs a discount with a prior, but halves has no prior; use minimax_grid"
        with pytest.raises(InputError, match=words):
            grid(discount.from_function(halves), 2)


def test_power_and_laplace_forms_agree_if_the_weighting_is_constant() -> None:
    """For k = 1, w(γ) = 1 everywhere, so the integrals of the power form and of the Laplace form are equal."""
    assert hazard.Exponential(1.0).weighting([0.0, 1e-300, 0.5]) == pytest.approx([1, 1, 1], rel=1e-12)
    laplace = paper_grid(hazard.Exponential(1.0), 6, form=mh.Form.LAPLACE)
    power = paper_grid(hazard.Exponential(1.0), 6)
    np.testing.assert_allclose(laplace.gammas, power.gammas)
    np.testing.assert_allclose(laplace.weights, power.weights, rtol=1e-12)


@pytest.mark.parametrize(
    ("prior", "limit"),
    [
        (hazard.Exponential(1 - 1e-9), 0),
        (hazard.Exponential(1.0), 1),
        (hazard.Exponential(1 + 1e-9), np.inf),
        (hazard.Gamma(1.0, 0.5), 0),
        (hazard.Gamma(1.0, 1.0), 1),
        (hazard.Gamma(1.0, 1.5), np.inf),
        (hazard.Gamma(0.9, 1.5), 0),
        (hazard.Uniform(3.0), 0),
        (hazard.Mixture([hazard.Exponential(1.0), hazard.Uniform(1.0)], [0.25, 0.75]), 0.25),
        (hazard.Mixture([hazard.Exponential(2.0), hazard.Uniform(1.0)]), np.inf),
        (hazard.Density(lambda x: math.exp(-x)), 1),
        (hazard.Density(lambda x: 0.5 * math.exp(-x) + math.exp(-2 * x)), 0.5),
        (hazard.Density(lambda x: x * math.exp(-x)), np.inf),
        (hazard.Density(lambda x: 1.1 * math.exp(-1.1 * x)), 0),
        (hazard.Density(lambda x: 1 / (1 + x) ** 2), np.inf),
    ],
    ids=str,
)
def test_weighting_at_gamma_0_is_the_limit_of_the_weighting(prior: hazard.Prior, limit: float) -> None:
    assert float(prior.weighting(0.0)) == pytest.approx(limit, rel=1e-9)
    if np.isfinite(limit):
        grid = paper_grid(prior, 5, gamma_max=0.9, form=mh.Form.LAPLACE)
        if grid.gammas[0] == 0:  # if hazards are bounded, the first γ is above 0
            assert grid.weights[0] == pytest.approx(limit * grid.gammas[1], rel=1e-9)
    else:
        with pytest.raises(InputError, match="grows without bound"):
            paper_grid(prior, 5, gamma_max=0.9, form=mh.Form.LAPLACE)


SINGULAR = [
    hazard.Density(lambda x: 0.5 / np.sqrt(1 - (x - 0.1) / 0.2) / 0.2, (0.1, 0.3)),
    hazard.Density(lambda x: 0.5 / np.sqrt(1 - x), (0.0, 1.0)),
    hazard.Mixture([hazard.Density(lambda x: 0.5 / math.sqrt(1 - x), (0.0, 1.0)), hazard.Uniform(0.5)]),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(("prior", "gamma"), list(zip(SINGULAR, ["0.7408", "0.3679", "0.3679"], strict=True)), ids=str)
def test_lower_sum_rejects_an_unbounded_weighting_and_upper_sum_accepts_it(prior: hazard.Prior, gamma: str) -> None:
    with pytest.raises(InputError, match=f"grows without bound as γ falls to {gamma}; use Form.POWER"):
        paper_grid(prior, 5, gamma_max=0.9, form=mh.Form.LAPLACE)
    upper = paper_grid(prior, 5, gamma_max=0.9, form=mh.Form.LAPLACE, sum_=mh.Sum.UPPER)
    assert upper.weights[0] == 0
    assert 0.2 < upper.weights.sum() < 1


def test_first_head_for_a_bounded_prior_corresponds_to_the_largest_hazard() -> None:
    for k in np.linspace(0.3, 2, 50):  # rounding puts -ln e^{-k} above k for some k, and below k for others
        grid = paper_grid(hazard.Uniform(k), 3, gamma_max=0.8, form=mh.Form.LAPLACE)
        assert grid.weights[0] == pytest.approx(np.exp(k) / k * (grid.gammas[1] - grid.gammas[0]), rel=1e-9)


def test_a_bound_above_every_possible_discount_factor_is_rejected() -> None:
    low, high = 0.05056378869683274, 0.16543866067250895
    with pytest.raises(InputError, match=r"γ never exceeds gamma_max = 0.99"):
        paper_grid(hazard.Density(lambda x: 1 / (high - low), (low, high)), 5)


@pytest.mark.parametrize("form", list(mh.Form))
@pytest.mark.parametrize(
    ("prior", "gamma_max"),
    [
        (hazard.Exponential(5e-4), 0.99),
        (hazard.Exponential(3.3e-3), 0.99),
        (hazard.Exponential(0.1), 0.7),
        (hazard.Gamma(1e-3, 0.5), 0.99),
        (hazard.Uniform(0.01), 0.985),
    ],
    ids=str,
)
def test_paper_grid_rejects_priors_with_too_little_probability_below_the_bound_on_gamma(
    prior: hazard.Prior, gamma_max: float, form: mh.Form
) -> None:
    words = r"nearly all the weight of the paper grid would be in the last head: .* use gauss or minimax$"
    with pytest.raises(InputError, match=words) as problem:
        paper_grid(prior, 10, gamma_max=gamma_max, form=form)
    suggested = re.search(r"a gamma_max of at least (\S+),", str(problem.value))
    assert suggested
    kept = paper_grid(prior, 10, gamma_max=float(suggested[1]))
    assert kept.weights[:-1].sum() > 0.04
    assert np.all(np.diff(kept.gammas) > 0)


@pytest.mark.parametrize(("k", "heads", "gamma_max"), [(0.01, 10, 0.99), (0.05, 100, 0.99), (0.05, 100, 0.9)])
def test_paper_grid_accepts_priors_with_just_enough_probability_below_the_bound_on_gamma(
    k: float, heads: int, gamma_max: float
) -> None:
    """With the smallest accepted probability, all heads except the last have a total weight of nearly 5%."""
    assert paper_grid(hazard.Exponential(k), heads, gamma_max=gamma_max).weights[:-1].sum() > 0.1
    limit = math.log(gamma_max) / math.log(0.05)  # γ_max^{1/k} = 0.05
    others = paper_grid(hazard.Exponential(limit * 1.001), heads, gamma_max=gamma_max).weights[:-1].sum()
    assert 0.04 < others < 0.051
    with pytest.raises(InputError, match="nearly all the weight of the paper grid"):
        paper_grid(hazard.Exponential(limit * 0.999), heads, gamma_max=gamma_max)


def test_the_arguments_form_and_sum_must_be_members_of_their_enums() -> None:
    make = inspect.unwrap(paper_grid)  # removes the tests' type checker, which would reject the strings first
    with pytest.raises(InputError, match=r"^form must be one of Form.POWER, Form.LAPLACE, got 'laplace'$"):
        make(hazard.Exponential(0.1), 4, form="laplace")  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"^sum_ must be one of Sum.LOWER, Sum.UPPER, got 'upper'$"):
        make(hazard.Exponential(0.1), 4, sum_="upper")  # type: ignore[arg-type]


WRONG = """
import numpy as np
from multihorizon.discounting import discount, gauss_grid, hazard, minimax_grid, paper_grid, single
def d(t): return 0.9**t
for grid in (paper_grid, gauss_grid, minimax_grid):
    for source in (0.99, np.float64(0.99), "hyperbolic", None, [0.1], single(0.9), hazard.Exponential, d):
        if (grid, source) == (minimax_grid, d):
            continue
        try:
            grid(source, 3)
        except ValueError as problem:
            print(type(problem).__name__, problem)
"""


def test_invalid_source_is_rejected_with_a_one_line_message() -> None:
    """Runs in its own process, because the tests' type checker would reject the source first."""
    done = subprocess.run([sys.executable, "-c", WRONG], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3 * 8 - 1
    assert all(
        line.startswith("InputError ") and re.search("needs a Discount(, a Prior or a function of t| or a Prior)", line)
        for line in lines
    )
    assert all("wrap it with discount.from_function" in line for line in lines if "the function d" in line)
    assert sum("the function d" in line for line in lines) == 2
    assert sum("got the class Exponential" in line for line in lines) == 3


@pytest.mark.parametrize("prior", [hazard.Gamma(0.01, 1e-9), hazard.Gamma(0.01, 1e-320), hazard.Exponential(1e-17)])
def test_error_message_suggests_no_bound_on_gamma_if_every_bound_fails(prior: hazard.Prior) -> None:
    with pytest.raises(InputError, match=r"but it must be at least 0.05; use gauss or minimax$"):
        paper_grid(prior, 10, gamma_max=0.99)


def test_powers_that_underflow_count_as_0_in_a_discount() -> None:
    horizons = Horizons(np.array([0.0, 0.5, 0.99, 1.0]), np.array([0.1, 0.2, 0.3, 0.4]))
    t = np.array([0, 1, 10, 1_021, 1_022, 70_000, 1_000_000])
    expected = sum(w * g ** t.astype(float) for g, w in zip(horizons.gammas, horizons.weights, strict=True))
    np.testing.assert_allclose(horizons.discount(t), expected, rtol=1e-15)
    late = Horizons(np.array([0.4, 0.5]), np.ones(2)).discount(np.array([1_000.0, 1_030.0]))
    np.testing.assert_allclose(late, [0.5**1_000, 0.0], rtol=1e-12)
