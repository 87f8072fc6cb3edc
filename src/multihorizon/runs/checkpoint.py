"""Writes and reads checkpoints, which hold the training state. Reading a checkpoint cannot run code.

A checkpoint is an uncompressed zip file of .npy arrays. The file name contains the checksum of the file. Arrays are
copied in pieces, so that a replay buffer may be larger than the host's memory.
"""

import json
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from multihorizon.agents.replay import ReplayShape
from multihorizon.errors import InputError
from multihorizon.files import WriteError, file_checksum, open_inside, remove, replace, write_error
from multihorizon.runs.configuration import difference
from multihorizon.runs.folder import CONFIGURATION, DAMAGED, checkpoint_paths
from multihorizon.runs.weights import (
    MOST_HEADER_BYTES,
    UNREADABLE,
    array_bytes,
    open_stored,
    open_zip,
    read_bytes,
    read_header,
)

PIECE_BYTES = 128 * 2**20
KEPT = 2
OF_ONE_ITERATION = (".tally", ".episodes")  # not stored, because each iteration resets them
ABOUT = "run.json"  # the part of a checkpoint that holds the number of iterations and the settings of the run
MOST_ABOUT_BYTES = 2**24


class OtherRunError(ValueError):
    """Raised if a checkpoint is of another iteration than its name says, or of a run with other settings."""


