"""Worlds to act in."""

from multihorizon.envs.pathworld import Pathworld

__all__ = ["Pathworld"]
