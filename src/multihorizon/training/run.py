"""Trains agents and records what happens, an iteration at a time. A run that was stopped goes on where it was."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from multihorizon.agents.acting import acting_weights
from multihorizon.agents.presets import Agent
from multihorizon.errors import InputError
from multihorizon.files import writable_folder
from multihorizon.training.checkpoint import Checkpoints
from multihorizon.training.configuration import Configuration
from multihorizon.training.guard import Diverged
from multihorizon.training.iterations import Outcome, Report, Trainer
from multihorizon.training.records import CHECKPOINTS, LATEST, Records, read_metrics

Warn = Callable[[str], None]
DISCOUNT_TIMES = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)


def iterations(
    trainer: Trainer, seed: int, report: Report = lambda progress: None, state: Any = None, first: int = 0
) -> Iterator[tuple[Any, Outcome]]:
    """Training as an iterator of states and outcomes; a state is given up when the next is asked for."""
    least = trainer.agent.warm_up_steps
    asked = trainer.schedule.iterations * trainer.schedule.training_steps
    if asked <= least:
        raise InputError(f"the number of steps must be more than those of the warm-up, {least:,}, got {asked:,}")
    state = trainer.init(seed) if state is None else state
    for iteration in range(first, trainer.schedule.iterations):
        state, outcome = trainer.iterate(state, iteration, seed, report)
        yield state, outcome


def train(
    trainer: Trainer,
    seed: int,
    report: Report = lambda progress: None,
    finished: Callable[[Outcome], None] = lambda outcome: None,
) -> Any:
    """All iterations, without a record; the last state."""
    for state, outcome in iterations(trainer, seed, report):
        last = state
        finished(outcome)
    return last


def record(
    trainer: Trainer,
    configuration: Configuration,
    records: Records,
    report: Report,
    finished: Callable[[Outcome], None],
    warn: Warn,
) -> None:
    """All iterations that are left of a run in a folder, with its metrics, weights and checkpoints."""
    folder = records.folder
    records.refuse_if_finished()
    checkpoints = Checkpoints(writable_folder(folder / CHECKPOINTS), trainer.shape, configuration.checkpoint_replay)
    restored, first = checkpoints.restore(lambda: trainer.init(configuration.seed), warn)
    if first:
        warn(f"going on after iteration {first} of {trainer.schedule.iterations}")
    elif read_metrics(folder):
        warn(f"{folder} has no checkpoint yet, so that it begins anew; see --checkpoint-minutes")
    records.rewind(first)
    saved, checkpointed = time.monotonic(), first
    discount = acted_by(configuration.agent)
    try:
        for state, outcome in iterations(trainer, configuration.seed, report, restored, first):
            done = outcome.iteration + 1
            with _writing(folder):
                records.metrics(outcome.line() | {"discount": discount})
            finished(outcome)
            with _writing(folder):
                records.weights(state.learner.parameters, LATEST)
                if done % configuration.weights_every == 0:
                    records.weights(state.learner.parameters, f"-{done:06d}")
            due = time.monotonic() - saved >= 60 * configuration.checkpoint_minutes
            if due and done % trainer.whole_every == 0 and done < trainer.schedule.iterations:
                checkpoints.save(state, done)
                saved, checkpointed = time.monotonic(), done
            last = state
    except KeyboardInterrupt:
        raise KeyboardInterrupt(left_behind(folder, checkpointed, trainer.whole_every)) from None
    except Diverged as problem:
        kept = records.weights(problem.parameters, "-last-good")
        raise InputError(f"{problem}; the last good weights are in {kept}") from None
    with _writing(folder):
        records.weights(last.learner.parameters)
    records.tidy()


def left_behind(folder: Path, iterations: int, whole_every: int) -> str:
    if iterations:
        return f"multihorizon resume {folder} goes on after iteration {iterations}, the last that was checkpointed"
    when = f"here one can be written after every {whole_every} iterations; " if whole_every > 1 else ""
    return (
        f"no checkpoint was written yet, so multihorizon resume {folder} would begin anew "
        f"({when}--checkpoint-minutes 0 makes one after each iteration)"
    )


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """What goes wrong on the disk, and not in an environment, is said with what to do about it."""
    try:
        yield
    except OSError as problem:
        raise InputError(
            f"{problem.filename or folder} could not be written ({problem.strerror}), so training stopped; make room "
            f"and go on with: multihorizon resume {folder}"
        ) from problem


def acted_by(agent: Agent) -> dict[str, float]:
    """The discount that the agent's horizons really add up to, as it weighs them, at some times."""
    weights = acting_weights(agent.acting, agent.horizons)
    return {str(t): float(weights @ agent.horizons.gammas**t) for t in DISCOUNT_TIMES}