class Checkpoints:
    """Writes and restores checkpoints of one run, and keeps the latest two.

    `identity` contains the settings, as JSON, that must not change when the run is resumed.
    """

    def __init__(self, folder: Path, shape: ReplayShape, with_replay: bool, identity: dict[str, Any]) -> None:
        self.folder, self.shape, self.with_replay, self.identity = folder, shape, with_replay, identity

    def paths(self) -> list[Path]:
        """Returns the files of all checkpoints, newest first."""
        return checkpoint_paths(self.folder)

    def save(self, state: Any, iterations: int) -> None:
        """Writes a checkpoint after a number of iterations, and removes all but the latest two."""
        unfinished = self.folder / f".iteration-{iterations:06d}"
        try:
            remove(unfinished)
            try:
                checksum = self._write(unfinished, state, iterations)
            except OSError as problem:
                raise write_error(unfinished, problem) from problem
            replace(unfinished, self.folder / f"iteration-{iterations:06d}-{checksum:08x}.npz")
        except WriteError as problem:
            raise InputError(f"training stopped: {problem} and resume the run in {self.folder.parent}") from problem
        finally:
            with suppress(OSError):
                unfinished.unlink(missing_ok=True)
        for old in self.paths()[KEPT:]:
            remove(old)

    def restore(self, init: Callable[[], Any], warn: Callable[[str], None]) -> tuple[Any, int]:
        """Returns the state in the newest intact checkpoint, and the number of completed iterations.

        Damaged checkpoints are reported and renamed. Without a checkpoint, the initial state is returned.
        """
        for leftover in self.folder.glob(".iteration-*"):
            remove(leftover)
        good, damaged = self.paths(), []
        for path in sorted(set(self.folder.glob("iteration-*.npz")) - set(good)):
            try:
                open_inside(path).close()
                why: object = "its name contains no iteration number"
            except (ValueError, OSError) as problem:
                why = problem
            warn(f"{path} is damaged ({why})")
            damaged.append(path)
        form = jax.eval_shape(init) if good else None
        for path in good:
            try:
                _, number, checksum = path.stem.split("-")
                iterations = int(number)
                if file_checksum(path, self._most_bytes(form)) != checksum:
                    raise ValueError("checksum mismatch")
            except PermissionError as problem:
                raise InputError(f"{path} cannot be read ({problem.strerror})") from problem
            except (ValueError, OSError) as problem:
                warn(f"{path} is damaged ({problem})")
                damaged.append(path)
                continue
            try:
                state = self._read(path, init, form, iterations)
            except OtherRunError as problem:
                raise InputError(f"{path} does not belong to this run: {problem}") from None
            except (*UNREADABLE, OSError) as problem:
                raise InputError(
                    f"{path} has the right checksum, but this version of multihorizon cannot read it "
                    f"({' '.join(str(problem).split())[:200]}); resume the run with the version that wrote it, or "
                    "start again in another folder"
                ) from problem
            if damaged:
                warn(f"using the previous checkpoint, {path.name}")
            for bad in damaged:  # otherwise a damaged file could look newer than the next checkpoint
                replace(bad, bad.with_name(f"{DAMAGED}{bad.name}"))
            return state, iterations
        if damaged:
            raise InputError(
                f"no checkpoint in {self.folder} can be used; to start from the beginning, remove that folder"
            )
        return init(), 0

    def _parts(self, state: Any, with_replay: bool) -> Iterator[tuple[str, Any]]:
        """Yields the arrays to store, or their shapes, by name."""
        for path, leaf in jax.tree_util.tree_leaves_with_path(state):
            name = jax.tree_util.keystr(path)
            if not name.startswith(OF_ONE_ITERATION if with_replay else (*OF_ONE_ITERATION, ".replay")):
                yield name, leaf

    def _write(self, path: Path, state: Any, iterations: int) -> int:
        written = 0 if state.replay is None else int(np.asarray(state.replay.written).max())
        filled = min(written, self.shape.rows) * self.shape.streams
        with path.open("wb") as raw:
            summed: Any = _Summed(raw)  # Any: typeshed requires methods that zipfile does not call
            with zipfile.ZipFile(summed, "w", zipfile.ZIP_STORED, allowZip64=True) as file:
                file.writestr(ABOUT, json.dumps({"iterations": iterations, "configuration": self.identity}))
                for name, leaf in self._parts(state, self.with_replay):
                    length = filled if name in BY_ROW else None
                    with file.open(name, "w", force_zip64=True) as stream:
                        _write_array(stream, jax.random.key_data(leaf) if _is_key(leaf) else leaf, length)
            raw.flush()
            os.fsync(raw.fileno())
        return summed.checksum

    def _check_owner(self, file: zipfile.ZipFile, iterations: int) -> None:
        if file.getinfo(ABOUT).file_size > MOST_ABOUT_BYTES:
            raise ValueError(f"{ABOUT} is too long")
        with open_stored(file, ABOUT) as stream:
            about = json.loads(stream.read())
        if about["iterations"] != iterations:
            raise OtherRunError(f"it was written after iteration {about['iterations']}, but its name says {iterations}")
        if differs := difference(self.identity, about["configuration"]):
            raise OtherRunError(
                f"in {CONFIGURATION}, {differs} as in the checkpoint; undo the change, or train in another folder"
            )

    def _most_bytes(self, form: Any) -> int:
        """Returns the largest possible size of a checkpoint. Larger files are not opened."""
        leaves = jax.tree.leaves(form)
        return MOST_ABOUT_BYTES + sum(array_bytes(_data(leaf)) + MOST_HEADER_BYTES for leaf in leaves)

    def _read(self, path: Path, init: Callable[[], Any], form: Any, iterations: int) -> Any:
        kept = dict(self._parts(form, with_replay=True))
        with (
            open_inside(path, self._most_bytes(form)) as opened,
            open_zip(opened, len(jax.tree.leaves(form))) as file,
        ):
            self._check_owner(file, iterations)
            held = {name for name in file.namelist() if not name.startswith((ABOUT, *OF_ONE_ITERATION))}
            has_replay = any(name.startswith(".replay") for name in held)
            if not has_replay:  # the checkpoint was saved without its replay buffer
                kept = {name: leaf for name, leaf in kept.items() if not name.startswith(".replay")}
            if held != set(kept):
                raise ValueError("its arrays do not match this run")
            found = {}
            for name, leaf in kept.items():
                with open_stored(file, name) as stream:
                    array = _read_array(stream, _data(leaf), name in BY_ROW)
                    found[name] = jax.random.wrap_key_data(array) if _is_key(leaf) else array
        replay = form.replay if has_replay else init().replay

        def restored(key: Any, leaf: Any) -> Any:
            name = jax.tree_util.keystr(key)
            return jnp.zeros(leaf.shape, leaf.dtype) if name.startswith(OF_ONE_ITERATION) else found.get(name, leaf)

        return jax.tree_util.tree_map_with_path(restored, form._replace(replay=replay))


