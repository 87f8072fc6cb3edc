"""multihorizon pathworld: reproduces the paper's Pathworld results."""

import argparse
from pathlib import Path

from multihorizon.cli.running import whole
from multihorizon.errors import at_least
from multihorizon.files import writable_folder

SUMMARY = "reproduces the paper's four Pathworld tables and theoretical figures"
DESCRIPTION = """\
Which of 15 paths is worth taking, if longer paths pay more and are riskier? Each agent has a value for every path. The
tables show the mean squared errors of these values under hazard. The column 'paper' holds the published errors. In the
column 'ours', all values have closed forms. In the column 'learned', Q-learning over all horizons estimates the agents'
values, and simulated episodes estimate the true values.
"""
NOTE = (
    "Under uniform hazard, the paper sampled the true values, and ours are exact. 'paper' and 'ours' "
    "therefore differ by sampling noise.\n"
    "'learned' includes the noise of 200,000 simulated episodes for each path."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for the figures and tables.json")
    parser.add_argument("--seed", type=whole, default=0, help="seed of the learning and the simulation (default: 0)")
    parser.add_argument(
        "--json", action="store_true", help="print the tables as JSON: table → agent → paper, ours, learned"
    )


def run(options: argparse.Namespace) -> None:
    from multihorizon.api import pathworld
    from multihorizon.cli.terminal import show, show_json, table, working

    at_least("--seed", options.seed, 0, 2**31 - 1)
    if options.out is not None:
        writable_folder(options.out)
    with working("learning the values of all paths and horizons, then simulating the return of each path ..."):
        report = pathworld(seed=options.seed, out=options.out)
    if options.json:
        show_json(report.tables())
        return
    for result in report.results:
        rows = [
            [agent.replace("gamma", "γ"), *(f"{row[c]:.3f}" for c in ("paper", "ours", "learned"))]
            for agent, row in result.table().items()
        ]
        title = f"{result.experiment.name}: {result.experiment.title}"
        show(table(title, ["agent", "paper", "ours", "learned"], rows, look_at=0))
    show(NOTE)
    if report.files:
        print(f"\nWritten to {options.out}:", *(f"  {path.name}" for path in report.files), sep="\n")
    else:
        show("\nFor the figures, add --out DIR.")
