"""Trains Rainbow in Seaquest with one change at a time, to find what separates it from Dopamine. Needs a GPU.

    python benchmarks/reference_study.py --only float32 acting-8000 --out results/reference

    python benchmarks/reference_study.py --draw --out results/reference

Each variant has three seeds and 8 million frames, which takes about six minutes on an H200 with 16 cores. A variant
whose run is finished is skipped. `--draw` needs no GPU: it only draws the curves of all variants, in curves.png, with
the range of Dopamine's seeds from results/atari/dopamine-rainbow.csv.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
from atari_curves import read_range
from matplotlib.figure import Figure

import multihorizon as mh
from multihorizon.errors import InputError
from multihorizon.files import writable_folder
from multihorizon.reports.figure_style import BLUE, GREEN, GREY, ORANGE, RED, canvas, save, styled
from multihorizon.runs.metrics import read_metrics
from multihorizon.training.host_collector import Group, HostCollector

VARIANTS: dict[str, dict[str, Any]] = {
    "float32": {"settings": {"compute_dtype": "float32"}},
    "bfloat16": {"settings": {"compute_dtype": "bfloat16"}},
    "environments-8": {"num_envs": 8},
    "environments-16": {"num_envs": 16},
    "environments-160": {"num_envs": 160},
    "acting-800": {"acting_period": 800},
    "acting-8000": {"acting_period": 8_000},
}


@contextmanager
def acting_period(steps: int | None) -> Iterator[None]:
    """Lets agents act with weights that are copied only every `steps` steps, as the target network's are."""
    if steps is None:
        yield
        return
    held: dict[str, Any] = {"until": -1, "weights": None}
    store = HostCollector._store

    def acting_weights(weights: Any, step: int) -> Any:
        if step >= held["until"]:
            held["until"], held["weights"] = step + steps, jax.tree.map(jnp.copy, weights)
        return held["weights"]

    def stored(self: HostCollector, state: Any, group: Group, moves: Any, step: int, interrupts: bool) -> Any:
        turns = {"turn": self.programs.turn, "warm_up_turn": self.programs.warm_up_turn}

        def with_held(turn: Any) -> Any:
            return lambda weights, *given: turn(acting_weights(weights, step), *given)

        with mock.patch.multiple(self.programs, **{name: with_held(turn) for name, turn in turns.items()}):
            return store(self, state, group, moves, step, interrupts)

    with mock.patch.object(HostCollector, "_store", stored):
        yield


COLOURS = (BLUE, ORANGE, GREEN, RED)


@styled
def draw(out: Path, game: str) -> Figure:
    """Draws the mean training returns of every variant, one line for each seed."""
    figure, (axes,) = canvas(8, 4.2, columns=1)
    dopamine = read_range(Path(__file__).parent.parent / "results/atari/dopamine-rainbow.csv")
    if game in dopamine:
        axes.fill_between(*dopamine[game], color=GREY, alpha=0.35, lw=0, label="Dopamine's Rainbow, five seeds")
    found = [name for name in VARIANTS if (out / name / "metrics.jsonl").exists()]
    for place, name in enumerate(found):
        rows = read_metrics(out / name)
        frames = [row["step"] * 4 / 1e6 for row in rows]
        colour, line = COLOURS[place % len(COLOURS)], "-" if place < len(COLOURS) else "--"
        for seed, returns in enumerate(zip(*(row["returns"] for row in rows), strict=True)):
            label = name.replace("-", " ") if seed == 0 else None
            axes.plot(frames, returns, color=colour, ls=line, lw=1.5, label=label)
    axes.set(title=f"Rainbow in {game}, three seeds each", xlabel="million frames", ylabel="mean training return")
    axes.set_xlim(left=0.8)
    axes.legend(fontsize=9)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), help="(default: all)")
    parser.add_argument("--game", default="Seaquest", help="Atari game (default: Seaquest)")
    parser.add_argument("--steps", type=int, default=2_000_000, help="agent steps of each seed (default: 2,000,000)")
    parser.add_argument("--evaluation-steps", type=int, default=5_000, help="per million frames (default: 5,000)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs, one for each variant")
    parser.add_argument("--draw", action="store_true", help="only draw the curves of the variants in the folder")
    options = parser.parse_args()
    if options.draw:
        save(draw(options.out, options.game), options.out / "curves.png")
        return
    if jax.default_backend() != "gpu":
        raise InputError("this benchmark needs a GPU, but JAX finds none")
    writable_folder(options.out)
    for name in options.only:
        chosen = VARIANTS[name]
        folder = options.out / name
        if (folder / "config.json").exists() and mh.load_run(folder).finished:
            print(f"{name}: finished before", flush=True)
            continue
        print(name, flush=True)
        with acting_period(chosen.get("acting_period")):
            mh.train(
                mh.agent("rainbow", **chosen.get("settings", {})),
                f"atari/{options.game}",
                steps=options.steps,
                training_steps=250_000,
                evaluation_steps=options.evaluation_steps,
                num_evaluation_envs=10,
                seeds=3,
                num_envs=chosen.get("num_envs"),
                checkpoint_replay=False,
                checkpoint_minutes=1_000,
                out=folder,
                watcher=mh.PrintedProgress(),
            )


if __name__ == "__main__":
    main()
