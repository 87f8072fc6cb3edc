"""Adapts JAX environments with gymnax's interface, without importing gymnax.

Environments of gymnax and Craftax have `default_params`, `reset(key, params) -> (observation, state)` and
`step(key, state, action, params) -> (observation, state, reward, done, info)`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from multihorizon.envs.environment import Step
from multihorizon.envs.timing import Timing
from multihorizon.errors import InputError


def is_like(env: Any) -> bool:
    """Returns whether `env`, or the first element of a pair (environment, params), has gymnax's interface."""
    if isinstance(env, tuple) and len(env) == 2:
        env = env[0]
    return all(hasattr(env, name) for name in ("default_params", "reset", "step", "action_space"))


@dataclass(frozen=True, eq=False)
class Gymnax:
    """A gymnax environment and its parameters."""

    environment: Any
    params: Any

    @staticmethod
    def of(env: Any) -> "Gymnax":
        """Adapts an environment, or a pair (environment, params)."""
        if isinstance(env, tuple):
            return Gymnax(*env)
        return Gymnax(env, env.default_params)

    def __post_init__(self) -> None:
        if not hasattr(self._space, "n"):
            name = type(self.environment).__name__
            raise InputError(f"only discrete actions are supported, but {name} has {type(self._space).__name__}")

    @cached_property
    def _space(self) -> Any:
        return self.environment.action_space(self.params)

    @property
    def actions(self) -> int:
        return int(self._space.n)

    @cached_property
    def _observed(self) -> Any:
        observed = jax.eval_shape(self.reset, jax.random.key(0))[1]
        if not hasattr(observed, "shape"):
            raise InputError(
                f"an observation must be one array, but {type(self.environment).__name__} returns "
                f"{type(observed).__name__}; wrap the environment to flatten its observations"
            )
        return observed

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return tuple(self._observed.shape)

    @property
    def observation_dtype(self) -> str:
        return str(self._observed.dtype)

    def reset(self, key: Key[Array, ""]) -> tuple[Any, Array]:
        observation, state = self.environment.reset(key, self.params)
        return state, observation

    def step(self, key: Key[Array, ""], state: Any, action: Int[Array, ""]) -> tuple[Any, Step]:
        """Calls `step_env`, or `step` if there is no `step_env`. The called method must not reset the environment.

        Some versions return one value `done`, which includes the time limit. Other versions return terminated and
        truncated separately. The fields `duration` and `survival` of `info` are optional.
        """
        move = getattr(self.environment, "step_env", self.environment.step)
        observation, state, reward, *ends, info = move(key, state, action, self.params)
        terminated = jnp.asarray(ends[0], bool)
        truncated = jnp.asarray(ends[1], bool) if len(ends) > 1 else self._truncated(state)
        timing = (info.get(name) if isinstance(info, Mapping) else None for name in Timing._fields)
        return state, Step(observation, jnp.asarray(reward, jnp.float32), terminated & ~truncated, truncated, *timing)

    def _truncated(self, state: Any) -> Any:
        if hasattr(self.environment, "is_truncated"):
            return jnp.asarray(self.environment.is_truncated(state, self.params), bool)
        for limit, time in (("max_steps_in_episode", "time"), ("max_timesteps", "timestep")):  # gymnax, Craftax
            if hasattr(self.params, limit) and hasattr(state, time):
                return jnp.asarray(getattr(state, time) >= getattr(self.params, limit))
        return jnp.zeros((), bool)
