"""Reports how closely a grid reproduces a discount, what limits the grid, and how other grids compare."""

import math
from dataclasses import dataclass
from typing import Any

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.grids import gauss_grid, paper_grid
from multihorizon.discounting.horizons import Fit, Horizons
from multihorizon.discounting.minimax import minimax_grid
from multihorizon.discounting.sources import as_discount
from multihorizon.errors import InputError, at_least, inside, one_of, true_or_false

GRIDS = ("paper", "gauss", "minimax")
DEFAULT_GAMMA_MAX = 0.99  # for the paper and minimax grids
LARGER_CAPS = (0.999, 0.9999, 0.99999)
GOOD_FIT, CLOSE_FIT = 0.01, 1e-4


@dataclass(frozen=True)
class Limit:
    """What limits a grid: heads that add nothing, and a bound on γ.

    The `better_*` fields describe a minimax grid with a larger bound, or are None if a larger bound would not help.
    """

    unused: int  # number of heads with weight 0
    merged: int  # number of heads that were merged with an equal head
    gamma_max: float
    better_heads: int | None = None
    better_gamma_max: float | None = None
    better_error: float | None = None


@dataclass(frozen=True)
class GridReport:
    """A grid for a discount, its largest error, what limits the grid, and other grids for comparison.

    Attributes:
        discount: The discount to reproduce.
        name: The name of the grid, such as "minimax, 3 heads".
        horizons: The horizons of the grid.
        t_max: The last step at which the error is measured.
        fit: The largest error and its step.
        limit: What limits the grid, or None if nothing does.
        others: Other grids for the same discount, by name.
    """

    discount: Discount
    name: str
    horizons: Horizons
    t_max: int
    fit: Fit
    limit: Limit | None
    others: dict[str, Horizons]


def report_grid(
    discount: Any,
    grid: str = "paper",
    heads: int = 10,
    *,
    gamma_max: float | None = None,
    t_max: int = 1000,
    compare: bool = True,
) -> GridReport:
    """Makes horizons for a discount and reports how closely the horizons reproduce the discount.

    Args:
        discount: A discount, or a prior over hazard.
        grid: The method: "paper", "gauss" or "minimax".
        heads: The number of horizons.
        gamma_max: The upper bound on γ. The default is 0.99, or no bound for "gauss".
        t_max: The last step at which the error is measured.
        compare: Whether to make other grids for comparison.

    Returns:
        The horizons, the largest error, what limits the grid, and other grids for comparison.

    Raises:
        InputError: If the grid is unknown, or needs a prior that the discount does not have.
    """
    one_of("grid", grid, GRIDS)
    true_or_false("compare", compare)
    wanted = as_discount(discount, f"the {grid} grid")
    at_least("heads", heads, 1, 1000)
    at_least("t_max", t_max, 1, 1_000_000)
    if gamma_max is not None:
        inside("gamma_max", gamma_max, 0, 1)
    if wanted.prior is None and grid != "minimax":
        raise InputError(
            f"the {grid} grid needs a discount with a prior, but {wanted} has no prior; use the minimax grid"
        )
    cap = DEFAULT_GAMMA_MAX if gamma_max is None else float(gamma_max)
    if grid == "minimax":
        horizons = minimax_grid(wanted, heads, gamma_max=cap, t_max=t_max)
    elif grid == "gauss":
        horizons = gauss_grid(wanted, heads, gamma_max=gamma_max)
    else:
        horizons = paper_grid(wanted, heads, gamma_max=cap)
    fit = horizons.fit(wanted, t_max)
    is_capped = grid != "gauss" or gamma_max is not None
    limit = _find_limit(wanted, horizons, heads, cap if is_capped else None, t_max, fit.max_error)
    others = _other_grids(wanted, (grid, heads, gamma_max), cap, t_max) if compare else {}
    return GridReport(wanted, _name(grid, horizons), horizons, t_max, fit, limit, others)


def _find_limit(
    wanted: Discount, horizons: Horizons, heads: int, cap: float | None, t_max: int, error: float
) -> Limit | None:
    unused, merged = int((horizons.weights == 0).sum()), heads - len(horizons)
    largest = float(horizons.gammas[horizons.weights != 0].max(initial=0.0))
    if cap is not None and 1 - largest <= 1.001 * (1 - cap) and error > (CLOSE_FIT if unused or merged else GOOD_FIT):
        better_heads = min(heads, 3)
        better_cap, better_error = _larger_cap(wanted, better_heads, cap, t_max)
        if better_error < 0.9 * error:
            return Limit(unused, merged, cap, better_heads, better_cap, better_error)
    return Limit(unused, merged, math.inf if cap is None else cap) if unused else None


def _larger_cap(wanted: Discount, heads: int, cap: float, t_max: int) -> tuple[float, float]:
    """Tries larger bounds on γ. Returns the first bound with a good fit, or else the best bound, and its error."""
    least = math.inf
    for larger in LARGER_CAPS:
        if larger <= cap or least <= GOOD_FIT:
            continue
        error = minimax_grid(wanted, heads, gamma_max=larger, t_max=t_max).fit(wanted, t_max).max_error
        if error < 0.9 * least:
            cap, least = larger, error
    return cap, least


def _other_grids(
    wanted: Discount, chosen: tuple[str, int, float | None], cap: float, t_max: int
) -> dict[str, Horizons]:
    found = {}
    if chosen[:2] != ("minimax", 3):
        found[f"minimax, 3 heads, γ ≤ {cap:g}"] = minimax_grid(wanted, 3, gamma_max=cap, t_max=t_max)
    if cap < 0.999:
        found["minimax, 3 heads, γ ≤ 0.999"] = minimax_grid(wanted, 3, gamma_max=0.999, t_max=t_max)
    if wanted.prior is not None and chosen != ("gauss", 3, None):
        found["gauss, 3 heads, no cap"] = gauss_grid(wanted, 3)
    return found


def _name(grid: str, horizons: Horizons) -> str:
    return f"{grid}, {len(horizons)} head{'s' if len(horizons) > 1 else ''}"
