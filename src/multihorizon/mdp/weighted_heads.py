"""The heads of a discount Σ wᵢ γᵢ^t in a finite MDP: their values under given actions, and the best plan."""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool, Float, Int

from multihorizon.discounting import Horizons, hazard
from multihorizon.discounting.discount import exponential, none
from multihorizon.errors import InputError, instance
from multihorizon.mdp.linear import solve
from multihorizon.mdp.model import HazardousMDP, check_mdp
from multihorizon.mdp.values import optimal_control

# A plan depends on the time t only while two quantities exceed NEGLIGIBLE. The first is (γ e^{-λ})^t for the largest γ.
# The second is the total weight wᵢ γᵢ^t of the smaller γ's, relative to the weight of the largest γ.
NEGLIGIBLE = 1e-14
MOST_STEPS = 100_000
MOST_PLANNED = 200_000_000  # largest total number of time-dependent steps in all plans of a naive agent
CHUNK = 4_000_000  # largest number of values in memory at once
BETTER = 1e-10  # two values are tied if their difference is below BETTER times the largest absolute value


@dataclass(frozen=True, eq=False)
class Behaviour:
    """The actions of an agent at each time, and their value.

    Attributes:
        actions: The action in each state at times t = 0, 1, ... [T S]. The last row also applies to all later times.
        values: The value Σ wᵢ Vᵢ of each state at t = 0, under the agent's discount [S].
    """

    actions: Int[np.ndarray, "T S"]
    values: Float[np.ndarray, " S"]


def check_horizons(horizons: Horizons) -> Horizons:
    """Returns `horizons`, or raises an error if they are not `Horizons`."""
    return instance("horizons", horizons, Horizons, "Horizons, such as gauss_grid(discount.hyperbolic(0.1), 3)")


def _ties_for_best(worth: Float[np.ndarray, "*plans S A"]) -> Bool[np.ndarray, "*plans S A"]:
    """Returns, for each action, whether it has the largest value in its state, up to rounding."""
    slack = BETTER * np.maximum(np.abs(worth).max(axis=(-2, -1), keepdims=True), 1e-300)
    return np.asarray(worth >= worth.max(axis=-1, keepdims=True) - slack)


