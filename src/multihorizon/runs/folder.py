"""The folder of a run: its file names, which process owns it, and whether the run is finished. Needs no JAX."""

import shutil
import tempfile
import weakref
from pathlib import Path

import filelock

from multihorizon.errors import InputError
from multihorizon.files import remove_leftovers

CONFIGURATION, METRICS, WEIGHTS, CHECKPOINTS, LOCK = (
    "config.json",
    "metrics.jsonl",
    "weights.npz",
    "checkpoints",
    ".lock",
)
EXPERIMENT = "experiment.json"  # in the folder of a sweep, which holds the folders of its runs
LATEST = "-latest"  # weights after the latest iteration of a run that is not finished
LAST_GOOD = "-last-good"  # weights before training diverged
DAMAGED = "damaged-"  # prefix of the name of a damaged file


def weights_path(folder: Path, suffix: str = "") -> Path:
    """Returns the path of a weights file, such as `weights-latest.npz` for the suffix `-latest`."""
    return folder / WEIGHTS.replace(".", f"{suffix}.")


def is_finished(folder: Path) -> bool:
    """Returns whether the run in a folder was trained to its end."""
    return (folder / WEIGHTS).is_file()


def newest_weights(folder: Path) -> Path:
    """Returns the path of the final weights, or of the latest weights if the run is not finished."""
    for suffix in ("", LATEST):
        if weights_path(folder, suffix).is_file():
            return weights_path(folder, suffix)
    raise InputError(f"{folder} has no weights file; a run writes its first one at the end of its first iteration")


def tidy(folder: Path) -> None:
    """Removes what a finished run does not need. It keeps the last checkpoint, so that the run can be extended."""
    for old in sorted(inside(folder, CHECKPOINTS).glob("iteration-*.npz"), reverse=True)[1:]:
        old.unlink()
    weights_path(folder, LATEST).unlink(missing_ok=True)
    remove_leftovers(folder)


def visible_files(folder: Path) -> list[str]:
    """Returns the names in a folder, without hidden files such as the lock and what a killed process left."""
    return sorted(path.name for path in folder.iterdir() if not path.name.startswith("."))


def inside(folder: Path, name: str) -> Path:
    """Returns the path of a part of a folder, such as a run of an experiment.

    Raises:
        InputError: The path lies outside the folder, or may do so because part of it is a symbolic link.
    """
    path = Path(name)
    if not name or path.is_absolute() or path.drive or ".." in path.parts:
        raise InputError(f"the folder of a run must lie inside its experiment's, got '{name}'")
    found = folder
    for part in path.parts:
        found = found / part
        if found.is_symlink():
            raise InputError(f"{found} is a symbolic link, which is not followed; replace it by what it points to")
    return found


class Busy(InputError):
    """Raised for a folder that another process is writing to."""


class Lock:
    """Locks a folder until `close` is called or the process ends."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = inside(folder, LOCK)
        if path.is_file() and path.stat().st_nlink > 1 and path.stat().st_size:  # some versions of filelock empty it
            raise InputError(f"{path} is a hard link to another file; remove it")
        self._lock = filelock.FileLock(path)
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise Busy(f"{folder} is being trained by another process") from None

    def close(self) -> None:
        """Releases the lock."""
        self._lock.release()


class TemporaryFolder:
    """A temporary folder, removed when the last run that refers to it is garbage-collected."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="multihorizon-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
