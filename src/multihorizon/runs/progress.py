"""Watchers: who sees how far a run is."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, runtime_checkable

from multihorizon.runs.configuration import Configuration
from multihorizon.training.trainer import IterationMetrics, Report


class Hooks(NamedTuple):
    """What a run calls while it trains."""

    report: Report  # about once a second
    finished: Callable[[IterationMetrics], None]  # after every iteration
    warn: Callable[[str], None]


@runtime_checkable
class Watcher(Protocol):
    """Watches one run after another."""

    def watch(
        self, trainer: Any, configuration: Configuration, frames_per_step: int, where: str
    ) -> AbstractContextManager[Hooks]: ...


@dataclass(frozen=True)
class NoProgress:
    """Shows warnings alone, on stderr."""

    @contextmanager
    def watch(self, trainer: Any, configuration: Configuration, frames_per_step: int, where: str) -> Iterator[Hooks]:
        del trainer, configuration, frames_per_step, where
        yield NO_HOOKS


@dataclass(frozen=True)
class PrintedProgress:
    """Prints a line for each iteration."""

    @contextmanager
    def watch(self, trainer: Any, configuration: Configuration, frames_per_step: int, where: str) -> Iterator[Hooks]:
        del frames_per_step
        agent, steps = configuration.agent.name, configuration.schedule.iterations * trainer.iteration_steps
        print(f"{agent} in {configuration.environment}, {where}; compiling ...", flush=True)

        def finished(outcome: IterationMetrics) -> None:
            known = [r for r in outcome.evaluation_returns + outcome.returns if r is not None]
            earned = f"{known[0]:.4g}" if known else "no episode ended"
            print(f"step {outcome.step:,} of {steps:,}: return {earned}, {outcome.seconds:.1f} s", flush=True)

        yield Hooks(lambda progress: None, finished, warn)


def warn(message: str) -> None:
    print(f"multihorizon: {message}", file=sys.stderr)


NO_HOOKS = Hooks(lambda progress: None, lambda metrics: None, warn)
