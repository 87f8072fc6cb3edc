"""Timing: the duration dt and the survival probability e^{-λ} of each step, which an environment may report.

Heads discount a step by γ^{dt} e^{-λ}. Fields that an environment does not report cost no memory and no computation.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from multihorizon.errors import InputError, one_of, shown


class TimingFields(NamedTuple):
    """The fields of `Timing` that an environment reports, which are the same at every step."""

    duration: bool = False
    survival: bool = False

    def fill(self, make: Callable[[], Any]) -> "Timing":
        """Returns a timing with `make()` in each reported field and None in the others."""
        return Timing(*(make() if field else None for field in self))


class Timing(NamedTuple):
    """The timing of one or more steps. A field that is not reported is None and counts as 1.

    Attributes:
        duration: The duration of a step, positive and finite.
        survival: The probability e^{-λ(s, a)} of surviving a step, in (0, 1].
    """

    duration: Any = None
    survival: Any = None

    @property
    def fields(self) -> TimingFields:
        """Whether each field is reported."""
        return TimingFields(*(field is not None for field in self))


def check_timing(duration: float = 1.0, survival: float = 1.0) -> None:
    """Raises `InputError` for a duration or a survival that is out of range."""
    if not (duration > 0 and math.isfinite(duration)):
        raise InputError(f"the environment gave a duration of {duration:g}; a duration must be positive and finite")
    if not 0 < survival <= 1:
        raise InputError(f"the environment gave a survival of {survival:g}; it is a probability and must lie in (0, 1]")


METADATA = "timing"  # key of the declared timing fields in the metadata of a Gymnasium environment


def declares_timing(metadata: Any) -> bool:
    """Returns whether the metadata of a Gymnasium environment declares timing. None counts as not declared."""
    if not isinstance(metadata, Mapping):
        raise InputError(f"metadata of an environment must be a dictionary, got {shown(metadata)}")
    return metadata.get(METADATA) is not None


def declared_timing(metadata: Any) -> TimingFields:
    """Returns the fields that a Gymnasium environment declares in `metadata["timing"]`, such as ("duration",)."""
    if not declares_timing(metadata):
        return TimingFields()
    given = metadata[METADATA]
    if not isinstance(given, str | list | tuple | set | frozenset):
        raise InputError(
            f'metadata["{METADATA}"] must be a tuple of field names, such as ("duration", "survival"), '
            f"got {shown(given)}"
        )
    named = (given,) if isinstance(given, str) else tuple(given)
    for name in named:
        one_of(f'field in metadata["{METADATA}"]', name, Timing._fields)
    return TimingFields(*(field in named for field in Timing._fields))


def read_timing(info: Mapping[str, Any], fields: TimingFields) -> Timing:
    """Reads the timing of one step from the info of a Gymnasium environment."""
    timing = Timing(*(_number(info, name) if field else None for name, field in fields._asdict().items()))
    check_timing(**{name: value for name, value in timing._asdict().items() if value is not None})
    return timing


def _number(info: Mapping[str, Any], name: str) -> float:
    if name not in info:
        raise InputError(
            f'the environment declares "{name}" in metadata["{METADATA}"], but a step has no info["{name}"]; report it '
            "at every step"
        )
    try:
        return float(info[name])
    except (TypeError, ValueError, OverflowError):
        raise InputError(f'info["{name}"] must be a number, got {shown(info[name])}') from None
