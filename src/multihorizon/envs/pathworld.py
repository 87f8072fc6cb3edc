"""Pathworld (the paper's Section 7): one choice between paths that pay more the longer and riskier they are."""

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

HAZARD = Exponential(0.05)  # the paper's, of Section 7.3


@dataclass(frozen=True)
class Pathworld:
    """Path i = 1..paths is i² steps long and pays i at its end. The paper does not print the number of paths;
    15 reproduces its tables."""

    paths: int = 15

    def __post_init__(self) -> None:
        at_least("the number of paths", self.paths, 1)

    @property
    def lengths(self) -> Int[np.ndarray, " paths"]:
        return np.arange(1, self.paths + 1) ** 2

    @property
    def rewards(self) -> Float[np.ndarray, " paths"]:
        return np.arange(1.0, self.paths + 1)

    def values(self, discount: Discount) -> Float[np.ndarray, " paths"]:
        """r(i) d(i²): the value of each path, in closed form."""
        return self.rewards * discount(self.lengths)

    def mdp(self, hazard: Prior = Dirac(0.0), discount: Discount = none()) -> HazardousMDP:
        """State 0 is the choice, whose actions are the paths; then come the states of each path in turn.

        On a path every action walks on. The last state of path i is reached at t = i² and pays on leaving.
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
        """Without hazard, for agents; the observation is the state, one-hot."""
        from multihorizon.envs.finite import FiniteWorld  # JAX, which the mathematics does without

        mdp = self.mdp()
        return FiniteWorld(mdp, np.zeros(1, dtype=int), (mdp.states,))
