"""n raw rewards, folded by each head's own γ. A return folded before it is stored could serve only one."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int


def n_step_returns(rewards: Float[Array, " n"], gammas: Float[Array, " H"]) -> Float[Array, " H"]:
    powers = gammas[:, None] ** jnp.arange(rewards.shape[0])  # γᵢʲ  [H n]
    return jnp.sum(powers * rewards, axis=1)  # Σⱼ γᵢʲ r_{t+j}


def bootstrap_factors(
    gammas: Float[Array, " H"], steps: Int[Array, ""], terminated: Bool[Array, ""]
) -> Float[Array, " H"]:
    """What the value `steps` on counts: γᵢ^steps, and nothing where the episode terminated on the way.

    A truncated episode bootstraps from where it was cut off: `steps` is then fewer than n.
    """
    return jnp.where(terminated, 0.0, gammas**steps)
