"""An experiment in a folder: what of it is left, and a run of it from its last checkpoint to its end."""

import gc
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import Any

import jax

from multihorizon.errors import InputError
from multihorizon.experiments.experiment import Experiment, ExperimentRun
from multihorizon.files import read_json, write_json
from multihorizon.runs.configuration import Configuration, difference, plain, read_configuration
from multihorizon.runs.configure import made
from multihorizon.runs.folder import CONFIGURATION, EXPERIMENT, check_inside, is_finished, tidy
from multihorizon.runs.metrics import Warn, read_metrics
from multihorizon.runs.recording import record
from multihorizon.runs.records import Records
from multihorizon.training import memory
from multihorizon.training.schedule import make_pace
from multihorizon.training.trainer import IterationMetrics, Progress
from multihorizon.training.worlds import world


class State(Enum):
    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True)
class Status:
    """Where a run stands."""

    state: State
    where: str = ""
    step: int = 0
    returns: float | None = None  # mean over seeds
    evaluated: bool = False  # as the returns are, or else earned in training
    steps_per_second: float | None = None  # of all seeds together
    said: str = ""  # why it failed


Tell = Callable[[Status], None]


@dataclass(frozen=True)
class PlannedRun:
    """A run and its place."""

    run: ExperimentRun
    configuration: Configuration
    folder: Path
    steps: int  # that will be trained: those asked for, in whole iterations of steps of every environment

    @property
    def name(self) -> str:
        return f"{self.run.label} in {self.run.environment}"

    @property
    def finished(self) -> bool:
        return is_finished(self.folder)

    def status(self) -> Status:
        """As its folder tells."""
        if self.finished:
            return Status(State.DONE, step=self.steps)
        done = read_metrics(self.folder)
        return Status(State.WAITING, step=int(done[-1]["step"]) if done else 0)


TellOf = Callable[[PlannedRun, Status], None]
TrainAll = Callable[[Sequence[PlannedRun], TellOf, Warn], None]


def plan(experiment: Experiment, out: Path, checkpoint_minutes: float) -> list[PlannedRun]:
    """Its runs, as they are or will be in the folder; an error where the folder holds anything else."""
    configured = [(run, run.configuration(checkpoint_minutes)) for run in experiment.runs]
    planned = [PlannedRun(run, one, out / run.folder, _steps(one)) for run, one in configured]
    _check(experiment, out)
    return [_begun(one) if (one.folder / CONFIGURATION).exists() else one for one in planned]


def _steps(configuration: Configuration) -> int:
    schedule, pace = configuration.schedule, make_pace(configuration.agent, configuration.environments)
    return schedule.iterations * pace.cycles(schedule.training_steps) * pace.steps


def describe(experiment: Experiment, out: Path) -> None:
    """Writes down what the folder is for, and clears away what a process killed in its last moment left of a run."""
    write_json(out / EXPERIMENT, experiment.description(), checked=True)
    for folder in (out / run.folder for run in experiment.runs):
        if is_finished(folder):
            tidy(folder)


def _check(experiment: Experiment, out: Path) -> None:
    if not out.exists():
        return
    path = out / EXPERIMENT
    if not path.exists():
        foreign = sorted(file.name for file in out.iterdir() if not file.name.startswith("."))
        if foreign:
            raise InputError(f"{out} holds other files, as {foreign[0]}, and no experiment; choose an empty folder")
        return
    held = read_json(path)
    try:
        name, runs = str(held["name"]), {check_inside(run["folder"]): _essence(run) for run in held["runs"]}
    except KeyError as problem:
        raise InputError(f"{path} has no {problem}; choose another folder") from None
    except (ValueError, TypeError) as problem:
        raise InputError(f"{path} does not describe a sweep ({problem}); choose another folder") from None
    if name != experiment.name:
        raise InputError(f"{out} holds the experiment {name}, not {experiment.name}; choose another folder")
    asked = {run["folder"]: _essence(run) for run in experiment.description()["runs"]}
    begun = {folder: run for folder, run in runs.items() if (out / folder / CONFIGURATION).exists()}
    if gone := [folder for folder in begun if folder not in asked]:
        raise InputError(
            f"{out} holds runs that {name} does not have: {', '.join(gone)}; give {name} with them, move their folders "
            "elsewhere, or choose another folder"
        )
    for folder, run in begun.items():
        if differs := difference(run, asked[folder]):
            raise InputError(
                f"{out} holds {folder}, begun otherwise: {differs}; give the same options as when it was begun, "
                "or choose another folder"
            )


def _essence(run: dict[str, Any]) -> dict[str, Any]:
    return {name: run[name] for name in ("environment", "seeds", "steps")}


def _begun(one: PlannedRun) -> PlannedRun:
    """With the configuration that it was begun with, from which only the pace of checkpoints may differ, and what an
    evaluation is played in, which depends on the device."""
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
    """Of learning, since a run was taken up: without the warm-up, and without the first piece, which is compiled."""

    def __init__(self) -> None:
        self._from: int | None = None
        self._steps, self._seconds = 0, 0.0

    def after(self, progress: Progress) -> float | None:
        if progress.loss is not None:
            steps = 0 if self._from is None else progress.step - self._from
            self._from = progress.step
            self._steps += steps
            self._seconds += steps / progress.steps_per_second
        return self._steps / self._seconds if self._steps else None


def train(configuration: Configuration, folder: Path, tell: Tell, warn: Warn) -> None:
    """What is left of one run, told as it goes."""
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

    with made(configuration, env=world(configuration.environment)) as trainer:  # the experiment is the user's word
        memory.check(trainer)
        with closing(Records(folder, configuration)) as records:
            record(trainer, configuration, records, report, finished, warn)


def attempt(configuration: Configuration, folder: Path, tell: Tell, warn: Warn) -> Status:
    """How a run ended, where its failure is not the others'."""
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
    return replace(last[0], state=State.DONE)


def here(left: Sequence[PlannedRun], tell: TellOf, warn: Warn) -> None:
    """One run after another, in this process."""
    for one in left:
        tell(one, attempt(one.configuration, one.folder, partial(tell, one), warn))
        gc.collect()  # a trainer holds itself through its compiled methods, and may hold the device's memory


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