class _Summed:
    """Wraps a file, and computes the CRC-32 of what is written."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self.checksum = file, 0

    def write(self, data: bytes) -> int:
        self.checksum = zlib.crc32(data, self.checksum)
        return self._file.write(data)

    def flush(self) -> None:
        self._file.flush()


# Arrays of the replay buffer [S rows ...]. Only filled rows are written.
ARRAYS = ("frames", "actions", "rewards", "ends", "ages", "timing.duration", "timing.survival")
BY_ROW = {f".replay.{name}" for name in ARRAYS}


def _is_key(leaf: Any) -> bool:
    return jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)


def _data(leaf: Any) -> Any:
    return jax.eval_shape(jax.random.key_data, leaf) if _is_key(leaf) else leaf


def _pieces(shape: tuple[int, ...], itemsize: int) -> Iterator[tuple[int, int, int]]:
    """Yields slices (seed, start, stop) of an array [S L ...]. A slice has at most `PIECE_BYTES` bytes, or one row."""
    length = shape[1] if len(shape) > 1 else 1
    size = max(1, PIECE_BYTES // max(1, itemsize * int(np.prod(shape[2:]))))
    for s in range(shape[0]):
        for start in range(0, length, size):
            yield s, start, min(start + size, length)


@partial(jax.jit, static_argnums=3)
def _piece(array: Array, s: Array, start: Array, length: int) -> Array:
    return jax.lax.dynamic_slice(array, (s, start, *[0] * (array.ndim - 2)), (1, length, *array.shape[2:]))


@partial(jax.jit, donate_argnums=0)
def _with_piece(array: Array, piece: Array, s: Array, start: Array) -> Array:
    return jax.lax.dynamic_update_slice(array, piece, (s, start, *[0] * (array.ndim - 2)))


def _write_array(stream: Any, array: Array, length: int | None) -> None:
    shape = array.shape if length is None else (array.shape[0], length, *array.shape[2:])
    dtype = np.dtype(array.dtype)
    header = {"descr": _descriptor(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_2_0(stream, header)
    if array.ndim == 1:
        stream.write(np.asarray(array).tobytes())
        return
    for s, start, stop in _pieces(shape, dtype.itemsize):
        stream.write(np.asarray(_piece(array, jnp.asarray(s), jnp.asarray(start), stop - start)).tobytes())


def _read_array(stream: Any, like: jax.ShapeDtypeStruct, by_row: bool) -> Array:
    shape, kind = read_header(stream)
    dtype, allowed = np.dtype(like.dtype), like.shape
    if by_row and len(shape) > 1:
        allowed = (like.shape[0], min(shape[1], like.shape[1]), *like.shape[2:])
    if shape != allowed or kind != _descriptor(dtype):
        raise ValueError("an array does not have the shape and the type that this run needs")
    if len(shape) == 1:
        array = jnp.asarray(np.frombuffer(read_bytes(stream, dtype.itemsize * shape[0]), dtype))
    else:
        array = jnp.zeros(like.shape, like.dtype)
        for s, start, stop in _pieces(shape, dtype.itemsize):
            part = (1, stop - start, *shape[2:])
            piece = np.frombuffer(read_bytes(stream, dtype.itemsize * int(np.prod(part))), dtype).reshape(part)
            array = _with_piece(array, jnp.asarray(piece), jnp.asarray(s), jnp.asarray(start))
    if stream.read(1):  # zipfile verifies the checksum only at the end of the array
        raise EOFError("an array is longer than its header says")
    return array


def _descriptor(dtype: np.dtype) -> str:
    return f"<V{dtype.itemsize}" if dtype.kind == "V" else dtype.str  # V is bfloat16
