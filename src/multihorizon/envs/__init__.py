"""Environments on the device and on the host.

Your own JAX environments must implement `Environment`.
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
    """Imports a public name on first use, because some of the names must work without JAX."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'multihorizon.envs' has no attribute {name!r}")
    return getattr(import_module(f"multihorizon.envs.{_HOMES[name]}"), name)
