"""The paper's tuple ⟨S, A, R, P, H, d⟩ (Section 4)."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from multihorizon.discounting.discount import Discount, none
from multihorizon.discounting.hazard import Dirac, Prior
from multihorizon.errors import InputError

Policy = Float[np.ndarray, "S A"]


@dataclass(frozen=True, eq=False)
class HazardousMDP:
    """A finite MDP in which each episode draws a hazard λ ~ H and dies with probability 1 - e^{-λ} a step.

    `transitions` is P(s' | s, a), as an array [S A S] or, for large ones, a sparse matrix [S·A S]. Rows may add up
    to less than 1: the rest is the probability that the episode ends with that step. `rewards` [S A] are emitted on
    the transition; with (s₀, a₀) the first at t = 0, the value is E[Σ d(t) R(s_t, a_t)].
    """

    transitions: np.ndarray | sparse.csr_array
    rewards: np.ndarray
    hazard: Prior = Dirac(0.0)
    discount: Discount = none()

    def __post_init__(self) -> None:
        object.__setattr__(self, "rewards", np.asarray(self.rewards, dtype=float))
        if not sparse.issparse(self.transitions):
            object.__setattr__(self, "transitions", np.asarray(self.transitions, dtype=float))
        if self.rewards.ndim != 2 or not np.all(np.isfinite(self.rewards)):
            raise InputError("the rewards of an MDP must be a finite array [states, actions]")
        states, actions = self.rewards.shape
        if self.transitions.shape not in ((states, actions, states), (states * actions, states)):
            raise InputError(
                f"the transitions of an MDP with rewards [{states} {actions}] must be [{states} {actions} {states}]"
            )
        if self.matrix.nnz and not (self.matrix.data.min() >= 0 and self.matrix.sum(axis=1).max() <= 1 + 1e-9):
            raise InputError(
                "transition probabilities must be at least 0 and add up to at most 1 for each state and action"
            )

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """P as a sparse matrix [S·A S]."""
        given = self.transitions
        matrix = sparse.csr_array(given if sparse.issparse(given) else given.reshape(-1, self.states))
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return matrix

    @property
    def states(self) -> int:
        return self.rewards.shape[0]

    @property
    def actions(self) -> int:
        return self.rewards.shape[1]

    def check_policy(self, policy: Policy) -> Policy:
        policy = np.asarray(policy, dtype=float)
        if (
            policy.shape != self.rewards.shape
            or not np.all(policy >= 0)
            or not np.all(np.abs(policy.sum(axis=1) - 1) <= 1e-9)
        ):
            raise InputError(
                f"a policy must be an array [{self.states} {self.actions}] of probabilities, one row for each state, "
                "each adding up to 1"
            )
        return policy

    def check_place(self, state: int, action: int = 0) -> None:
        if not (0 <= state < self.states and 0 <= action < self.actions):
            raise InputError(
                f"there are states 0 to {self.states - 1} and actions 0 to {self.actions - 1}, "
                f"but no state {state} with action {action}"
            )

    def under(self, policy: Policy) -> tuple[sparse.csr_array, Float[np.ndarray, " S"]]:
        """The chain that a policy makes of the MDP: its transitions [S S] and its expected rewards [S]."""
        choose = sparse.csr_array(
            (policy.reshape(-1), (np.repeat(np.arange(self.states), self.actions), np.arange(policy.size))),
            shape=(self.states, policy.size),
        )
        return sparse.csr_array(choose @ self.matrix), (policy * self.rewards).sum(axis=1)

    @cached_property
    def _running_sum(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(self.matrix.data)])

    def draw_next(
        self, states: Int[np.ndarray, " N"], actions: Int[np.ndarray, " N"], rng: np.random.Generator
    ) -> Int[np.ndarray, " N"]:
        """A successor s' ~ P(· | s, a) for each state and action, without hazard; -1 where the episode ends."""
        rows = states * self.actions + actions
        begin, end = self.matrix.indptr[rows], self.matrix.indptr[rows + 1]
        # All rows share one running sum of probabilities, so that a draw within a row is a search in it.
        drawn = self._running_sum[begin] + rng.random(len(rows))
        found = np.searchsorted(self._running_sum, drawn, side="right") - 1
        following = np.full(len(rows), -1)
        goes_on = drawn < self._running_sum[end]
        following[goes_on] = self.matrix.indices[found[goes_on]]
        return following
