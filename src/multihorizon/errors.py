"""Errors for users: one line that says what is wrong, what is allowed and what to do."""

import difflib
import math
import os
from collections.abc import Iterable
from numbers import Real


class InputError(ValueError):
    """An invalid argument or input file. The command line prints the message and exits with status 2."""


def one_of(what: str, name: str, allowed: Iterable[str], listed_by: str = "") -> str:
    """Returns `name` if it is allowed. The error suggests the nearest name and lists all, or refers to `listed_by`."""
    names = list(allowed)
    if not isinstance(name, str):
        raise InputError(f"{what} must be a name, got {_shown(name)}; allowed: {', '.join(names)}")
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    allowed_are = f"{listed_by} lists all {len(names)}" if listed_by else f"allowed: {', '.join(names)}"
    raise InputError(f"unknown {what} '{name}'{hint}; {allowed_are}")


def is_on(variable: str) -> bool:
    """Returns whether an environment variable is `on`, the default. Values other than `on` and `off` are errors."""
    return one_of(f"value of {variable}", os.environ.get(variable, "on").lower(), ["on", "off"]) == "on"


LARGEST_WHOLE_NUMBER = 2**53  # up to here a float can represent every whole number


def positive(name: str, value: float) -> float:
    """Returns `value` if it is a positive, finite number."""
    if not (_is_number(value) and value > 0 and math.isfinite(value)):
        raise InputError(f"{name} must be a positive number, got {_shown(value)}")
    return float(value)


def at_least(name: str, value: int, least: int, most: int = LARGEST_WHOLE_NUMBER) -> int:
    """Returns `value` if it is a whole number from `least` to `most`."""
    if not (_is_number(value) and math.isfinite(value) and value == int(value) and value >= least):
        raise InputError(f"{name} must be a whole number of at least {least}, got {_shown(value)}")
    if value > most:
        raise InputError(f"{name} must be at most {most:,}, got {_shown(value)}")
    return int(value)


def inside(name: str, value: float, low: float, high: float) -> float:
    """Returns `value` if it lies in the open interval (low, high)."""
    if not (_is_number(value) and low < value < high):
        raise InputError(f"{name} must lie in ({low:g}, {high:g}), got {_shown(value)}")
    return float(value)


def _is_number(value: object) -> bool:
    """Returns whether a value is a number that a float can represent. True and False are not numbers."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return False
    try:
        float(value)
    except OverflowError:
        return False
    return True


def _shown(value: object) -> str:
    """Formats a value for an error message: numbers as numbers, anything else as its repr, in 80 characters."""
    if not _is_number(value):
        text = (
            repr(value) if not isinstance(value, int) or isinstance(value, bool) else "a number too large for a float"
        )
        text = " ".join(text.split())
        return text if len(text) <= 80 else f"{text[:77]}..."
    number = float(value)  # type: ignore[arg-type]
    return f"{int(number):,}" if 1e6 <= abs(number) < 1e15 and number == int(number) else f"{number:g}"
