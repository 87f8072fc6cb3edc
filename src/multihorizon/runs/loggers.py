"""Loggers write the metrics of a run to TensorBoard, a CSV file, or Weights & Biases."""

import contextlib
import csv
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from multihorizon.errors import InputError, one_of
from multihorizon.files import atomically
from multihorizon.runs.folder import inside

EVENTS, TABLE = "events", "metrics.csv"


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
            step: The step at which training starts or resumes. Metrics of later steps will be logged again.
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
        self._folder = inside(folder, EVENTS)

    def log(self, step: int, values: Mapping[str, float]) -> None:
        # tensorboardX's SummaryWriter writes in another thread, whose errors could not be caught here.
        from tensorboardX.event_file_writer import EventsWriter
        from tensorboardX.proto.event_pb2 import Event, SessionLog
        from tensorboardX.summary import scalar

        now = time.time()
        if self._writer is None:
            self._folder.mkdir(exist_ok=True)
            self._writer = EventsWriter(str(self._folder / "events"))
            # This makes TensorBoard discard what was written earlier for this and later steps.
            start = SessionLog(status=SessionLog.START)
            self._writer.write_event(Event(step=step, wall_time=now, session_log=start))
        for name, value in values.items():
            self._writer.write_event(Event(step=step, wall_time=now, summary=scalar(name, value)))
        self._writer.flush()

    def close(self) -> None:
        if self._writer is not None:
            with contextlib.suppress(OSError):  # the disk is full, which `log` has reported
                self._writer.close()
            self._writer = None


@dataclass
class Csv:
    """Writes `metrics.csv` to the run's folder: one row for each iteration, one column for each metric."""

    _path: Any = field(default=None, init=False)
    _rows: list[dict[str, Any]] = field(default_factory=list, init=False)

    def begin(self, folder: Path, settings: Mapping[str, Any], step: int) -> None:
        del settings
        self._path, self._rows = folder / TABLE, []
        if self._path.exists():
            try:
                with self._path.open(newline="", encoding="utf-8") as file:
                    self._rows = [row for row in csv.DictReader(file) if int(row["step"]) <= step]
            except (KeyError, TypeError, ValueError, csv.Error) as problem:
                raise InputError(f"{self._path} is damaged ({problem}); move it elsewhere, and resume again") from None

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
        inside(folder, "wandb")
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
