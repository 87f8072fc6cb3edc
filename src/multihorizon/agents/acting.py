"""Chooses an action from the heads' values Q [H A]."""

from dataclasses import dataclass
from enum import Enum
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from multihorizon.discounting import Horizons
from multihorizon.envs.timing import TimingFields
from multihorizon.errors import LEAST_IN_FLOAT32, MOST_IN_FLOAT32, InputError, at_least, between, inside, store

MOST_STEPS = 2**31 - 1  # the device counts in 32 bits


class Acting(Enum):
    """Which values an agent acts by. The setting `acting` may also be a number: the γ of one head.

    Attributes:
        WEIGHTED: The weighted sum Σ wᵢ Q_γᵢ, for the discount that the horizons add up to (the paper's Hyper agents).
        LARGEST_GAMMA: The head with the largest γ (the paper's Multi agents).
        SAMPLED_HEAD: A head drawn by its weight at each step (the μAgents of Kurth-Nelson & Redish, 2009).
    """

    WEIGHTED = "the weighted sum Σ wᵢ Q_γᵢ, for the discount that the horizons add up to (the paper's Hyper agents)"
    LARGEST_GAMMA = "the head with the largest γ (the paper's Multi agents)"
    SAMPLED_HEAD = "a head drawn by its weight at each step, like the μAgents of Kurth-Nelson & Redish (2009)"


class Consistency(Enum):
    """How an agent handles plans that its later self would not keep, under a discount that is not exponential.

    Attributes:
        NAIVE: Plans again at each step, with the same weights (the paper).
        PRECOMMITTED: Keeps its first plan. At time t of an episode, head i has the weight wᵢ γᵢ^t.
        SOPHISTICATED: Plays a best response to its own later selves. Heads bootstrap by the acting policy.
    """

    NAIVE = "plans again at each step, with the same weights (the paper)"
    PRECOMMITTED = "keeps its first plan: at time t of an episode, head i has the weight wᵢ γᵢ^t"
    SOPHISTICATED = "plays a best response to its own later selves: heads bootstrap by the acting policy"


def acting_weights(acting: Acting | float, horizons: Horizons) -> Float[np.ndarray, " H"]:
    """Returns the weight of each head in the acting value; for SAMPLED_HEAD, the probability of each head."""
    if acting is Acting.WEIGHTED or acting is Acting.SAMPLED_HEAD:
        _check_weights(acting.name.lower(), horizons.weights)
    if acting is Acting.WEIGHTED:
        return horizons.weights.copy()
    if acting is Acting.SAMPLED_HEAD:
        if np.any(horizons.weights < 0):
            raise InputError("heads can be sampled by their weights only if none is negative")
        return horizons.weights / horizons.weights.sum()
    target = horizons.gammas.max() if acting is Acting.LARGEST_GAMMA else inside("the γ to act by", acting, 0, 1)
    nearest = int(np.argmin(np.abs(horizons.gammas - target)))
    if abs(horizons.gammas[nearest] - target) > 1e-6:
        heads = ", ".join(f"{g:.5g}" for g in horizons.gammas)
        raise InputError(f"there is no head with γ = {target:g} to act by; the heads have {heads}")
    weights = np.zeros(len(horizons))
    weights[nearest] = 1.0
    return weights


def _check_weights(acting: str, weights: Float[np.ndarray, " H"]) -> None:
    """Raises an error if all weights are 0, or the largest in absolute value lies outside 1e-30 to 1e30."""
    largest = float(np.abs(weights).max())
    if largest == 0:
        raise InputError(
            f"acting={acting} needs a horizon with a nonzero weight; all weights are 0: give weights, or act by one "
            "head with acting=largest_gamma"
        )
    if not LEAST_IN_FLOAT32 <= largest <= MOST_IN_FLOAT32:
        raise InputError(
            f"acting={acting} needs weights that float32 can represent: the largest must have an absolute value from "
            f"{LEAST_IN_FLOAT32:g} to {MOST_IN_FLOAT32:g}, got {largest:g}; multiply all weights by the same number, "
            "which does not change the actions"
        )


FADED = -1e30  # replaces log 0, since 0 · log 0 is NaN: e^{-1e30 t} is 1 at t = 0 and 0 later


