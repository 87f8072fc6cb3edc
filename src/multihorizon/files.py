"""Files that are either whole or not there."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from multihorizon.errors import InputError


@contextmanager
def atomically(path: Path) -> Iterator[Path]:
    """A path to write to, which takes the place of `path` once all is written. Folders are made as needed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield unfinished
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)


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


def write_json(path: Path, content: Any) -> Path:
    with atomically(path) as file:
        file.write_text(json.dumps(content, indent=2, ensure_ascii=False, allow_nan=False) + "\n", encoding="utf-8")
    return path
