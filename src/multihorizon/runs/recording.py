"""Trains an agent and writes its metrics, weights and checkpoints."""

import shlex
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from multihorizon import interrupts
from multihorizon.agents.acting import acting_weights
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.networks import OwnNetwork
from multihorizon.errors import InputError
from multihorizon.files import WriteError, read_json, writable_folder, write_error
from multihorizon.runs.checkpoint import Checkpoints
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.folder import (
    CHECKPOINTS,
    CONFIGURATION,
    LAST_GOOD,
    LATEST,
    RUN,
    fixed_settings,
    identity_checksum,
    inside,
)
from multihorizon.runs.metrics import Warn, read_metrics, rows_of
from multihorizon.runs.records import Records
from multihorizon.runs.weights import belonging
from multihorizon.training.guard import DivergenceError, good_copy
from multihorizon.training.trainer import IterationMetrics, Report, Trainer
from multihorizon.training.worlds import OWN

Callback = Callable[[list[dict[str, Any]]], bool | None]
"""Receives the metrics of an iteration, one row for each seed. Training stops if the callback returns False."""
DISCOUNT_TIMES = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)


class CallbackError(InputError):
    """Raised if the user's callback raises an exception."""


def iterations(
    trainer: Trainer, seed: int, report: Report = lambda progress: None, state: Any = None, first: int = 0
) -> Iterator[tuple[Any, IterationMetrics]]:
    """Yields the state and the metrics after each iteration. The next iteration invalidates the state."""
    least = trainer.agent.warm_up_steps
    asked = trainer.schedule.iterations * trainer.schedule.training_steps
    if asked <= least:
        raise InputError(f"the number of steps must be more than the {least:,} steps of the warm-up, got {asked:,}")
    state = trainer.init(seed) if state is None else state
    for iteration in range(first, trainer.schedule.iterations):
        state, outcome = trainer.iterate(state, iteration, seed, report)
        yield state, outcome


def train(
    trainer: Trainer,
    seed: int,
    report: Report = lambda progress: None,
    finished: Callable[[IterationMetrics], None] = lambda outcome: None,
) -> Any:
    """Runs all iterations without writing to disk, and returns the last state."""
    for state, outcome in iterations(trainer, seed, report):
        last = state
        finished(outcome)
    return last


@interrupts.handled()
@interrupts.deferred()
def record(
    trainer: Trainer,
    configuration: Configuration,
    records: Records,
    report: Report,
    finished: Callable[[IterationMetrics], None],
    warn: Warn,
    callback: Callback | None = None,
) -> bool:
    """Trains the remaining iterations of a run, and writes its metrics, weights and checkpoints.

    An interrupt stops training early, and may save a checkpoint of the last complete iteration.

    Returns:
        Whether the run is finished; False if the callback stopped the run early.
    """
    folder = records.folder
    records.refuse_if_finished()
    trainer.guard.warn = warn
    checkpoints = Checkpoints(
        writable_folder(inside(folder, CHECKPOINTS)),
        trainer.shape,
        configuration.checkpoint_replay,
        fixed_settings(read_json(folder / CONFIGURATION)),
    )
    restored, first = _restore(checkpoints, trainer, records, warn)
    run = identity_checksum(folder)  # after `_restore`, which may store a new configuration
    saved, checkpointed = time.monotonic(), first
    discount = acted_by(configuration.agent)
    # The state after `done` iterations, for a checkpoint. The state has no replay buffer in two cases: while the
    # next iteration changes the buffer in place, and while episodes on the host are unfinished.
    last: Any = restored if first == trainer.schedule.iterations else None
    done = first
    try:
        for state, outcome in iterations(trainer, configuration.seed, report, restored, first):
            done = outcome.iteration + 1
            last = state if done % trainer.whole_every == 0 else good_copy(state._replace(replay=None))
            line = outcome.line() | {"discount": discount} | ({} if run is None else {RUN: run})
            with _writing(folder, configuration):
                records.metrics(line)
            finished(outcome)
            with _writing(folder, configuration):
                _write_weights(records, belonging(state.learner.parameters, run), done)
            due = time.monotonic() - saved >= 60 * configuration.checkpoint_minutes
            if due and done % trainer.whole_every == 0 and done < trainer.schedule.iterations:
                checkpoints.save(state, done)
                saved, checkpointed = time.monotonic(), done
            if callback is not None and _stops(callback, line, configuration.seed, folder):
                break
            interrupts.check()  # an interrupt at this point can still save the replay buffer
            last = good_copy(state._replace(replay=None))
        finishes = done == trainer.schedule.iterations
        if finishes:
            with _writing(folder, configuration):
                checkpoints.save(last._replace(replay=None), done)  # an extended run refills its replay buffer
                records.weights(belonging(last.learner.parameters, run))
        elif _is_worth_saving(last, done, checkpointed):
            checkpoints.save(last, done)
    except KeyboardInterrupt:
        if last is not None and (_is_worth_saving(last, done, checkpointed) or done == trainer.schedule.iterations):
            checkpoints.save(last, done)
            checkpointed = done
        raise KeyboardInterrupt(where_to_resume(folder, checkpointed, configuration)) from None
    except CallbackError:
        if _is_worth_saving(last, done, checkpointed):
            checkpoints.save(last, done)
        raise
    except DivergenceError as problem:
        kept = records.weights(belonging(problem.parameters, run), LAST_GOOD)
        raise InputError(f"{problem}; the last good weights are in {kept}") from None
    if finishes:
        records.tidy()
    return finishes


