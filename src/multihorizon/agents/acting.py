"""Rules that choose an action from the heads' Q-values [H A]."""

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

MOST_STEPS = 2**31 - 1  # the device counts steps with 32-bit integers


class Acting(Enum):
    """The values by which an agent chooses its actions.

    The setting `acting` is a member of this class, or the γ of one head.

    Attributes:
        WEIGHTED: The weighted sum Σ wᵢ Q_γᵢ of the heads (the paper's Hyper agents).
        LARGEST_GAMMA: The head with the largest γ (the paper's Multi agents).
        SAMPLED_HEAD: One head, drawn at each step with a probability proportional to its weight (the μAgents of
            Kurth-Nelson & Redish, 2009).
    """

    WEIGHTED = "the weighted sum Σ wᵢ Q_γᵢ of the heads (the paper's Hyper agents)"
    LARGEST_GAMMA = "the head with the largest γ (the paper's Multi agents)"
    SAMPLED_HEAD = "one head, drawn at each step with a probability proportional to its weight"


class Consistency(Enum):
    """How an agent deals with time inconsistency: under a non-exponential discount, the best plan changes over time.

    Attributes:
        NAIVE: Plans again at each step, always with the same weights, as in the paper.
        PRECOMMITTED: Keeps its first plan. At time t of an episode, head i has the weight wᵢ γᵢ^t.
        SOPHISTICATED: Plays a best response to its own later selves. Each head bootstraps from the action that the
            agent would take.
    """

    NAIVE = "plans again at each step, always with the same weights, as in the paper"
    PRECOMMITTED = "keeps its first plan: at time t of an episode, head i has the weight wᵢ γᵢ^t"
    SOPHISTICATED = "plays a best response to its own later selves"


def acting_weights(acting: Acting | float, horizons: Horizons) -> Float[np.ndarray, " H"]:
    """Returns each head's weight in the acting rule. For SAMPLED_HEAD, the weights are probabilities."""
    if acting is Acting.WEIGHTED or acting is Acting.SAMPLED_HEAD:
        _check_weights(acting.name.lower(), horizons.weights)
    if acting is Acting.WEIGHTED:
        return horizons.weights.copy()
    if acting is Acting.SAMPLED_HEAD:
        if np.any(horizons.weights < 0):
            raise InputError("acting=sampled_head needs weights of at least 0")
        return horizons.weights / horizons.weights.sum()
    target = horizons.gammas.max() if acting is Acting.LARGEST_GAMMA else inside("the γ to act by", acting, 0, 1)
    nearest = int(np.argmin(np.abs(horizons.gammas - target)))
    if abs(horizons.gammas[nearest] - target) > 1e-6:
        heads = ", ".join(f"{g:.5g}" for g in horizons.gammas)
        raise InputError(f"there is no head with γ = {target:g}; the heads have γ = {heads}")
    weights = np.zeros(len(horizons))
    weights[nearest] = 1.0
    return weights


def _check_weights(acting: str, weights: Float[np.ndarray, " H"]) -> None:
    largest = float(np.abs(weights).max())
    if largest == 0:
        raise InputError(
            f"acting={acting} needs a nonzero weight, but all weights are 0; give weights or set acting=largest_gamma"
        )
    if not LEAST_IN_FLOAT32 <= largest <= MOST_IN_FLOAT32:
        raise InputError(
            f"with acting={acting}, the largest absolute weight must lie between {LEAST_IN_FLOAT32:g} and "
            f"{MOST_IN_FLOAT32:g}, got {largest:g}; scale all weights by the same factor, which does not change the "
            "actions"
        )


FADED = -1e30  # replaces log 0 = -∞, because t · log 0 is NaN at t = 0


def weights_after(elapsed: Any, weights: Float[np.ndarray, " H"], gammas: Float[np.ndarray, " H"]) -> Any:
    """Returns the weights wᵢ (γᵢ / γ_max)^t [... H] of a precommitted agent at the times `elapsed` [...].

    γ_max is the largest γ with a nonzero weight. Division by γ_max prevents underflow and leaves the best action
    unchanged.
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
        raise InputError(f"consistency={name} needs acting=weighted, got {by}")
    weighs = acting_weights(acting, horizons) != 0
    last = np.flatnonzero(weighs)[np.argmax(horizons.gammas[weighs])]
    if consistency is Consistency.PRECOMMITTED and horizons.weights[last] < 0:
        raise InputError(
            f"consistency={name} needs a positive weight at the largest γ ({horizons.gammas[last]:g}), got "
            f"{horizons.weights[last]:g}; the discount is negative in the long run, so there is no best plan"
        )


def require_unit_steps(consistency: Consistency, timing: TimingFields) -> None:
    """Raises an error for a precommitted agent in an environment whose steps have durations."""
    if timing.duration and consistency is Consistency.PRECOMMITTED:
        raise InputError("a precommitted agent needs steps of one unit of time, but this environment reports durations")


@dataclass(frozen=True)
class Epsilon:
    """The probability of a random action. It is 1 during the warm-up and then decays linearly to `final`.

    Args:
        final: The probability after the decay, in [0, 1].
        decay_steps: The number of steps of the decay.
        evaluation: The probability during evaluation, in [0, 1].
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
            step: The number of the step, as a Python number or a JAX array.
            warm_up_steps: The number of steps before learning starts.

        Returns:
            The probability of a random action. It is a JAX array if `step` is a JAX array.
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
    """Returns an ε-greedy action for the weighted sum of values, or for one head drawn in proportion to its weight."""
    explore_key, action_key, head_key = jax.random.split(key, 3)
    if sampled_head:
        weights = jax.nn.one_hot(jax.random.categorical(head_key, jnp.log(weights)), weights.shape[0])
    greedy = jnp.argmax(weights @ values)
    random = jax.random.randint(action_key, (), 0, values.shape[1])
    return jnp.where(jax.random.uniform(explore_key) < epsilon, random, greedy)
