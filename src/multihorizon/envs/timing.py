"""Timing: the duration and the survival probability of each step, which an environment may report.

Heads discount a step by γ^{dt} e^{-λ}, where dt is its duration and e^{-λ} its survival. Most environments report
neither, and timing then takes no memory and no computation. Which fields are reported is fixed
before training, in `TimingFields`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from multihorizon.errors import InputError, one_of, shown


class TimingFields(NamedTuple):
    """The fields of `Timing` that an environment reports. They are the same at every step.

    Attributes:
        duration: Whether steps report a duration.
        survival: Whether steps report a survival probability.
    """

    duration: bool = False
    survival: bool = False

    def fill(self, make: Callable[[], Any]) -> "Timing":
        """Returns a timing with a value in each reported field.

        Args:
            make: Makes one value. It is called once for each reported field, in order.

        Returns:
            The timing, with None in the other fields.
        """
        return Timing(*(make() if field else None for field in self))


class Timing(NamedTuple):
    """The timing of one or more steps. A field that is not reported is None, which means 1.

    Attributes:
        duration: The duration of a step, positive and finite.
        survival: The probability e^{-λ(s, a)} of surviving a step, in (0, 1].
    """

    duration: Any = None
    survival: Any = None

    @property
    def fields(self) -> TimingFields:
        """The fields that are not None."""
        return TimingFields(*(field is not None for field in self))


def check_timing(duration: float = 1.0, survival: float = 1.0) -> None:
    """Raises `InputError` for a duration or a survival that is out of range."""
    if not (duration > 0 and math.isfinite(duration)):
        raise InputError(f"the environment gave a duration of {duration:g}; a duration must be positive and finite")
    if not 0 < survival <= 1:
        raise InputError(f"the environment gave a survival of {survival:g}; it is a probability and must lie in (0, 1]")


METADATA = "timing"  # key in the metadata of a Gymnasium environment: the fields that `info` has at every step


def declares_timing(metadata: Any) -> bool:
    """Returns whether a Gymnasium environment has `metadata["timing"]`. None counts as not declared."""
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
            f'metadata["{METADATA}"] must name fields, as in ("duration", "survival"), or be () for none, '
            f"got {shown(given)}"
        )
    named = (given,) if isinstance(given, str) else tuple(given)
    for name in named:
        one_of(f'field in metadata["{METADATA}"]', name, Timing._fields)
    return TimingFields(*(field in named for field in Timing._fields))


def read_timing(info: Mapping[str, Any], fields: TimingFields) -> Timing:
    """Returns the timing of one step of a Gymnasium environment, from its info.

    Raises:
        InputError: A declared field is missing, is not a number, or has a value that is not allowed.
    """
    timing = Timing(*(_number(info, name) if field else None for name, field in fields._asdict().items()))
    check_timing(**{name: value for name, value in timing._asdict().items() if value is not None})
    return timing


def _number(info: Mapping[str, Any], name: str) -> float:
    if name not in info:
        raise InputError(
            f'metadata["{METADATA}"] of the environment names "{name}", so the info of every step must contain it; '
            "it is missing from the info of a step"
        )
    try:
        return float(info[name])
    except (TypeError, ValueError, OverflowError):
        raise InputError(f'info["{name}"] must be a number, got {shown(info[name])}') from None
