"""Writes the configuration, metrics and weights of a run to its folder. Reading these files cannot run code."""

import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from multihorizon.errors import InputError
from multihorizon.files import atomically, read_json, remove_leftovers, replace, write_json
from multihorizon.runs.configuration import Configuration, difference, plain, read_configuration, versions
from multihorizon.runs.folder import (
    CONFIGURATION,
    DAMAGED,
    LATEST,
    METRICS,
    WEIGHTS,
    Lock,
    inside,
    is_finished,
    tidy,
    weights_path,
    with_changes,
)
from multihorizon.runs.loggers import Logger, TensorBoard
from multihorizon.runs.metrics import format_line, read_metrics, scalars_of
from multihorizon.runs.weights import save_weights


class Records:
    """Writes the files of one run, and locks its folder against other processes.

    If `configuration` changes an existing run, `replaces` is the previous configuration of the run.
    """

    def __init__(
        self,
        folder: Path,
        configuration: Configuration,
        loggers: Sequence[Logger] | None = None,
        replaces: Configuration | None = None,
    ) -> None:
        self.folder, self.configuration = folder, configuration
        self._extends = self._replaces = False
        self._lock = Lock(folder)
        try:
            self._prepare(replaces)
        except BaseException:
            self._lock.close()
            raise
        self._loggers = [TensorBoard()] if loggers is None else list(loggers)

    def _prepare(self, replaces: Configuration | None) -> None:
        """Writes the configuration of a new run, or checks the configuration of an existing run."""
        folder, asked = self.folder, self.configuration
        remove_leftovers(folder)
        if not (folder / CONFIGURATION).exists():
            self._write_configuration()
            return
        held = read_configuration(folder)
        if replaces is not None and plain(held) == plain(replaces):
            self._extends = asked.schedule.iterations > held.schedule.iterations
            self._replaces = True
        elif differs := difference(plain(held), plain(asked)):
            raise InputError(f"{folder} holds a run with another configuration: {differs}; choose another folder")

    def _write_configuration(self) -> None:
        path, content = self.folder / CONFIGURATION, plain(self.configuration)
        if path.exists():
            content = with_changes(read_json(path), content)
        write_json(path, content | {"versions": versions()}, checked=True)

    def refuse_if_finished(self) -> None:
        """Raises an error if the run is finished, unless the new configuration extends the run."""
        if is_finished(self.folder) and not self._extends:
            self.tidy()  # a killed process may have left files behind
            raise InputError(f"the run in {self.folder} is finished; to extend it, resume it with more steps")

    def begin(self) -> None:
        """Stores changed settings after all checks have passed. A finished run that is extended becomes unfinished."""
        # The weights are renamed first. If the process is then killed, the resumed run keeps its old length.
        if self._extends and is_finished(self.folder):
            replace(self.folder / WEIGHTS, weights_path(self.folder, LATEST))
        if self._replaces:
            self._write_configuration()
        self._extends = self._replaces = False

    def rewind(self, iterations: int, warn: Callable[[str], None] = lambda message: None) -> None:
        """Removes the metrics of iterations that will be repeated, and opens the loggers.

        If metrics of completed iterations are damaged or missing, the old metrics file is kept under another name.
        """
        path = inside(self.folder, METRICS)
        problems: list[str] = []
        found = read_metrics(self.folder, problems.append, self.configuration.seeds)
        kept = [line for line in found if line["iteration"] < iterations]
        if len(kept) < iterations and path.is_file():
            aside = path.with_name(f"{DAMAGED}{METRICS}")
            with atomically(aside) as copy:
                shutil.copyfile(path, copy)
            for problem in problems or [f"{path}: {iterations - len(kept)} iterations are missing"]:
                warn(f"{problem}; the original file is kept as {aside.name}")
        elif len(kept) < iterations:
            warn(f"{path} is missing, so the metrics of the first {iterations} iterations are lost")
        with atomically(path) as file:
            file.write_text("".join(format_line(line) + "\n" for line in kept), encoding="utf-8")
        for logger in self._loggers:
            logger.begin(self.folder, plain(self.configuration), kept[-1]["step"] if kept else 0)

    def metrics(self, line: dict[str, Any]) -> None:
        """Appends the metrics of one iteration, and sends them to the loggers."""
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(format_line(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        scalars = scalars_of(line, self.configuration.seed, self.configuration.agent.horizons.gammas.tolist())
        for logger in self._loggers:
            logger.log(line["step"], scalars)

    def weights(self, parameters: Any, suffix: str = "") -> Path:
        """Writes a weights file, and returns its path."""
        return save_weights(weights_path(self.folder, suffix), parameters)

    def tidy(self) -> None:
        """Removes files that a finished run does not need."""
        tidy(self.folder)

    def close(self) -> None:
        """Closes the loggers and releases the lock."""
        for logger in self._loggers:
            logger.close()
        self._lock.close()
