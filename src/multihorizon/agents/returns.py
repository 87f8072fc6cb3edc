"""n-step returns, computed from raw rewards with each head's own γ when a transition is sampled."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from multihorizon.envs.timing import Timing

UNIT_STEPS = Timing()  # every step lasts 1 and is survived


def n_step_returns(
    rewards: Float[Array, " n"], gammas: Float[Array, " H"], timing: Timing = UNIT_STEPS
) -> Float[Array, " H"]:
    """Returns Σⱼ γᵢ^{tⱼ} sⱼ r_{t+j}, where tⱼ is the time of the j steps before, and sⱼ the product of their survivals.

    Args:
        rewards: Rewards of n steps, 0 after the episode's end.
        gammas: The heads' discount factors.
        timing: Durations and survivals [n] of the steps, where they are not 1.
    """
    durations, survivals = timing
    bases = gammas[:, None]
    times = jnp.arange(rewards.shape[0]) if durations is None else jnp.cumsum(_before(0.0, durations))
    factors = bases**times  # γᵢ^{tⱼ}  [H n]
    if survivals is not None:
        factors = factors * jnp.cumprod(_before(1.0, survivals))
    return jnp.sum(factors * rewards, axis=1)


def _before(first: float, values: Float[Array, " n"]) -> Float[Array, " n"]:
    """Returns what came before each of the steps: nothing, and then the values of all but the last."""
    return jnp.concatenate([jnp.full(1, first), values[:-1]])


def bootstrap_factors(
    gammas: Float[Array, " H"], steps: Int[Array, ""], terminated: Bool[Array, ""], timing: Timing = UNIT_STEPS
) -> Float[Array, " H"]:
    """Returns the factor of the value `steps` later: γᵢ^steps, or 0 if the episode terminated before.

    With durations it is γᵢ to the power of their sum, and with survivals times their product. After the episode's end
    durations are 0 and survivals 1. A truncated episode bootstraps from where it was cut off: `steps` is then fewer
    than n.
    """
    durations, survivals = timing
    factors = gammas ** (steps if durations is None else durations.sum())
    if survivals is not None:
        factors = factors * survivals.prod()
    return jnp.where(terminated, 0.0, factors)
