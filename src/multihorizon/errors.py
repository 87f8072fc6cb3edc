"""Errors for users: one line that says what is wrong, what is allowed and what to do."""

import difflib
import inspect
import math
import os
import unicodedata
from collections.abc import Callable, Iterable
from enum import Enum
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import numpy as np

    Numbers = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

Kind = TypeVar("Kind")
Choice = TypeVar("Choice", bound=Enum)


class InputError(ValueError):
    """An invalid argument or input file. The command line prints the message and exits with status 2."""


def one_of(what: str, name: str, allowed: Iterable[str], listed_by: str = "") -> str:
    """Returns `name` if it is allowed. The error lists the allowed names or refers to the command `listed_by`."""
    names = list(allowed)
    if not isinstance(name, str):
        raise InputError(f"{what} must be a name, got {shown(name)}; allowed: {', '.join(names)}")
    if name in names:
        return name
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f" (did you mean '{near[0]}'?)" if near else ""
    allowed_are = f"`{listed_by}` lists all {len(names)}" if listed_by else f"allowed: {', '.join(names)}"
    raise InputError(f"unknown {what} {shown(name)}{hint}; {allowed_are}")


def member(name: str, value: object, kind: type[Choice]) -> Choice:
    """Returns `value` if it is a member of the enum `kind`."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be one of {', '.join(map(str, kind))}, got {shown(value)}")
    return value


def is_on(variable: str) -> bool:
    """Returns whether an environment variable is `on` (the default) rather than `off`."""
    return one_of(f"value of {variable}", os.environ.get(variable, "on").lower(), ["on", "off"]) == "on"


LARGEST_WHOLE_NUMBER = 2**53  # floats represent every whole number up to this one


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


LEAST_IN_FLOAT32, MOST_IN_FLOAT32 = 1e-30, 1e30  # the device computes in float32


def positive_in_float32(name: str, value: float) -> float:
    """Returns `value` if it lies from 1e-30 to 1e30, well within the range of float32."""
    return between(name, positive(name, value), LEAST_IN_FLOAT32, MOST_IN_FLOAT32)


LONGEST_NAME = 200  # characters


def short_text(name: str, value: str, most: int = LONGEST_NAME) -> str:
    """Returns `value` if it is a string of at most `most` characters that a file can store."""
    if not isinstance(value, str):
        raise InputError(f"{name} must be a string, got {shown(value)}")
    if len(value) > most:
        raise InputError(f"{name} must have at most {most:,} characters, got {len(value):,}")
    try:
        value.encode()
    except UnicodeEncodeError:
        raise InputError(f"{name} cannot be encoded: it contains an unpaired surrogate") from None
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
    """Returns a number or an array of numbers as an array of floats, which may be infinite or NaN."""
    import numpy as np

    try:
        array = np.asarray(value)
    except (TypeError, ValueError, OverflowError):  # for example, a ragged list
        array = np.array(None)
    if array.dtype.kind == "O" and array.size and all(is_number(one) for one in array.flat):  # for example, fractions
        return array.astype(float, copy=False)
    if array.dtype.kind not in "biuf":
        raise InputError(f"{name} must be a number or an array of numbers, got {shown(value)}")
    return array.astype(float, copy=False)


def instance(name: str, value: Any, kind: type[Kind], allowed: str) -> Kind:
    """Returns `value` if it has the type `kind`. `allowed` describes this type in the error."""
    if not isinstance(value, kind):
        raise InputError(f"{name} must be {allowed}, got {shown(value)}")
    return value


def true_or_false(name: str, value: bool) -> bool:
    """Returns `value` if it is True or False."""
    if not isinstance(value, bool):
        import numpy as np

        instance(name, value, np.bool_, "True or False")
    return bool(value)


def as_function(name: str, value: Any, of: str) -> Callable[..., Any]:
    """Returns `value` if it is a function. `of` describes its arguments in the error."""
    if not callable(value) or isinstance(value, type):
        raise InputError(f"{name} must be a function of {of}, got {shown(value)}")
    return value


def needs_no_arguments(name: str, function: Callable[..., Any]) -> None:
    """Raises an error if a function cannot be called without arguments."""
    try:
        inspect.signature(function).bind()
    except ValueError:  # some built-in functions have no signature
        return
    except TypeError as problem:
        raise InputError(f"{name} must be callable without arguments: {problem}") from None


def as_path(name: str, value: Any) -> Path:
    """Returns `value` as a path that file systems can store."""
    try:
        path = Path(value)
        os.fsencode(path)
    except (TypeError, UnicodeEncodeError):
        raise InputError(f"{name} must be a path, got {shown(value)}") from None
    if "\0" in str(path):
        raise InputError(f"{name} must be a path without null characters, got {shown(value)}")
    return path


def store(owner: Any, **values: Any) -> None:
    """Sets fields of a frozen dataclass to checked values. Only its `__post_init__` may call this."""
    for name, value in values.items():
        object.__setattr__(owner, name, value)


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
    """Formats a value for an error message, in at most 80 characters."""
    if not is_number(value):
        text = (
            repr(value) if not isinstance(value, int) or isinstance(value, bool) else "a number too large for a float"
        )
        text = " ".join(text.split())
        return text if len(text) <= 80 else f"{text[:77]}..."
    number = float(value)  # type: ignore[arg-type]
    most = 1e21 if isinstance(value, Integral) else 1e16  # larger numbers are shown with an exponent
    if 1e6 <= abs(number) < most and value == int(value):  # type: ignore[call-overload]
        return f"{int(value):,}"  # type: ignore[call-overload]
    short = f"{number:g}"
    return short if float(short) == number else repr(number)  # 1.0000001 must not be shown as 1


def shown_gamma(gamma: float) -> str:
    """Formats γ with six digits, or with more digits if six would show 1."""
    short = f"{gamma:.6g}"
    return short if gamma == 1 or float(short) < 1 else f"{gamma:.15g}"


REPLACEMENT = "�"
CONTROLS = ("Cc", "Cf", "Cs")  # Unicode categories of control characters, direction marks and surrogates


def show_controls(text: str) -> str:
    """Returns the text with � in place of every control character except line breaks."""
    return "".join(REPLACEMENT if c != "\n" and is_control(c) else c for c in text)


def is_control(character: str) -> bool:
    """Returns whether a character can control a terminal or is invalid in XML."""
    return unicodedata.category(character) in CONTROLS or ord(character) & 0xFFFE == 0xFFFE
