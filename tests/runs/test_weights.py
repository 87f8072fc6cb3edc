"""Tests that weights files round-trip, and that hostile files are rejected early."""

import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multihorizon.errors import InputError
from multihorizon.runs.weights import load_weights, open_zip, save_weights

WEIGHTS = {"torso/0": np.arange(12, dtype=np.float32).reshape(2, 3, 2), "heads": np.ones((2, 4), np.float32)}


def test_loaded_weights_equal_the_saved_weights(tmp_path: Path) -> None:
    held = load_weights(save_weights(tmp_path / "weights.npz", WEIGHTS), WEIGHTS)
    assert set(held) == set(WEIGHTS)
    for name, value in WEIGHTS.items():
        np.testing.assert_array_equal(held[name], value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"heads": np.ones((2, 5), np.float32)}, r"heads has shape \(2, 5\) \(float32\), not \(2, 4\) \(float32\)"),
        ({"heads": np.ones((2, 4), np.float64)}, r"heads has shape \(2, 4\) \(float64\)"),
        ({"heads": np.ones((2, 4), bool)}, r"\(bool\)"),
        ({"heads": np.ones((2, 4), np.int32)}, r"\(int32\)"),
        ({"heads": np.asfortranarray(np.ones((2, 4), np.float32))}, "not"),
        ({"heads": np.full((2, 4), np.nan, np.float32)}, "heads is not finite"),
        ({"more": np.ones(1, np.float32)}, "the run has no 'more'"),
    ],
)
def test_weights_of_another_run_are_rejected(tmp_path: Path, changed: dict[str, np.ndarray], message: str) -> None:
    path = save_weights(tmp_path / "weights.npz", WEIGHTS | changed)
    with pytest.raises(InputError, match=message):
        load_weights(path, WEIGHTS)


def test_missing_arrays_and_files_are_reported(tmp_path: Path) -> None:
    path = save_weights(tmp_path / "weights.npz", {"heads": WEIGHTS["heads"]})
    with pytest.raises(InputError, match="it has no torso/0"):
        load_weights(path, WEIGHTS)
    with pytest.raises(InputError, match="there is no weights file"):
        load_weights(tmp_path / "other.npz", WEIGHTS)


def test_flipped_bit_is_detected_or_harmless(tmp_path: Path, rng: np.random.Generator) -> None:
    path = save_weights(tmp_path / "weights.npz", WEIGHTS)
    whole = path.read_bytes()
    refused = 0
    for place in rng.integers(8 * len(whole), size=300):
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        try:
            held = load_weights(path, WEIGHTS)
        except InputError:
            refused += 1
            continue
        for name, value in WEIGHTS.items():  # this bit does not affect the arrays
            np.testing.assert_array_equal(held[name], value)
    assert refused > 150


def bomb(path: Path, compression: int, write: Callable[[Any], None]) -> Path:
    """Writes an .npz file. `write` writes the content of its only array."""
    with (
        zipfile.ZipFile(path, "w", compression) as file,
        file.open("heads.npy", "w", force_zip64=True) as member,
    ):
        write(member)
    return path


def write_array(member: Any, declared: tuple[int, ...]) -> None:
    np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": declared})
    for _ in range(64):
        member.write(bytes(2**24))


def write_header(member: Any) -> None:
    """Writes a header of 1 GB."""
    member.write(b"\x93NUMPY\x02\x00" + struct.pack("<I", 2**30))
    for _ in range(2**6):
        member.write(b" " * 2**24)


@pytest.mark.parametrize(
    "write", [lambda m: write_array(m, (1_000_000_000,)), lambda m: write_array(m, (2, 4)), write_header]
)
def test_compressed_file_cannot_exhaust_memory(tmp_path: Path, write: Callable[[Any], None]) -> None:
    """The file compresses a gigabyte to a megabyte."""
    path = bomb(tmp_path / "weights.npz", zipfile.ZIP_DEFLATED, write)
    assert path.stat().st_size < 2**23
    check_takes_no_memory(path)


def test_large_file_is_not_read(tmp_path: Path) -> None:
    """The file is sparse, so it takes little space on the disk."""
    path = bomb(tmp_path / "weights.npz", zipfile.ZIP_STORED, lambda m: m.write(b"\x93NUMPY"))
    with path.open("rb+") as file:
        end = file.read()
        file.seek(2**40)
        file.write(end)
    check_takes_no_memory(path)


def check_takes_no_memory(path: Path) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="does not hold the weights of this run"):
            load_weights(path, {"heads": WEIGHTS["heads"]})
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_compressed_arrays_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "weights.npz"
    np.savez_compressed(path, allow_pickle=False, **WEIGHTS)
    with pytest.raises(InputError, match="torso/0 is compressed"):
        load_weights(path, WEIGHTS)
    content = save_weights(path, WEIGHTS).read_bytes()
    entry = content.index(b"PK\x01\x02")
    for method in (8, 12, 14, 93):  # deflate, bzip2, LZMA and Zstandard
        path.write_bytes(content[: entry + 10] + struct.pack("<H", method) + content[entry + 12 :])
        with pytest.raises(InputError, match="does not hold the weights of this run"):
            load_weights(path, WEIGHTS)


@pytest.mark.parametrize("header", ["-" * 900 + "1", "(" * 900, "__import__('os')", "{'descr': '|O', 'shape': ()}", ""])
def test_array_header_is_not_evaluated_as_python_code(tmp_path: Path, header: str) -> None:
    def write(member: Any) -> None:
        member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())

    with pytest.raises(InputError, match="an array has the unknown header"):
        load_weights(bomb(tmp_path / "weights.npz", zipfile.ZIP_STORED, write), {"heads": WEIGHTS["heads"]})


def test_long_directory_of_a_zip_file_is_not_read(tmp_path: Path) -> None:
    """The file claims to be one long zip directory, which zipfile would read at once."""
    (tmp_path / "x.npz").write_bytes(bytes(2**24) + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 2**24, 0, 0))
    tracemalloc.start()
    try:
        with (tmp_path / "x.npz").open("rb") as stream, pytest.raises(ValueError, match="list of contents is too long"):
            open_zip(stream, 3)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


def test_array_with_two_different_sizes_is_refused(tmp_path: Path) -> None:
    content = save_weights(tmp_path / "weights.npz", WEIGHTS).read_bytes()
    size = content.index(b"PK\x01\x02") + 20
    (tmp_path / "weights.npz").write_bytes(content[:size] + struct.pack("<I", 2**30) + content[size + 4 :])
    with pytest.raises(InputError, match="torso/0 is compressed"):
        load_weights(tmp_path / "weights.npz", WEIGHTS)
