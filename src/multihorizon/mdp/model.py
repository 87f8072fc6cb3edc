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

ROUNDED = 1e-9  # a sum of float64 probabilities may differ from 1 by at most ROUNDED
FLOAT32 = np.finfo(np.float32)
MOST_SPLIT = 1_000_000  # largest number of state-action pairs that `in_unit_steps` may create
Policy = Float[np.ndarray, "S A"]


def rounding(probabilities: np.ndarray, counts: np.ndarray | int) -> np.ndarray | float:
    """Returns how far a sum of `counts` probabilities may be from 1 because of rounding.

    If float32 represents all probabilities exactly, the probabilities are assumed to come from float32 arithmetic.
    After normalisation in float32, a sum of n numbers differs from 1 by at most (n + 2) units in the last place.
    """
    with np.errstate(over="ignore"):
        is_single = np.array_equal(probabilities, probabilities.astype(np.float32))
    return np.maximum(ROUNDED, (counts + 2) * float(FLOAT32.eps)) if is_single else ROUNDED


def _of_every(states: np.ndarray, actions: np.ndarray) -> np.ndarray:
    return np.asarray(np.add.outer(states * len(actions), actions).reshape(-1))


def check_mdp(mdp: "HazardousMDP") -> "HazardousMDP":
    """Returns `mdp`, or raises an error if it is not a `HazardousMDP`."""
    return instance("mdp", mdp, HazardousMDP, "an mdp.HazardousMDP")


@dataclass(frozen=True, eq=False)
class HazardousMDP:
    """A finite MDP in which each episode draws a hazard λ ~ H and ends at each step with probability 1 - e^{-λ}.

    The value of a policy is E[Σ d(t) R(s_t, a_t)], where (s₀, a₀) is the first state and action.

    Args:
        transitions: P(s' | s, a), an array [S A S] or a sparse matrix [S·A S]. If a row adds up to less than 1, the
            rest is the probability that the episode ends. A sum within 1e-9 of 1 counts as 1. For n probabilities in
            float32, this tolerance is (n + 2) · 2^{-23}.
        rewards: The reward of each state and action [S A]. It is paid at the start of the transition.
        hazard: The prior H over the hazard of an episode, per unit of time.
        discount: The discount d(t).
        durations: The positive duration dt of each transition [S A]; by default 1. A head with discount factor γ
            discounts the next state's value by γ^{dt}. The agent survives the hazard λ with probability e^{-λ dt}.
        survivals: The probability e^{-λ(s,a)} of surviving each transition, in (0, 1] [S A]; by default 1. The
            episode's hazard is an independent risk, so the two survival probabilities are multiplied.

    Raises:
        InputError: If shapes do not match or a value is out of range.
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
        """Returns γ^{dt} e^{-λ(s,a)} P, which multiplies the values of the next states in a Bellman backup.

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
        """The number of state-action pairs after `in_unit_steps`, or None if a duration is not whole."""
        if self.durations is None:
            return float(self.rewards.size)
        if not np.all(self.durations == np.round(self.durations)):
            return None
        return float((self.states + (self.durations - 1).sum()) * self.actions)

    def in_unit_steps(self) -> "HazardousMDP":
        """Returns an equivalent MDP, in which every transition is split into steps of duration 1.

        A transition of duration n passes through n - 1 intermediate states, which come after the original states. An
        intermediate state has no reward, and all actions have the same effect in it.

        Raises:
            InputError: If a duration is not whole, or the result has more than a million state-action pairs.
        """
        if self.durations is None:
            return self
        rows = self.rows_in_unit_steps
        if rows is None:
            real = self.durations[self.durations != np.round(self.durations)]
            raise InputError(
                f"only whole durations can be split into steps, got {real[0]:g}; use whole durations, or an "
                "exponential discount under a known hazard"
            )
        if rows > MOST_SPLIT:
            raise InputError(
                f"with steps of duration 1 this MDP would have {rows / self.actions:,.0f} states, too many: at most "
                f"{MOST_SPLIT:,} state-action pairs are allowed; use a longer unit of time, or an exponential discount "
                "under a known hazard"
            )
        # A transition leads to its first intermediate state, and each intermediate state leads to the next one. The
        # last intermediate state has the outcomes of the original transition.
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
        """Checks a policy and normalises its rows.

        Args:
            policy: The probability of each action in each state [S A]. Each row must add up to 1, with the same
                tolerances as transitions.

        Returns:
            The normalised policy [S A].

        Raises:
            InputError: If `policy` is not a policy of this MDP.
        """
        policy = numbers("a policy", policy)
        if (
            policy.shape != self.rewards.shape
            or not np.all(policy >= 0)
            or not np.all(np.abs(policy.sum(axis=1) - 1) <= rounding(policy, self.actions))
        ):
            raise InputError(
                f"a policy must be an array [{self.states} {self.actions}] of probabilities, with each row adding up "
                "to 1"
            )
        return policy / policy.sum(axis=1, keepdims=True)

    def check_place(self, state: int, action: int = 0) -> None:
        """Checks that a state and an action exist.

        Args:
            state: A state.
            action: An action.

        Raises:
            InputError: If the state or the action does not exist.
        """
        exist = [
            isinstance(one, Integral) and not isinstance(one, bool) and 0 <= one < count
            for one, count in ((state, self.states), (action, self.actions))
        ]
        if not all(exist):
            raise InputError(
                f"there is no state {shown(state)} with action {shown(action)}; states are 0 to {self.states - 1}, "
                f"and actions are 0 to {self.actions - 1}"
            )

    def under(self, policy: Policy, gamma: float = 1.0) -> tuple[sparse.csr_array, Float[np.ndarray, " S"]]:
        """Returns the Markov chain that results from following a policy.

        Args:
            policy: The probability of each action in each state [S A].
            gamma: The discount factor γ.

        Returns:
            The transition probabilities times γ^{dt} e^{-λ(s,a)} [S S], and the expected reward of each state [S].
            Expected rewards that differ from 0 only by rounding are set to 0.
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
        """Draws the next state s' ~ e^{-λ(s,a)} P(· | s, a) for each state and action. Ignores the prior H.

        Args:
            states: The states [N].
            actions: The actions [N].
            rng: The source of randomness.

        Returns:
            The next states [N]; -1 where the episode ends.
        """
        rows = states * self.actions + actions
        begin, end = self.matrix.indptr[rows], self.matrix.indptr[rows + 1]
        # `_running_sum` runs over all rows of the matrix, so the random number is added to the sum of all earlier rows.
        drawn = self._running_sum[begin] + rng.random(len(rows))
        found = np.searchsorted(self._running_sum, drawn, side="right") - 1
        following = np.full(len(rows), -1)
        goes_on = drawn < self._running_sum[end]
        following[goes_on] = self.matrix.indices[found[goes_on]]
        return following
