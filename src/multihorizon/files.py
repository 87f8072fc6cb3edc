"""Writes files atomically, opens untrusted files, and reads and writes JSON with checksums."""

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
    """Returns the error for a file that could not be written or removed, with a remedy."""
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
    """Renames a file. An existing file of the new name is replaced."""
    try:
        os.replace(source, target)
    except OSError as problem:
        raise write_error(target, problem) from problem


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """Yields a temporary path. At the end, the file written there replaces `path`.

    If the process is killed or raises an error before the end, `path` is unchanged.
    """
    writable_folder(path.parent)
    remove_leftovers(path.parent, path)
    unfinished = path.with_name(f".{path.stem}{UNFINISHED}{os.getpid()}{path.suffix}")
    remove(unfinished)  # an attacker may have placed a link under this name
    try:
        yield unfinished
        with unfinished.open("rb+") as file:
            os.fsync(file.fileno())  # otherwise a power cut could leave an empty file under the new name
        replace(unfinished, path)
    except OSError as problem:
        if problem.filename in (None, str(unfinished)):  # the error of a full disk names no file
            raise write_error(path, problem) from problem
        raise
    finally:
        with suppress(OSError):
            unfinished.unlink(missing_ok=True)


def remove_leftovers(folder: Path, path: Path | None = None) -> None:
    """Removes the unfinished files of killed processes from a folder, or only the unfinished files of one path."""
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
    """Opens a file that may be untrusted. Raises ValueError for a link, a special file or a file that is too large."""
    _check_regular(path.lstat())
    # If another process replaces the file now, the flags refuse a link and do not wait for a pipe.
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
        raise ValueError("it is a symbolic link, which is not followed; replace the link by its target")
    if not stat.S_ISREG(held.st_mode):  # reading a pipe or a device might never end
        raise ValueError("it is not a file")


def read_text(path: Path) -> str:
    """Reads a small UTF-8 file that the user names. Links are followed."""
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
    """Reads a file that holds a JSON object, and verifies the checksum if there is one."""
    return read_json_and_checksum(path)[0]


def read_json_and_checksum(path: Path) -> tuple[dict[str, Any], str | None]:
    """Returns a JSON object and its checksum, which is None if the file has none."""
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
            f'{path} was damaged or edited: checksum mismatch; restore it, or remove its line "{CHECKSUM}" to accept it'
        )
    return content, checksum


def writable_folder(path: Path) -> Path:
    """Creates a folder if needed, and raises an error if files cannot be written to it."""
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
    """Creates the folder of a file if needed, and raises an error if the file cannot be written to it."""
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
    """Returns the CRC-32 of a value as JSON, independent of the order of keys."""
    return f"{zlib.crc32(json.dumps(content, sort_keys=True).encode()):08x}"


def write_json(path: Path, content: Any, checked: bool = False) -> Path:
    """Writes a value as JSON, atomically. `checked` adds a checksum that `read_json` verifies."""
    if checked:
        content = {CHECKSUM: json_checksum(content)} | content  # the first line, so that users can remove it
    with atomically(path) as file:
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path
