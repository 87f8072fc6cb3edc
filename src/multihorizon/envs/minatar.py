"""MinAtar's games on the device. Only this file imports pgx."""

import importlib
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from multihorizon.envs.environment import Step
from multihorizon.errors import InputError, one_of

GAMES = ("asterix", "breakout", "freeway", "seaquest", "space_invaders")
STICKY = 0.1  # probability that the previous action is repeated; MinAtar's default


@dataclass(frozen=True, eq=False)
class MinAtar:
    """One game with its minimal action set."""

    game: str
    sticky_action_probability: float = STICKY

    def __post_init__(self) -> None:
        one_of("MinAtar game", self.game, GAMES)

    @cached_property
    def _pgx(self) -> Any:
        try:
            module = importlib.import_module(f"pgx.minatar.{self.game}")
        except ImportError:
            raise InputError("MinAtar needs pgx: pip install pgx") from None
        made = getattr(module, "MinAtar" + self.game.title().replace("_", ""))
        return made(use_minimal_action_set=True, sticky_action_prob=self.sticky_action_probability)

    @property
    def actions(self) -> int:
        return int(self._pgx.num_actions)

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return tuple(self._pgx.observation_shape)

    @property
    def observation_dtype(self) -> str:
        return "bool"

    def reset(self, key: Key[Array, ""]) -> tuple[Any, Array]:
        state = self._pgx.init(key)
        return state, state.observation

    def step(self, key: Key[Array, ""], state: Any, action: Int[Array, ""]) -> tuple[Any, Step]:
        state = self._pgx.step(state, action, key)
        return state, Step(state.observation, state.rewards[0], state.terminated, jnp.asarray(state.truncated))
