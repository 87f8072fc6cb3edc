"""The hazard wrapper for any Gymnasium environment."""

from typing import Any, SupportsFloat

import gymnasium
import numpy as np

from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.hazard.prior import check_prior
from multihorizon.envs.timing import declared_timing, read_timing
from multihorizon.errors import at_least, instance

HAZARD = 0x68617A  # part of the random seed for hazard


class GymnasiumHazard(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A Gymnasium environment under hazard.

    Each reset draws a hidden λ from the prior. The agent survives a step with probability e^{-λ}, or e^{-λ dt} if the
    environment declares durations. It earns the step's reward either way. `info["died_by_hazard"]` is true if hazard
    ended the episode.

    Args:
        env: The environment.
        prior: The prior over λ.
        seed: The seed of the random numbers that decide λ and deaths; by default, a random seed. A seed given to
            `reset` replaces this seed.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], prior: Prior, seed: int | None = None) -> None:
        instance("env", env, gymnasium.Env, "a Gymnasium environment")
        super().__init__(env)
        self._prior = check_prior(prior, "prior")
        self._rng = np.random.default_rng(None if seed is None else [at_least("seed", seed, 0), HAZARD])
        self._survive = 1.0
        self._timing = declared_timing(env.metadata)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        if seed is not None:
            # Without `HAZARD` in the seed, λ would be correlated with the first observation.
            self._rng = np.random.default_rng([seed, HAZARD])
        self._survive = float(np.exp(-self._prior.sample(self._rng, 1)[0]))
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        lasts = read_timing(info, self._timing).duration if self._timing.duration else 1.0
        died = bool(self._rng.random() >= self._survive**lasts)
        return observation, reward, terminated or died, truncated, {**info, "died_by_hazard": died}
