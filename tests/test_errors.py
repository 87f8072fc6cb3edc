"""Tests the checks of numbers and names: what they accept, and the one-line error that they raise."""

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multihorizon.errors import InputError, at_least, inside, one_of, positive
from multihorizon.files import read_json, writable_folder, write_json

NO_NUMBERS: list[Any] = ["3", None, [1], True, {}, 1j, object(), np.array([1.0, 2.0])]


@given(st.integers(-(10**400), 10**400) | st.floats())
def test_a_whole_number_is_accepted_or_refused_in_one_line(value: float) -> None:
    is_whole = math.isfinite(value) if isinstance(value, float) else abs(value) <= 2**53
    if is_whole and value == int(value) and 1 <= value <= 1000:
        assert at_least("steps", value, 1, 1000) == value  # type: ignore[arg-type]
    else:
        with pytest.raises(
            InputError, match=r"^steps must be (a whole number of at least 1|at most 1,000), got [^\n]+$"
        ):
            at_least("steps", value, 1, 1000)  # type: ignore[arg-type]


@given(st.integers(-(10**400), 10**400) | st.floats())
def test_a_positive_number_is_accepted_or_refused_in_one_line(value: float) -> None:
    try:
        is_positive = value > 0 and math.isfinite(float(value))
    except OverflowError:
        is_positive = False
    if is_positive:
        assert positive("k", value) == float(value)
    else:
        with pytest.raises(InputError, match=r"^k must be a positive number, got [^\n]+$"):
            positive("k", value)


@pytest.mark.parametrize("value", NO_NUMBERS)
def test_non_number_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"steps must be a whole number of at least 0, got "):
        at_least("steps", value, 0)
    with pytest.raises(InputError, match=r"k must be a positive number, got "):
        positive("k", value)
    with pytest.raises(InputError, match=r"gamma must lie in \(0, 1\), got "):
        inside("gamma", value, 0, 1)


def test_an_array_is_shown_in_one_line() -> None:
    with pytest.raises(InputError) as problem:
        at_least("x", np.eye(2), 1)  # type: ignore[arg-type]
    assert "\n" not in str(problem.value)


def test_numpy_numbers_are_accepted() -> None:
    assert at_least("steps", np.int64(3), 1) == 3
    assert positive("k", np.float32(0.5)) == 0.5
    with pytest.raises(InputError, match=r"got -0\.5$"):
        positive("k", np.float64(-0.5))


def test_non_name_is_refused() -> None:
    with pytest.raises(InputError, match="agent must be a name, got 3; allowed: dqn, c51"):
        one_of("agent", 3, ["dqn", "c51"])  # type: ignore[arg-type]


def test_folder_with_a_null_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^the folder '[^\n]*a\\x00b' cannot be created: embedded null byte$"):
        writable_folder(tmp_path / "a\x00b")


def test_an_edited_file_is_accepted_without_its_checksum_line(tmp_path: Path) -> None:
    path = write_json(tmp_path / "config.json", {"batch": 32, "steps": 5}, checked=True)
    edited = path.read_text().replace("32", "16")
    path.write_text(edited)
    with pytest.raises(InputError, match='checksum mismatch; restore it, or remove its line "checksum"'):
        read_json(path)
    path.write_text("\n".join(line for line in edited.splitlines() if '"checksum"' not in line))
    assert read_json(path) == {"batch": 16, "steps": 5}
