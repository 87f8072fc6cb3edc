"""multihorizon report: one page about all runs of a folder."""

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multihorizon.errors import InputError

if TYPE_CHECKING:
    from multihorizon.reports.sections import ReportContents
    from multihorizon.reports.statistics import IntervalEstimate

MAX_ROWS, MAX_COLUMNS = 15, 4  # larger tables of scores are not printed
SUMMARY = "writes figures, tables and statistics of finished and unfinished runs: multihorizon report DIR"
DESCRIPTION = """\
Reads all finished and unfinished runs under a folder, and writes a self-contained HTML page. It also writes the page as
Markdown, the figures as PNG and SVG, and the tables as CSV. The page shows learning curves, scores, improvement over
baselines, human-normalised aggregates with intervals, performance profiles, probabilities of improvement, and each
agent's discount.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "folder", type=Path, metavar="DIR", nargs="?", help="folder of runs, such as the folder of a sweep"
    )
    parser.add_argument("--paper", action="store_true", help="report on the paper's table of results instead of runs")
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="folder to write to (default: DIR/report; with --paper: reproduced/paper)",
    )
    parser.add_argument(
        "--dopamine",
        type=Path,
        metavar="PATH",
        help="Dopamine's published curves to compare with: an .npz file or a folder of JSON files",
    )
    parser.add_argument("--json", action="store_true", help="print the paths of the files and the statistics as JSON")


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import note, show_json, working

    if options.paper == (options.folder is not None):
        raise InputError("give either a folder of runs, or --paper for the paper's own table")
    if options.paper and options.dopamine:
        raise InputError("--dopamine needs a folder of runs; it cannot be combined with --paper")
    from multihorizon import api

    with working("drawing ..." if sys.stderr.isatty() else ""):
        made = api.report(options.folder, out=options.out, dopamine=options.dopamine, warn=note)
    report, written = made.contents, made.files
    if options.json:
        show_json(_summarise(report, written))
    else:
        _show(report, written)


def _summarise(report: "ReportContents", written: list[Path]) -> dict[str, Any]:
    return {
        "page": str(written[0]),
        "files": [str(path) for path in written],
        "notes": report.notes,
        "left_out_of_aggregates": report.aggregates.excluded,
        "aggregates": [
            {"agent": entry.agent, "statistic": entry.statistic.value}
            | {measure.value: vars(estimate) for measure, estimate in entry.measures.items()}
            for entry in report.aggregates.entries
        ],
        "pairs": [
            {
                "agent": comparison.challenger,
                "baseline": comparison.baseline,
                "statistic": comparison.statistic.value,
                "better": comparison.num_better,
                "ties": comparison.num_ties,
                "environments": len(comparison.changes),
                "probability_of_improvement": vars(comparison.win_probability),
            }
            for comparison in report.comparisons
        ],
    }


def _show(report: "ReportContents", written: list[Path]) -> None:
    from multihorizon.cli.terminal import note, show, table
    from multihorizon.reports.comparison import Measure
    from multihorizon.reports.escaping import show_controls
    from multihorizon.reports.scores import Statistic
    from multihorizon.reports.tables import format_number

    scores = report.scores
    across, down = sorted((scores.agents, scores.environments), key=len)  # the longer list becomes the rows
    if len(across) <= MAX_COLUMNS and len(down) <= MAX_ROWS:
        by_agent = down is scores.agents
        rows = []
        for name in down:
            cells = [(name, other) if by_agent else (other, name) for other in across]
            means = [scores.mean(Statistic.BEST, agent, environment) for agent, environment in cells]
            rows.append([name, *(format_number(mean).text for mean in means)])
        columns = ["agent" if by_agent else "environment", *across]
        show(table("scores, by the best iteration", columns, rows))
    entries = report.aggregates.entries
    iqms = {(entry.agent, entry.statistic): _format(entry.measures[Measure.IQM]) for entry in entries}
    if iqms:
        rows = [[agent, *(iqms.get((agent, s), "–") for s in Statistic)] for agent in report.aggregates.agents]
        show(table("human-normalised IQM", ["agent", *(s.value for s in Statistic)], rows))
    if report.comparisons:
        rows = [
            [comparison.title, comparison.tally, _format(comparison.win_probability)]
            for comparison in report.comparisons
            if comparison.statistic is Statistic.BEST
        ]
        show(table("improvement, by the best iteration", ["", "better in", "probability of improvement"], rows))
    for said in report.notes:
        note(said)
    print(show_controls(f"Written to {written[0].parent}: {len(written)} files; open {written[0]}"))


def _format(estimate: "IntervalEstimate") -> str:
    interval = "" if estimate.low is None else f" ({estimate.low:.2f} to {estimate.high:.2f})"
    return f"{estimate.value:.2f}{interval}"
