"""A deterministic finite MDP as an environment with one-hot observations."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, UInt8

from multihorizon.envs.environment import Step
from multihorizon.errors import InputError
from multihorizon.mdp import HazardousMDP

ENDS = -1


class FiniteState(NamedTuple):
    """The state of the MDP, and the number of steps since the start of the episode."""

    place: Int[Array, ""]
    steps: Int[Array, ""]


@dataclass(frozen=True, eq=False)
class FiniteWorld:
    """A deterministic MDP as an environment.

    If the MDP has durations or survivals, each step reports its duration or its survival probability. The environment
    does not draw whether the agent survives, so a survival probability below 1 does not end an episode.

    Attributes:
        mdp: The MDP. Its hazard and its discount are not used.
        starts: The states in which episodes start, with equal probability.
        observation_shape: The shape of the one-hot observation.
        most_steps: The number of steps after which an episode is truncated; 0 means never.
        backdrop: The background colour of each cell in rendered images.
    """

    mdp: HazardousMDP
    starts: Int[np.ndarray, " n"]
    observation_shape: tuple[int, ...]
    most_steps: int = 0
    backdrop: UInt8[np.ndarray, "h w 3"] | None = None

    def __post_init__(self) -> None:
        if int(np.prod(self.observation_shape)) != self.mdp.states:
            raise InputError(f"{self.mdp.states} states do not fill an observation of shape {self.observation_shape}")
        _ = self._next

    @cached_property
    def _next(self) -> Int[np.ndarray, "S A"]:
        matrix = self.mdp.moves
        if matrix.nnz and matrix.data.min() < 1:
            raise InputError(
                "a finite world must be deterministic: each transition must lead to one state or end the episode"
            )
        following = np.full(matrix.shape[0], ENDS)
        following[np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))] = matrix.indices
        return following.reshape(self.mdp.rewards.shape)

    @property
    def actions(self) -> int:
        return self.mdp.actions

    @property
    def observation_dtype(self) -> str:
        return "bool"

    def observe(self, place: Int[Array, ""]) -> Bool[Array, "..."]:
        return (jnp.arange(self.mdp.states) == place).reshape(self.observation_shape)

    def reset(self, key: Key[Array, ""]) -> tuple[FiniteState, Bool[Array, "..."]]:
        place = jax.random.choice(key, jnp.asarray(self.starts))
        return FiniteState(place, jnp.zeros((), jnp.int32)), self.observe(place)

    def step(self, key: Key[Array, ""], state: FiniteState, action: Int[Array, ""]) -> tuple[FiniteState, Step]:
        del key
        following = jnp.asarray(self._next)[state.place, action]
        reward: Float[Array, ""] = jnp.asarray(self.mdp.rewards, jnp.float32)[state.place, action]
        terminated = following == ENDS
        place = jnp.where(terminated, state.place, following)
        steps = state.steps + 1
        truncated = ~terminated & (steps >= self.most_steps) & (self.most_steps > 0)
        durations, survivals = (
            None if each is None else jnp.asarray(each, jnp.float32)[state.place, action]
            for each in (self.mdp.durations, self.mdp.survivals)
        )
        step = Step(self.observe(place), reward, terminated, truncated, durations, survivals)
        return FiniteState(place, steps), step
