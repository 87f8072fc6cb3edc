"""Compares naive, precommitted and sophisticated agents with their exact solutions in four dilemmas.

    python benchmarks/consistency.py --out results/consistency

Trains each agent in each world, and compares head values, choices and rewards with the results of the exact solver. A
fifth world has no equilibrium. In this world, the sophisticated agent's choices are recorded during training.
"""

import argparse
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import numpy as np
from matplotlib.figure import Figure

from multihorizon.agents.acting import Consistency
from multihorizon.envs.dilemmas import DILEMMAS, OVER, Dilemma
from multihorizon.errors import InputError, at_least
from multihorizon.experiments.consistency import (
    HORIZONS,
    LONGEST,
    SEEDS,
    STEPS,
    Outcome,
    agent_for,
    error_on_path,
    exact,
    learn,
    same_way,
    snapshots,
)
from multihorizon.files import writable_folder, write_json
from multihorizon.reports.figure_style import BLACK, BLUE, ORANGE, canvas, save, styled

# If no later self does the chore, doing the chore now is best. If a later self does the chore, waiting is best. No
# pure policy is therefore an equilibrium.
CYCLE = Dilemma(
    "cycle", "A chore that can be put off for ever.", ("do", "wait"), (((-0.8, 1), (0, 0)), ((1.8, OVER),)), 60
)
SNAPSHOTS = 40


def summary(truth: Outcome, found: list[Outcome]) -> dict[str, Any]:
    return {
        "exact": numbers(truth) | {"waits_for_ever": len(truth.path) == LONGEST},
        "seeds": [
            numbers(one) | {"same_way": same_way(one, truth), "value_error": error_on_path(one, truth)} for one in found
        ],
    }


def numbers(one: Outcome) -> dict[str, Any]:
    return {
        "believed": one.believed,
        "earned": one.earned,
        "undiscounted": one.undiscounted,
        "steps": len(one.path),
    }


def line(world: str, rule: str, row: dict[str, Any]) -> str:
    truth, seeds = row["exact"], row["seeds"]
    mean = {name: float(np.mean([seed[name] for seed in seeds])) for name in ("believed", "earned", "undiscounted")}
    same, error = sum(seed["same_way"] for seed in seeds), max(seed["value_error"] for seed in seeds)
    cells = [f"{truth[name]:.3f} / {mean[name]:.3f}" for name in mean]
    return f"| {world} | {rule} | {' | '.join(cells)} | {same} of {len(seeds)} | {error:.1%} |"


def without_equilibrium(seeds: int, steps: int) -> dict[str, Any]:
    """Returns the sophisticated agent's choices and values during training in the world without an equilibrium."""
    rule = Consistency.SOPHISTICATED
    try:
        exact(CYCLE, rule)
        raise SystemExit("the solver found an equilibrium in the world that should have none")
    except InputError as refused:
        words = str(refused)
    taken, values = [], []
    for found in snapshots(CYCLE, agent_for(rule), seeds, steps, SNAPSHOTS):
        taken.append([int(one.actions[0]) for one in found])
        values.append([(HORIZONS.weights @ one.values[:, 0]).tolist() for one in found])
    half = np.array(taken)[SNAPSHOTS // 2 :]  # the second half of training
    return {
        "solver": words,
        "does_it": float(np.mean(half == 0)),
        "changes_of_mind": float(np.mean(half[1:] != half[:-1])),
        "values_do_and_wait": np.array(values)[SNAPSHOTS // 2 :].mean(axis=(0, 1)).tolist(),
        "value_of_doing": float(-0.8 + 1.8 * HORIZONS.discount(1.0)),
        "actions": taken,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--steps", type=int, default=STEPS, help=f"training steps of each seed (default: {STEPS:,})")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    at_least("--seeds", options.seeds, 1)
    writable_folder(options.out)
    found: dict[str, Any] = {
        "gammas": HORIZONS.gammas.tolist(),
        "weights": HORIZONS.weights.tolist(),
        "steps": options.steps,
        "worlds": {},
    }
    print("| World | Agent | Believed | Earned, discounted | Undiscounted | Same choices | Value error |", flush=True)
    for world, dilemma in DILEMMAS.items():
        rows = found["worlds"][world] = {}
        for rule in Consistency:
            row = summary(exact(dilemma, rule), learn(dilemma, agent_for(rule), options.seeds, options.steps))
            rows[rule.name.lower()] = row
            print(line(world, rule.name.lower(), row), flush=True)
            write_json(options.out / "consistency.json", found)
    found["without_equilibrium"] = without_equilibrium(options.seeds, options.steps)
    print({name: value for name, value in found["without_equilibrium"].items() if name != "actions"})
    write_json(options.out / "consistency.json", found)
    save(draw(found["worlds"]), options.out / "consistency.png")


@styled
def draw(worlds: dict[str, Any]) -> Figure:
    figure, panels = canvas(11, 3.4, columns=len(worlds))
    for axes, (world, rules) in zip(panels, worlds.items(), strict=True):
        for place, row in enumerate(rules.values()):
            for shift, name, colour in ((-0.17, "believed", ORANGE), (0.17, "earned", BLUE)):
                seeds = np.array([seed[name] for seed in row["seeds"]])
                spread = np.linspace(-0.09, 0.09, len(seeds))
                axes.plot(
                    place + shift + spread, seeds, "o", color=colour, ms=4, alpha=0.7, label=f"{name}, one dot per seed"
                )
                left, right = place + shift - 0.15, place + shift + 0.15
                axes.plot([left, right], [row["exact"][name]] * 2, color=BLACK, lw=1.5, label="exact")
        low, high = axes.get_ylim()
        low, high = min(low, 0), max(high, 0)  # the axis includes 0
        axes.set_ylim(low - 0.04 * (high - low), high + 0.04 * (high - low))
        axes.set_title(world)
        axes.set_xticks(range(len(rules)), list(rules), rotation=20, fontsize=9, ha="right")
        axes.grid(visible=False, axis="x")
    panels[0].set_ylabel("value of the start state,\ndiscount 1 / (1 + t)")
    handles, labels = panels[0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    figure.legend(unique.values(), unique.keys(), loc="outside lower center", ncols=3)
    return figure


if __name__ == "__main__":
    main()
