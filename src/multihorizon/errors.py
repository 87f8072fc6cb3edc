"""Errors for people: one line that says what is wrong, what is allowed and what to do."""

import difflib
import math
import os
from collections.abc import Iterable
from numbers import Real


class InputError(ValueError):
    """A value the caller gave cannot be used. The command line prints the message and exits with status 2."""


def one_of(what: str, name: str, allowed: Iterable[str], listed_by: str = "") -> str:
    """`name` if it is allowed; otherwise an error that names the nearest right one, and all, or what lists them."""
    names = list(allowed)
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    allowed_are = f"{listed_by} lists all {len(names)}" if listed_by else f"allowed: {', '.join(names)}"
    raise InputError(f"unknown {what} '{name}'{hint}; {allowed_are}")


def is_on(variable: str) -> bool:
    """Whether an environment variable leaves on what it could switch off; a misspelt one is refused."""
    return one_of(f"value of {variable}", os.environ.get(variable, "on").lower(), ["on", "off"]) == "on"


def positive(name: str, value: float) -> float:
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"{name} must be a positive number, got {value:g}")
    return float(value)


def at_least(name: str, value: int, least: int, most: float = math.inf) -> int:
    if not isinstance(value, Real):
        raise InputError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if not (math.isfinite(value) and value == int(value) and value >= least):
        raise InputError(f"{name} must be a whole number of at least {least}, got {value:g}")
    if value > most:
        raise InputError(f"{name} must be at most {most:,.0f}, got {value:,}")
    return int(value)


def inside(name: str, value: float, low: float, high: float) -> float:
    """`value` if it lies in the open interval (low, high)."""
    if not low < value < high:
        raise InputError(f"{name} must lie in ({low:g}, {high:g}), got {value:g}")
    return float(value)
