"""The heads of a discount Σ wᵢ γᵢ^t in a finite MDP: their values under given actions, and the best plan."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Int

from multihorizon.discounting import Horizons, hazard
from multihorizon.discounting.discount import exponential, none
from multihorizon.errors import InputError
from multihorizon.mdp.model import HazardousMDP
from multihorizon.mdp.values import optimal_control, solve

# A plan stops changing at the time t at which γ^t e^{-λt} of the largest γ is this small, or at which the weights of
# the other heads add up to this share of the largest γ's weight.
NEGLIGIBLE = 1e-14
MOST_STEPS = 100_000
BETTER = 1e-10  # an action is preferred if it is better by this share of the largest value


@dataclass(frozen=True, eq=False)
class Behaviour:
    """The actions of an agent at each time, and their value.

    Attributes:
        actions: The action in each state at times t = 0, 1, ... [T S]. The last row also applies to all later times.
        values: The value Σ wᵢ Vᵢ of each state at t = 0, under the agent's discount [S].
    """

    actions: Int[np.ndarray, "T S"]
    values: Float[np.ndarray, " S"]


class WeightedHeads:
    """The heads of a discount in an MDP: those with a nonzero weight, each γ once, in increasing order."""

    def __init__(self, mdp: HazardousMDP, horizons: Horizons) -> None:
        if not isinstance(mdp.hazard, hazard.Dirac):
            raise InputError(f"the behaviour of an agent is solved for a known hazard (Dirac), not {mdp.hazard}")
        gammas, which = np.unique(horizons.gammas, return_inverse=True)
        weights = np.bincount(which, horizons.weights)
        if not np.any(weights != 0):
            raise InputError("the weights of the horizons are all 0; at least one must be nonzero")
        self.horizons = Horizons(gammas[weights != 0], weights[weights != 0])
        self.mdp = replace(mdp, discount=none())
        self.rates = self.horizons.gammas * np.exp(-mdp.hazard.k)  # γ e^{-λ}
        self.scales = [self.mdp.discounted(float(rate)) for rate in self.rates]

    def lookahead(self, values: Float[np.ndarray, "H S"]) -> Float[np.ndarray, "H S A"]:
        """Returns R + γ^{dt} P V for each head."""
        shape = self.mdp.rewards.shape
        return np.stack([self.mdp.rewards + (p @ v).reshape(shape) for p, v in zip(self.scales, values, strict=True)])

    def bootstrapped(self, actions: Int[np.ndarray, " S"]) -> Float[np.ndarray, "H S A"]:
        """Returns the action values of each head, given that these actions are taken for ever."""
        self.require_an_end()
        policy = np.eye(self.mdp.actions)[actions]
        return self.lookahead(np.stack([solve(*self.mdp.under(policy, float(rate))) for rate in self.rates]))

    def taken(self, values: Float[np.ndarray, "H S A"], actions: Int[np.ndarray, " S"]) -> Float[np.ndarray, "H S"]:
        return values[:, np.arange(self.mdp.states), actions]

    def best(
        self,
        weights: Float[np.ndarray, " H"],
        values: Float[np.ndarray, "H S A"],
        kept: Int[np.ndarray, " S"] | None = None,
    ) -> Int[np.ndarray, " S"]:
        """Returns the best action of each state by weighted values; `kept` wins ties."""
        worth = np.tensordot(weights, values, 1)
        slack = BETTER * max(float(np.abs(worth).max()), 1e-300)
        first = (worth >= worth.max(axis=1, keepdims=True) - slack).argmax(axis=1)  # the first of tied actions
        if kept is None:
            return first
        stays = worth[np.arange(len(kept)), kept] >= worth.max(axis=1) - slack
        return np.where(stays, kept, first)

    @property
    def ratios(self) -> Float[np.ndarray, " H"]:
        """The discount factors divided by the largest, so that their powers do not all underflow."""
        gammas = self.horizons.gammas
        return gammas / gammas[-1] if gammas[-1] > 0 else np.ones(1)

    def beliefs(self) -> Float[np.ndarray, "T H"]:
        """Returns wᵢ γᵢ^t / γ_max^t for each time t, until only the largest γ matters."""
        weights, gammas = self.horizons.weights, self.horizons.gammas
        if weights[-1] < 0:
            raise InputError(
                f"the head with the largest γ, {gammas[-1]:g}, has a negative weight, {weights[-1]:g}: the discount is "
                "negative in the long run, and there is no best plan"
            )
        ratios = self.ratios
        last = 0
        if len(gammas) > 1:
            faded = np.log(NEGLIGIBLE * weights[-1] / np.abs(weights[:-1]).sum()) / np.log(max(ratios[-2], 1e-300))
            unfelt = np.log(NEGLIGIBLE) / np.log(self.rates[-1]) if self.rates[-1] < 1 else np.inf
            last = int(np.ceil(max(min(faded, unfelt), 1)))
        if last > MOST_STEPS:
            raise InputError(
                f"a plan under these horizons changes for {last:,} steps, but at most {MOST_STEPS:,} are computed: the "
                f"discount factors {gammas[-2]:.8g} and {gammas[-1]:.8g} are too close together"
            )
        return weights * ratios ** np.arange(last + 1)[:, None]

    def plan(self, steps: int | None) -> Int[np.ndarray, "T S"]:
        """Returns the actions of the best plan under the discount, computed backwards in time."""
        self.require_unit_steps()
        if steps is None:
            self.require_an_end()
            beliefs = self.beliefs()
            known = replace(self.mdp, discount=exponential(float(self.horizons.gammas[-1])))
            rows = [optimal_control(known).policy]
            ahead = self.taken(self.bootstrapped(rows[0]), rows[0])
            earlier = beliefs[-2::-1]
        else:
            rows = []
            ahead = np.zeros((len(self.horizons), self.mdp.states))
            earlier = self.horizons.weights * self.ratios ** np.arange(steps - 1, -1, -1)[:, None]
        for weights in earlier:
            values = self.lookahead(ahead)
            rows.append(self.best(weights / np.abs(weights).max(), values))
            ahead = self.taken(values, rows[-1])
        return np.stack(rows[::-1])

    def behaviour(self, actions: Int[np.ndarray, "T S"], ends: bool = False) -> Behaviour:
        """Returns the actions with their values. If `ends` is true, the episode is cut off after the last row."""
        shape = (len(self.horizons), self.mdp.states)
        later = actions if ends else actions[:-1]
        values = np.zeros(shape) if ends else self.taken(self.bootstrapped(actions[-1]), actions[-1])
        for row in later[::-1]:
            values = self.taken(self.lookahead(values), row)
        return Behaviour(actions, self.horizons.weights @ values)

    def require_unit_steps(self) -> None:
        if self.mdp.durations is not None:
            raise InputError("a plan changes with time, and needs steps of duration 1; use mdp.in_unit_steps()")

    def require_an_end(self) -> None:
        if self.rates[-1] >= 1:
            raise InputError(
                "a head with γ e^{-λ} = 1 has no finite value in a task without an end; "
                "give steps, the length of an episode"
            )
