"""Loggers write the metrics of a run to TensorBoard, a CSV file, or Weights & Biases."""

import contextlib
import csv
import io
import math
import os
import re
import secrets
import time
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from multihorizon.errors import InputError, one_of
from multihorizon.files import atomically, open_inside
from multihorizon.runs.folder import inside
from multihorizon.runs.metrics import BY_EPISODE, BY_HEAD, scalars_of

EVENTS, TABLE = "events", "metrics.csv"
WANDB = ("wandb", ".wandb")  # wandb writes to .wandb if that folder exists
LINKS_OF_WANDB = ("latest-run", "debug.log", "debug-internal.log")  # wandb replaces these links
MOST_TABLE_BYTES = 2**27


@runtime_checkable
class Logger(Protocol):
    """Receives the metrics of a run after every iteration.

    Any class with these three methods is a logger.
    """

    def begin(self, folder: Path, settings: Mapping[str, Any], step: int) -> None:
        """Prepares the logger when the training of a run starts or resumes.

        Args:
            folder: The run's folder.
            settings: The run's configuration, as JSON.
            step: The step at which training starts or resumes. A resumed run repeats the steps after `step`, and logs
                them again.
        """

    def log(self, step: int, values: Mapping[str, float]) -> None:
        """Logs the metrics of one iteration.

        Args:
            step: The step at which the iteration ended.
            values: The metrics, by name.
        """

    def close(self) -> None:
        """Closes the logger when training stops or finishes."""


@dataclass
class TensorBoard:
    """Writes TensorBoard events to the folder `events` in the run's folder."""

    _folder: Any = field(default=None, init=False)
    _writer: Any = field(default=None, init=False)

    def begin(self, folder: Path, settings: Mapping[str, Any], step: int) -> None:
        del settings, step
        self._folder = _without_links(folder, EVENTS)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        # SummaryWriter is not used, because it writes in another thread. Errors in that thread cannot be caught here.
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog
        from tensorboardX.summary import scalar

        now = time.time()
        if self._writer is None:
            self._folder.mkdir(exist_ok=True)
            # The time sorts the names. The random part prevents an attacker from placing a link under the name.
            unique = f".{time.time_ns()}.{secrets.token_hex(8)}"
            self._writer = EventsWriter(str(self._folder / "events"), unique)
            # A resumed run may log the same steps again. START makes TensorBoard discard the previous events of these
            # steps.
            start = SessionLog(status=SessionLog.START)
            self._writer.write_event(Event(step=step, wall_time=now, session_log=start))
        for name, value in values.items():
            self._writer.write_event(Event(step=step, wall_time=now, summary=scalar(name, value)))
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):  # `log` has already reported a full disk
                self._writer.close()
            self._writer = None


@dataclass
class Csv:
    """Writes `metrics.csv` to the run's folder: one row for each iteration, one column for each metric."""

    _path: Any = field(default=None, init=False)
    _rows: list[dict[str, Any]] = field(default_factory=list, init=False)

    def begin(self, folder: Path, settings: Mapping[str, Any], step: int) -> None:
        self._path, self._rows = folder / TABLE, []
        try:
            rows = _read_table(self._path, _columns(settings))
        except FileNotFoundError:
            return
        except (OSError, ValueError, csv.Error) as problem:
            said = problem.strerror if isinstance(problem, OSError) else problem
            raise InputError(f"{self._path} is damaged ({said}); move it elsewhere, and resume again") from None
        self._rows = [row for row in rows if row["step"] <= step]

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._rows.append({"step": step, **values})
        columns = list(dict.fromkeys(name for row in self._rows for name in row))
        with atomically(self._path) as unfinished, unfinished.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, columns)
            writer.writeheader()
            writer.writerows(self._rows)

    def close(self) -> None:
        self._rows = []


@dataclass
class WandB:
    """Logs to Weights & Biases (`pip install wandb`).

    Args:
        project: The project's name.
        mode: `online`, `offline` (writes files to the run's folder, for `wandb sync`) or `disabled`.
        options: Further keyword arguments of `wandb.init`.
    """

    project: str
    mode: str = "online"
    options: dict[str, Any] = field(default_factory=dict)
    _run: Any = field(default=None, init=False)

    def begin(self, folder: Path, settings: Mapping[str, Any], step: int) -> None:
        del step
        try:
            import wandb
        except ImportError:
            raise InputError("logging to Weights & Biases needs wandb: pip install wandb") from None
        for used in WANDB:
            _without_links(folder, used, LINKS_OF_WANDB)
        name = re.sub(r"[^\w-]+", "-", folder.name)
        self._run = wandb.init(
            project=self.project,
            dir=str(folder),
            name=name,
            mode=one_of("mode", self.mode, ["online", "offline", "disabled"]),  # type: ignore[arg-type, unused-ignore]
            config=dict(settings),
            **self.options,
        )

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self._run.log(dict(values), step=step)

    def close(self) -> None:
        if self._run is not None:
            self._run.finish()
            self._run = None


def _without_links(folder: Path, name: str, allowed: Collection[str] = ()) -> Path:
    """Returns the path of a subfolder. Raises an error if the subfolder is a link or contains a link."""
    path = inside(folder, name)
    if path.is_dir():
        for entry in os.listdir(path):
            if entry not in allowed:
                inside(path, entry)
    elif path.exists():
        raise InputError(f"{path} is not a folder; move it elsewhere")
    return path


def _columns(settings: Mapping[str, Any]) -> set[str]:
    gammas, seeds = settings["agent"]["horizons"]["gammas"], settings["seeds"]
    line = {name: [0.0] * seeds for name, _ in BY_EPISODE} | {name: [[0.0] * len(gammas)] * seeds for name in BY_HEAD}
    return {"step", *scalars_of(line | {"steps_per_second": 0.0}, settings["seed"], gammas)}


def _read_table(path: Path, columns: set[str]) -> list[dict[str, Any]]:
    with io.TextIOWrapper(open_inside(path, MOST_TABLE_BYTES), "utf-8", newline="") as file:
        reader = csv.DictReader(file)
        names = reader.fieldnames or []
        if "step" not in names or len(set(names)) < len(names) or not columns.issuperset(names):
            raise ValueError("its columns do not match this run")
        return [_numbers(row) for row in reader]


def _numbers(row: Mapping[str, str]) -> dict[str, Any]:
    """Converts a row to numbers. Empty cells are left out."""
    if None in row:
        raise ValueError("a row is too long")
    try:
        numbers: dict[str, Any] = {name: float(cell) for name, cell in row.items() if cell}
        step = int(row["step"])
    except (ValueError, TypeError):
        raise ValueError("a cell is not a number") from None
    if not all(map(math.isfinite, numbers.values())):
        raise ValueError("a number is not finite")
    return numbers | {"step": step}
