"""multihorizon pathworld: the paper's Pathworld tables and its figures that are mathematics."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from multihorizon.errors import at_least

if TYPE_CHECKING:
    from multihorizon.experiments.pathworld import Outcome

SUMMARY = "the paper's four Pathworld tables, and its figures that are mathematics"
DESCRIPTION = """\
Which of 15 paths is worth taking, when longer ones pay more and are riskier? Mean squared errors of the path values
that agents hold, against what the paths really earn under hazard: in the paper, in closed form (ours), and with the
values learned by Q-learning over all horizons at once and the truth simulated (learned).
"""
NOTE = (
    "The paper's truth under uniform hazard was sampled, ours is exact: its row differs by its sampling noise.\n"
    "'learned' carries the noise of 200,000 simulated episodes for each path."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="DIR", help="write the figures and tables.json there")
    parser.add_argument("--seed", type=int, default=0, help="of the learning and the simulation (0)")
    parser.add_argument("--json", action="store_true", help="table → row → paper, ours, learned")


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import show, show_json, table, working
    from multihorizon.experiments import pathworld
    from multihorizon.files import writable_folder

    at_least("--seed", options.seed, 0)
    if options.out:
        writable_folder(options.out)
    with working("learning every path's value for all horizons at once, then simulating what each path earns ..."):
        outcomes = pathworld.run(options.seed)
    tables = {outcome.experiment.name: outcome.table() for outcome in outcomes}
    if options.json:
        show_json(tables)
    else:
        for outcome in outcomes:
            rows = [
                [agent.replace("gamma", "γ"), *(f"{row[c]:.3f}" for c in ("paper", "ours", "learned"))]
                for agent, row in outcome.table().items()
            ]
            title = f"{outcome.experiment.name}: {outcome.experiment.title}"
            show(table(title, ["agent", "paper", "ours", "learned"], rows, look_at=0))
        show(NOTE)
    if options.out:
        _write(options, outcomes, tables)
    elif not options.json:
        show("\nFor the figures, add --out DIR.")


def _write(
    options: argparse.Namespace, outcomes: "list[Outcome]", tables: dict[str, dict[str, dict[str, float]]]
) -> None:
    from multihorizon.cli.terminal import working
    from multihorizon.files import write_json
    from multihorizon.reports import theory_figures as figures
    from multihorizon.reports.figure_style import save

    out: Path = options.out
    by_name = {outcome.experiment.name: outcome for outcome in outcomes}
    with working(f"drawing the figures into {out} ..."):
        drawn = {
            "pathworld": figures.draw_pathworld(by_name["matching_prior"]),
            **{f"values_{name}": figures.draw_path_values(outcome) for name, outcome in by_name.items()},
            "effect_of_gamma_max": figures.draw_gamma_max(by_name["gamma_max"].experiment),
            "hyperbolic_against_exponential": figures.draw_hyperbolic_against_exponential(),
            "priors_and_discounts": figures.draw_priors_and_discounts(),
            "gamma_integral": figures.draw_gamma_integral(),
            "integral_forms": figures.draw_integral_forms(),
        }
        written = [save(figure, out / f"{name}.png") for name, figure in drawn.items()]
        written.append(write_json(out / "tables.json", tables))
    if not options.json:
        print(f"\nWritten to {out}:", *(f"  {path.name}" for path in written), sep="\n")
