"""n-step returns and bootstrap factors, computed for each head's γ when a transition is sampled."""

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from multihorizon.envs.timing import Timing

UNIT_STEPS = Timing()  # every step has duration 1 and survival 1


def n_step_returns(
    rewards: Float[Array, " n"], gammas: Float[Array, " H"], timing: Timing = UNIT_STEPS
) -> Float[Array, " H"]:
    """Returns Σⱼ γᵢ^{tⱼ} sⱼ rⱼ for each head.

    Here tⱼ is the total duration of the steps before step j, and sⱼ is the product of the survivals of these steps.
    """
    durations, survivals = timing
    bases = gammas[:, None]
    times = jnp.arange(rewards.shape[0]) if durations is None else jnp.cumsum(_before(0.0, durations))
    factors = bases**times  # γᵢ^{tⱼ}  [H n]
    if survivals is not None:
        factors = factors * jnp.cumprod(_before(1.0, survivals))
    return jnp.sum(factors * rewards, axis=1)


def _before(first: float, values: Float[Array, " n"]) -> Float[Array, " n"]:
    """Inserts `first` before the values and drops the last value."""
    return jnp.concatenate([jnp.full(1, first), values[:-1]])


def bootstrap_factors(
    gammas: Float[Array, " H"], steps: Int[Array, ""], terminated: Bool[Array, ""], timing: Timing = UNIT_STEPS
) -> Float[Array, " H"]:
    """Returns the factor of the bootstrap value: γᵢ^steps, or 0 if the episode terminated.

    With durations, the exponent is the sum of the durations. With survivals, the factor is multiplied by the product of
    the survivals. If the episode was truncated before step n, `steps` is less than n.
    """
    durations, survivals = timing
    factors = gammas ** (steps if durations is None else durations.sum())
    if survivals is not None:
        factors = factors * survivals.prod()
    return jnp.where(terminated, 0.0, factors)
