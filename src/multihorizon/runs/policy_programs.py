"""The compiled programs of a policy, for batches of observations."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from multihorizon.agents.acting import Acting
from multihorizon.agents.learner import Learner, Parameters

LONGEST_ELAPSED = 1e9  # after this number of steps, the weights of the heads stay constant


class PolicyPrograms:
    """Computes what a network predicts for a batch of observations, and the greedy actions."""

    def __init__(self, learner: Learner, parameters: Parameters) -> None:
        self.learner, self.parameters = learner, parameters
        self._values = jax.jit(jax.vmap(learner.values, (None, 0)))
        self._distribution = jax.jit(jax.vmap(learner.distribution, (None, 0)))
        self._risk_scores = jax.jit(jax.vmap(learner.risk_scores, (None, 0, 0)))

    def values(self, batch: np.ndarray) -> Float[np.ndarray, "B H A"]:
        """Returns the Q-values."""
        return np.asarray(self._values(self.parameters, jnp.asarray(batch)))

    def distribution(self, batch: np.ndarray) -> Float[np.ndarray, "B H A Z"]:
        """Returns the probabilities of the atoms."""
        return np.asarray(self._distribution(self.parameters, jnp.asarray(batch)))

    def best(
        self, batch: np.ndarray, weights: Float[np.ndarray, "B H"], elapsed: ArrayLike, rng: np.random.Generator
    ) -> Int[np.ndarray, " B"]:
        """Returns the greedy actions. `weights` are the weights of the heads for each observation."""
        if self.learner.risk is not None:
            times: Any = np.broadcast_to(np.minimum(elapsed, LONGEST_ELAPSED).astype(np.float32), (len(batch),))
            return np.asarray(self._risk_scores(self.parameters, jnp.asarray(batch), times)).argmax(axis=1)
        values = self.values(batch).astype(np.float64)
        if self.learner.agent.acting is Acting.SAMPLED_HEAD:
            heads = rng.choice(values.shape[1], size=len(values), p=weights[0])
            return values[np.arange(len(values)), heads].argmax(axis=1)
        return np.einsum("bh,bha->ba", weights, values).argmax(axis=1)