def weights_after(elapsed: Any, weights: Float[np.ndarray, " H"], gammas: Float[np.ndarray, " H"]) -> Any:
    """Returns the weights wᵢ (γᵢ / γ_max)^t of a precommitted agent.

    γ_max is the largest γ with a nonzero weight. Dividing by it prevents underflow and does not change the best action.

    Args:
        elapsed: The time t since the start of the episode, as numbers or as an array on the device [...].
        weights: The weights at t = 0 [H].
        gammas: The discount factors [H].

    Returns:
        The weights of the heads [... H], a JAX array if `elapsed` is one.
    """
    weighs = weights != 0
    largest = gammas[weighs].max(initial=0.0)
    relative = np.where(weighs, gammas / largest if largest > 0 else 1.0, 0.0)
    logs = np.log(relative, out=np.full(len(relative), FADED), where=relative > 0)
    if isinstance(elapsed, jax.Array):
        return jnp.asarray(weights, jnp.float32) * jnp.exp(elapsed[..., None] * jnp.asarray(logs, jnp.float32))
    return weights * np.exp(np.asarray(elapsed, float)[..., None] * logs)


def check_consistency(consistency: Consistency, acting: Acting | float, horizons: Horizons) -> None:
    """Raises an error if a consistency rule is undefined for the acting rule or the weights."""
    if consistency is Consistency.NAIVE:
        return
    name = consistency.name.lower()
    if acting is not Acting.WEIGHTED:
        by = acting.name.lower() if isinstance(acting, Acting) else f"γ = {acting:g}"
        raise InputError(
            f"consistency={name} needs acting=weighted, got {by}: the rule is defined only for agents that act by the "
            "weighted sum of their heads"
        )
    weighs = acting_weights(acting, horizons) != 0
    last = np.flatnonzero(weighs)[np.argmax(horizons.gammas[weighs])]
    if consistency is Consistency.PRECOMMITTED and horizons.weights[last] < 0:
        raise InputError(
            f"consistency={name} needs a positive weight at the largest γ, {horizons.gammas[last]:g}, got "
            f"{horizons.weights[last]:g}: the discount is negative in the long run, and there is no best plan"
        )


def require_unit_steps(consistency: Consistency, timing: TimingFields) -> None:
    """Raises an error if a precommitted agent is to act in an environment whose steps have durations."""
    if timing.duration and consistency is Consistency.PRECOMMITTED:
        raise InputError(
            "a precommitted agent counts steps, so each must last one unit of time; this environment has durations"
        )


@dataclass(frozen=True)
class Epsilon:
    """The probability of a random action: 1 during the warm-up, then falling linearly to `final`.

    Args:
        final: The probability at the end of the decay, in [0, 1].
        decay_steps: The number of steps of the decay.
        evaluation: The probability in evaluation, in [0, 1].
    """

    final: float = 0.01
    decay_steps: int = 250_000
    evaluation: float = 0.001

    def __post_init__(self) -> None:
        store(
            self,
            final=between("epsilon.final", self.final, 0, 1),
            decay_steps=at_least("epsilon.decay_steps", self.decay_steps, 0, MOST_STEPS),
            evaluation=between("epsilon.evaluation", self.evaluation, 0, 1),
        )

    def at(self, step: Int[Array, ""] | int, warm_up_steps: int) -> Any:
        """Returns ε at a step of the run.

        Args:
            step: The step: a JAX array, or a number to compute on the host.
            warm_up_steps: The number of steps before learning starts.

        Returns:
            The probability of a random action, of the same kind as `step`.
        """
        clip = jnp.clip if isinstance(step, jax.Array) else np.clip
        done = clip((step - warm_up_steps) / max(self.decay_steps, 1), 0.0, 1.0)
        return 1.0 + done * (self.final - 1.0)


def choose(
    key: Key[Array, ""],
    values: Float[Array, "H A"],
    weights: Float[Array, " H"],
    epsilon: Float[Array, ""],
    sampled_head: bool = False,
) -> Int[Array, ""]:
    """Returns an ε-greedy action.

    Args:
        key: A random key.
        values: The heads' values [H A].
        weights: The weights of the heads [H].
        epsilon: The probability of a random action.
        sampled_head: Whether to act by one head, drawn with probability proportional to its weight, rather than by
            the weighted sum.

    Returns:
        The index of the action.
    """
    explore_key, action_key, head_key = jax.random.split(key, 3)
    if sampled_head:
        weights = jax.nn.one_hot(jax.random.categorical(head_key, jnp.log(weights)), weights.shape[0])
    greedy = jnp.argmax(weights @ values)
    random = jax.random.randint(action_key, (), 0, values.shape[1])
    return jnp.where(jax.random.uniform(explore_key) < epsilon, random, greedy)
