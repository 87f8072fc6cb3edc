"""What the commands on runs share: their options, and for `train` and `resume` a run in its folder as it goes."""

import argparse
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from multihorizon.errors import InputError, one_of

if TYPE_CHECKING:
    from multihorizon.training.configuration import Configuration
    from multihorizon.training.iterations import Outcome


def add_arguments(parser: argparse.ArgumentParser, json: str = "the last iteration's metrics and the folder") -> None:
    parser.add_argument("--device", metavar="cpu|gpu", help="where to compute (the fastest that there is)")
    parser.add_argument("--json", action="store_true", help=json)


def whole(text: str) -> int:
    """A whole number, also as 1e6."""
    try:
        return int(text)
    except ValueError:
        with suppress(ValueError, OverflowError):
            if float(text) == int(float(text)):
                return int(float(text))
    raise argparse.ArgumentTypeError(f"'{text}' is no whole number, such as 1000000 or 1e6")


def use_device(name: str | None) -> None:
    """Before anything is computed."""
    if name is None:
        return
    import jax

    one_of("device", name, ["cpu", "gpu"])
    if name == "cpu":
        jax.config.update("jax_platforms", "cpu")
        return
    try:
        jax.config.update("jax_default_device", jax.devices("gpu")[0])
    except RuntimeError:
        found = ", ".join(sorted({device.platform for device in jax.devices()}))
        raise InputError(
            f"there is no GPU that JAX can use, only: {found}; install jax[cuda12] or jax[cuda13], or use --device cpu"
        ) from None


def go(configuration: "Configuration", folder: Path, as_json: bool) -> None:
    from multihorizon.cli.progress import training_progress
    from multihorizon.cli.terminal import counted, note, show, show_json
    from multihorizon.training import memory
    from multihorizon.training.configuration import device_name
    from multihorizon.training.records import Records
    from multihorizon.training.run import record
    from multihorizon.training.worlds import trainer_of, world

    trainer = trainer_of(configuration)
    said = memory.check(trainer)
    name, seeds = configuration.agent.name, configuration.seeds
    steps = configuration.schedule.iterations * trainer.cycles * trainer.pace.steps
    last: list[Outcome] = []
    frames = world(configuration.environment).frames_per_step
    with (
        closing(Records(folder, configuration)) as records,
        training_progress(name, steps, frames) as (report, finished),
    ):
        records.refuse_if_finished()
        if not as_json:
            many = f"{counted(seeds, 'seed')} of {steps:,} steps"
            show(f"{name} in {configuration.environment}, {many}, on {device_name()}; {said}")
            kernels = ", ".join(trainer.learner.kernels) or "none"
            count = counted(configuration.environments, "environment")
            show(f"{configuration.agent.compute_dtype}, {count} per seed, GPU kernels: {kernels}")

        def keep(outcome: "Outcome") -> None:
            last[:] = [outcome]
            finished(outcome)

        record(trainer, configuration, records, report, keep, note)
    if as_json:
        show_json({"folder": str(folder), "last": last[0].line()})
    else:
        show(f"Written to {folder}: config.json, metrics.jsonl, events, weights.npz")
