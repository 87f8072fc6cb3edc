"""Errors for users: one line that says what is wrong, what is allowed and what to do."""

import difflib
import math
import os
from collections.abc import Callable, Iterable
from enum import Enum
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

Kind = TypeVar("Kind")
Choice = TypeVar("Choice", bound=Enum)


class InputError(ValueError):
    """An invalid argument or input file. The command line prints the message and exits with status 2."""


def one_of(what: str, name: str, allowed: Iterable[str], listed_by: str = "") -> str:
    """Returns `name` if it is allowed. The error suggests the nearest name and lists all, or refers to `listed_by`."""
    names = list(allowed)
    if not isinstance(name, str):
        raise InputError(f"{what} must be a name, got {shown(name)}; allowed: {', '.join(names)}")
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    allowed_are = f"{listed_by} lists all {len(names)}" if listed_by else f"allowed: {', '.join(names)}"
    raise InputError(f"unknown {what} '{name}'{hint}; {allowed_are}")


def member(name: str, value: object, kind: type[Choice]) -> Choice:
    """Returns `value` if it is a member of the enum `kind`."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be one of {', '.join(map(str, kind))}, got {shown(value)}")
    return value


def is_on(variable: str) -> bool:
    """Returns whether an environment variable is `on`, the default. Values other than `on` and `off` are errors."""
    return one_of(f"value of {variable}", os.environ.get(variable, "on").lower(), ["on", "off"]) == "on"


LARGEST_WHOLE_NUMBER = 2**53  # up to here a float can represent every whole number


def positive(name: str, value: float) -> float:
    """Returns `value` if it is a positive, finite number."""
    if not (is_number(value) and value > 0 and math.isfinite(value)):
        raise InputError(f"{name} must be a positive number, got {shown(value)}")
    return float(value)


def at_least(name: str, value: int, least: int, most: int = LARGEST_WHOLE_NUMBER) -> int:
    """Returns `value` if it is a whole number from `least` to `most`."""
    if not (is_number(value) and math.isfinite(value) and value == int(value) and value >= least):
        raise InputError(f"{name} must be a whole number of at least {least}, got {shown(value)}")
    if value > most:
        raise InputError(f"{name} must be at most {most:,}, got {shown(value)}")
    return int(value)


LONGEST_NAME = 200  # characters


def short_text(name: str, value: str, most: int = LONGEST_NAME) -> str:
    """Returns `value` if it is a string of at most `most` characters."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {shown(value)}")
    if len(value) > most:
        raise InputError(f"{name} must have at most {most:,} characters, got {len(value):,}")
    return value


def inside(name: str, value: float, low: float, high: float) -> float:
    """Returns `value` if it lies in the open interval (low, high)."""
    if not (is_number(value) and low < value < high):
        raise InputError(f"{name} must lie in ({low:g}, {high:g}), got {shown(value)}")
    return float(value)


def between(name: str, value: float, low: float, high: float) -> float:
    """Returns `value` if it lies in the closed interval [low, high]; `high` may be ∞."""
    if not (is_number(value) and low <= value <= high):
        allowed = f"lie in [{low:g}, {high:g}]" if high < math.inf else f"be a number of at least {low:g}"
        raise InputError(f"{name} must {allowed}, got {shown(value)}")
    return float(value)


def numbers(name: str, value: Any) -> "Numbers":
    """Returns `value`, a real number or an array of them, as an array of floats. They may be infinite or NaN."""
    import numpy as np

    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # such as a ragged list
        array = np.array(None)
    if array.dtype.kind == "O" and array.size and all(is_number(one) for one in array.flat):  # such as fractions
        return array.astype(float, copy=False)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a number or an array of numbers, got {shown(value)}")
    return array.astype(float, copy=False)


def instance(name: str, value: Any, kind: type[Kind], allowed: str) -> Kind:
    """Returns `value` if it has the type `kind`, which the error message describes as `allowed`."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {allowed}, got {shown(value)}")
    return value


def true_or_false(name: str, value: bool) -> bool:
    """Returns `value` if it is True or False."""
    return instance(name, value, bool, "True or False")


def as_function(name: str, value: Any, of: str) -> Callable[..., Any]:
    """Returns `value` if it is a function; the error message says what it must be a function of."""
    if not callable(value) or isinstance(value, type):
        raise InputError(f"{name} must be a function of {of}, got {shown(value)}")
    return value


def is_number(value: object) -> bool:
    """Returns whether a value is a number that a float can represent. True and False are not numbers."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def shown(value: object) -> str:
    """Formats a value for an error message: a number as a number, anything else as its repr, cut to 80 characters."""
    if not is_number(value):
        text = (
            repr(value) if not isinstance(value, int) or isinstance(value, bool) else "a number too large for a float"
        )
        text = " ".join(text.split())
        return text if len(text) <= 80 else f"{text[:77]}..."
    number = float(value)  # type: ignore[arg-type]
    return f"{int(number):,}" if 1e6 <= abs(number) < 1e15 and number == int(number) else f"{number:g}"
