"""Losses of the heads on one transition. vmap adds the batch and the seeds."""

from dataclasses import dataclass
from enum import Enum
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from multihorizon.errors import at_least, positive_in_float32, store

MOST_ATOMS = 10_000


@runtime_checkable
class Loss(Protocol):
    """The meaning of a head's output, and the loss between an output and a target."""

    def output_shape(self, heads: int, actions: int) -> tuple[int, ...]: ...

    def values(self, output: Float[Array, "H A *Z"]) -> Float[Array, "H A"]:
        """Returns the Q-values of the network's output."""

    def target(
        self,
        returns: Float[Array, " H"],
        bootstraps: Float[Array, " H"],
        next_output: Float[Array, "H A *Z"],
        next_actions: Int[Array, " H"],
    ) -> Float[Array, "H *Z"]:
        """Returns the target `returns` + `bootstraps` · (value of `next_actions`), without a gradient."""

    def losses(self, output: Float[Array, "H *Z"], target: Float[Array, "H *Z"]) -> Float[Array, " H"]:
        """Returns the loss of each head for the action taken."""

    def untrained(self, largest_returns: Float[np.ndarray, " H"]) -> Float[np.ndarray, " H"]:
        """Returns an upper bound on an untrained network's mean loss, for returns within ±`largest_returns`."""


def of_action(output: Float[Array, "H A *Z"], action: Int[Array, ""]) -> Float[Array, "H *Z"]:
    """Selects one action's output with a mask; indexing would make the gradient a scatter."""
    is_taken = (jnp.arange(output.shape[1]) == action).reshape(-1, *[1] * (output.ndim - 2))
    return jnp.where(is_taken, output, jnp.zeros((), output.dtype)).sum(axis=1)


@dataclass(frozen=True)
class Huber:
    """Temporal-difference learning with the Huber loss (DQN)."""

    def output_shape(self, heads: int, actions: int) -> tuple[int, ...]:
        return heads, actions

    def values(self, output: Float[Array, "H A"]) -> Float[Array, "H A"]:
        return output

    def target(
        self,
        returns: Float[Array, " H"],
        bootstraps: Float[Array, " H"],
        next_output: Float[Array, "H A"],
        next_actions: Int[Array, " H"],
    ) -> Float[Array, " H"]:
        ahead = jnp.take_along_axis(next_output, next_actions[:, None], axis=1)[:, 0]
        return jax.lax.stop_gradient(returns + bootstraps * ahead)

    def losses(self, output: Float[Array, " H"], target: Float[Array, " H"]) -> Float[Array, " H"]:
        error = output - target
        size = jnp.abs(error)
        return jnp.where(size <= 1, 0.5 * error**2, size - 0.5)

    def untrained(self, largest_returns: Float[np.ndarray, " H"]) -> Float[np.ndarray, " H"]:
        """Returns `largest_returns`, but at least 1 for each head."""
        return np.maximum(largest_returns, 1.0)


