"""Reads and writes the weights of a run as .npz files. Needs no JAX."""

import math
import re
import struct
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Protocol, runtime_checkable

import numpy as np

from multihorizon.errors import InputError
from multihorizon.files import atomically, open_inside
from multihorizon.runs.folder import RUN, identity_checksum, other_run

# Exceptions that zipfile and this module raise for a file that is damaged or not an .npz file.
UNREADABLE = (ValueError, TypeError, KeyError, EOFError, NotImplementedError, RuntimeError, zipfile.BadZipFile)
# NumPy writes a header before the content of an array. Matching the header is safer than evaluating it as Python.
MOST_HEADER_BYTES = 1_000
HEADER = re.compile(r"\{'descr': '([^']*)', 'fortran_order': False, 'shape': \(([0-9, ]*)\), \} *\n")
MOST_OVERHEAD_BYTES = 2**16  # the largest size of an .npz file without its arrays
TYPES = {np.dtype(name).str: name for name in ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")}


@runtime_checkable
class Shaped(Protocol):
    """An array, or a description of its shape and type."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...


def save_weights(path: Path, named: Mapping[str, Any]) -> Path:
    """Writes named arrays atomically."""
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in named.items()}
    with atomically(path) as file, file.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    return path


def belonging(parameters: Mapping[str, Any], identity: str | None) -> dict[str, Any]:
    """Returns weights together with the identity of their run."""
    return dict(parameters) if identity is None else {**parameters, RUN: _as_array(identity)}


def _as_array(identity: str) -> np.ndarray:
    return np.array([int(identity, 16)], np.uint32)


def load_weights(path: Path, like: Mapping[str, Shaped], run: Path | None = None) -> dict[str, np.ndarray]:
    """Reads weights with the names, shapes and types of `like`, and checks that they belong to `run`.

    Sizes are checked first, so that a hostile file cannot exhaust the memory.
    """
    identity = None if run is None else identity_checksum(run)
    try:
        with open_inside(path, _most_bytes(like)) as stream, open_zip(stream, len(like)) as file:
            held = {name.removesuffix(".npy") for name in file.namelist()}
            if RUN in held and RUN not in like:
                if identity is not None and run is not None:
                    expected = _as_array(identity)
                    if _read(file, RUN, expected) != expected:
                        raise ValueError(other_run(run))
                held.remove(RUN)
            for name in [*like, *sorted(held)]:
                if (name in held) != (name in like):
                    raise ValueError(f"it has no {name}" if name in like else f"the run has no {name[:80]!r}")
            found = {name: _read(file, name, shaped) for name, shaped in like.items()}
    except FileNotFoundError:
        raise InputError(f"there is no weights file {path}") from None
    except zipfile.BadZipFile:
        raise InputError(
            f"{path} does not hold the weights of this run: it is not an .npz file, or is damaged"
        ) from None
    except (*UNREADABLE, OSError) as problem:
        raise InputError(f"{path} does not hold the weights of this run: {problem}") from None
    for name, value in found.items():
        if not np.all(np.isfinite(value)):
            raise InputError(f"{path} is damaged: {name} is not finite")
    return found


def array_bytes(like: Shaped) -> int:
    """Returns the size of an array in bytes."""
    return int(np.dtype(like.dtype).itemsize) * math.prod(like.shape)


def _most_bytes(like: Mapping[str, Shaped]) -> int:
    """Returns the largest possible size of a file with these arrays."""
    return MOST_OVERHEAD_BYTES + sum(array_bytes(one) + MOST_HEADER_BYTES + 4 * len(name) for name, one in like.items())


def open_zip(stream: BinaryIO, count: int) -> zipfile.ZipFile:
    """Opens a zip file of about `count` arrays, unless its list of contents is too long."""
    limited: Any = _Limited(stream, MOST_OVERHEAD_BYTES + count * MOST_HEADER_BYTES)
    file = zipfile.ZipFile(limited)
    limited.most = None
    return file


class _Limited:
    """A file that refuses to read more than `most` bytes at once. None means no limit."""

    def __init__(self, file: BinaryIO, most: int | None) -> None:
        self._file, self.most = file, most
        self.seek, self.tell, self.seekable = file.seek, file.tell, file.seekable

    def read(self, size: int = -1) -> bytes:
        if self.most is None:
            return self._file.read(size)
        content = self._file.read(min(size, self.most + 1) if size >= 0 else self.most + 1)
        if len(content) > self.most:
            raise ValueError("its list of contents is too long")
        return content


def open_stored(file: zipfile.ZipFile, name: str) -> Any:
    """Opens an array in a zip file. Compressed arrays are refused, because they could take much memory."""
    about = file.getinfo(name)
    if about.compress_type != zipfile.ZIP_STORED or about.compress_size != about.file_size:
        raise ValueError(f"{name.removesuffix('.npy')} is compressed, but this library does not compress arrays")
    return file.open(name)


def read_header(stream: Any) -> tuple[tuple[int, ...], str]:
    """Reads the header of an array, and returns its shape and the name of its type."""
    version = np.lib.format.read_magic(stream)
    if version not in ((1, 0), (2, 0)):
        raise ValueError("an array has an unknown format")
    (length,) = struct.unpack("<H" if version == (1, 0) else "<I", read_bytes(stream, 2 * version[0]))
    if length > MOST_HEADER_BYTES:
        raise ValueError("the header of an array is too long")
    header = read_bytes(stream, length).decode("latin1")
    found = HEADER.fullmatch(header)
    if found is None:
        raise ValueError(f"an array has the unknown header {header.strip()[:80]!r}")
    return tuple(map(int, found[2].replace(",", " ").split())), found[1]


def read_bytes(stream: Any, count: int) -> bytes:
    """Reads exactly `count` bytes."""
    content = stream.read(count)
    if len(content) != count:
        raise EOFError("an array is cut short")
    return content


def _read(file: zipfile.ZipFile, name: str, like: Shaped) -> np.ndarray:
    wanted, dtype = tuple(like.shape), np.dtype(like.dtype)
    with open_stored(file, f"{name}.npy") as stream:
        shape, found = read_header(stream)
        if shape != wanted or found != dtype.str:
            raise ValueError(f"{name} has shape {shape} ({TYPES.get(found, found)}), not {wanted} ({dtype})")
        count = array_bytes(like)
        content = stream.read(count)
        if len(content) != count or stream.read(1):  # zipfile verifies the checksum only at the end of the array
            raise ValueError(f"the length of {name} does not match its shape")
    return np.frombuffer(content, dtype).reshape(wanted)
