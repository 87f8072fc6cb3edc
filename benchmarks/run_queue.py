"""Trains the unfinished runs of four experiments, on a machine with a GPU that is available for a limited time.

    python benchmarks/run_queue.py results --list
    python benchmarks/run_queue.py results --minutes 27 --only atari

The folder on the command line contains one folder for each experiment. A run is done if its metrics are complete,
even if its weights were removed. Runs train in the order of the list. A run is skipped if its estimated time exceeds
the time left. Two queues can share a folder: for example one for Atari, which needs the CPU, and one for MinAtar.

Runs of `hazard-minatar` are evaluated under all priors right after training. Without --keep, the weights, events and
checkpoints of finished runs are removed.
"""

import argparse
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import hazard_in_games
import in_one_line  # noqa: F401
import jax

from multihorizon.errors import InputError
from multihorizon.experiments.catalogue import experiment
from multihorizon.experiments.estimates import seconds
from multihorizon.experiments.sweep import PlannedRun, State, Status, attempt, describe, plan
from multihorizon.files import writable_folder
from multihorizon.runs.folder import CHECKPOINTS, WEIGHTS, Busy
from multihorizon.runs.metrics import read_metrics

EXPERIMENTS = ("atari-short", "hazard-minatar", "heads-minatar", "seaquest-long")
NO_CHECKPOINTS = 10_000.0  # minutes between checkpoints; runs end before the first checkpoint


def is_done(one: PlannedRun) -> bool:
    rows = read_metrics(one.folder)
    return bool(rows) and int(rows[-1]["step"]) >= one.steps


def planned(folder: Path, words: list[str]) -> Iterator[tuple[str, PlannedRun]]:
    for name in EXPERIMENTS:
        for one in plan(experiment(name), folder / name, NO_CHECKPOINTS):
            text = f"{name} {one.run.environment} {one.run.label}"
            if all(word in text for word in words):
                yield name, one


def show(name: str, one: PlannedRun, said: str) -> None:
    print(f"{name}: {one.name}: {said}", flush=True)


def train(name: str, one: PlannedRun, keep: bool) -> bool:
    """Trains one run and returns whether it succeeded. A run of `hazard-minatar` is also evaluated under hazard."""
    begun = last = time.monotonic()

    def tell(status: Status) -> None:
        nonlocal last
        if time.monotonic() - last > 30:
            last = time.monotonic()
            show(name, one, f"{status.step:,} of {one.steps:,} steps, return {status.returns or 0:.4g}")

    status = attempt(one.configuration, one.folder, tell, lambda message: show(name, one, message))
    if status.state is State.FAILED:
        show(name, one, f"failed: {status.said}")
        return False
    if name == "hazard-minatar":
        hazard_in_games.evaluate(one.folder)
    if not keep:
        tidy(one.folder)
    show(name, one, f"done in {(time.monotonic() - begun) / 60:.1f} minutes")
    return True


def tidy(folder: Path) -> None:
    shutil.rmtree(folder / CHECKPOINTS, ignore_errors=True)
    shutil.rmtree(folder / "events", ignore_errors=True)
    for weights in folder.glob(f"{Path(WEIGHTS).stem}*"):
        weights.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="FOLDER", help="folder of the experiments")
    parser.add_argument(
        "--minutes", type=float, default=27.0, help="minutes for which the machine is available (default: 27)"
    )
    parser.add_argument(
        "--only",
        nargs="+",
        default=[],
        metavar="WORD",
        help="only runs whose name (experiment, game, agent) contains every WORD",
    )
    parser.add_argument("--list", action="store_true", help="print the runs and their estimated minutes, and stop")
    parser.add_argument("--keep", action="store_true", help="keep weights, events and checkpoints")
    options = parser.parse_args()
    writable_folder(options.folder)
    until = time.monotonic() + 60 * options.minutes
    runs = list(planned(options.folder, options.only))
    if not runs:
        raise InputError(f"no run has {' '.join(options.only)} in its name; --list without --only shows all runs")
    if options.list:
        for name, one in runs:
            show(name, one, "done" if is_done(one) else f"{seconds(one, 'gpu') / 60:.0f} minutes")
        left = [one for _, one in runs if not is_done(one)]
        hours = sum(seconds(one, "gpu") for one in left) / 3600
        print(
            f"{len(runs) - len(left)} of {len(runs)} runs are done; the rest takes about {hours:.1f} hours on an H200"
        )
        return
    if jax.default_backend() != "gpu":
        raise InputError("the queue needs a GPU, but JAX finds none; --list works without a GPU")
    for name in dict.fromkeys(name for name, _ in runs):
        describe(experiment(name), options.folder / name)
    for name, one in runs:
        if is_done(one):
            continue
        needed = seconds(one, "gpu")
        if time.monotonic() + needed > until:
            show(name, one, f"skipped: it takes about {needed / 60:.0f} minutes, which is more than the time left")
            continue
        try:
            train(name, one, options.keep)
        except Busy as problem:
            show(name, one, str(problem))


if __name__ == "__main__":
    main()
