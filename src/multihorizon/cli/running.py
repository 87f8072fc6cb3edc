"""Options that several commands share, and the progress of training on the terminal."""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from multihorizon.errors import InputError, one_of, shown

if TYPE_CHECKING:
    from multihorizon.runs.configuration import Configuration
    from multihorizon.runs.progress import Hooks
    from multihorizon.runs.run import Run
    from multihorizon.training.trainer import IterationMetrics


def add_arguments(parser: argparse.ArgumentParser, json: str = "print the last metrics and the folder as JSON") -> None:
    parser.add_argument("--device", metavar="cpu|gpu", help="device to compute on (default: a GPU if there is one)")
    parser.add_argument("--json", action="store_true", help=json)


def add_trust(parser: argparse.ArgumentParser) -> None:
    words = "allow RUN to import the Python module of its environment, as in gym/MODULE:ID (default: refuse)"
    parser.add_argument("--trust", action="store_true", help=words)


def whole(text: str) -> int:
    """Parses a whole number. It may have an exponent, as in 1e6."""
    try:
        return int(text)
    except ValueError:
        with suppress(ValueError, OverflowError):
            if float(text) == int(float(text)):
                return int(float(text))
    raise argparse.ArgumentTypeError(f"{shown(text)} is not a whole number such as 1000000 or 1e6")


def use_device(name: str | None) -> None:
    """Selects the device. Call it before any computation."""
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
            f"there is no GPU that JAX can use, only {found}; install jax[cuda12] or jax[cuda13], or use --device cpu"
        ) from None


@dataclass
class Terminal:
    """Shows the progress of a run on the terminal. Implements `multihorizon.runs.progress.Watcher`."""

    as_json: bool
    last: "IterationMetrics | None" = None

    @contextmanager
    def watch(
        self, trainer: Any, configuration: "Configuration", frames_per_step: int, where: str
    ) -> "Iterator[Hooks]":
        from multihorizon.cli.progress import training_progress
        from multihorizon.cli.terminal import counted, show, while_training
        from multihorizon.runs.progress import Hooks

        name, steps = configuration.agent.name, configuration.schedule.iterations * trainer.iteration_steps
        with training_progress(name, steps, frames_per_step) as shown:
            if not self.as_json:
                many = f"{counted(configuration.seeds, 'seed')} of {steps:,} steps"
                tell = while_training(show)
                tell(f"{name} in {configuration.environment}, {many}, {where}")
                kernels = ", ".join(trainer.learner.kernels) or "none"
                count = counted(configuration.environments, "environment")
                tell(f"{configuration.agent.compute_dtype}, {count} per seed, GPU kernels: {kernels}; compiling ...")

            def keep(outcome: "IterationMetrics") -> None:
                self.last = outcome
                shown.finished(outcome)

            yield Hooks(shown.report, keep, shown.warn)

    def show_end(self, run: "Run") -> None:
        from multihorizon.cli.terminal import show, show_json

        if self.as_json:
            show_json({"folder": str(run.folder), "last": self.last.line() if self.last else None})
        else:
            show(f"Written to {run.folder}: config.json, metrics.jsonl, events, weights.npz")
