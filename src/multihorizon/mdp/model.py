"""Finite MDPs with a hazard and a discount: the paper's tuple ⟨S, A, R, P, H, d⟩ (Section 4)."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse

from multihorizon.discounting.discount import Discount, none
from multihorizon.discounting.hazard import Dirac, Prior
from multihorizon.discounting.hazard.prior import check_prior
from multihorizon.discounting.sources import check_discount
from multihorizon.errors import InputError, between, instance, numbers, shown

ROUNDED = 1e-9  # how far from 1 a sum of probabilities may be, if they are not rounded to float32
FLOAT32 = np.finfo(np.float32)
MOST_SPLIT = 1_000_000  # rows of an MDP in unit steps
Policy = Float[np.ndarray, "S A"]


def rounding(probabilities: np.ndarray, counts: np.ndarray | int) -> np.ndarray | float:
    """Returns how far rounding may move a sum of `counts` probabilities away from 1.

    If float32 represents every probability exactly, they are assumed to come from float32 arithmetic, whatever type
    they have now. Float32 normalisation of n numbers moves their sum by at most (n + 2) units in the last place.
    """
    with np.errstate(over="ignore"):
        is_single = np.array_equal(probabilities, probabilities.astype(np.float32))
    return np.maximum(ROUNDED, (counts + 2) * float(FLOAT32.eps)) if is_single else ROUNDED


def _of_every(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Returns the rows of all actions in each state."""
    return np.asarray(np.add.outer(states * len(actions), actions).reshape(-1))


def check_mdp(mdp: "HazardousMDP") -> "HazardousMDP":
    """Returns `mdp` if it is an MDP of this package."""
    return instance("mdp", mdp, HazardousMDP, "an mdp.HazardousMDP")


