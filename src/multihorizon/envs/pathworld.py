"""Pathworld (the paper's Section 7): one choice between paths, where longer paths pay more and are riskier."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from multihorizon.discounting.discount import Discount, none
from multihorizon.discounting.hazard import Dirac, Exponential, Prior
from multihorizon.errors import at_least
from multihorizon.mdp import HazardousMDP

if TYPE_CHECKING:
    from multihorizon.envs.finite import FiniteWorld

HAZARD = Exponential(0.05)  # Section 7.3 of the paper


@dataclass(frozen=True)
class Pathworld:
    """The paper's Pathworld: path i = 1..paths is i² steps long and pays i at its end.

    Args:
        paths: The number of paths. The paper does not state the number, but 15 paths reproduce the paper's tables.

    Raises:
        InputError: If there are no paths.
    """

    paths: int = 15

    def __post_init__(self) -> None:
        at_least("the number of paths", self.paths, 1)

    @property
    def lengths(self) -> Int[np.ndarray, " paths"]:
        """The number of steps of each path."""
        return np.arange(1, self.paths + 1) ** 2

    @property
    def rewards(self) -> Float[np.ndarray, " paths"]:
        """The reward at the end of each path."""
        return np.arange(1.0, self.paths + 1)

    def values(self, discount: Discount) -> Float[np.ndarray, " paths"]:
        """Returns the value r(i) d(i²) of each path.

        Args:
            discount: The discount d(t).
        """
        return self.rewards * discount(self.lengths)

    def mdp(self, hazard: Prior = Dirac(0.0), discount: Discount = none()) -> HazardousMDP:
        """Returns Pathworld as a finite MDP.

        In state 0, each action starts one path. The other states belong to the paths, in order. On a path every action
        moves forward. The agent reaches the last state of path i at t = i², and its next action earns the reward.

        Args:
            hazard: The hazard prior.
            discount: The discount d(t).
        """
        ends = np.cumsum(self.lengths)
        starts = ends - self.lengths + 1
        states = int(ends[-1]) + 1
        rewards = np.zeros((states, self.paths))
        rewards[ends] = self.rewards[:, None]
        walking = np.setdiff1d(np.arange(1, states), ends)
        rows = np.concatenate([np.arange(self.paths), (walking[:, None] * self.paths + np.arange(self.paths)).ravel()])
        columns = np.concatenate([starts, np.repeat(walking + 1, self.paths)])
        transitions = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=(states * self.paths, states))
        return HazardousMDP(transitions, rewards, hazard, discount)

    def environment(self) -> "FiniteWorld":
        """Returns Pathworld without hazard as an environment. An observation is the one-hot state."""
        from multihorizon.envs.finite import FiniteWorld  # needs JAX

        mdp = self.mdp()
        return FiniteWorld(mdp, np.zeros(1, dtype=int), (mdp.states,))
