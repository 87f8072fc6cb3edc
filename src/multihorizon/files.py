"""Files that are either whole or not there."""

import json
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from multihorizon.errors import InputError

UNFINISHED = ".unfinished-"  # before the process number in the name of a file that is being written
MOST_JSON_BYTES = 64 * 2**20
CHECKSUM = "checksum"


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """Yields a path to write to, which replaces `path` once everything is written. Makes folders as needed.

    A process that is killed while it writes leaves its unfinished file. The next write to the same path removes it.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, path)
    unfinished = path.with_name(f".{path.stem}{UNFINISHED}{os.getpid()}{path.suffix}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


def remove_leftovers(folder: Path, path: Path | None = None) -> None:
    """Removes unfinished files of processes that were killed: in a folder, or those for one path in it."""
    for leftover in folder.glob(f".*{UNFINISHED}*"):
        stem, _, rest = leftover.name[1:].partition(UNFINISHED)
        number, dot, suffix = rest.partition(".")
        is_for_path = path is None or (stem, dot + suffix) == (path.stem, path.suffix)
        if is_for_path and number.isdecimal() and not _is_running(int(number)):
            leftover.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # signal 0 would end the process there
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def read_json(path: Path) -> dict[str, Any]:
    """Reads a file that holds a JSON object, and compares its checksum where it has one.

    Raises:
        InputError: The file is missing, too large, damaged, or holds anything else.
    """
    try:
        if path.stat().st_size > MOST_JSON_BYTES:
            raise ValueError(f"it is larger than {MOST_JSON_BYTES // 2**20} MiB")
        content = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise InputError(f"{path} cannot be read: it is nested too deeply") from None
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise InputError(f"{path} cannot be read: {problem}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} cannot be read: it must hold a JSON object")
    checksum = content.pop(CHECKSUM, None)
    if checksum not in (None, json_checksum(content)):
        raise InputError(
            f'{path} was damaged or edited: checksum mismatch; restore it, or remove its line "{CHECKSUM}" to use it '
            "as it is"
        )
    return content


def writable_folder(path: Path) -> Path:
    """Makes a folder, and finds out now rather than after long work whether it can be written to."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"the folder {path} cannot be made: {problem.strerror}") from None
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written to")
    return path


def writable_file(path: Path) -> Path:
    """The same of the folder that a file is to lie in."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file")
    writable_folder(path.parent)
    return path


def file_checksum(path: Path) -> str:
    """Returns a checksum of a file's content."""
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(2**24):
            checksum = zlib.crc32(piece, checksum)
    return f"{checksum:08x}"


def json_checksum(content: Any) -> str:
    """Returns a checksum of a value as JSON, whatever the order of its keys and its white space."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def write_json(path: Path, content: Any, checked: bool = False) -> Path:
    """Writes a value as JSON, atomically; `checked` adds a checksum to an object, which `read_json` compares."""
    if checked:
        content = content | {CHECKSUM: json_checksum(content)}
    with atomically(path) as file:
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path