class WeightedHeads:
    """The heads of a discount in an MDP, with distinct γ's in increasing order and nonzero weights."""

    def __init__(self, mdp: HazardousMDP, horizons: Horizons) -> None:
        check_mdp(mdp)
        check_horizons(horizons)
        if not isinstance(mdp.hazard, hazard.Dirac):
            raise InputError(
                f"the behaviour of an agent can be solved only for a known hazard (Dirac), got {mdp.hazard}"
            )
        gammas, which = np.unique(horizons.gammas, return_inverse=True)
        weights = np.bincount(which, horizons.weights)
        if not np.any(weights != 0):
            raise InputError("the weights of the horizons are all 0; at least one must be nonzero")
        self.horizons = Horizons(gammas[weights != 0], weights[weights != 0])
        self.mdp = replace(mdp, discount=none())
        self.rates = self.horizons.gammas * np.exp(-mdp.hazard.k)  # γ e^{-λ}
        self.scales = [self.mdp.discounted(float(rate)) for rate in self.rates]

    def lookahead(self, values: Float[np.ndarray, "H S"]) -> Float[np.ndarray, "H S A"]:
        """Returns R + (γ e^{-λ})^{dt} σ P V for each head, with the MDP's hazard λ, durations dt and survivals σ."""
        shape = self.mdp.rewards.shape
        return np.stack([self.mdp.rewards + (p @ v).reshape(shape) for p, v in zip(self.scales, values, strict=True)])

    def bootstrapped(self, actions: Int[np.ndarray, " S"]) -> Float[np.ndarray, "H S A"]:
        """Returns each head's action values, if the agent takes the given actions after the first step."""
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
        """Returns the action with the largest weighted value in each state. If actions tie, `kept` is preferred."""
        worth = np.tensordot(weights, values, 1)
        is_best = _ties_for_best(worth)
        first = is_best.argmax(axis=1)
        if kept is None:
            return first
        return np.where(is_best[np.arange(len(kept)), kept], kept, first)

    @property
    def ratios(self) -> Float[np.ndarray, " H"]:
        """The discount factors divided by the largest one. Powers of the largest ratio are 1 and do not underflow."""
        gammas = self.horizons.gammas
        return gammas / gammas[-1] if gammas[-1] > 0 else np.ones(1)

    def beliefs(self) -> Float[np.ndarray, "T H"]:
        """Returns wᵢ γᵢ^t / γ_max^t for each time t at which the plan depends on time."""
        weights, gammas = self.horizons.weights, self.horizons.gammas
        if weights[-1] < 0:
            raise InputError(
                f"the head with the largest γ, {gammas[-1]:g}, has a negative weight, {weights[-1]:g}: the discount is "
                "negative in the long run, so there is no best plan"
            )
        last = 0
        if len(gammas) > 1:
            unfelt = np.log(NEGLIGIBLE) / np.log(self.rates[-1]) if self.rates[-1] < 1 else np.inf
            last = int(np.ceil(max(min(self._faded_after(), unfelt), 1)))
        if last > MOST_STEPS:
            raise InputError(
                f"the discount factors {gammas[-2]:.8g} and {gammas[-1]:.8g} are too close together: the plan would "
                f"depend on time for {last:,} steps, but at most {MOST_STEPS:,} are allowed"
            )
        return weights * self.ratios ** np.arange(last + 1)[:, None]

    def _faded_after(self) -> int:
        """Returns the time after which only the head with the largest γ matters."""
        weights = np.abs(self.horizons.weights)
        if len(weights) == 1:
            return 0
        share = NEGLIGIBLE * weights[-1] / weights[:-1].sum()
        return int(np.ceil(max(np.log(share) / np.log(max(self.ratios[-2], 1e-300)), 1)))

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

    def first_actions(self, steps: int) -> Int[np.ndarray, "steps S"]:
        """Returns the first actions of the best plans for 1, 2, ..., `steps` steps.

        From the time `faded` on, only the head with the largest γ matters. A plan then depends only on the number of
        steps that are left.
        """
        self.require_unit_steps()
        weights, faded = self.horizons.weights, min(self._faded_after(), steps)
        if faded * steps > MOST_PLANNED:
            raise InputError(
                f"a naive agent would need {steps:,} plans with up to {faded:,} time-dependent steps each, too many to "
                "compute; use fewer steps, or discount factors that are further apart"
            )
        shape = (len(self.horizons), self.mdp.states)
        last = np.sign(weights[-1]) * np.eye(len(weights))[-1]
        ends = np.zeros((steps - faded + 1, *shape))  # values at time `faded`, with 0, 1, ... steps left
        for left in range(1, len(ends)):
            ahead = self.lookahead(ends[left - 1])
            ends[left] = self.taken(ahead, self.best(last, ahead))
        if faded == 0:
            return np.stack([self.best(last, self.lookahead(values)) for values in ends[:-1]])
        parts = min(steps, -(-steps * shape[0] * self.mdp.rewards.size // CHUNK))
        lengths = np.array_split(np.arange(1, steps + 1), parts)
        return np.concatenate([self._first_actions_of(part, ends, faded) for part in lengths])

    def _first_actions_of(
        self, lengths: Int[np.ndarray, " n"], ends: Float[np.ndarray, "left H S"], faded: int
    ) -> Int[np.ndarray, "n S"]:
        actions = np.zeros((len(lengths), self.mdp.states), dtype=int)
        values = np.where((lengths >= faded)[:, None, None], ends[np.maximum(lengths - faded, 0)], 0.0)
        for t in range(min(faded, int(lengths[-1])) - 1, -1, -1):
            begun = np.flatnonzero(lengths > t)
            following = np.stack([(p @ values[begun, head].T).T for head, p in enumerate(self.scales)], axis=1)
            ahead = following.reshape(*following.shape[:2], *self.mdp.rewards.shape) + self.mdp.rewards
            weights = self.horizons.weights * self.ratios**t
            actions[begun] = _ties_for_best(np.einsum("h,nhsa->nsa", weights, ahead)).argmax(axis=2)
            values[begun] = np.take_along_axis(ahead, actions[begun][:, None, :, None], axis=3)[..., 0]
        return actions

    def behaviour(self, actions: Int[np.ndarray, "T S"], ends: bool = False) -> Behaviour:
        """Returns `actions` with their values. If `ends` is true, the episode ends after the last row of `actions`."""
        shape = (len(self.horizons), self.mdp.states)
        later = actions if ends else actions[:-1]
        values = np.zeros(shape) if ends else self.taken(self.bootstrapped(actions[-1]), actions[-1])
        for row in later[::-1]:
            values = self.taken(self.lookahead(values), row)
        return Behaviour(actions, self.horizons.weights @ values)

    def require_unit_steps(self) -> None:
        if self.mdp.durations is not None:
            raise InputError("a plan needs steps of duration 1; use mdp.in_unit_steps()")

    def require_an_end(self) -> None:
        if self.rates[-1] >= 1:
            raise InputError(
                "a head with γ e^{-λ} = 1 has no finite value in a task without an end; "
                "set steps to the length of an episode"
            )
