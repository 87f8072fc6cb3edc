"""Stops training that diverges, and keeps the last good weights."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, PyTree

from multihorizon.agents.learner import Learner
from multihorizon.agents.losses import Categorical
from multihorizon.agents.replay import extremes
from multihorizon.envs.timing import Timing, check_timing
from multihorizon.errors import InputError

FACTOR = 3  # training has diverged if its mean loss exceeds this multiple of an untrained network's loss
LEAST_UPDATES = 100  # the guard does not check a mean loss over fewer updates, which is too noisy


class DivergenceError(InputError):
    """The error that stops diverging training. `parameters` are the last weights that passed the check."""

    def __init__(self, problem: str, parameters: PyTree[Array]) -> None:
        super().__init__(f"{problem}, so training stopped")
        self.parameters = parameters


class Guard:
    """Checks the training state at every report.

    Training stops if a loss or a weight is not finite. It also stops if a head's mean loss since the last check is far
    above an untrained network's loss, because diverging values raise the loss long before the values overflow. Two
    numbers estimate the untrained network's loss: the bound that `Loss.untrained` returns, and the loss of the first
    update. The guard uses the larger number.
    """

    def __init__(self, learner: Learner) -> None:
        self._loss, self._gammas = learner.agent.loss, np.asarray(learner.agent.horizons.gammas)
        self._opening: Any = None  # losses [S H] of the first update
        self.warn: Callable[[str], None] = lambda message: None
        self._warned = False

    def begin(self, training: Any) -> None:
        self._updates, self._losses = 0, np.zeros_like(np.asarray(training.tally.losses))
        self._good = good_copy(training.learner.parameters)

    def check(self, training: Any) -> None:
        """Checks the training state, and keeps a copy of its weights as the last good weights.

        Raises:
            DivergenceError: If training has diverged or a return is not finite.
            InputError: If a duration or a survival is out of range.
        """
        self.check_returns(training.episodes.returns)
        if training.environments is not None:  # on the host, the environments check their rewards
            self.check_returns(training.environments.streams.returns)
        shortest = self._check_timing(training.replay.timing, training.replay.written)
        tally = training.tally
        bad = np.asarray(tally.bad)
        if np.any(bad >= 0):
            raise DivergenceError(f"the loss is not finite at update {bad[bad >= 0].min()}", self._good)
        first, updates = int(np.max(tally.first)), int(np.max(tally.updates))
        if not _finite(training.learner.parameters):
            raise DivergenceError(f"weights are not finite at update {first + updates - 1}", self._good)
        if not np.all(np.isfinite([tally.losses, tally.values])):
            raise DivergenceError(f"the losses or values up to update {first + updates - 1} overflow", self._good)
        if updates - self._updates >= LEAST_UPDATES:
            losses = np.asarray(tally.losses, float)
            means = (losses - self._losses) / (updates - self._updates)  # [S H]
            if self._opening is None:
                self._opening = np.asarray(tally.opening, float)
            self._check_means(means, training.replay.rewards, shortest, first + self._updates, first + updates)
            self._updates, self._losses = updates, losses
        self._good = good_copy(training.learner.parameters)

    def check_returns(self, returns: Array | np.ndarray, where: str = "training") -> None:
        """Raises `DivergenceError` if a return is not finite."""
        found = np.asarray(returns)
        if not np.all(np.isfinite(found)):
            raise DivergenceError(
                "the environment returned a reward that is not finite, or rewards whose sum overflows float32: the "
                f"return of an episode in {where} is {found[~np.isfinite(found)][0]:g}",
                self._good,
            )

    def _check_timing(self, timing: Timing, written: Int[Array, "S N"]) -> float:
        """Checks durations and survivals in the replay buffer, and returns the shortest duration."""
        shortest = 1.0
        if timing.duration is not None:
            shortest, longest = _extremes(timing.duration, written)
            check_timing(duration=shortest)
            check_timing(duration=longest)
        if timing.survival is not None:
            for survival in _extremes(timing.survival, written):
                check_timing(survival=survival)
        return shortest

    def _check_means(
        self, means: Float[np.ndarray, "S H"], rewards: Array, shortest: float, first: int, last: int
    ) -> None:
        largest = float(_largest(rewards))
        self._check_support(largest)
        largest_returns = largest / np.maximum(1 - self._gammas**shortest, 1e-6)
        untrained = np.maximum(self._loss.untrained(largest_returns), self._opening)
        if np.any(means > FACTOR * untrained):
            seed, head = np.unravel_index(np.argmax(means / untrained), means.shape)
            raise DivergenceError(
                f"training has diverged: the mean loss of updates {first:,} to {last - 1:,} is {means[seed, head]:.3g} "
                f"(γ = {self._gammas[head]:.4g}), but an untrained network's loss is at most "
                f"{untrained[seed, head]:.3g}",
                self._good,
            )

    def _check_support(self, largest_reward: float) -> None:
        """Warns once if a single reward lies outside the support of a categorical loss."""
        if isinstance(self._loss, Categorical) and largest_reward > self._loss.v_max and not self._warned:
            self._warned = True
            self.warn(
                f"a reward with absolute value {largest_reward:g} lies outside the support of the categorical loss, "
                f"±{self._loss.v_max:g}, so returns are clipped; set loss.v_max to the largest return, which is at "
                f"least {largest_reward:g}"
            )


def _extremes(values: Float[Array, "S LN"], written: Int[Array, "S N"]) -> tuple[float, float]:
    smallest, largest = _extremes_by_seed(values, written)
    # Unlike JAX, NumPy never skips NaN in a minimum or a maximum.
    return float(np.asarray(smallest).min()), float(np.asarray(largest).max())


_extremes_by_seed = jax.jit(jax.vmap(extremes))


@jax.jit
def _largest(rewards: Array) -> Float[Array, ""]:
    return jnp.abs(rewards).max()


@jax.jit
def _finite(parameters: PyTree[Array]) -> Bool[Array, ""]:
    return jnp.all(jnp.stack([jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(parameters)]))


@jax.jit
def good_copy(parameters: PyTree[Array]) -> PyTree[Array]:
    """Returns a copy that stays valid when the training state is donated."""
    return jax.tree.map(jnp.copy, parameters)
