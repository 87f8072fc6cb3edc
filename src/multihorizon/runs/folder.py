"""The folder of a run: its file names, identity and lock. Needs no JAX."""

import os
import re
import shutil
import tempfile
import weakref
from pathlib import Path
from typing import Any

import filelock

from multihorizon.errors import InputError
from multihorizon.files import (
    is_folder,
    json_checksum,
    read_json_and_checksum,
    remove,
    remove_leftovers,
    writable_folder,
    write_error,
)

CONFIGURATION, METRICS, WEIGHTS, CHECKPOINTS, LOCK = (
    "config.json",
    "metrics.jsonl",
    "weights.npz",
    "checkpoints",
    ".lock",
)
EXPERIMENT = "experiment.json"  # a file in the folder of a sweep
LATEST = "-latest"  # suffix of the latest weights of an unfinished run
LAST_GOOD = "-last-good"  # suffix of the last weights before training diverged
DAMAGED = "damaged-"  # prefix of the name of a damaged file
RUN = "run"  # key of the run's identity in weights and metrics; missing in older files
# Settings of the configuration or its schedule that may change when a run is resumed.
MAY_CHANGE = (
    "iterations",
    "evaluation_steps",
    "evaluation_environments",
    "checkpoint_minutes",
    "checkpoint_replay",
    "weights_every",
)


def fixed_settings(stored: dict[str, Any]) -> dict[str, Any]:
    """Returns those settings of a stored configuration that must not change when the run is resumed."""
    fixed = {name: value for name, value in stored.items() if name not in (*MAY_CHANGE, "versions")}
    if isinstance(schedule := stored.get("schedule"), dict):
        fixed["schedule"] = {name: value for name, value in schedule.items() if name not in MAY_CHANGE}
    return fixed


def with_changes(stored: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Returns a stored configuration with new values of the settings that may change."""
    changed = {name: new[name] for name in MAY_CHANGE if name in new}
    schedule = {name: new["schedule"][name] for name in MAY_CHANGE if name in new["schedule"]}
    # The other settings stay as stored, so that the run keeps its identity if a later version resumes it.
    return stored | changed | {"schedule": stored["schedule"] | schedule}


def identity_checksum(folder: Path) -> str | None:
    """Returns the checksum of the fixed settings of a run. Weights and metrics store this checksum.

    Returns None if the configuration is missing, or if a user edited the file and removed the checksum in it.
    """
    if not (folder / CONFIGURATION).is_file():
        return None
    stored, checksum = read_json_and_checksum(folder / CONFIGURATION)
    return None if checksum is None else json_checksum(fixed_settings(stored))


def other_run(folder: Path) -> str:
    """Returns the error message for a file that another run wrote."""
    return (
        f"it was written by a run with other settings than {folder / CONFIGURATION}; one of the two files belongs to "
        "another run and must be replaced"
    )


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
    raise InputError(f"{folder} has no weights file: it has no finished iteration, or its weights were removed")


def tidy(folder: Path) -> None:
    """Removes files that a finished run does not need. The last checkpoint is kept."""
    for old in checkpoint_paths(inside(folder, CHECKPOINTS))[1:]:
        remove(old)
    remove(weights_path(folder, LATEST))
    remove_leftovers(folder)


def checkpoint_paths(folder: Path) -> list[Path]:
    """Returns the checkpoint files in a folder of checkpoints, newest first."""
    found = []
    for path in folder.glob("iteration-*.npz"):
        number = re.match("iteration-([0-9]+)-", path.name)
        if number and path.is_file() and not path.is_symlink():
            found.append((int(number[1]), path.name, path))
    return [path for *_, path in sorted(found, reverse=True)]


def refuse_folders(folder: Path) -> None:
    """Raises an error if a subfolder has the name of a file that a run writes."""
    for name in visible_files(folder) if os.path.isdir(folder) else ():
        path = folder / name
        if (name == CONFIGURATION or name.endswith((".npz", ".jsonl"))) and is_folder(path):
            raise InputError(f"{path} is a folder, but a run writes a file of this name; move it elsewhere")


def visible_files(folder: Path) -> list[str]:
    """Returns the names in a folder, without hidden files."""
    try:
        return sorted(name for name in os.listdir(folder) if not name.startswith("."))
    except OSError as problem:
        raise InputError(f"{folder} cannot be read: {problem.strerror}") from None


def inside(folder: Path, name: str) -> Path:
    """Returns the path of an entry of a folder. Symbolic links and paths that leave the folder are errors."""
    path = Path(name)
    if not name or path.is_absolute() or path.drive or ".." in path.parts:
        raise InputError(f"the folder of a run must lie inside the folder of its experiment, got '{name}'")
    found = folder
    for part in path.parts:
        found = found / part
        if found.is_symlink():
            raise InputError(f"{found} is a symbolic link, which is not followed; replace the link by its target")
    return found


class Busy(InputError):
    """Raised for a folder that another process is writing to."""


class Lock:
    """Locks a folder until `close` is called or the process ends."""

    def __init__(self, folder: Path) -> None:
        writable_folder(folder)
        path = inside(folder, LOCK)
        # Some versions of filelock delete the contents of the lock file. All its hard links would then be empty.
        if path.is_file() and path.stat().st_nlink > 1 and path.stat().st_size:
            raise InputError(f"{path} is a hard link to another file; remove this link")
        self._lock = filelock.FileLock(path)
        try:
            self._lock.acquire(timeout=0)
        except filelock.Timeout:
            raise Busy(f"{folder} is being trained by another process") from None
        except OSError as problem:  # for example, a folder has this name
            raise write_error(path, problem) from None

    def close(self) -> None:
        """Releases the lock."""
        self._lock.release()


class TemporaryFolder:
    """A temporary folder, removed when the last run that refers to it is garbage-collected."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="multihorizon-"))
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)
