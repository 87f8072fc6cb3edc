"""Trains an agent, and writes metrics and weights after each iteration, and checkpoints to resume from."""

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
"""Receives the metrics of an iteration, one row for each seed. Training stops if it returns False."""
DISCOUNT_TIMES = (1, 2, 3, 5, 10, 20, 30, 50, 100, 200, 300, 500, 1000)


class CallbackError(InputError):
    """The user's callback raised an exception."""


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

    An interrupt stops training after the current step of the environments on the host, or after the current program on
    the device. A checkpoint of the last complete iteration is then written if the replay buffer is still as it was at
    the end of that iteration, if there is no checkpoint yet, or if all iterations are complete.

    Args:
        trainer: The trainer.
        configuration: The configuration of the run.
        records: The open folder of the run.
        report: Receives the progress within an iteration.
        finished: Receives the metrics of every iteration.
        warn: Receives warnings.
        callback: Receives the metrics of every iteration as rows, and stops training if it returns False.

    Returns:
        Whether the run is finished; False if the callback stopped it before the last iteration.

    Raises:
        InputError: The run is finished already, training diverged, a file cannot be written, or the callback failed.
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
    run = identity_checksum(folder)  # of the configuration that is now stored
    saved, checkpointed = time.monotonic(), first
    discount = acted_by(configuration.agent)
    # The state after `done` iterations. It has no replay buffer during an iteration, because the iteration changes the
    # buffer in place, and none while episodes on the host are unfinished, because a resumed run cannot continue them.
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
            interrupts.check()  # here the state still has its replay
            last = good_copy(state._replace(replay=None))
        finishes = done == trainer.schedule.iterations
        if finishes:
            with _writing(folder, configuration):
                checkpoints.save(last._replace(replay=None), done)  # a run that is extended fills its replay again
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
    """Returns the state to resume from and the number of completed iterations, and prepares the records for it."""
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
    """Writes the latest weights, and every `weights_every` iterations a copy that is kept."""
    records.weights(parameters, LATEST)
    if done % records.configuration.weights_every == 0:
        records.weights(parameters, f"-{done:06d}")


def _is_worth_saving(state: Any, done: int, checkpointed: int) -> bool:
    """Returns whether to save a new state. Without its replay buffer, it is saved only if there is no checkpoint."""
    return done != checkpointed and (state.replay is not None or not checkpointed)


def _stops(callback: Callback, line: dict[str, Any], seed: int, folder: Path) -> bool:
    try:
        return callback(rows_of(line, seed)) is False
    except Exception as problem:  # user code may raise anything
        raise CallbackError(
            f"the callback raised {type(problem).__name__}: {problem}; the run so far is in {folder}"
        ) from problem


def how_to_resume(folder: Path, configuration: Configuration) -> str:
    """Returns what resumes a run: a command, or Python code if the user supplied parts of the run."""
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
    """Turns a write error into advice. It wraps only writes, since environments may raise `OSError` too."""
    try:
        yield
    except (OSError, WriteError) as problem:
        said = problem if isinstance(problem, WriteError) else write_error(problem.filename or folder, problem)
        raise InputError(f"training stopped: {said} and run: {how_to_resume(folder, configuration)}") from problem


def acted_by(agent: AgentConfig) -> dict[str, float]:
    """Returns the discount Σ wᵢ γᵢ^t that the agent acts by, at `DISCOUNT_TIMES`."""
    weights = acting_weights(agent.acting, agent.horizons)
    return {str(t): float(weights @ agent.horizons.gammas**t) for t in DISCOUNT_TIMES}
