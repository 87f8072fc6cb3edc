"""multihorizon discount: the horizons for a discount, and the discount they really add up to."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from multihorizon.cli import choices
from multihorizon.errors import InputError, at_least, one_of

if TYPE_CHECKING:
    from multihorizon.discounting import Discount, Horizons

SUMMARY = "the horizons for a discount, and the discount they really add up to"
DESCRIPTION = """\
Chooses discount factors γ and weights for a discount d(t), one head each, and says how far Σ w γ^t is from it.
With no options: the grid of the paper's Atari agents.
"""
GRIDS = ("paper", "gauss", "minimax")
SHOWN_TIMES = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices.add_arguments(parser, k=0.01)
    parser.add_argument("--grid", default="paper", metavar="|".join(GRIDS), help="how the γ's are chosen (paper)")
    parser.add_argument("--heads", type=int, default=10, help="how many γ's (10)")
    parser.add_argument("--gamma-cap", type=float, metavar="G", help="the largest γ (0.99; none for gauss)")
    parser.add_argument("--t-max", type=int, default=1000, metavar="T", help="errors are measured over t = 0..T (1000)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write discount.png and discount.json there")
    parser.add_argument("--json", action="store_true", help="gammas, weights, max_error, max_error_at and more")


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import show_json, working
    from multihorizon.files import writable_folder

    grid = one_of("grid", options.grid, GRIDS)
    at_least("--t-max", options.t_max, 1, 1_000_000)
    at_least("--heads", options.heads, 1, 1000)
    wanted = choices.discount(options)
    if options.out:
        writable_folder(options.out)
    with working("searching for the best horizons ..." if grid == "minimax" else ""):
        horizons = _grid(grid, wanted, options.heads, options.gamma_cap, options.t_max)
        others = {} if options.json and not options.out else _others(wanted, grid, options)
    result = _result(wanted, horizons, grid, options.t_max)
    if options.json:
        show_json(result)
    else:
        _show(wanted, {_name(grid, horizons): horizons, **others}, options)
    if options.out:
        _write(wanted, {_name(grid, horizons): horizons, **others}, options, result)


def _grid(grid: str, wanted: "Discount", heads: int, cap: float | None, t_max: int) -> "Horizons":
    from multihorizon.discounting import gauss_grid, minimax_grid, paper_grid

    if grid == "minimax":
        return minimax_grid(wanted, heads, 0.99 if cap is None else cap, t_max)
    if wanted.prior is None:
        raise InputError(
            f"the {grid} grid needs a discount with a prior behind it; for {wanted.label} use --grid minimax"
        )
    if grid == "gauss":
        return gauss_grid(wanted.prior, heads, cap)
    return paper_grid(wanted.prior, heads, 0.99 if cap is None else cap)


def _result(wanted: "Discount", horizons: "Horizons", grid: str, t_max: int) -> dict[str, object]:
    fit = horizons.fit(wanted, t_max)
    shown = [t for t in SHOWN_TIMES if t <= t_max]
    return {
        "discount": wanted.label,
        "grid": grid,
        "gammas": horizons.gammas.tolist(),
        "weights": horizons.weights.tolist(),
        "effective_horizons": [h if math.isfinite(h) else None for h in horizons.effective_horizons.tolist()],
        "t_max": t_max,
        "max_error": fit.max_error,
        "max_error_at": fit.max_error_at,
        "times": shown,
        "wanted": [float(wanted(t)) for t in shown],
        "reached": [float(horizons.discount(t)) for t in shown],
    }


def _others(wanted: "Discount", grid: str, options: argparse.Namespace) -> "dict[str, Horizons]":
    """What other grids make of the same discount, where they can."""
    from multihorizon.discounting import gauss_grid, minimax_grid

    cap = 0.99 if options.gamma_cap is None else options.gamma_cap
    found = {}
    if (grid, options.heads) != ("minimax", 3):
        found[f"minimax, 3 heads, γ ≤ {cap:g}"] = minimax_grid(wanted, 3, cap, options.t_max)
    if cap < 0.999:
        found["minimax, 3 heads, γ ≤ 0.999"] = minimax_grid(wanted, 3, 0.999, options.t_max)
    if wanted.prior is not None and (grid, options.heads, options.gamma_cap) != ("gauss", 3, None):
        found["gauss, 3 heads, no cap"] = gauss_grid(wanted.prior, 3)
    return found


def _name(grid: str, horizons: "Horizons") -> str:
    return f"{grid}, {len(horizons)} head{'s' if len(horizons) > 1 else ''}"


def _show(wanted: "Discount", compared: "dict[str, Horizons]", options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import show, table

    name, horizons = next(iter(compared.items()))
    fit = horizons.fit(wanted, options.t_max)
    heads = [
        [f"{i + 1}", f"{gamma:.5f}", f"{horizon:.1f} steps", f"{weight:.4f}"]
        for i, (gamma, horizon, weight) in enumerate(
            zip(horizons.gammas, horizons.effective_horizons, horizons.weights, strict=True)
        )
    ]
    show(table(f"{wanted.label}, grid: {name}", ["head", "γ", "looks ahead", "weight"], heads))
    times = [t for t in SHOWN_TIMES if t <= options.t_max]
    worth = [[f"{t}", f"{wanted(t):.3f}", f"{horizons.discount(t):.3f}"] for t in times]
    look_at = times.index(100) if 100 in times else None
    show(table("what a reward t steps away is worth", ["t", "wanted", "reached"], worth, look_at=look_at))
    show(f"[bold]largest error {fit.max_error:.3g}, at t = {fit.max_error_at}[/bold] (over t = 0..{options.t_max})\n")
    at = min(100, options.t_max)
    rows = [
        [
            label,
            f"{h.gammas.max():.5f}",
            f"{h.discount(0):.3f}",
            f"{h.discount(at):.3f}",
            f"{h.fit(wanted, options.t_max).max_error:.3g}",
        ]
        for label, h in compared.items()
    ]
    columns = ["grid", "largest γ", "d(0)", f"d({at})", "largest error"]
    note = "The weights add up to d(0); a minimax grid may spread its error to t = 0 too."
    show(table("this grid, and others for the same discount", columns, rows, note, look_at=0))


def _write(
    wanted: "Discount", compared: "dict[str, Horizons]", options: argparse.Namespace, result: dict[str, object]
) -> None:
    from multihorizon.files import write_json
    from multihorizon.report.discounting import fit
    from multihorizon.report.style import save

    written = [
        save(fit(wanted, compared, options.t_max), options.out / "discount.png"),
        write_json(options.out / "discount.json", result),
    ]
    if not options.json:
        print(f"Written to {options.out}:", *(path.name for path in written))
