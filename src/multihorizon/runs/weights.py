"""Reads and writes the weights of a run as .npz files, and checks shapes before it reads arrays. Needs no JAX."""

import tokenize
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np

from multihorizon.errors import InputError
from multihorizon.files import atomically

# Exceptions that NumPy and zipfile raise for a file that is damaged or is not an .npz file.
UNREADABLE = (
    ValueError,
    TypeError,
    KeyError,
    IndexError,
    AttributeError,
    EOFError,
    SyntaxError,
    NotImplementedError,
    RuntimeError,
    tokenize.TokenError,
    zipfile.BadZipFile,
)


@runtime_checkable
class Shaped(Protocol):
    """Anything with a shape and a type: an array, or a description of one."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    @property
    def dtype(self) -> Any: ...


def save_weights(path: Path, named: Mapping[str, Any]) -> Path:
    """Writes arrays by name, atomically."""
    arrays: dict[str, Any] = {name: np.asarray(value) for name, value in named.items()}
    with atomically(path) as file, file.open("wb") as stream:
        np.savez(stream, allow_pickle=False, **arrays)
    return path


def load_weights(path: Path, like: Mapping[str, Shaped]) -> dict[str, np.ndarray]:
    """Reads weights with the names, shapes and types of `like`.

    Headers are checked before arrays are read, so that a hostile file cannot take more memory than the weights do.

    Args:
        path: The weights file.
        like: The expected shape and type of each array, by name.

    Returns:
        The arrays, by name.

    Raises:
        InputError: The file is missing or damaged, or holds other arrays.
    """
    try:
        with zipfile.ZipFile(path) as file:
            held = {name.removesuffix(".npy") for name in file.namelist()}
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


def _read(file: zipfile.ZipFile, name: str, like: Shaped) -> np.ndarray:
    """Checks the header of one array, and reads it."""
    wanted, dtype = tuple(like.shape), np.dtype(like.dtype)
    with file.open(f"{name}.npy") as stream:
        version = np.lib.format.read_magic(stream)
        if version not in ((1, 0), (2, 0)):
            raise ValueError(f"{name} has an unknown format")
        reader = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, fortran, found = reader(stream)
        if shape != wanted or found != dtype or fortran:
            raise ValueError(f"{name} has shape {shape} ({found}), not {wanted} ({dtype})")
        count = dtype.itemsize * int(np.prod(wanted))
        content = stream.read(count)
        if len(content) != count or stream.read(1):  # zipfile verifies its checksum only at the end of the array
            raise ValueError(f"the length of {name} does not match its shape")
    return np.frombuffer(content, dtype).reshape(wanted)
