"""Plans the runs of an experiment in a folder, and trains unfinished runs from their last checkpoints."""

import gc
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import jax

from multihorizon import interrupts
from multihorizon.errors import InputError
from multihorizon.experiments.experiment import Experiment, ExperimentRun
from multihorizon.files import read_json, write_json
from multihorizon.runs.configuration import Configuration, difference, plain, read_configuration
from multihorizon.runs.configure import made
from multihorizon.runs.folder import (
    CONFIGURATION,
    EXPERIMENT,
    inside,
    is_finished,
    refuse_folders,
    tidy,
    visible_files,
)
from multihorizon.runs.metrics import Warn, read_metrics
from multihorizon.runs.recording import record
from multihorizon.runs.records import Records
from multihorizon.training import memory
from multihorizon.training.schedule import total_steps
from multihorizon.training.trainer import IterationMetrics, Progress
from multihorizon.training.worlds import world


class State(Enum):
    """The states of a run in a sweep."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Status:
    """The state of a run and its latest results."""

    state: State
    where: str = ""
    step: int = 0
    returns: float | None = None  # mean over seeds
    evaluated: bool = False  # whether the returns come from evaluation, not from training
    steps_per_second: float | None = None  # of all seeds together
    said: str = ""  # why the run failed


Tell = Callable[[Status], None]


@dataclass(frozen=True)
class PlannedRun:
    """A run with its configuration and its folder."""

    run: ExperimentRun
    configuration: Configuration
    folder: Path
    steps: int  # training steps, rounded to whole iterations

    @property
    def name(self) -> str:
        return f"{self.run.label} in {self.run.environment}"

    @property
    def finished(self) -> bool:
        return is_finished(self.folder)

    def status(self) -> Status:
        if self.finished:
            return Status(State.DONE, step=self.steps)
        done = read_metrics(self.folder)
        return Status(State.WAITING, step=int(done[-1]["step"]) if done else 0)


TellOf = Callable[[PlannedRun, Status], None]
TrainAll = Callable[[Sequence[PlannedRun], TellOf, Warn], None]


def plan(experiment: Experiment, out: Path, checkpoint_minutes: float) -> list[PlannedRun]:
    """Returns the runs of an experiment. Raises an error if the folder holds something else."""
    configured = [(run, run.configuration(checkpoint_minutes)) for run in experiment.runs]
    planned = [PlannedRun(run, one, inside(out, run.folder), _steps(one)) for run, one in configured]
    _check(experiment, out)
    return [_begun(one) if (one.folder / CONFIGURATION).exists() else one for one in planned]


def _steps(configuration: Configuration) -> int:
    return total_steps(configuration.agent, configuration.schedule, configuration.environments)


def describe(experiment: Experiment, out: Path) -> None:
    """Writes experiment.json, and deletes files that finished runs no longer need."""
    write_json(out / EXPERIMENT, experiment.description(), checked=True)
    for folder in (out / run.folder for run in experiment.runs):
        if is_finished(folder):
            tidy(folder)


def _check(experiment: Experiment, out: Path) -> None:
    if not out.exists():
        return
    path = out / EXPERIMENT
    if not path.exists():
        if foreign := visible_files(out):
            raise InputError(
                f"{out} holds other files, such as {foreign[0]}, not an experiment; choose an empty folder"
            )
        return
    held = read_json(path)
    try:
        name, runs = str(held["name"]), {str(run["folder"]): _essence(run) for run in held["runs"]}
    except KeyError as problem:
        raise InputError(f"{path} has no {problem}; choose another folder") from None
    except (ValueError, TypeError) as problem:
        raise InputError(f"{path} does not describe a sweep ({problem}); choose another folder") from None
    if name != experiment.name:
        raise InputError(f"{out} holds the experiment '{name}', not '{experiment.name}'; choose another folder")
    asked = {run["folder"]: _essence(run) for run in experiment.description()["runs"]}
    begun = {folder: run for folder, run in runs.items() if (inside(out, folder) / CONFIGURATION).exists()}
    if gone := [folder for folder in begun if folder not in asked]:
        raise InputError(
            f"{out} holds runs that the experiment '{name}' no longer lists: {', '.join(gone)}; add these runs to the "
            "experiment, or choose another folder"
        )
    for folder, run in begun.items():
        if differs := difference(run, asked[folder]):
            raise InputError(
                f"{out} holds {folder}, which was started with other options: {differs}; give the same options "
                "or choose another folder"
            )


def _essence(run: dict[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("environment", "seeds", "steps")}


def _begun(one: PlannedRun) -> PlannedRun:
    """Returns the run with the configuration that it was started with.

    The new configuration may differ only in the time between checkpoints and the number of evaluation environments.
    """
    held = read_configuration(one.folder)
    asked = replace(
        one.configuration,
        checkpoint_minutes=held.checkpoint_minutes,
        evaluation_environments=held.evaluation_environments,
    )
    if differs := difference(plain(held), plain(asked)):
        raise InputError(f"{one.folder} holds a run with another configuration: {differs}; choose another folder")
    return replace(one, configuration=held)


class Speed:
    """The speed of learning, excluding warm-up and compilation."""

    def __init__(self) -> None:
        self._from: int | None = None
        self._steps, self._seconds = 0, 0.0

    def after(self, progress: Progress) -> float | None:
        """Returns the steps per second so far, or None if no steps were timed."""
        if progress.loss is not None:
            steps = 0 if self._from is None else progress.step - self._from
            self._from = progress.step
            self._steps += steps
            self._seconds += steps / progress.steps_per_second
        return self._steps / self._seconds if self._steps else None


def train(configuration: Configuration, folder: Path, tell: Tell, warn: Warn) -> None:
    """Trains a run from its last checkpoint to its end, and reports its status to `tell`."""
    done = read_metrics(folder)
    earned, speed = [_mean(done[-1]["evaluation_returns"]) if done else None], Speed()

    def report(progress: Progress) -> None:
        if progress.evaluated:
            return
        evaluated = earned[0] is not None
        returns = earned[0] if evaluated else _mean(progress.returns)
        tell(Status(State.RUNNING, "", progress.step, returns, evaluated, speed.after(progress)))

    def finished(outcome: IterationMetrics) -> None:
        earned[0] = _mean(outcome.evaluation_returns)
        report(Progress(outcome.step, outcome.returns, None, 0.0, outcome.steps_per_second))

    refuse_folders(folder)
    # `world` may import a module, which is safe because the user chose the environment.
    with made(configuration, env=world(configuration.environment)) as trainer:
        memory.check(trainer)
        with closing(Records(folder, configuration)) as records:
            record(trainer, configuration, records, report, finished, warn)


def attempt(configuration: Configuration, folder: Path, tell: Tell, warn: Warn) -> Status:
    """Trains a run and returns how it ended. A failure becomes a status, so that other runs continue."""
    last = [Status(State.RUNNING)]

    def keep(status: Status) -> None:
        last[0] = status
        tell(status)

    tell(last[0])
    try:
        train(configuration, folder, keep, warn)
    except InputError as problem:
        return Status(State.FAILED, step=last[0].step, said=str(problem))
    except (jax.errors.JaxRuntimeError, MemoryError) as problem:
        said = str(problem).split("\n")[0] or type(problem).__name__
        return Status(State.FAILED, step=last[0].step, said=f"the device failed: {said}")
    except Exception as problem:  # an environment may raise anything
        # Disk errors and interrupts concern the whole sweep, so they are raised again.
        if isinstance(problem, OSError) or interrupts.was_received():
            raise
        said = f"{type(problem).__name__}: {problem}".split("\n")[0]
        return Status(State.FAILED, step=last[0].step, said=f"the run raised {said}")
    return replace(last[0], state=State.DONE)


def here(left: Sequence[PlannedRun], tell: TellOf, warn: Warn) -> None:
    """Trains runs one after another in this process."""
    for one in left:
        tell(one, attempt(one.configuration, one.folder, partial(tell, one), warn))
        gc.collect()  # frees device memory, which a reference cycle of the trainer keeps allocated


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
