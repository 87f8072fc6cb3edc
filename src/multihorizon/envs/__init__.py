"""Environments on the device and on the host.

A JAX environment of your own implements `Environment`, and its `step` returns the next state and a `Step`.
"""

from typing import Any

_HOMES = {
    "Dilemma": "dilemmas",
    "Environment": "environment",
    "Foraging": "foraging",
    "GymnasiumHazard": "gymnasium_hazard",
    "Hazard": "hazard",
    "Lethal": "hazard",
    "Pathworld": "pathworld",
    "Shortcut": "shortcut",
    "Step": "environment",
}
__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    """Imports public names when they are first used, because some import JAX and others must work without it."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'multihorizon.envs' has no attribute {name!r}")
    return getattr(import_module(f"multihorizon.envs.{_HOMES[name]}"), name)
