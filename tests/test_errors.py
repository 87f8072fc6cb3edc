import math
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multihorizon.errors import (
    InputError,
    as_function,
    as_path,
    at_least,
    between,
    inside,
    instance,
    member,
    needs_no_arguments,
    numbers,
    one_of,
    positive,
    positive_in_float32,
    shown,
    true_or_false,
)
from multihorizon.files import read_json, writable_folder, write_json

NO_NUMBERS: list[Any] = ["3", None, [1], True, {}, 1j, object(), np.array([1.0, 2.0])]


@given(st.integers(-(10**400), 10**400) | st.floats())
def test_only_whole_numbers_in_the_allowed_range_are_accepted(value: float) -> None:
    is_whole = math.isfinite(value) if isinstance(value, float) else abs(value) <= 2**53
    if is_whole and value == int(value) and 1 <= value <= 1000:
        assert at_least("steps", value, 1, 1000) == value  # type: ignore[arg-type]
    else:
        with pytest.raises(
            InputError, match=r"^steps must be (a whole number of at least 1|at most 1,000), got [^\n]+$"
        ):
            at_least("steps", value, 1, 1000)  # type: ignore[arg-type]


@given(st.integers(-(10**400), 10**400) | st.floats())
def test_only_positive_numbers_are_accepted(value: float) -> None:
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
def test_values_other_than_a_number_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"steps must be a whole number of at least 0, got "):
        at_least("steps", value, 0)
    with pytest.raises(InputError, match=r"k must be a positive number, got "):
        positive("k", value)
    with pytest.raises(InputError, match=r"gamma must lie in \(0, 1\), got "):
        inside("gamma", value, 0, 1)


@pytest.mark.parametrize("value", [*NO_NUMBERS, math.nan, -0.1, 1.1, 10**400])
def test_a_number_outside_a_closed_interval_is_refused(value: Any) -> None:
    assert [between("level", edge, 0, 1) for edge in (0, 1)] == [0.0, 1.0]
    assert between("k", math.inf, 0, math.inf) == math.inf
    with pytest.raises(InputError, match=r"^level must lie in \[0, 1\], got [^\n]+$"):
        between("level", value, 0, 1)
    if value not in (1.1, 10**400) if isinstance(value, float | int) else True:
        with pytest.raises(InputError, match=r"^k must be a number of at least 0, got [^\n]+$"):
            between("k", value, 0, math.inf)


@pytest.mark.parametrize(
    "value", ["0.5", None, {}, 1j, object(), float, [1.0, "a"], [[1.0, 2.0], [3.0]], np.array(["a"]), [None], [10**400]]
)
def test_values_other_than_arrays_of_numbers_are_refused(value: Any) -> None:
    with pytest.raises(InputError, match=r"^rates must be a number or an array of numbers, got [^\n]+$"):
        numbers("rates", value)


@pytest.mark.parametrize(
    "value", [3, [1, 2.5], np.float32(0.5), np.array([True]), [Fraction(1, 2)], np.zeros((0, 2)), [2**70, 0.5]]
)
def test_arrays_of_numbers_become_floats(value: Any) -> None:
    found = numbers("rates", value)
    assert found.dtype == float
    np.testing.assert_array_equal(found, np.array(value).astype(float))


def test_values_of_another_type_are_refused() -> None:
    assert instance("rng", 3, int, "a whole number") == 3
    assert true_or_false("signed", True) is true_or_false("signed", np.bool_(True)) is True  # type: ignore[arg-type]
    assert as_function("the density", abs, "one hazard") is abs
    with pytest.raises(InputError, match=r"^rng must be a whole number, got 'a'$"):
        instance("rng", "a", int, "a whole number")
    for value in (1, None, "yes"):
        with pytest.raises(InputError, match=r"^signed must be True or False, got "):
            true_or_false("signed", value)  # type: ignore[arg-type]
    for value in (1.0, float):
        with pytest.raises(InputError, match=r"^the density must be a function of one hazard, got "):
            as_function("the density", value, "one hazard")


def test_an_array_is_shown_in_one_line() -> None:
    with pytest.raises(InputError) as problem:
        at_least("x", np.eye(2), 1)  # type: ignore[arg-type]
    assert "\n" not in str(problem.value)


def test_numpy_numbers_are_accepted() -> None:
    assert at_least("steps", np.int64(3), 1) == 3
    assert positive("k", np.float32(0.5)) == 0.5
    assert between("level", np.float32(1), 0, 1) == 1
    with pytest.raises(InputError, match=r"got -0\.5$"):
        positive("k", np.float64(-0.5))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2**53, "9,007,199,254,740,992"),
        (2.0**53, "9,007,199,254,740,992"),
        (10**16 + 1, "10,000,000,000,000,001"),
        (1e16, "1e+16"),
        (999_999, "999999"),
        (1.0000001, "1.0000001"),
        (np.int64(2**40), "1,099,511,627,776"),
        (10**400, "a number too large for a float"),
    ],
)
def test_numbers_are_shown_in_full_up_to_a_limit(value: float, text: str) -> None:
    assert shown(value) == text


def test_invalid_paths_are_refused() -> None:
    assert as_path("out", "a/b") == as_path("out", Path("a/b")) == Path("a/b")
    for value in (3, None, b"a", math.nan, "a\0b", "\ud800"):
        with pytest.raises(InputError, match=r"^out must be a path[^\n]*, got [^\n\0]+$"):
            as_path("out", value)


def test_a_function_that_needs_arguments_is_refused() -> None:
    for function in (lambda: 1, lambda x=1: x, lambda *x: x, int, dict):
        needs_no_arguments("make", function)
    with pytest.raises(InputError, match="must be callable without arguments: missing a required argument: 't'"):
        needs_no_arguments("make", lambda t: t)


@pytest.mark.parametrize("value", [0.0, -1.0, 1e-31, 1e31, 1e-320, 1e308, math.nan, math.inf, "a"])
def test_numbers_outside_float32_are_refused(value: Any) -> None:
    assert positive_in_float32("v_max", np.int64(10)) == 10.0
    with pytest.raises(InputError, match=r"^v_max must [^\n]+$"):
        positive_in_float32("v_max", value)


class Colour(Enum):
    RED = 1
    BLUE = 2


def test_only_a_member_of_an_enum_is_accepted() -> None:
    assert member("colour", Colour.RED, Colour) is Colour.RED
    for value in ("RED", 1, None, Colour):
        with pytest.raises(InputError, match=r"^colour must be one of Colour\.RED, Colour\.BLUE, got [^\n]+$"):
            member("colour", value, Colour)


def test_a_number_is_refused_as_a_name() -> None:
    with pytest.raises(InputError, match="agent must be a name, got 3; allowed: dqn, c51"):
        one_of("agent", 3, ["dqn", "c51"])  # type: ignore[arg-type]


def test_folder_with_a_null_character_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"^the folder '[^\n]*a\\x00b' cannot be created: embedded null byte$"):
        writable_folder(tmp_path / "a\x00b")


def test_an_edited_file_is_accepted_after_its_checksum_is_removed(tmp_path: Path) -> None:
    path = write_json(tmp_path / "config.json", {"batch": 32, "steps": 5}, checked=True)
    edited = path.read_text().replace("32", "16")
    path.write_text(edited)
    with pytest.raises(InputError, match='checksum mismatch; restore it, or remove its line "checksum"'):
        read_json(path)
    path.write_text("\n".join(line for line in edited.splitlines() if '"checksum"' not in line))
    assert read_json(path) == {"batch": 16, "steps": 5}
