"""The hazard wrapper: each episode draws a hidden λ ~ H and ends at each step with probability 1 - e^{-λ}."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.hazard.prior import check_prior
from multihorizon.envs.environment import Environment, Step, check_environment, timing_fields
from multihorizon.errors import InputError

STRATA = 65_536  # number of equally likely quantiles from which hazards are drawn


class HazardState(NamedTuple):
    """The state of the inner environment, and the hazard of the episode."""

    inner: Any
    survive: Float[Array, ""]  # e^{-λ}, the probability of surviving a unit of time
    died: Bool[Array, ""]  # whether hazard ended the episode


@dataclass(frozen=True, eq=False)
class Hazard:
    """Puts any JAX environment under hazard.

    As in the paper, P_λ(s' | s, a) = e^{-λ} P(s' | s, a), and the reward R(s, a) of a step does not depend on survival.
    The agent survives a step of duration dt with probability e^{-λ dt}.

    Args:
        environment: The inner environment.
        prior: The prior over λ. Each episode draws one λ, which the agent does not observe.
    """

    environment: Environment
    prior: Prior

    def __post_init__(self) -> None:
        check_environment(self.environment)
        check_prior(self.prior, "prior")

    @cached_property
    def _survival(self) -> Float[np.ndarray, " strata"]:
        return np.exp(-np.asarray(self.prior.quantile((np.arange(STRATA) + 0.5) / STRATA))).astype(np.float32)

    @property
    def actions(self) -> int:
        return self.environment.actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return self.environment.observation_shape

    @property
    def observation_dtype(self) -> str:
        return self.environment.observation_dtype

    def reset(self, key: Key[Array, ""]) -> tuple[HazardState, Array]:
        hazard_key, inner_key = jax.random.split(key)
        inner, observation = self.environment.reset(inner_key)
        drawn = jnp.asarray(self._survival)[jax.random.randint(hazard_key, (), 0, STRATA)]
        return HazardState(inner, drawn, jnp.zeros((), bool)), observation

    def step(self, key: Key[Array, ""], state: HazardState, action: Int[Array, ""]) -> tuple[HazardState, Step]:
        death_key, inner_key = jax.random.split(key)
        inner, step = self.environment.step(inner_key, state.inner, action)
        survive = state.survive if step.duration is None else state.survive**step.duration
        dies = jax.random.uniform(death_key) >= survive
        return HazardState(inner, state.survive, dies), step._replace(terminated=step.terminated | dies)


@dataclass(frozen=True, eq=False)
class Lethal:
    """Turns the survival probabilities that an environment reports into deaths.

    `Lethal` itself reports no survival: agents must not discount by a danger that already ends their episodes. Use
    `Lethal` to evaluate agents that learned from reported survival, or to train agents that learn the danger from
    experience.

    Args:
        environment: The inner environment. Its steps must report survival.
    """

    environment: Environment

    def __post_init__(self) -> None:
        check_environment(self.environment)
        if not timing_fields(self.environment).survival:
            raise InputError(
                f"Lethal needs steps that report survival, but {type(self.environment).__name__} reports none"
            )

    @property
    def actions(self) -> int:
        return self.environment.actions

    @property
    def observation_shape(self) -> tuple[int, ...]:
        return self.environment.observation_shape

    @property
    def observation_dtype(self) -> str:
        return self.environment.observation_dtype

    def reset(self, key: Key[Array, ""]) -> tuple[Any, Array]:
        return self.environment.reset(key)

    def step(self, key: Key[Array, ""], state: Any, action: Int[Array, ""]) -> tuple[Any, Step]:
        death_key, inner_key = jax.random.split(key)
        state, step = self.environment.step(inner_key, state, action)
        dies = jax.random.uniform(death_key) >= step.survival
        return state, step._replace(terminated=step.terminated | dies, survival=None)
