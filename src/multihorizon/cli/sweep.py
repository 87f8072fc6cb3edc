"""multihorizon sweep: trains every unfinished run of an experiment."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multihorizon.cli import running
from multihorizon.errors import InputError

if TYPE_CHECKING:
    from multihorizon.experiments.experiment import Experiment
    from multihorizon.experiments.sweep import PlannedRun, Status

SUMMARY = "trains all unfinished runs of an experiment: multihorizon sweep minatar --out DIR"
DESCRIPTION = """\
Trains every unfinished run of an experiment, each from its last checkpoint. The seeds of a run train in parallel. You
can stop a sweep at any time, and resume it with the same command. DIR holds experiment.json, which describes the
experiment, and a folder for each run, in the format of `multihorizon train`.
"""
EPILOG = """\
experiments (--dry-run shows their runs, time and disk space):
  pathworld        the paper's Pathworld agents as networks, evaluated under hazard
  hazard           matched and mismatched beliefs about risk, in the foraging world
  minatar          a small version of the experiment 'ablation', in 3 MinAtar games; minutes on a GPU
  grids            three grids (the paper's, Gauss, minimax) in MinAtar and the foraging world
  hyper-vs-multi   Rainbow, Multi- and Hyper-Rainbow in 19 Atari games
  auxiliary        Rainbow and Multi-Rainbow in 60 Atari games
  ablation         C51, C51 + n-step, C51 + priority and Rainbow, each also as a Multi agent, in 10 Atari games
  priority         Rainbow, and Multi-Rainbow with priorities from all heads or the largest gamma, in 60 Atari games
  grids-atari      three grids (the paper's, Gauss, minimax) in 10 Atari games
  atari-short      Rainbow, Multi- and Hyper-Rainbow at 10 million frames in 10 Atari games
  seaquest-long    Rainbow, Multi- and Hyper-Rainbow at 100 million frames in Seaquest
  hazard-minatar   agents trained without hazard in MinAtar, to be evaluated under several priors
  heads-minatar    3 to 30 heads, three grids and two bounds on gamma in 2 MinAtar games
  FILE.py          your own experiment: a file that defines EXPERIMENT
"""
OWN = "EXPERIMENT"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument(
        "experiment", metavar="EXPERIMENT", help="name of an experiment, or your own FILE.py; see below"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the experiment (default: runs/EXPERIMENT)")
    parser.add_argument(
        "--dry-run", action="store_true", help="print the runs with estimated time and disk space, and train nothing"
    )
    parser.add_argument(
        "--only",
        metavar="WORD",
        action="append",
        default=[],
        help="train only runs of this agent or environment; may be repeated (default: all)",
    )
    parser.add_argument("--seeds", type=running.whole, help="number of seeds of each run (default: set by EXPERIMENT)")
    parser.add_argument("--steps", type=running.whole, help="training steps of each seed (default: set by EXPERIMENT)")
    parser.add_argument(
        "--checkpoint-minutes",
        type=float,
        default=10.0,
        metavar="M",
        help="minimum minutes between two checkpoints (default: 10)",
    )
    parser.add_argument("--device", metavar="cpu|gpu", help="device to compute on (default: a GPU if there is one)")
    parser.add_argument(
        "--ray",
        nargs="?",
        const="local",
        metavar="HOST:PORT",
        help="train on the Ray cluster at HOST:PORT; auto: on this machine's cluster; no value: on a new local cluster",
    )
    parser.add_argument("--gpu-share", type=float, metavar="S", help="on Ray: share of a GPU for each run (default: 1)")
    parser.add_argument("--cpus", type=running.whole, metavar="N", help="on Ray: CPU cores for each run (default: 1)")
    parser.add_argument("--json", action="store_true", help="print the runs and their final states as JSON")


def run(options: argparse.Namespace) -> None:
    for name in ("gpu_share", "cpus"):
        if getattr(options, name) is not None and options.ray is None:
            raise InputError(f"--{name.replace('_', '-')} needs --ray")
    if options.ray is None:
        running.use_device(options.device)
    from multihorizon.experiments.sweep import plan

    experiment = _experiment(options.experiment, options.seeds, options.steps)
    out = options.out or Path("runs") / experiment.name
    planned = plan(experiment, out, options.checkpoint_minutes)
    chosen = _chosen(planned, options.only)
    if options.dry_run:
        _show_estimates(chosen, options.json)
        return
    _go(options, experiment, out, chosen)


def _experiment(name: str, seeds: int | None, steps: int | None) -> "Experiment":
    from multihorizon.cli.choices import guarded
    from multihorizon.experiments import catalogue
    from multihorizon.experiments.experiment import Experiment

    if not name.endswith(".py"):
        return catalogue.experiment(name).scaled(seeds, steps)
    import runpy

    found = guarded(name, runpy.run_path, name).get(OWN)
    if not isinstance(found, Experiment):
        raise InputError(f"{name} must define {OWN} = multihorizon.experiments.experiment.Experiment(...)")
    scaled: Experiment = guarded(name, found.scaled, seeds, steps)
    guarded(name, scaled.description)  # raises an error for invalid settings
    return scaled


def _chosen(planned: "list[PlannedRun]", words: list[str]) -> "list[PlannedRun]":
    from multihorizon.errors import one_of

    environments = {one.run.environment for one in planned}
    for word in words:
        one_of("agent or environment", word, [*dict.fromkeys(one.run.label for one in planned), *sorted(environments)])
    places = environments & set(words)
    labels = set(words) - environments
    return [
        one
        for one in planned
        if (not places or one.run.environment in places) and (not labels or one.run.label in labels)
    ]


def _go(options: argparse.Namespace, experiment: "Experiment", out: Path, chosen: "list[PlannedRun]") -> None:
    from multihorizon import api
    from multihorizon.cli.sweep_table import board
    from multihorizon.cli.terminal import counted, note, show, show_json, while_training

    way: Any = None
    if options.ray is not None:
        from multihorizon.experiments.ray_cluster import cluster

        way = cluster(options.ray, options.device, options.gpu_share, options.cpus)
    left = [one for one in chosen if not one.finished]
    if not options.json:
        show(f"{experiment.name} in {out}: {counted(len(chosen), 'run')}, {len(left)} unfinished")
    folders = {one.run.folder for one in chosen}
    with board(chosen) as tell:
        done = api.sweep(
            experiment,
            out,
            only=lambda one: one.run.folder in folders,
            train_all=way,
            checkpoint_minutes=options.checkpoint_minutes,
            tell=tell,
            warn=while_training(note),
        )
    statuses, failed = done.statuses, done.failed
    if options.json:
        show_json({"folder": str(out), "runs": [_ended(one, statuses[one.run.folder]) for one in chosen]})
    if failed:
        said = statuses[failed[0].run.folder].said
        raise InputError(f"{len(failed)} of {counted(len(chosen), 'run')} failed; {failed[0].name}: {said}")
    if not options.json:
        all_of_them = "The run is" if len(chosen) == 1 else f"All {len(chosen)} runs are"
        show(f"{all_of_them} finished; see the results with: multihorizon report {out}")


def _ended(one: "PlannedRun", status: "Status") -> dict[str, Any]:
    run = {"label": one.run.label, "environment": one.run.environment, "folder": str(one.folder)}
    return run | {"state": status.state.value, "said": status.said}


def _show_estimates(chosen: "list[PlannedRun]", as_json: bool) -> None:
    import jax

    from multihorizon.cli.terminal import counted, duration, show, show_json, table
    from multihorizon.experiments.estimates import Sizes, estimate

    device, sizes = jax.default_backend(), Sizes()
    estimates = [estimate(one, device, sizes) for one in chosen]
    if as_json:
        listed = [_ended(one, one.status()) | vars(e) for one, e in zip(chosen, estimates, strict=True)]
        show_json({"device": device, "runs": listed})
        return
    rows = [
        [
            one.run.environment,
            one.run.label,
            f"{one.configuration.seeds} × {one.steps:,}",
            "done" if one.finished else duration(e.seconds),
            _size(e.kept_bytes + e.working_bytes),
        ]
        for one, e in zip(chosen, estimates, strict=True)
    ]
    columns = ["environment", "agent", "seeds × steps", "time left", "disk"]
    whole = sum(e.seconds for e in estimates)
    kept = sum(e.kept_bytes for e in estimates)
    working = max((e.working_bytes for e in estimates), default=0)
    show(
        table(counted(len(chosen), "run"), columns, rows),
        f"One after another, the runs take about {duration(whole)} on this machine's {device}. Times are scaled from "
        f"measured rates. Weights need {_size(kept)}. While a run trains, its checkpoints need up to {_size(working)}.",
    )


def _size(count: float) -> str:
    return f"{count / 1e9:,.1f} GB" if count >= 1e9 else f"{count / 1e6:.1f} MB"