@dataclass(frozen=True)
class Categorical:
    """Distributional learning with the cross-entropy loss (C51).

    Args:
        atoms: The number of atoms Z, at least 2. The atoms are spaced evenly on [-v_max, v_max].
        v_max: The largest return that can be represented. It must be positive.

    Raises:
        InputError: If an argument lies outside its range.
    """

    atoms: int = 51
    v_max: float = 10.0

    def __post_init__(self) -> None:
        store(
            self,
            atoms=at_least("the number of atoms", self.atoms, 2, MOST_ATOMS),
            v_max=positive_in_float32("v_max", self.v_max),
        )

    @property
    def support(self) -> Float[Array, " Z"]:
        """The atoms [Z]."""
        return jnp.linspace(-float(self.v_max), float(self.v_max), self.atoms)

    def output_shape(self, heads: int, actions: int) -> tuple[int, ...]:
        return heads, actions, self.atoms

    def values(self, output: Float[Array, "H A Z"]) -> Float[Array, "H A"]:
        return jax.nn.softmax(output) @ self.support

    def target(
        self,
        returns: Float[Array, " H"],
        bootstraps: Float[Array, " H"],
        next_output: Float[Array, "H A Z"],
        next_actions: Int[Array, " H"],
    ) -> Float[Array, "H Z"]:
        ahead = jnp.take_along_axis(next_output, next_actions[:, None, None], axis=1)[:, 0]  # [H Z]
        return jax.lax.stop_gradient(jax.vmap(self.project)(returns, bootstraps, jax.nn.softmax(ahead)))

    def losses(self, output: Float[Array, "H Z"], target: Float[Array, "H Z"]) -> Float[Array, " H"]:
        return -jnp.sum(target * jax.nn.log_softmax(output), axis=-1)

    def untrained(self, largest_returns: Float[np.ndarray, " H"]) -> Float[np.ndarray, " H"]:
        """Returns log Z, the cross-entropy between any target and a uniform distribution."""
        return np.full(largest_returns.shape, np.log(self.atoms))

    def project(
        self, return_: Float[Array, ""], bootstrap: Float[Array, ""], probabilities: Float[Array, " Z"]
    ) -> Float[Array, " Z"]:
        """Projects the distribution of return_ + bootstrap · z onto the atoms.

        Args:
            return_: The n-step return.
            bootstrap: The factor of the next value.
            probabilities: The probabilities of the atoms z [Z].

        Returns:
            The probabilities of the atoms [Z]. Each shifted atom's probability is split between the two nearest atoms.
        """
        spacing = 2 * self.v_max / (self.atoms - 1)
        moved = jnp.clip(return_ + bootstrap * self.support, -self.v_max, self.v_max)
        nearness = jnp.clip(1 - jnp.abs(moved[None, :] - self.support[:, None]) / spacing, 0, 1)  # [Z Z]
        return nearness @ probabilities


class Bootstrap(Enum):
    """The next action that a head's target assumes.

    Attributes:
        OWN: Each head's own best action, as in the paper. In general, the heads' weighted sum is then not the value
            of any policy.
        ACTING: The action that the agent would take, which is the same for all heads. The heads' weighted sum is then
            the value of the agent's policy.
    """

    OWN = "each head's own best action, as in the paper"
    ACTING = "the action that the agent would take, which is the same for all heads"


def next_actions(
    choosing: Float[Array, "H A"], acting_weights: Float[Array, " H"], bootstrap: Bootstrap
) -> Int[Array, " H"]:
    """Returns each head's next action, given Q-values of the next state."""
    if bootstrap is Bootstrap.OWN:
        return jnp.argmax(choosing, axis=1)
    return jnp.full(choosing.shape[0], jnp.argmax(acting_weights @ choosing))


class Priority(Enum):
    """How often each transition is replayed.

    Attributes:
        UNIFORM: All transitions equally often.
        AVERAGED: In proportion to the mean of √loss over the heads, as in the paper.
        LARGEST_GAMMA: In proportion to √loss of the head with the largest γ. The paper's appendix found this rule
            better.
        ACTING: In proportion to the mean of √loss over the heads, weighted as in the acting rule. A precommitted agent
            uses its weights at the start of an episode.
    """

    UNIFORM = "all transitions equally often"
    AVERAGED = "in proportion to the mean of √loss over the heads, as in the paper"
    LARGEST_GAMMA = "in proportion to √loss of the head with the largest γ"
    ACTING = "in proportion to the mean of √loss over the heads, weighted as in the acting rule"


def priority(
    losses: Float[Array, " H"], gammas: Float[Array, " H"], acting_weights: Float[Array, " H"], by: Priority
) -> Float[Array, ""]:
    """Returns the priority of a transition, given the heads' losses."""
    roots = jnp.sqrt(losses + 1e-10)
    if by is Priority.LARGEST_GAMMA:
        return roots[jnp.argmax(gammas)]
    if by is Priority.ACTING:
        shares = jnp.abs(acting_weights)
        return roots @ (shares / shares.sum())
    return roots.mean()