def _restore(checkpoints: Checkpoints, trainer: Trainer, records: Records, warn: Warn) -> tuple[Any, int]:
    """Returns the state to resume from and the number of completed iterations. Prepares `records` for writing."""
    folder, configuration = records.folder, records.configuration
    restored, first = checkpoints.restore(lambda: trainer.init(configuration.seed), warn)
    if first > trainer.schedule.iterations:
        raise InputError(
            f"{folder} has a checkpoint after iteration {first}, but its {CONFIGURATION} says that the run has "
            f"{trainer.schedule.iterations} iterations"
        )
    if first:
        warn(f"resuming after iteration {first} of {trainer.schedule.iterations}")
    elif read_metrics(folder):
        warn(f"{folder} has no checkpoint yet, so training starts from the beginning")
    with _writing(folder, configuration):
        records.rewind(first, warn)
        records.begin()
    return restored, first


def _write_weights(records: Records, parameters: Any, done: int) -> None:
    """Writes the latest weights, and a permanent copy every `weights_every` iterations."""
    records.weights(parameters, LATEST)
    if done % records.configuration.weights_every == 0:
        records.weights(parameters, f"-{done:06d}")


def _is_worth_saving(state: Any, done: int, checkpointed: int) -> bool:
    """Returns whether to save a state. A state without a replay buffer is saved only if there is no checkpoint yet."""
    return done != checkpointed and (state.replay is not None or not checkpointed)


def _stops(callback: Callback, line: dict[str, Any], seed: int, folder: Path) -> bool:
    try:
        return callback(rows_of(line, seed)) is False
    except Exception as problem:  # user code may raise anything
        raise CallbackError(
            f"the callback raised {type(problem).__name__}: {problem}; the run so far is in {folder}"
        ) from problem


def how_to_resume(folder: Path, configuration: Configuration) -> str:
    """Returns the command that resumes a run, or Python code if the run has user-defined parts."""
    own = {"env": configuration.environment.startswith(OWN), "network": isinstance(configuration.torso, OwnNetwork)}
    if any(own.values()):
        given = ", ".join(f"{name}=..." for name, is_own in own.items() if is_own)
        return f"mh.load_run({str(folder)!r}, {given}).resume()"
    return f"multihorizon resume {shlex.quote(str(folder))}"


def where_to_resume(folder: Path, iterations: int, configuration: Configuration) -> str:
    """Returns how to resume an interrupted run, and where it continues."""
    how = how_to_resume(folder, configuration)
    if iterations:
        return f"{how} continues after iteration {iterations}"
    return f"no iteration was finished, so {how} starts from the beginning"


@contextmanager
def _writing(folder: Path, configuration: Configuration) -> Iterator[None]:
    """Adds advice to a write error. Wraps only code that writes files: environments may also raise `OSError`."""
    try:
        yield
    except (OSError, WriteError) as problem:
        said = problem if isinstance(problem, WriteError) else write_error(problem.filename or folder, problem)
        raise InputError(f"training stopped: {said} and run: {how_to_resume(folder, configuration)}") from problem


def acted_by(agent: AgentConfig) -> dict[str, float]:
    """Returns the discount Σ wᵢ γᵢ^t that the agent acts by, at `DISCOUNT_TIMES`."""
    weights = acting_weights(agent.acting, agent.horizons)
    return {str(t): float(weights @ agent.horizons.gammas**t) for t in DISCOUNT_TIMES}
