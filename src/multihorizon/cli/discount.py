"""multihorizon discount: finds horizons for a discount."""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from multihorizon.cli import choices
from multihorizon.cli.running import whole
from multihorizon.errors import at_least, inside, one_of

if TYPE_CHECKING:
    from multihorizon.discounting.grid_report import GridReport

SUMMARY = "finds horizons for a discount, and shows the error of the approximation"
DESCRIPTION = """\
Approximates a discount d(t) by a sum Σ w γ^t, with a discount factor γ and a weight w for each head.
Without options, the command shows the grid of the paper's Atari agents.
"""
GRIDS = ("paper", "gauss", "minimax")
SHOWN_TIMES = (0, 1, 3, 10, 30, 100, 300, 1000, 3000, 10000, 30000, 100000)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices.add_arguments(parser, k=0.01)
    parser.add_argument(
        "--grid", default="paper", metavar="|".join(GRIDS), help="method that chooses the γ's (default: paper)"
    )
    parser.add_argument("--heads", type=whole, default=10, help="number of γ's (default: 10)")
    parser.add_argument(
        "--gamma-cap",
        type=float,
        dest="gamma_max",
        metavar="G",
        help="upper bound on γ (default: 0.99; with gauss: none)",
    )
    parser.add_argument(
        "--t-max",
        type=whole,
        default=1000,
        metavar="T",
        help="last step at which the error is measured (default: 1000)",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for discount.png and discount.json")
    parser.add_argument("--json", action="store_true", help="print gammas, weights, max_error and more as JSON")


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import show_json, working
    from multihorizon.discounting import report_grid
    from multihorizon.files import writable_folder

    one_of("grid", options.grid, GRIDS)
    at_least("--t-max", options.t_max, 1, 1_000_000)
    at_least("--heads", options.heads, 1, 1000)
    if options.gamma_max is not None:
        inside("--gamma-cap", options.gamma_max, 0, 1)
    wanted = choices.discount(options)
    if options.out:
        writable_folder(options.out)
    with working("searching for the best horizons ..." if options.grid == "minimax" else ""):
        compare = not options.json or bool(options.out)
        report = report_grid(
            wanted, options.grid, options.heads, gamma_max=options.gamma_max, t_max=options.t_max, compare=compare
        )
    result = _result(report, options.grid)
    # Files are written first, because printing stops if the reader closes the pipe, as `head` does.
    written = _write(report, options.out, result) if options.out else []
    if options.json:
        show_json(result)
        return
    _show(report, result)
    if written:
        print(f"Written to {options.out}:", *(path.name for path in written))


def _result(report: "GridReport", grid: str) -> dict[str, object]:
    horizons, wanted = report.horizons, report.discount
    shown = [t for t in SHOWN_TIMES if t <= report.t_max]
    return {
        "discount": wanted.label,
        "grid": grid,
        "gammas": horizons.gammas.tolist(),
        "weights": horizons.weights.tolist(),
        "effective_horizons": [h if math.isfinite(h) else None for h in horizons.effective_horizons.tolist()],
        "t_max": report.t_max,
        "max_error": report.fit.max_error,
        "max_error_at": report.fit.max_error_at,
        "times": shown,
        "wanted": [float(wanted(t)) for t in shown],
        "reached": [float(horizons.discount(t)) for t in shown],
        "note": _note(report),
    }


def _note(report: "GridReport") -> str | None:
    from multihorizon.cli.terminal import counted

    limit, heads = report.limit, len(report.horizons)
    if limit is None:
        return None
    unused = f"{limit.unused} of {heads} heads have weight 0"
    if limit.better_error is None:
        return f"{unused}: they would not reduce the largest error."
    binds = f"the cap γ ≤ {limit.gamma_max:g} limits the fit"
    if limit.unused:
        said = f"{unused}: {binds}."
    elif limit.merged:
        said = f"{counted(heads + limit.merged, 'head')} were merged into {heads}: {binds}."
    else:
        said = f"{binds.capitalize()}."
    better = f"--grid minimax --heads {limit.better_heads} --gamma-cap {limit.better_gamma_max:g}"
    return f"{said} The largest error with {better} is {limit.better_error:.2g}."


def _show(report: "GridReport", result: dict[str, object]) -> None:
    from multihorizon.cli.terminal import plain, show, table

    wanted, horizons, t_max = report.discount, report.horizons, report.t_max
    heads = [
        [f"{i + 1}", f"{gamma:.5f}", f"{horizon:.1f} steps", f"{weight:.4f}"]
        for i, (gamma, horizon, weight) in enumerate(
            zip(horizons.gammas, horizons.effective_horizons, horizons.weights, strict=True)
        )
    ]
    show(table(f"{wanted.label}, grid: {report.name}", ["head", "γ", "effective horizon", "weight"], heads))
    times = [t for t in SHOWN_TIMES if t <= t_max]
    worth = [[f"{t}", f"{wanted(t):.3f}", f"{horizons.discount(t):.3f}"] for t in times]
    look_at = times.index(100) if 100 in times else None
    show(table("what a reward t steps away is worth", ["t", "wanted", "reached"], worth, look_at=look_at))
    fit = report.fit
    show(plain(f"largest error {fit.max_error:.3g}, at t = {fit.max_error_at} (over t = 0..{t_max})", "bold"))
    show(f"{result['note']}\n" if result["note"] else "")
    at = min(100, t_max)
    rows = [
        [
            label,
            f"{h.gammas.max():.5f}",
            f"{h.discount(0):.3f}",
            f"{h.discount(at):.3f}",
            f"{h.fit(wanted, t_max).max_error:.3g}",
        ]
        for label, h in {report.name: horizons, **report.others}.items()
    ]
    columns = ["grid", "largest γ", "d(0)", f"d({at})", "largest error"]
    note = "d(0) is the sum of the weights. In a minimax grid, d(0) need not be 1."
    show(table("this grid, and others for the same discount", columns, rows, note, look_at=0))


def _write(report: "GridReport", out: Path, result: dict[str, object]) -> list[Path]:
    from multihorizon.files import write_json
    from multihorizon.reports.figure_style import save
    from multihorizon.reports.theory_figures import draw_fit

    compared = {report.name: report.horizons, **report.others}
    return [
        save(draw_fit(report.discount, compared, report.t_max), out / "discount.png"),
        write_json(out / "discount.json", result),
    ]
