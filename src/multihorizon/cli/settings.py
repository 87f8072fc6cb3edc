"""Parses agent settings from the command line: NAME=VALUE or NAME.PART=VALUE."""

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multihorizon.cli.running import whole
from multihorizon.errors import InputError, one_of
from multihorizon.files import read_text

if TYPE_CHECKING:
    from multihorizon.agents.config import AgentConfig
    from multihorizon.discounting import Horizons


def horizons_from(path: Path) -> "Horizons":
    """Reads a JSON object with gammas and weights."""
    import numpy as np

    from multihorizon.discounting import Horizons

    text = read_text(path)
    try:
        content = json.loads(text)
        return Horizons(np.array(content["gammas"], float), np.array(content["weights"], float))
    except (ValueError, KeyError, TypeError, RecursionError) as problem:
        said = problem if isinstance(problem, InputError) else "it must be a JSON object with gammas and weights"
        raise InputError(
            f"{path} does not hold horizons: {said}; `multihorizon discount --out DIR` writes horizons to a file"
        ) from None


def parsed(agent: "AgentConfig", assignment: str) -> dict[str, Any]:
    """Parses NAME=VALUE or NAME.PART=VALUE for `AgentConfig.with_settings`."""
    path, separator, text = assignment.partition("=")
    if not separator:
        raise InputError(f"--set takes NAME=VALUE, got '{assignment}'")
    name, _, part = path.partition(".")
    agent.check_setting(name, part)
    old = getattr(agent, name)
    return {path: _parsed(part or name, getattr(old, part) if part else old, text)}


def _parsed(name: str, old: Any, text: str) -> Any:
    """Parses `text` as a value of the same type as `old`."""
    from dataclasses import fields, is_dataclass
    from enum import Enum

    if name == "acting" and text[:1].isdigit():
        return _parsed("the γ to act by", 0.0, text)
    if isinstance(old, Enum):
        return type(old)[one_of(name, text.upper(), [choice.name for choice in type(old)])]
    if isinstance(old, bool):
        return one_of(name, text.lower(), ["true", "false"]) == "true"
    if isinstance(old, str):
        return text
    if isinstance(old, int):
        try:
            return whole(text)
        except argparse.ArgumentTypeError:
            raise InputError(f"{name} must be a whole number, got '{text}'") from None
    if isinstance(old, float):
        try:
            value = float(text)
            if not math.isfinite(value):
                raise ValueError
            return value
        except ValueError:
            raise InputError(f"{name} must be a number, got '{text}'") from None
    if is_dataclass(old):
        parts = [part.name for part in fields(old) if isinstance(getattr(old, part.name), Enum | str | int | float)]
        if parts:
            choices = ", ".join(f"{name}.{part}" for part in parts)
            raise InputError(f"{name} cannot be set as a whole; set one of its parts: {choices}")
    raise InputError(f"{name} cannot be set on the command line; use Python")
