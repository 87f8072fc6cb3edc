"""multihorizon foraging: trains two agents to forage."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from multihorizon.cli.running import whole

if TYPE_CHECKING:
    from multihorizon.envs.foraging import Foraging

SUMMARY = "trains Rainbow and Hyper-Rainbow to forage, and shows their choices and returns under hazard"
DESCRIPTION = """\
From each of six starts, an agent can walk to a near, small meal or to a far, large meal, under an unknown risk.
Each agent learns without hazard, with three seeds in parallel. The result is its undiscounted return under hazard.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--steps", type=whole, default=14_000, help="agent steps of each seed (default: 14,000)")
    parser.add_argument("--seed", type=whole, default=0, help="first of the three seeds (default: 0)")
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder for foraging.json")
    parser.add_argument("--json", action="store_true", help="print each agent's meals and earnings by seed as JSON")


def run(options: argparse.Namespace) -> None:
    from multihorizon.api import forage
    from multihorizon.cli.progress import training_progress
    from multihorizon.cli.terminal import show, show_json, table
    from multihorizon.envs.foraging import Foraging

    report = forage(steps=options.steps, seed=options.seed, out=options.out, progress=training_progress)
    found, best = report.foragers, report.best
    if options.json:
        show_json(report.table())
        return
    rows = [
        [start, *(" ".join(str(m) for m in f.meals[:, i]) for f in found), str(best.meals[i])]
        for i, start in enumerate(_starts(Foraging()))
    ]
    rows.append(["", *("" for _ in found), ""])
    earned = [f"{f.earned.mean():.3f} ± {f.standard_error:.3f}" for f in found]
    rows.append(["earned, mean", *earned, f"{best.earned:.3f}"])
    columns = ["start: meals (distance)", *(f.agent for f in found), "best"]
    show(table("the meal that each of three seeds walks to", columns, rows, look_at=len(rows) - 1))


def _starts(field: "Foraging") -> list[str]:
    """Describes each start by the two meals in its row, and the number of steps to each meal."""
    from multihorizon.cli.terminal import counted

    width = field.shape[1]
    described = []
    for start in field.starts:
        left, right = field.rows[start // width].strip("#").split("S")
        meals = ((left[0], len(left)), (right[-1], len(right)))
        described.append(", ".join(f"{meal} ({counted(steps, 'step')})" for meal, steps in meals))
    return described
