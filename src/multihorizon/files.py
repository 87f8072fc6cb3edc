"""Writes files atomically, and reads and writes JSON with checksums."""

import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from multihorizon import interrupts
from multihorizon.errors import InputError

UNFINISHED = ".unfinished-"  # precedes the process id in the name of a file that is being written
MOST_JSON_BYTES = 16 * 2**20
CHECKSUM = "checksum"


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """Writes a file atomically: if the process is killed or the power is cut while writing, `path` is unchanged.

    A killed process leaves its unfinished file, which the next write to the same path removes.

    Args:
        path: The file. Its folder is created if needed.

    Yields:
        A temporary path to write to. It replaces `path` at the end of the block, unless the block raises an error.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_leftovers(path.parent, path)
    unfinished = path.with_name(f".{path.stem}{UNFINISHED}{os.getpid()}{path.suffix}")
    unfinished.unlink(missing_ok=True)  # in an untrusted folder it could be a link to a file elsewhere
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # otherwise a power cut could leave an empty file under the new name
        os.replace(unfinished, path)
    except OSError as problem:
        if problem.filename in (None, str(unfinished)):  # a full disk gives an error without a name
            problem.filename = str(path)
        raise
    finally:
        unfinished.unlink(missing_ok=True)


def remove_leftovers(folder: Path, path: Path | None = None) -> None:
    """Removes the unfinished files of killed processes in a folder: all of them, or only those for one path."""
    for leftover in folder.glob(f".*{UNFINISHED}*"):
        stem, _, rest = leftover.name[1:].partition(UNFINISHED)
        number, dot, suffix = rest.partition(".")
        is_for_path = path is None or (stem, dot + suffix) == (path.stem, path.suffix)
        if is_for_path and number.isdecimal() and not _is_running(int(number)):
            leftover.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    if os.name == "nt":  # on Windows, signal 0 would end the process
        return True
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def read_json(path: Path) -> dict[str, Any]:
    """Reads a file that holds a JSON object, and verifies its checksum if it has one.

    Raises:
        InputError: The file is missing, too large or damaged, or holds no JSON object.
    """
    try:
        held = path.stat()
        if not stat.S_ISREG(held.st_mode):  # reading a pipe or a device might never end
            raise ValueError("it is not a file")
        if held.st_size > MOST_JSON_BYTES:
            raise ValueError(f"it is larger than {MOST_JSON_BYTES // 2**20} MiB")
        content = json.loads(path.read_text(encoding="utf-8"))
        json.dumps(content, ensure_ascii=False).encode()  # fails for unpaired surrogates, which no file can store
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
    """Creates a folder if needed, and raises an error if it cannot be written to. Call it before long work."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise InputError(f"the folder {path} cannot be created: {problem.strerror}") from None
    except ValueError as problem:  # a null character
        raise InputError(f"the folder {str(path)!r} cannot be created: {problem}") from None
    if not os.access(path, os.W_OK):
        raise InputError(f"{path} cannot be written to")
    return path


def writable_file(path: Path) -> Path:
    """Creates the folder of a file if needed, and raises an error if the file cannot be written there."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file")
    writable_folder(path.parent)
    return path


def file_checksum(path: Path) -> str:
    """Returns the CRC-32 of a file, as eight hexadecimal digits."""
    checksum = 0
    with path.open("rb") as file:
        while piece := file.read(2**24):
            interrupts.check()
            checksum = zlib.crc32(piece, checksum)
    return f"{checksum:08x}"


def json_checksum(content: Any) -> str:
    """Returns the CRC-32 of a value as JSON. It does not depend on the order of keys or on white space."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def write_json(path: Path, content: Any, checked: bool = False) -> Path:
    """Writes a value as JSON, atomically. `checked` adds a checksum to an object, which `read_json` verifies."""
    if checked:
        content = {CHECKSUM: json_checksum(content)} | content  # first, so that its line can be removed
    with atomically(path) as file:
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path
