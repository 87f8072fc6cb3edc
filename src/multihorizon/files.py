"""Writes files atomically, opens files of untrusted folders, and reads and writes JSON with checksums."""

import errno
import json
import os
import stat
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from multihorizon import interrupts
from multihorizon.errors import InputError

UNFINISHED = ".unfinished-"  # precedes the process id in the name of a file that is being written
MOST_JSON_BYTES = 16 * 2**20
CHECKSUM = "checksum"
FULL = {getattr(errno, name, None) for name in ("ENOSPC", "EDQUOT", "EFBIG")}
IN_THE_WAY = {errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.ENOTEMPTY}


class WriteError(InputError):
    """Raised for a file or folder that cannot be written, replaced or removed."""


def write_error(path: Path | str, problem: OSError, what: str = "written") -> WriteError:
    """Returns the error for a file that could not be written or removed. It says what to do about the cause."""
    advice = "choose another folder, or make this one writable"
    if problem.errno in FULL:
        advice = "free some space"
    elif problem.errno in IN_THE_WAY:
        advice = "move it elsewhere"
    return WriteError(f"{path} could not be {what} ({problem.strerror or problem}); {advice}")


def remove(path: Path) -> None:
    """Removes a file or a link, if it exists."""
    try:
        path.unlink(missing_ok=True)
    except OSError as problem:
        raise write_error(path, problem, "removed") from problem


def replace(source: Path, target: Path) -> None:
    """Renames a file, and replaces another one of that name."""
    try:
        os.replace(source, target)
    except OSError as problem:
        raise write_error(target, problem) from problem


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """Writes a file atomically: if the process is killed or the power is cut while writing, `path` is unchanged.

    A killed process leaves its unfinished file, which the next write to the same path removes.

    Args:
        path: The file. Its folder is created if needed.

    Yields:
        A temporary path to write to. It replaces `path` at the end of the block, unless the block raises an error.

    Raises:
        InputError: The file cannot be written, for example because the disk is full or a folder has its name.
    """
    writable_folder(path.parent)
    remove_leftovers(path.parent, path)
    unfinished = path.with_name(f".{path.stem}{UNFINISHED}{os.getpid()}{path.suffix}")
    remove(unfinished)  # in an untrusted folder it could be a link to a file elsewhere
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # otherwise a power cut could leave an empty file under the new name
        replace(unfinished, path)
    except OSError as problem:
        if problem.filename in (None, str(unfinished)):  # a full disk gives an error without a name
            raise write_error(path, problem) from problem
        raise
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def remove_leftovers(folder: Path, path: Path | None = None) -> None:
    """Removes the unfinished files of killed processes in a folder: all of them, or only those for one path.

    It leaves folders alone, since this library never makes one with such a name.
    """
    for leftover in folder.glob(f".*{UNFINISHED}*"):
        stem, _, rest = leftover.name[1:].partition(UNFINISHED)
        number, dot, suffix = rest.partition(".")
        is_for_path = path is None or (stem, dot + suffix) == (path.stem, path.suffix)
        if is_for_path and number.isdecimal() and not is_folder(leftover) and not _is_running(int(number)):
            remove(leftover)


def is_folder(path: Path) -> bool:
    """Returns whether a path is a folder, and not a link to one."""
    return path.is_dir() and not path.is_symlink()


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


def open_inside(path: Path, most_bytes: int | None = None) -> BinaryIO:
    """Opens a file of a folder that may be untrusted, to read it. All readers of such folders use this function.

    Args:
        path: The file.
        most_bytes: The size of the largest file to open.

    Raises:
        ValueError: It is a link, a folder, a pipe or a device, or too large. The message does not name the file.
        OSError: It does not exist or cannot be read.
    """
    _check_regular(path.lstat())
    # Another process could replace the file now. A link then fails to open, and a pipe does not block.
    flags = sum(getattr(os, name, 0) for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"))
    stream = os.fdopen(os.open(path, os.O_RDONLY | flags), "rb")
    try:
        held = os.fstat(stream.fileno())
        _check_regular(held)
        if most_bytes is not None and held.st_size > most_bytes:
            most = f"{most_bytes // 2**20:,} MiB" if most_bytes >= 2**20 else f"{most_bytes:,} bytes"
            raise ValueError(f"it is larger than {most}")
    except BaseException:
        stream.close()
        raise
    return stream


def _check_regular(held: os.stat_result) -> None:
    if stat.S_ISLNK(held.st_mode):
        raise ValueError("it is a symbolic link, which is not followed; replace it by what it points to")
    if not stat.S_ISREG(held.st_mode):  # reading a pipe or a device might never end
        raise ValueError("it is not a file")


def read_text(path: Path) -> str:
    """Reads a small text file that the user names, which may be a link but not a pipe or a device.

    Raises:
        InputError: It is not a file, too large or not UTF-8.
        OSError: It does not exist or cannot be read.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # reading a pipe or a device might never end
            raise ValueError("it is not a file")
        with path.open("rb") as file:
            content = file.read(MOST_JSON_BYTES + 1)
        if len(content) > MOST_JSON_BYTES:
            raise ValueError(f"it is larger than {MOST_JSON_BYTES // 2**20} MiB")
        return content.decode("utf-8")
    except ValueError as problem:
        raise InputError(f"{path} cannot be read: {problem}") from None


def read_json(path: Path) -> dict[str, Any]:
    """Reads a file that holds a JSON object, and verifies its checksum if it has one.

    Raises:
        InputError: The file is missing, too large or damaged, or holds no JSON object.
    """
    return read_json_and_checksum(path)[0]


def read_json_and_checksum(path: Path) -> tuple[dict[str, Any], str | None]:
    """Reads a JSON object as `read_json` does, and also returns its checksum; None if the file has none."""
    try:
        with open_inside(path, MOST_JSON_BYTES) as file:
            content = json.loads(file.read().decode("utf-8"))
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
    return content, checksum


def writable_folder(path: Path) -> Path:
    """Creates a folder if needed, and raises an error if it cannot be written to. Call it before long work."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise WriteError(f"the folder {path} cannot be created: {problem.strerror}") from None
    except ValueError as problem:  # a null character
        raise WriteError(f"the folder {str(path)!r} cannot be created: {problem}") from None
    if not os.access(path, os.W_OK):
        raise WriteError(f"{path} cannot be written to")
    return path


def writable_file(path: Path) -> Path:
    """Creates the folder of a file if needed, and raises an error if the file cannot be written there."""
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file")
    writable_folder(path.parent)
    return path


def file_checksum(path: Path, most_bytes: int | None = None) -> str:
    """Returns the CRC-32 of a file, as eight hexadecimal digits. Raises the same errors as `open_inside`."""
    checksum = 0
    with open_inside(path, most_bytes) as file:
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
