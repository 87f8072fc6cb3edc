"""Weights files: they round-trip, and hostile files are rejected before they take memory or time."""

import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from multihorizon.errors import InputError
from multihorizon.runs.weights import load_weights, save_weights

WEIGHTS = {"torso/0": np.arange(12, dtype=np.float32).reshape(2, 3, 2), "heads": np.ones((2, 4), np.float32)}


def test_weights_round_trip(tmp_path: Path) -> None:
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
        for name, value in WEIGHTS.items():  # the bit belongs to metadata that does not affect the arrays
            np.testing.assert_array_equal(held[name], value)
    assert refused > 150


@pytest.mark.parametrize("declared", [(1_000_000_000,), (2, 4)])
def test_small_file_cannot_exhaust_memory(tmp_path: Path, declared: tuple[int, ...]) -> None:
    """The file holds 4 GB of zeros, compressed to 4 MB. Its header states that size or a false one."""
    path = tmp_path / "weights.npz"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("heads.npy", "w", force_zip64=True) as member,
    ):
        header = {"descr": "<f4", "fortran_order": False, "shape": declared}
        np.lib.format.write_array_header_1_0(member, header)
        for _ in range(250):
            member.write(bytes(2**24))
    assert path.stat().st_size < 2**23
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="does not hold the weights of this run"):
            load_weights(path, {"heads": WEIGHTS["heads"]})
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()
