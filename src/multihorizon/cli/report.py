"""multihorizon report: the runs of a folder as one page, with figures and tables."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multihorizon.errors import InputError

if TYPE_CHECKING:
    from multihorizon.report.contents import Report
    from multihorizon.report.statistics import Estimate

MOST_ROWS, MOST_COLUMNS = 15, 4  # of a table on the terminal
SUMMARY = "figures, tables and statistics of a sweep, finished or not: multihorizon report DIR"
DESCRIPTION = """\
Reads all runs under a folder, finished or not, and writes one page that needs nothing else, with its figures as PNG and
SVG and its tables as CSV and Markdown: learning curves, improvement over baselines, scores, human-normalised aggregates
with intervals, performance profiles, probabilities of improvement, and the discount that each agent really acted by.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", nargs="?", help="of multihorizon sweep, or of any runs")
    parser.add_argument("--paper", action="store_true", help="the paper's own table instead of runs")
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="where to write (DIR/report; --paper: reproduced/paper)"
    )
    parser.add_argument(
        "--dopamine", type=Path, metavar="PATH", help="Dopamine's published curves: an .npz or its folder of JSON files"
    )
    parser.add_argument("--json", action="store_true", help="the page, the files, and the statistics")


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import note, show_json, working

    if options.paper == (options.folder is not None):
        raise InputError("give a folder of runs, or --paper for the paper's own table; one of them")
    if options.paper and options.dopamine:
        raise InputError("--dopamine goes with a folder of runs, not with --paper")
    from multihorizon.report.baselines import read_dopamine
    from multihorizon.report.contents import paper_report, report
    from multihorizon.report.runs import read_experiment
    from multihorizon.report.writing import write_report

    if options.paper:
        out = options.out or Path("reproduced/paper")
        with working("drawing the paper's table ..."):
            made = paper_report()
            written = write_report(made, out)
    else:
        out = options.out or options.folder / "report"
        dopamine = read_dopamine(options.dopamine) if options.dopamine else None
        experiment = read_experiment(options.folder, note)
        with working(f"drawing {len(experiment.runs)} runs ..."):
            made = report(experiment, dopamine)
            written = write_report(made, out)
    if options.json:
        show_json(_result(made, written))
    else:
        _show(made, written)


def _result(made: "Report", written: list[Path]) -> dict[str, Any]:
    return {
        "page": str(written[0]),
        "files": [str(path) for path in written],
        "notes": made.notes,
        "left_out_of_aggregates": made.aggregates.left_out,
        "aggregates": [
            {"agent": one.agent, "statistic": one.statistic.value}
            | {measure: vars(estimate) for measure, estimate in one.measures.items()}
            for one in made.aggregates.of
        ],
        "pairs": [
            {
                "agent": pair.challenger,
                "baseline": pair.baseline,
                "statistic": pair.statistic.value,
                "better": pair.better,
                "ties": pair.ties,
                "environments": len(pair.changes),
                "probability_of_improvement": vars(pair.wins),
            }
            for pair in made.pairs
        ],
    }


def _show(made: "Report", written: list[Path]) -> None:
    """What fits a terminal: the scores of a few environments, the IQM where there is one, and who beats whom."""
    from multihorizon.cli.terminal import note, show, table
    from multihorizon.report.scores import Statistic
    from multihorizon.report.tables import number

    scores = made.scores
    across, down = sorted((scores.agents, scores.environments), key=len)  # what there are more of goes down
    if len(across) <= MOST_COLUMNS and len(down) <= MOST_ROWS:
        by_agent = down is scores.agents
        rows = []
        for name in down:
            cells = [(name, other) if by_agent else (other, name) for other in across]
            rows.append([name, *(number(scores.mean(Statistic.BEST, agent, where)).text for agent, where in cells)])
        show(table("scores, by the best iteration", ["agent" if by_agent else "environment", *across], rows))
    by = {(one.agent, one.statistic): _said(one.measures["IQM"]) for one in made.aggregates.of}
    if by:
        agents = dict.fromkeys(agent for agent, _ in by)
        rows = [[agent, *(by.get((agent, s), "–") for s in Statistic)] for agent in agents]
        show(table("human-normalised IQM", ["agent", *(s.value for s in Statistic)], rows))
    if made.pairs:
        rows = [
            [f"{pair.challenger} over {pair.baseline}", pair.counted, _said(pair.wins)]
            for pair in made.pairs
            if pair.statistic is Statistic.BEST
        ]
        show(table("by the best iteration", ["", "better in", "probability"], rows))
    for said in made.notes:
        note(said)
    print(f"Written to {written[0].parent}: {len(written)} files; open {written[0]}")


def _said(estimate: "Estimate") -> str:
    interval = "" if estimate.low is None else f" ({estimate.low:.2f} to {estimate.high:.2f})"
    return f"{estimate.value:.2f}{interval}"
