"""Watchers show the progress of a run."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from multihorizon.errors import InputError, show_controls, shown
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.loggers import Logger
from multihorizon.training.trainer import IterationMetrics, Report


class Hooks(NamedTuple):
    """Functions that a run calls while it trains.

    Attributes:
        report: Receives the progress within an iteration, about once a second.
        finished: Receives the metrics of every iteration.
        warn: Receives warnings.
    """

    report: Report
    finished: Callable[[IterationMetrics], None]
    warn: Callable[[str], None]


@runtime_checkable
class Watcher(Protocol):
    """Shows the progress of runs. Any class with the method `watch` is a watcher."""

    def watch(
        self, trainer: Any, configuration: Configuration, frames_per_step: int, where: str
    ) -> AbstractContextManager[Hooks]:
        """Opens the display of one run.

        Args:
            trainer: The trainer of the run.
            configuration: The configuration of the run.
            frames_per_step: The number of frames that the environment plays for each agent step.
            where: A description of the device and of the memory that the run needs.

        Returns:
            A context manager that yields the hooks of the run, and closes the display on exit.
        """
        ...


@dataclass(frozen=True)
class NoProgress:
    """Prints warnings to stderr and nothing else."""

    @contextmanager
    def watch(self, trainer: Any, configuration: Configuration, frames_per_step: int, where: str) -> Iterator[Hooks]:
        del trainer, configuration, frames_per_step, where
        yield NO_HOOKS


@dataclass(frozen=True)
class PrintedProgress:
    """Prints one line for each iteration. Warnings go to stderr."""

    @contextmanager
    def watch(self, trainer: Any, configuration: Configuration, frames_per_step: int, where: str) -> Iterator[Hooks]:
        del frames_per_step
        agent, steps = configuration.agent.name, configuration.schedule.iterations * trainer.iteration_steps
        print(show_controls(f"{agent} in {configuration.environment}, {where}; compiling ..."), flush=True)

        def finished(outcome: IterationMetrics) -> None:
            known = [r for r in outcome.evaluation_returns + outcome.returns if r is not None]
            earned = f"return {known[0]:.4g}" if known else "no episode ended"
            print(f"step {outcome.step:,} of {steps:,}: {earned}, {outcome.seconds:.1f} s", flush=True)

        yield Hooks(lambda progress: None, finished, warn)


def warn(message: str) -> None:
    """Prints a warning to stderr."""
    print(f"multihorizon: {show_controls(message)}", file=sys.stderr)


NO_HOOKS = Hooks(lambda progress: None, lambda metrics: None, warn)


def check_hooks(callback: Any, loggers: Any, watcher: Any) -> None:
    """Raises an error if the callback, a logger or the watcher is invalid."""
    if callback is not None and not callable(callback):
        raise InputError(f"callback must be a function of an iteration's metrics, got {shown(callback)}")
    if loggers is not None and not isinstance(loggers, Sequence):
        raise InputError(f"loggers must be a list, as in loggers=[mh.loggers.Csv()], got {shown(loggers)}")
    for logger in loggers or ():
        if isinstance(logger, type) or not isinstance(logger, Logger):
            raise InputError(f"a logger must have the methods begin, log and close, got {shown(logger)}")
    if isinstance(watcher, type) or not isinstance(watcher, Watcher):
        raise InputError(f"watcher must have the method watch, like mh.PrintedProgress(), got {shown(watcher)}")
