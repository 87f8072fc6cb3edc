"""All grids have one signature: a discount or a prior in, horizons out."""

import subprocess
import sys
from collections.abc import Callable

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
def test_only_the_source_and_the_heads_are_positional(grid: Callable[..., Horizons]) -> None:
    with pytest.raises(TypeError, match="positional"):
        grid(discount.hyperbolic(0.05), 4, 0.99)


def test_defaults() -> None:
    wanted = mh.discount.hyperbolic(0.05)
    horizons = mh.minimax_grid(mh.discount.hyperbolic(0.05), heads=4)  # as in the README
    assert horizons == minimax_grid(wanted, heads=4, gamma_max=0.99, t_max=1000)
    assert len(horizons) == 4
    assert paper_grid(wanted, 10) == paper_grid(wanted, 10, gamma_max=0.99)
    assert gauss_grid(wanted, 10).gammas.max() > 0.999


def test_a_discount_without_a_prior_is_for_minimax() -> None:
    def halves(t: float) -> float:
        return 0.5**t

    assert minimax_grid(halves, 2) == minimax_grid(discount.from_function(halves), 2)
    for grid in (paper_grid, gauss_grid):
        words = f"{grid.__name__} needs a discount with a prior, and halves has none; use minimax_grid"
        with pytest.raises(InputError, match=words):
            grid(discount.from_function(halves), 2)


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


def test_any_other_source_is_refused_in_one_line() -> None:
    """In a process of its own: here the checker of types would refuse it first."""
    done = subprocess.run([sys.executable, "-c", WRONG], capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert len(lines) == 3 * 8 - 1
    assert all(line.startswith("InputError ") and "needs a Discount or a Prior" in line for line in lines)
    assert all("wrap it with discount.from_function" in line for line in lines if "the function d" in line)
    assert sum("the function d" in line for line in lines) == 2
    assert sum("got the class Exponential" in line for line in lines) == 3
