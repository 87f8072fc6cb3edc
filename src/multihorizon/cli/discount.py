"""multihorizon discount: finds horizons for a discount and reports how closely they reproduce it."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from multihorizon.cli import choices
from multihorizon.errors import InputError, at_least, inside, one_of

if TYPE_CHECKING:
    from multihorizon.discounting import Discount, Horizons

SUMMARY = "find horizons for a discount, and compare it with the discount they add up to"
DESCRIPTION = """\
Finds discount factors γ and weights for a discount d(t), one per head, and compares Σ w γ^t with d(t).
Without options: the grid of the paper's Atari agents.
"""
GRIDS = ("paper", "gauss", "minimax")
DEFAULT_GAMMA_MAX = 0.99  # for the paper and minimax grids
LARGER_CAPS = (0.999, 0.9999, 0.99999)
GOOD_FIT, CLOSE_FIT = 0.01, 1e-4
SHOWN_TIMES = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices.add_arguments(parser, k=0.01)
    parser.add_argument("--grid", default="paper", metavar="|".join(GRIDS), help="method to choose the γ's (paper)")
    parser.add_argument("--heads", type=int, default=10, help="number of γ's (10)")
    parser.add_argument(
        "--gamma-cap", type=float, dest="gamma_max", metavar="G", help="largest γ (0.99; gauss: no limit)"
    )
    parser.add_argument("--t-max", type=int, default=1000, metavar="T", help="measure errors over t = 0..T (1000)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="write discount.png and discount.json to DIR")
    parser.add_argument("--json", action="store_true", help="print gammas, weights, max_error, max_error_at and more")


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import show_json, working
    from multihorizon.files import writable_folder

    choices.check_given(options)
    grid = one_of("grid", options.grid, GRIDS)
    at_least("--t-max", options.t_max, 1, 1_000_000)
    at_least("--heads", options.heads, 1, 1000)
    if options.gamma_max is not None:
        inside("--gamma-cap", options.gamma_max, 0, 1)
    wanted = choices.discount(options)
    if options.out:
        writable_folder(options.out)
    with working("searching for the best horizons ..." if grid == "minimax" else ""):
        horizons = _grid(grid, wanted, options)
        result = _result(wanted, horizons, grid, options)
        others = {} if options.json and not options.out else _others(wanted, grid, options)
    compared = {_name(grid, horizons): horizons, **others}
    # Files first: printing ends early where the reader closes the pipe, as `head` does.
    written = _write(wanted, compared, options, result) if options.out else []
    if options.json:
        show_json(result)
        return
    _show(wanted, compared, options, result)
    if written:
        print(f"Written to {options.out}:", *(path.name for path in written))


def _grid(grid: str, wanted: "Discount", options: argparse.Namespace) -> "Horizons":
    from multihorizon.discounting import gauss_grid, minimax_grid, paper_grid

    if grid == "minimax":
        return minimax_grid(wanted, options.heads, gamma_max=_cap(options), t_max=options.t_max)
    if wanted.prior is None:
        raise InputError(f"--grid {grid} needs a discount with a prior; for {wanted.label} use --grid minimax")
    if grid == "gauss":
        return gauss_grid(wanted, options.heads, gamma_max=options.gamma_max)
    return paper_grid(wanted, options.heads, gamma_max=_cap(options))


def _cap(options: argparse.Namespace) -> float:
    return DEFAULT_GAMMA_MAX if options.gamma_max is None else float(options.gamma_max)


def _result(wanted: "Discount", horizons: "Horizons", grid: str, options: argparse.Namespace) -> dict[str, object]:
    fit = horizons.fit(wanted, options.t_max)
    shown = [t for t in SHOWN_TIMES if t <= options.t_max]
    return {
        "discount": wanted.label,
        "grid": grid,
        "gammas": horizons.gammas.tolist(),
        "weights": horizons.weights.tolist(),
        "effective_horizons": [h if math.isfinite(h) else None for h in horizons.effective_horizons.tolist()],
        "t_max": options.t_max,
        "max_error": fit.max_error,
        "max_error_at": fit.max_error_at,
        "times": shown,
        "wanted": [float(wanted(t)) for t in shown],
        "reached": [float(horizons.discount(t)) for t in shown],
        "note": _note(wanted, horizons, grid, options, fit.max_error),
    }


def _note(wanted: "Discount", horizons: "Horizons", grid: str, options: argparse.Namespace, error: float) -> str | None:
    """What limits the fit where heads are unused or the cap on γ binds, and the error that a larger cap reaches."""
    from multihorizon.cli.terminal import counted

    unused = int((horizons.weights == 0).sum())
    merged = options.heads - len(horizons)
    capped = grid != "gauss" or options.gamma_max is not None
    largest = float(horizons.gammas[horizons.weights != 0].max(initial=0.0))
    at_cap = capped and 1 - largest <= 1.001 * (1 - _cap(options))
    if at_cap and error > (CLOSE_FIT if unused or merged else GOOD_FIT):
        heads = min(options.heads, 3)
        larger, reached = _larger_cap(wanted, heads, options)
        if reached < 0.9 * error:
            binds = f"the cap γ ≤ {_cap(options):g} binds"
            if unused:
                said = f"{unused} of {len(horizons)} heads have weight 0: {binds}, not the number of heads."
            elif merged:
                said = f"{counted(options.heads, 'head')} became {len(horizons)}: {binds}."
            else:
                said = f"{binds.capitalize()}."
            better = f"--grid minimax --heads {heads} --gamma-cap {larger:g}"
            return f"{said} The largest error with {better} is {reached:.2g}."
    if unused:
        return f"{unused} of {len(horizons)} heads have weight 0: they would not reduce the largest error."
    return None


def _larger_cap(wanted: "Discount", heads: int, options: argparse.Namespace) -> tuple[float, float]:
    """The smallest of a few larger caps with a good fit, or else the best of them, and its largest error."""
    from multihorizon.discounting import minimax_grid

    cap, least = _cap(options), math.inf
    for larger in LARGER_CAPS:
        if larger <= cap or least <= GOOD_FIT:
            continue
        found = minimax_grid(wanted, heads, gamma_max=larger, t_max=options.t_max)
        error = found.fit(wanted, options.t_max).max_error
        if error < 0.9 * least:
            cap, least = larger, error
    return cap, least


def _others(wanted: "Discount", grid: str, options: argparse.Namespace) -> "dict[str, Horizons]":
    """Other grids for the same discount, for comparison."""
    from multihorizon.discounting import gauss_grid, minimax_grid

    cap = _cap(options)
    found = {}
    if (grid, options.heads) != ("minimax", 3):
        found[f"minimax, 3 heads, γ ≤ {cap:g}"] = minimax_grid(wanted, 3, gamma_max=cap, t_max=options.t_max)
    if cap < 0.999:
        found["minimax, 3 heads, γ ≤ 0.999"] = minimax_grid(wanted, 3, gamma_max=0.999, t_max=options.t_max)
    if wanted.prior is not None and (grid, options.heads, options.gamma_max) != ("gauss", 3, None):
        found["gauss, 3 heads, no cap"] = gauss_grid(wanted, 3)
    return found


def _name(grid: str, horizons: "Horizons") -> str:
    return f"{grid}, {len(horizons)} head{'s' if len(horizons) > 1 else ''}"


def _show(
    wanted: "Discount", compared: "dict[str, Horizons]", options: argparse.Namespace, result: dict[str, object]
) -> None:
    from multihorizon.cli.terminal import show, table

    name, horizons = next(iter(compared.items()))
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
    show(
        f"[bold]largest error {result['max_error']:.3g}, at t = {result['max_error_at']}[/bold] "
        f"(over t = 0..{options.t_max})"
    )
    show(f"{result['note']}\n" if result["note"] else "")
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
) -> list[Path]:
    from multihorizon.files import write_json
    from multihorizon.reports.figure_style import save
    from multihorizon.reports.theory_figures import draw_fit

    return [
        save(draw_fit(wanted, compared, options.t_max), options.out / "discount.png"),
        write_json(options.out / "discount.json", result),
    ]