@dataclass(frozen=True, eq=False)
class HazardousMDP:
    """A finite MDP in which each episode draws a hazard λ ~ H and ends at each step with probability 1 - e^{-λ}.

    The value of a policy is E[Σ d(t) R(s_t, a_t)], where (s₀, a₀) is the first state and action.

    Args:
        transitions: P(s' | s, a), an array [S A S] or, for large MDPs, a sparse matrix [S·A S]. Rows may add up to
            less than 1: the rest is the probability that the episode ends with that step. A sum within 1e-9 of 1
            counts as 1. If all probabilities are float32 numbers, a sum of n of them within (n + 2) · 2^{-23} of 1
            counts as 1.
        rewards: The reward of each transition, which is paid at its start [S A].
        hazard: The prior H over the hazard of an episode, per unit of time.
        discount: The discount d(t).
        durations: How long each transition lasts, positive [S A]; by default 1. A head with discount factor γ
            discounts what follows by γ^{dt}, and the hazard of the episode is survived with probability e^{-λ dt}.
        survivals: The probability e^{-λ(s,a)} with which each transition is survived, in (0, 1] [S A], on top of the
            hazard of the episode; by default 1.

    Raises:
        InputError: If the shapes do not match, or the arrays hold something other than probabilities, finite rewards,
            positive durations and survivals in (0, 1].
    """

    transitions: np.ndarray | sparse.csr_array
    rewards: np.ndarray
    hazard: Prior = Dirac(0.0)
    discount: Discount = none()
    durations: np.ndarray | None = None
    survivals: np.ndarray | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "rewards", numbers("rewards", self.rewards))
        if sparse.issparse(self.transitions):
            numbers("transitions", self.transitions.data)
        else:
            object.__setattr__(self, "transitions", numbers("transitions", self.transitions))
        check_prior(self.hazard)
        check_discount(self.discount)
        if self.rewards.ndim != 2 or not np.all(np.isfinite(self.rewards)):
            raise InputError("the rewards of an MDP must be a finite array [states, actions]")
        states, actions = self.rewards.shape
        if self.transitions.shape not in ((states, actions, states), (states * actions, states)):
            raise InputError(
                f"the transitions of an MDP with rewards [{states} {actions}] must be [{states} {actions} {states}]"
            )
        self._check_each("durations", lambda x: (x > 0) & np.isfinite(x), "positive and finite")
        self._check_each("survivals", lambda x: (x > 0) & (x <= 1), "in (0, 1]")
        if self.moves.nnz and not self.moves.data.min() >= 0:
            raise InputError(f"transition probabilities must be at least 0, but one is {self.moves.data.min():g}")
        sums = self.moves.sum(axis=1)
        wrong = np.flatnonzero(sums > 1 + ROUNDED)
        if len(wrong):
            state, action = divmod(int(wrong[0]), self.actions)
            raise InputError(
                "transition probabilities must add up to at most 1 for each state and action, but those of state "
                f"{state}, action {action} add up to {sums[wrong[0]]:.10g}"
            )

    def _check_each(self, name: str, allowed: Callable[[np.ndarray], np.ndarray], words: str) -> None:
        """Checks the shape and range of an optional array [S A]."""
        given = getattr(self, name)
        if given is None:
            return
        values = numbers(name, given)
        if values.shape != self.rewards.shape:
            raise InputError(
                f"{name} must be an array [{self.states} {self.actions}], like rewards, got {list(values.shape)}"
            )
        wrong = ~allowed(values)
        if np.any(wrong):
            state, action = np.argwhere(wrong)[0]
            raise InputError(
                f"{name} must be {words}, but state {state}, action {action} has {shown(values[state, action])}"
            )
        object.__setattr__(self, name, values)

    @cached_property
    def moves(self) -> sparse.csr_array:
        """P as a sparse matrix [S·A S]."""
        given = self.transitions
        matrix = sparse.csr_array(given if sparse.issparse(given) else given.reshape(-1, self.states), dtype=float)
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        sums = matrix.sum(axis=1)
        rounded = (np.abs(sums - 1) <= rounding(matrix.data, np.diff(matrix.indptr))) & (sums != 1)
        return sparse.csr_array(sparse.diags_array(1 / np.where(rounded, sums, 1.0)) @ matrix)

    @cached_property
    def matrix(self) -> sparse.csr_array:
        """P times the survival of each transition, as a sparse matrix [S·A S]."""
        if self.survivals is None:
            return self.moves
        return sparse.csr_array(sparse.diags_array(self.survivals.reshape(-1)) @ self.moves)

    def discounted(self, gamma: float) -> sparse.csr_array:
        """Returns γ^{dt} e^{-λ(s,a)} P, the factor of the next state's value in a head with discount factor γ.

        Args:
            gamma: The discount factor, in [0, 1].

        Returns:
            A sparse matrix [S·A S].
        """
        gamma = between("gamma", gamma, 0, 1)
        if self.durations is None:
            return gamma * self.matrix
        return sparse.csr_array(sparse.diags_array(gamma ** self.durations.reshape(-1)) @ self.matrix)

    @property
    def rows_in_unit_steps(self) -> float | None:
        """The number of states times the number of actions of the MDP that `in_unit_steps` returns.

        None if a duration is not a whole number.
        """
        if self.durations is None:
            return float(self.rewards.size)
        if not np.all(self.durations == np.round(self.durations)):
            return None
        return float((self.states + (self.durations - 1).sum()) * self.actions)

    def in_unit_steps(self) -> "HazardousMDP":
        """Returns the same MDP with every transition split into steps of duration 1; durations must be whole.

        The states of this MDP come first. Intermediate states follow: a transition of duration n passes through n - 1
        of them. They have no reward, and all their actions have the same effect.

        Raises:
            InputError: If a duration is not a whole number, or there would be more than a million pairs of a state and
                an action.
        """
        if self.durations is None:
            return self
        rows = self.rows_in_unit_steps
        if rows is None:
            real = self.durations[self.durations != np.round(self.durations)]
            raise InputError(
                f"only whole durations can be split into steps, got {real[0]:g}; use an exponential discount under a "
                "known hazard, or compute the values of each head separately"
            )
        if rows > MOST_SPLIT:
            raise InputError(
                f"with steps of duration 1 this MDP would have {rows / self.actions:,.0f} states, too many: the number "
                f"of states times {self.actions} actions may be at most {MOST_SPLIT:,}; use a longer unit of time, or "
                "an exponential discount under a known hazard"
            )
        # Row r with n steps leads to the first of its n - 1 intermediate states, each of which leads to the next. The
        # last one has the outcomes of row r. In an intermediate state all actions have the same effect.
        between = self.durations.reshape(-1).astype(int) - 1
        size, every = int(rows) // self.actions, np.arange(self.actions)
        last = self.states + np.cumsum(between) - 1
        long = np.flatnonzero(between)
        inner = np.setdiff1d(np.arange(self.states, size), last[long])
        plain = sparse.coo_array(self.matrix)
        begins, places = plain.coords
        short, ends = between[begins] == 0, between[begins] > 0
        parts = [
            (begins[short], places[short], plain.data[short]),
            (long, (last - between + 1)[long], np.ones(len(long))),
            (_of_every(inner, every), np.repeat(inner + 1, self.actions), np.ones(len(inner) * self.actions)),
            (
                _of_every(last[begins[ends]], every),
                np.repeat(places[ends], self.actions),
                np.repeat(plain.data[ends], self.actions),
            ),
        ]
        starts, following, chances = (np.concatenate(column) for column in zip(*parts, strict=True))
        moves = sparse.coo_array((chances, (starts, following)), shape=(size * self.actions, size))
        rewards = np.concatenate([self.rewards, np.zeros((size - self.states, self.actions))])
        return HazardousMDP(sparse.csr_array(moves), rewards, self.hazard, self.discount)

    @property
    def states(self) -> int:
        """The number of states S."""
        return self.rewards.shape[0]

    @property
    def actions(self) -> int:
        """The number of actions A."""
        return self.rewards.shape[1]

    def check_policy(self, policy: Policy) -> Policy:
        """Checks a policy and removes the rounding errors of its rows.

        Args:
            policy: The probability of each action in each state [S A]. Rows must add up to 1, within rounding as for
                transitions.

        Returns:
            The policy with rows that add up to 1 [S A].

        Raises:
            InputError: If it is not a policy of this MDP.
        """
        policy = numbers("a policy", policy)
        if (
            policy.shape != self.rewards.shape
            or not np.all(policy >= 0)
            or not np.all(np.abs(policy.sum(axis=1) - 1) <= rounding(policy, self.actions))
        ):
            raise InputError(
                f"a policy must be an array [{self.states} {self.actions}] of probabilities, one row for each state, "
                "each adding up to 1"
            )
        return policy / policy.sum(axis=1, keepdims=True)

    def check_place(self, state: int, action: int = 0) -> None:
        """Checks that a state and an action exist.

        Args:
            state: A state.
            action: An action.

        Raises:
            InputError: If there is no such state or action.
        """
        exist = [
            isinstance(one, Integral) and not isinstance(one, bool) and 0 <= one < count
            for one, count in ((state, self.states), (action, self.actions))
        ]
        if not all(exist):
            raise InputError(
                f"there are states 0 to {self.states - 1} and actions 0 to {self.actions - 1}, "
                f"but no state {shown(state)} with action {shown(action)}"
            )

    def under(self, policy: Policy, gamma: float = 1.0) -> tuple[sparse.csr_array, Float[np.ndarray, " S"]]:
        """Returns the Markov chain that results from following a policy.

        Args:
            policy: The probability of each action in each state [S A].
            gamma: A discount factor γ; each transition is multiplied by γ^{dt}.

        Returns:
            The transitions times γ^{dt} e^{-λ(s,a)} [S S], and the expected reward of each state [S]. An expected
            reward that is no larger than the rounding error of its sum is set to 0.
        """
        policy = numbers("a policy", policy)
        if policy.shape != self.rewards.shape:
            raise InputError(f"a policy must be an array [{self.states} {self.actions}], got {list(policy.shape)}")
        choose = sparse.csr_array(
            (policy.reshape(-1), (np.repeat(np.arange(self.states), self.actions), np.arange(policy.size))),
            shape=(self.states, policy.size),
        )
        terms = policy * self.rewards
        rewards, rounding = terms.sum(axis=1), self.actions * np.finfo(float).eps * np.abs(terms).sum(axis=1)
        return sparse.csr_array(choose @ self.discounted(gamma)), np.where(np.abs(rewards) <= rounding, 0.0, rewards)

    @cached_property
    def _running_sum(self) -> np.ndarray:
        return np.concatenate([[0.0], np.cumsum(self.matrix.data)])

    def draw_next(
        self, states: Int[np.ndarray, " N"], actions: Int[np.ndarray, " N"], rng: np.random.Generator
    ) -> Int[np.ndarray, " N"]:
        """Draws a successor s' ~ e^{-λ(s,a)} P(· | s, a) for each state and action, without the episode's hazard.

        Args:
            states: The states [N].
            actions: The actions [N].
            rng: The source of randomness.

        Returns:
            The next states [N]; -1 where the episode ends.
        """
        rows = states * self.actions + actions
        begin, end = self.matrix.indptr[rows], self.matrix.indptr[rows + 1]
        # All rows share one running sum of probabilities; a draw searches it from the beginning of its row.
        drawn = self._running_sum[begin] + rng.random(len(rows))
        found = np.searchsorted(self._running_sum, drawn, side="right") - 1
        following = np.full(len(rows), -1)
        goes_on = drawn < self._running_sum[end]
        following[goes_on] = self.matrix.indices[found[goes_on]]
        return following
