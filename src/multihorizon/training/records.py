"""A run's directory: its whole configuration, a line of metrics for each iteration, TensorBoard events, and weights.
Nothing in it runs code when it is read."""

import contextlib
import fcntl
import json
import os
import shutil
import time
from pathlib import Path
from typing import IO, Any

import jax.numpy as jnp
import numpy as np

from multihorizon.agents.learner import Parameters
from multihorizon.errors import InputError
from multihorizon.files import atomically, write_json
from multihorizon.training.configuration import Configuration, difference, plain, restored, versions

CONFIGURATION, METRICS, WEIGHTS, CHECKPOINTS, EVENTS = (
    "config.json",
    "metrics.jsonl",
    "weights.npz",
    "checkpoints",
    "events",
)


LATEST = "-latest"  # weights after each iteration


class Records:
    """Writes one run. One process at a time: a second is told so."""

    def __init__(self, folder: Path, configuration: Configuration) -> None:
        self.folder, self.configuration = folder, configuration
        self._lock = locked(folder)
        self._events: Any = None
        path = folder / CONFIGURATION
        if not path.exists():
            write_json(path, plain(configuration) | {"versions": versions()})
        elif differs := difference(plain(read_configuration(folder)), plain(configuration)):
            self._lock.close()
            raise InputError(
                f"{folder} holds a run with another configuration: {differs}; choose another folder with --out"
            )

    def refuse_if_finished(self) -> None:
        if (self.folder / WEIGHTS).exists():
            self.tidy()  # in case it was killed before it had come to that
            raise InputError(f"the run in {self.folder} is finished; to train longer choose another folder")

    def rewind(self, iterations: int) -> None:
        """Forgets what was written after the first so many iterations: it is about to be done again."""
        path = self.folder / METRICS
        kept = [line for line in read_metrics(self.folder) if line["iteration"] < iterations]
        with atomically(path) as file:
            file.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")

    def metrics(self, line: dict[str, Any]) -> None:
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._write_events(line)

    def _write_events(self, line: dict[str, Any]) -> None:
        """In this thread: tensorboardX's own writer has another, whose errors nobody could catch."""
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog
        from tensorboardX.summary import scalar

        step, now = line["step"], time.time()
        if self._events is None:
            (self.folder / EVENTS).mkdir(exist_ok=True)
            self._events = EventsWriter(str(self.folder / EVENTS / "events"))
            start = SessionLog(status=SessionLog.START)  # what was written of this step and later is done again
            self._events.write_event(Event(step=step, wall_time=now, session_log=start))
        for name, value in _scalars(line, self.configuration):
            self._events.write_event(Event(step=step, wall_time=now, summary=scalar(name, value)))
        self._events.flush()

    def weights(self, parameters: Parameters, suffix: str = "") -> Path:
        path = self.folder / WEIGHTS.replace(".", f"{suffix}.")
        named: dict[str, Any] = {name: np.asarray(value) for name, value in parameters.items()}
        with atomically(path) as file, file.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **named)
        return path

    def tidy(self) -> None:
        """Removes what a finished run has no use for: its final weights are the latest. Killed while it wrote some, it
        may have left them unfinished."""
        shutil.rmtree(self.folder / CHECKPOINTS, ignore_errors=True)
        stem, ending = WEIGHTS.split(".")
        for path in (self.folder / f"{stem}{LATEST}.{ending}", *self.folder.glob(f".{stem}*.{ending}")):
            path.unlink(missing_ok=True)

    def close(self) -> None:
        if self._events is not None:
            with contextlib.suppress(OSError):  # of a disk that was full before, and that was said
                self._events.close()
        self._lock.close()


def _scalars(line: dict[str, Any], configuration: Configuration) -> list[tuple[str, float]]:
    """A line of metrics as TensorBoard's tags: by seed, and by head where there is a number for each."""
    tags = []
    gammas = configuration.agent.horizons.gammas
    for s in range(configuration.seeds):
        of = f"seed-{configuration.seed + s}"
        for name, tag in (("returns", "return/training"), ("evaluation_returns", "return/evaluation")):
            if line[name][s] is not None:
                tags.append((f"{tag}/{of}", line[name][s]))
        for name, tag in (("losses", "loss"), ("values", "value")):
            if line[name]:
                tags += [(f"{tag}/gamma-{g:.5f}/{of}", x) for g, x in zip(gammas, line[name][s], strict=True)]
    return [*tags, ("steps_per_second", line["steps_per_second"])]


class Busy(InputError):
    """A folder that another process is at work in."""


def locked(folder: Path) -> IO[str]:
    """A lock for as long as the file is open, and no longer than its process lives."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = (folder / ".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise Busy(f"{folder} is being trained by another process") from None
    return lock


def read_configuration(folder: Path) -> Configuration:
    path = folder / CONFIGURATION
    if not path.is_file():
        raise InputError(f"{folder} is not a run: it has no {CONFIGURATION}")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        content.pop("versions", None)
        configuration = restored(content)
    except (ValueError, KeyError, TypeError, AttributeError) as problem:
        raise InputError(f"{path} cannot be read: {problem}") from None
    if not isinstance(configuration, Configuration):
        raise InputError(f"{path} is not the configuration of a run")
    return configuration


def read_metrics(folder: Path) -> list[dict[str, Any]]:
    """The lines that are whole; the last may have been cut short."""
    lines = []
    if (folder / METRICS).exists():
        for text in (folder / METRICS).read_text(encoding="utf-8", errors="replace").splitlines():
            with contextlib.suppress(json.JSONDecodeError):
                line = json.loads(text)
                if isinstance(line, dict) and isinstance(line.get("iteration"), int):
                    lines.append(line)
    return lines


def newest_weights(folder: Path) -> Path:
    """The final weights, or the latest of a run that is not finished."""
    for suffix in ("", LATEST):
        path = folder / WEIGHTS.replace(".", f"{suffix}.")
        if path.exists():
            return path
    raise InputError(f"{folder} has no weights yet: the first come with the end of its first iteration")


def load_weights(path: Path, like: Parameters) -> Parameters:
    """The weights of a run, of the names and shapes of `like`."""
    with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
        found = {name: jnp.asarray(held[name]) for name in like}
        for name, value in like.items():
            if found[name].shape != value.shape:
                raise ValueError(f"{name} has shape {found[name].shape}, not {value.shape}")
        return found
