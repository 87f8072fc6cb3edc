"""Trains Rainbow in Seaquest with one change at a time, to find why its returns differ from Dopamine's. Needs a GPU.

    python benchmarks/reference_study.py --only float32 acting-8000 --out results/reference

    python benchmarks/reference_study.py --draw --out results/reference

Each variant has three seeds (`exact` has two) and 8 million frames. One variant takes about six minutes on an H200 with
16 cores, and longer with few environments or without kernels. Finished variants are skipped. `--draw` only draws
curves.png, and needs no GPU.
"""

import argparse
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
from atari_curves import read_range
from matplotlib.figure import Figure

import multihorizon as mh
from multihorizon import kernels
from multihorizon.errors import InputError
from multihorizon.files import writable_folder
from multihorizon.reports.figure_style import BLUE, GREEN, GREY, ORANGE, RED, canvas, save, styled
from multihorizon.runs.metrics import read_metrics
from multihorizon.training import compiling
from multihorizon.training.host_collector import Group, HostCollector

# What each variant changes. `settings` contains settings of the agent, `train` arguments of `mh.train`, `collector`
# arguments of HostCollector, and `acting` arguments of `acting_period`. The flags `kernels` and `exact` change how the
# device computes.
VARIANTS: dict[str, dict[str, Any]] = {
    "float32": {"settings": {"compute_dtype": "float32"}},
    "bfloat16": {"settings": {"compute_dtype": "bfloat16"}},
    "environments-1": {"train": {"num_envs": 1}},
    "environments-8": {"train": {"num_envs": 8}},
    "environments-8-one-group": {"train": {"num_envs": 8}, "collector": {"groups": lambda environments: 1}},
    "environments-16": {"train": {"num_envs": 16}},
    "environments-160": {"train": {"num_envs": 160}},
    "acting-800": {"acting": (800, 0)},
    "acting-2000": {"acting": (2_000, 0)},
    "acting-8000": {"acting": (8_000, 0)},
    "acting-8000-late": {"acting": (8_000, 1_000_000)},
    "one-group": {"collector": {"groups": lambda environments: 1}},
    "no-restarts": {"collector": {"whole_every": 1_000}},
    "no-kernels": {"kernels": False},
    "exact": {"settings": {"compute_dtype": "float32"}, "kernels": False, "exact": True, "train": {"seeds": 2}},
}


SAID = {"environments": "{} environments", "acting": "acting weights renewed every {} steps"}


def describe(name: str) -> str:
    what, _, number = name.partition("-")
    if what not in SAID or not number.isdecimal():
        return name.replace("-", " ")
    return f"bfloat16, {SAID[what].format(f'{int(number):,}')}"


@contextmanager
def changed(variant: dict[str, Any]) -> Iterator[None]:
    """Applies the changes of a variant that are not settings."""
    with ExitStack() as stack:
        if "acting" in variant:
            stack.enter_context(acting_period(*variant["acting"]))
        if not variant.get("kernels", True):
            stack.enter_context(mock.patch.dict(os.environ, {kernels.SWITCH: "off"}))
        if variant.get("exact"):
            stack.enter_context(exact_products())
        if given := variant.get("collector"):
            made = HostCollector.__init__

            def make(self: HostCollector, *arguments: Any, **named: Any) -> None:
                made(self, *arguments, **named | given)

            stack.enter_context(mock.patch.object(HostCollector, "__init__", make))
        yield


@contextmanager
def exact_products() -> Iterator[None]:
    """Computes float32 products in float32 instead of TF32, and runs the commands of a CUDA graph one after another."""
    options = {**compiling.OPTIONS["gpu"], "xla_gpu_command_buffer_scheduling_mode": "SERIALIZE"}
    with mock.patch.dict(compiling.OPTIONS, {"gpu": options}), jax.default_matmul_precision("highest"):
        compiling.options_for.cache_clear()
        yield
    compiling.options_for.cache_clear()


@contextmanager
def acting_period(steps: int, begins: int) -> Iterator[None]:
    """Makes agents act by a copy of the weights. From step `begins` on, it is renewed only every `steps` steps."""
    held: dict[str, Any] = {"until": -1, "weights": None}
    store = HostCollector._store

    def acting_weights(weights: Any, step: int) -> Any:
        if step < begins:
            return weights
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


def runs_of(folder: Path) -> list[Path]:
    """Returns the folders of a variant's runs: the given folder, or its folders `seed-*`."""
    return [path.parent for path in sorted([*folder.glob("metrics.jsonl"), *folder.glob("seed-*/metrics.jsonl")])]


@styled
def draw(out: Path, game: str) -> Figure:
    figure, (axes,) = canvas(8, 4.2, columns=1)
    dopamine = read_range(Path(__file__).parent.parent / "results/atari/dopamine-rainbow.csv")
    if game in dopamine:
        axes.fill_between(*dopamine[game], color=GREY, alpha=0.35, lw=0, label="Dopamine's Rainbow, five seeds")
    found = [(name, runs) for name in VARIANTS if (runs := runs_of(out / name))]
    for place, (name, runs) in enumerate(found):
        colour, line = COLOURS[place % len(COLOURS)], "-" if place < len(COLOURS) else "--"
        label: str | None = describe(name)
        for run in runs:
            rows = read_metrics(run)
            frames = [row["step"] * 4 / 1e6 for row in rows]
            for returns in zip(*(row["returns"] for row in rows), strict=True):
                axes.plot(frames, returns, color=colour, ls=line, lw=1.5, label=label)
                label = None  # one entry in the legend for each variant
    axes.set(title=f"Rainbow in {game}, one line for each seed", xlabel="million frames", ylabel="mean training return")
    axes.set_xlim(left=0.8)
    axes.legend(fontsize=9)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), help="(default: all)")
    parser.add_argument("--game", default="Seaquest", help="Atari game (default: Seaquest)")
    parser.add_argument("--steps", type=int, default=2_000_000, help="agent steps of each seed (default: 2,000,000)")
    parser.add_argument(
        "--evaluation-steps", type=int, default=20_000, help="evaluation steps per million frames (default: 20,000)"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder for the runs of all variants")
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
            print(f"{name}: skipped, because its run is finished", flush=True)
            continue
        print(name, flush=True)
        given = {"seeds": 3} | chosen.get("train", {})
        with changed(chosen):
            mh.train(
                mh.agent("rainbow", **chosen.get("settings", {})),
                f"atari/{options.game}",
                steps=options.steps,
                training_steps=min(250_000, options.steps),
                evaluation_steps=options.evaluation_steps,
                num_evaluation_envs=20,
                checkpoint_replay=False,
                checkpoint_minutes=1_000,
                out=folder,
                watcher=mh.PrintedProgress(),
                **given,
            )


if __name__ == "__main__":
    main()
