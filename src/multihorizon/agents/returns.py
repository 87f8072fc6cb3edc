"""n-step returns, computed from raw rewards with each head's own γ when a transition is sampled."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def n_step_returns(rewards: Float[Array, " n"], gammas: Float[Array, " H"]) -> Float[Array, " H"]:
    """Returns Σⱼ γᵢʲ r_{t+j} for each head."""
    powers = gammas[:, None] ** jnp.arange(rewards.shape[0])  # γᵢʲ  [H n]
    return jnp.sum(powers * rewards, axis=1)  # Σⱼ γᵢʲ r_{t+j}


def bootstrap_factors(
    gammas: Float[Array, " H"], steps: Int[Array, ""], terminated: Bool[Array, ""]
) -> Float[Array, " H"]:
    """Returns the factor of the value `steps` later: γᵢ^steps, or 0 if the episode terminated before.

    A truncated episode bootstraps from where it was cut off: `steps` is then fewer than n.
    """
    return jnp.where(terminated, 0.0, gammas**steps)
