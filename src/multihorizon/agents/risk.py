"""Acting by the risk of the return instead of its mean, for agents whose heads learn distributions.

A C51 head learns the distribution of Zᵢ, the return discounted by γᵢ. Risk is measured on the weighted return Σ wᵢ Zᵢ.
The distribution of the weighted return depends on the joint distribution of the Zᵢ, which the heads do not learn. This
module assumes that the Zᵢ are *comonotone*: all are high together or all are low together. This assumption is not
exact: an episode with late rewards can have a high return under a large γ and a low return under a small γ. Quantile
functions of comonotone returns add up: F⁻¹(u) = Σ wᵢ Fᵢ⁻¹(u). CVaRs of comonotone returns add up in the same way.
"""

from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
from jaxtyping import Array, Float

from multihorizon.agents.acting import Acting, acting_weights
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.losses import Categorical
from multihorizon.errors import InputError, between, shown, store

ROUNDING = 1e-5  # relative tolerance for float32 errors in cumulative probabilities and quantiles
LEAST_LEVEL = 1e-4  # smallest level; learned distributions do not resolve outcomes that are less probable


@dataclass(frozen=True)
class CVaR:
    """Acts by the conditional value at risk (CVaR) of the weighted return: the mean of its worst outcomes.

    The score of an action is Σ wᵢ CVaR(Zᵢ). If the heads' returns are comonotone, the score is the CVaR of the weighted
    return. Otherwise the score is a lower bound, because comonotone returns are the riskiest.

    Args:
        level: The total probability of the worst outcomes, in [0.0001, 1]. At level 1, the agent acts by the mean.
    """

    level: float

    def __post_init__(self) -> None:
        store(self, level=between("the level of a CVaR", self.level, LEAST_LEVEL, 1))

    def scores(
        self, probabilities: Float[Array, "H A Z"], support: Float[Array, " Z"], weights: Float[Array, " H"]
    ) -> Float[Array, " A"]:
        """Returns the score Σ wᵢ CVaR(Zᵢ) of each action.

        Args:
            probabilities: The learned distributions [H A Z].
            support: The atoms of the distributions [Z], in increasing order.
            weights: The weights of the heads [H].

        Returns:
            The scores [A].
        """
        cumulated = jnp.cumsum(probabilities, axis=-1)
        below = jnp.concatenate([jnp.zeros_like(cumulated[..., :1]), cumulated[..., :-1]], axis=-1)
        counted = jnp.clip(self.level - below, 0, probabilities)  # each atom's probability within the worst outcomes
        return weights @ (counted @ support / counted.sum(axis=-1))


@dataclass(frozen=True)
class Quantile:
    """Acts by a quantile of the weighted return, such as its median.

    The agent compares actions by Σ wᵢ Fᵢ⁻¹(level). If the heads' returns are comonotone, the sum is the quantile of the
    weighted return. Fᵢ⁻¹(level) is the smallest atom with a cumulative probability of at least `level`, so ties are
    common. Among tied actions, the agent takes the action with the largest mean.

    Args:
        level: The cumulative probability, in [0.0001, 0.9999]; 0.5 is the median.
    """

    level: float

    def __post_init__(self) -> None:
        store(self, level=between("the level of a quantile", self.level, LEAST_LEVEL, 1 - LEAST_LEVEL))

    def quantiles(
        self, probabilities: Float[Array, "H A Z"], support: Float[Array, " Z"], weights: Float[Array, " H"]
    ) -> Float[Array, " A"]:
        """Returns the quantile Σ wᵢ Fᵢ⁻¹(level) of each action.

        Args:
            probabilities: The learned distributions [H A Z].
            support: The atoms of the distributions [Z], in increasing order.
            weights: The weights of the heads [H].

        Returns:
            The quantiles [A].
        """
        below = jnp.sum(jnp.cumsum(probabilities, axis=-1) < self.level * (1 - ROUNDING), axis=-1)
        return weights @ support[jnp.minimum(below, len(support) - 1)]

    def scores(
        self, probabilities: Float[Array, "H A Z"], support: Float[Array, " Z"], weights: Float[Array, " H"]
    ) -> Float[Array, " A"]:
        """Returns the mean return of each action with the largest quantile, and -∞ for the other actions.

        Args:
            probabilities: The learned distributions [H A Z].
            support: The atoms of the distributions [Z], in increasing order.
            weights: The weights of the heads [H].

        Returns:
            The scores [A].
        """
        quantiles = self.quantiles(probabilities, support, weights)
        is_best = quantiles >= quantiles.max() - ROUNDING * jnp.abs(weights).sum() * jnp.abs(support).max()
        return jnp.where(is_best, weights @ (probabilities @ support), -jnp.inf)


Risk = CVaR | Quantile


def distribution_of(agent: AgentConfig) -> Categorical:
    """Returns the agent's categorical loss. Raises an error for an agent with a different loss."""
    if not isinstance(agent.loss, Categorical):
        raise InputError(
            f"{agent.name} learns only the mean of the return, not its distribution; use an agent with a Categorical "
            "loss, such as hyper-rainbow or hyper-c51"
        )
    return agent.loss


def check_risk(risk: Risk, agent: AgentConfig) -> None:
    """Raises an error if an agent cannot act by a risk measure."""
    if not isinstance(risk, CVaR | Quantile):
        raise InputError(f"risk must be None or a measure such as mh.CVaR(0.25) or mh.Quantile(0.5), got {shown(risk)}")
    distribution_of(agent)
    if agent.acting is Acting.SAMPLED_HEAD:
        raise InputError(f"{agent.name} samples a head at each step and cannot act by {risk}; use another acting rule")
    if (acting_weights(agent.acting, agent.horizons) < 0).any():
        raise InputError(f"a head of {agent.name} has a negative weight, so the agent cannot act by {risk}")


def restored_risk(stored: Any) -> Risk | None:
    """Returns a risk measure from the JSON of a saved policy."""
    kinds: dict[str, type[CVaR] | type[Quantile]] = {"CVaR": CVaR, "Quantile": Quantile}
    return None if stored is None else kinds[stored["type"]](float(stored["level"]))
