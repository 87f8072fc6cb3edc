"""A run's directory: its whole configuration, a line of metrics for each iteration, TensorBoard events, and weights.
Nothing in it runs code when it is read."""

import contextlib
import json
import os
import tokenize
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import filelock
import jax.numpy as jnp
import numpy as np

from multihorizon.agents.learner import Parameters
from multihorizon.errors import InputError
from multihorizon.files import atomically, write_json
from multihorizon.training.configuration import Configuration, difference, plain, restored, versions
from multihorizon.training.loggers import Logger, TensorBoard
from multihorizon.training.metrics import scalars_of

CONFIGURATION, METRICS, WEIGHTS, CHECKPOINTS = "config.json", "metrics.jsonl", "weights.npz", "checkpoints"


LATEST = "-latest"  # weights after each iteration


@dataclass(frozen=True)
class Own:
    """What the user handed in and a folder does not store."""

    env: Any = None
    network: Any = None
    eval_env: Any = None


class Records:
    """Writes one run. One process at a time: a second is told so."""

    def __init__(
        self,
        folder: Path,
        configuration: Configuration,
        loggers: Sequence[Logger] | None = None,
        replaces: Configuration | None = None,
    ) -> None:
        self.folder, self.configuration = folder, configuration
        self._lock = Lock(folder)
        self._loggers = [TensorBoard()] if loggers is None else list(loggers)
        path = folder / CONFIGURATION
        if not path.exists():
            write_json(path, plain(configuration) | {"versions": versions()})
            return
        held = read_configuration(folder)
        if replaces is not None and plain(held) == plain(replaces):
            _replace_configuration(folder, held, configuration)
        elif differs := difference(plain(held), plain(configuration)):
            self._lock.close()
            raise InputError(f"{folder} holds a run with another configuration: {differs}; choose another folder")

    def refuse_if_finished(self) -> None:
        if is_finished(self.folder):
            self.tidy()  # in case it was killed before that
            raise InputError(f"the run in {self.folder} is finished; to extend it, resume it with more steps")

    def rewind(self, iterations: int) -> None:
        """Forgets what was written after the first so many iterations: it is about to be done again."""
        path = self.folder / METRICS
        kept = [line for line in read_metrics(self.folder) if line["iteration"] < iterations]
        with atomically(path) as file:
            file.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
        for logger in self._loggers:
            logger.begin(self.folder, plain(self.configuration), kept[-1]["step"] if kept else 0)

    def metrics(self, line: dict[str, Any]) -> None:
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")
            file.flush()
            os.fsync(file.fileno())
        scalars = scalars_of(line, self.configuration.seed, self.configuration.agent.horizons.gammas.tolist())
        for logger in self._loggers:
            logger.log(line["step"], scalars)

    def weights(self, parameters: Parameters, suffix: str = "") -> Path:
        path = self.folder / WEIGHTS.replace(".", f"{suffix}.")
        named: dict[str, Any] = {name: np.asarray(value) for name, value in parameters.items()}
        with atomically(path) as file, file.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **named)
        return path

    def tidy(self) -> None:
        tidy(self.folder)

    def close(self) -> None:
        for logger in self._loggers:
            logger.close()
        self._lock.close()


def _replace_configuration(folder: Path, held: Configuration, asked: Configuration) -> None:
    """Writes a changed configuration. A finished run that is to be longer becomes an unfinished one, and does so first:
    if the process is killed in between, the run is finished again at its old length."""
    if asked.schedule.iterations > held.schedule.iterations and is_finished(folder):
        (folder / WEIGHTS).rename(folder / WEIGHTS.replace(".", f"{LATEST}."))
    write_json(folder / CONFIGURATION, plain(asked) | {"versions": versions()})


def tidy(folder: Path) -> None:
    """Removes what a finished run does not need. Its last state stays, without a replay, so that it can be extended."""
    for old in sorted((folder / CHECKPOINTS).glob("*"), reverse=True)[1:]:
        old.unlink()
    stem, ending = WEIGHTS.split(".")
    for path in (folder / f"{stem}{LATEST}.{ending}", *folder.glob(f".{stem}*.{ending}")):
        path.unlink(missing_ok=True)


def is_finished(folder: Path) -> bool:
    """Whether the run in a folder was trained to its end."""
    return (folder / WEIGHTS).exists()


class Busy(InputError):
    """A folder that another process is at work in."""


class Lock:
    """Locks a folder until it is closed, or its process ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / ".lock"
        if path.is_symlink():
            raise InputError(f"{path} is a symbolic link, which a run does not follow; remove it")
        self._lock = filelock.FileLock(path)
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise Busy(f"{folder} is being trained by another process") from None

    def close(self) -> None:
        self._lock.release()


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
    """Reads the weights of a run, with the names and shapes of `like`.

    Raises:
        InputError: The file holds something else, or is damaged.
    """
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
            missing = [name for name in like if name not in held]
            if missing:
                raise ValueError(f"it has no {missing[0]}")
            found = {name: held[name] for name in like}
    except FileNotFoundError:
        raise
    except (ValueError, KeyError, OSError, EOFError, AttributeError, NotImplementedError, SyntaxError) as problem:
        why = "it is no .npz file" if "pickle" in str(problem) else problem  # NumPy would advise to trust it
        raise InputError(f"{path} does not hold the weights of this run: {why}") from None
    except (zipfile.BadZipFile, tokenize.TokenError) as problem:
        raise InputError(f"{path} does not hold the weights of this run: {problem}") from None
    for name, value in like.items():
        if found[name].shape != value.shape or found[name].dtype != value.dtype:
            raise InputError(
                f"{path} does not hold the weights of this run: {name} has shape {found[name].shape} "
                f"({found[name].dtype}), not {value.shape} ({value.dtype})"
            )
        if not np.all(np.isfinite(found[name])):
            raise InputError(f"{path} is damaged: {name} is not finite")
    return {name: jnp.asarray(value) for name, value in found.items()}
