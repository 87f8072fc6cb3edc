"""Exact values of a policy under any hazard and discount, and optimal control under exponential discounts."""

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse import csgraph

from multihorizon.discounting import hazard
from multihorizon.errors import InputError
from multihorizon.mdp.durations import timed_series
from multihorizon.mdp.endless import MOST_TERMS, TOO_LONG, endless_series, refuse_infinite_sums
from multihorizon.mdp.linear import solve
from multihorizon.mdp.model import HazardousMDP, Policy, check_mdp

TOLERANCE = 1e-12  # largest error of a truncated sum, relative to the largest value
BLOCK = 64  # number of times at which s(t) d(t) is evaluated at once
FEW_ROWS = 10_000  # transitions are split into unit steps if this gives at most FEW_ROWS state-action pairs
ESTIMATED_AT = 4096  # after this number of terms, `action_values` estimates how many more terms it needs


def action_values(mdp: HazardousMDP, policy: Policy) -> Float[np.ndarray, "S A"]:
    """Returns Q^{H,d}_π(s, a) = E_λ E_{π,P_λ}[Σ d(t) R(s_t, a_t)] (equation 8).

    The value is Q = Σ_t s(t) d(t) E[R_t], where s(t) = E_λ[e^{-λt}] is the probability of survival. If s·d is
    exponential, Q is the solution of a linear system. Otherwise the series is summed until the remaining terms are
    negligible. In a task that never ends, the value can be infinite, as under a hyperbolic discount (the paper's
    footnote 2).

    Args:
        mdp: The MDP, with its hazard and its discount.
        policy: The probability of each action in each state [S A].

    Returns:
        The action values [S A]. Their error is at most 1e-12 of the largest value, or about 1e-10 in a task that
        never ends.

    Raises:
        InputError: If the policy is invalid or the values can be infinite.
    """
    policy = check_mdp(mdp).check_policy(policy)
    if mdp.durations is not None:
        return _values_over_durations(mdp, policy)
    chain, rewards = mdp.under(policy)
    slowest = math.exp(-mdp.hazard.support[0]) * mdp.discount.slowest_gamma
    live = _earning(chain, rewards)
    endless = _endless(mdp, policy, chain, live) if slowest == 1 else np.zeros_like(live)
    if np.any(endless):
        refuse_infinite_sums(mdp, int(np.flatnonzero(endless)[0]))
    # States that cannot reach a reward have value 0 and are left out. An absorbing state without reward therefore ends
    # the episode.
    keep = sparse.diags_array(live.astype(float))
    chain = sparse.csr_array(slowest * (keep @ chain @ keep))
    first = slowest * (mdp.matrix @ keep)
    if _known_gamma(mdp) is not None:
        states = solve(chain, rewards)
        return mdp.rewards + (first @ states).reshape(mdp.rewards.shape)
    if np.any(endless):
        return endless_series(mdp, chain, rewards, first)
    return _series(mdp, chain, rewards, first, slowest)


def _values_over_durations(mdp: HazardousMDP, policy: Policy) -> Float[np.ndarray, "S A"]:
    gamma = _known_gamma(mdp)
    if gamma is not None and gamma < 1:
        chain, rewards = mdp.under(policy, gamma)
        return mdp.rewards + (mdp.discounted(gamma) @ solve(chain, rewards)).reshape(mdp.rewards.shape)
    if gamma == 1:  # without discounting, durations have no effect
        return action_values(replace(mdp, durations=None), policy)
    slowest = math.exp(-mdp.hazard.support[0]) * mdp.discount.slowest_gamma
    chain, rewards = mdp.under(policy, slowest)
    live = _earning(chain, rewards)
    is_endless = slowest == 1 and bool(np.any(_endless(mdp, policy, chain, live)))
    if is_endless or (mdp.rows_in_unit_steps or math.inf) <= FEW_ROWS:
        split = mdp.in_unit_steps()
        walked = np.concatenate([policy, np.full((split.states - mdp.states, mdp.actions), 1 / mdp.actions)])
        return action_values(split, walked)[: mdp.states]
    return timed_series(mdp, policy, rewards, live, slowest)


def _known_gamma(mdp: HazardousMDP) -> float | None:
    """Returns γ e^{-λ} if the discount is exponential and the hazard is known, else None."""
    if isinstance(mdp.hazard, hazard.Dirac) and isinstance(mdp.discount.prior, hazard.Dirac):
        return math.exp(-mdp.hazard.k - mdp.discount.prior.k)
    return None


def _earning(chain: sparse.csr_array, rewards: Float[np.ndarray, " S"]) -> np.ndarray:
    return _reaching(chain, rewards != 0)


def _reaching(chain: sparse.csr_array, goal: np.ndarray) -> np.ndarray:
    """Returns, for each state, whether the state is in `goal` or can reach a state in `goal`."""
    size = chain.shape[0]
    sources = np.flatnonzero(goal)
    if len(sources) == 0:
        return np.zeros(size, dtype=bool)
    # The search runs backwards from an extra node, which all states in `goal` lead to.
    arrows = sparse.coo_array(chain)
    held = arrows.data > 0
    starts = np.concatenate([arrows.coords[1][held], np.full(len(sources), size)])
    ends = np.concatenate([arrows.coords[0][held], sources])
    graph = sparse.csr_array((np.ones(len(starts)), (starts, ends)), shape=(size + 1, size + 1))
    found = csgraph.breadth_first_order(graph, size, return_predecessors=False)
    reached = np.zeros(size + 1, dtype=bool)
    reached[found] = True
    return reached[:size]


def _endless(mdp: HazardousMDP, policy: Policy, chain: sparse.csr_array, live: np.ndarray) -> np.ndarray:
    """Returns, for each state, whether an episode from this state never ends and can always reach another reward."""
    stays = (mdp.matrix @ live.astype(float)).reshape(policy.shape)
    leaves = live & np.any((policy > 0) & (stays < 1 - 1e-12), axis=1)
    return live & ~_reaching(chain, leaves)


def _series(
    mdp: HazardousMDP,
    chain: sparse.csr_array,
    rewards: Float[np.ndarray, " S"],
    first: sparse.csr_array,
    slowest: float,
) -> Float[np.ndarray, "S A"]:
    """Sums Σ_t s(t) d(t) E[R_t]. The matrices `chain` and `first` are already multiplied by `slowest`.

    The discount satisfies s(t) d(t) ≤ bound · slowest^t. From each state, an episode can still earn rewards after j
    steps with some probability. Let p_j be the largest of these probabilities, and let m_j = slowest^j p_j. All terms
    from time t on add up to at most bound · max|R| · Σ_{j≥t} m_j. Because m_{i+j} ≤ m_i m_j, the sum Σ_{j≥t} m_j is at
    most (Σ_{j<t} m_j) · m_t / (1 - m_t).
    """
    total = mdp.discount(0.0) * mdp.rewards.reshape(-1)
    if slowest == 0:
        return total.reshape(mdp.rewards.shape)
    scale = mdp.discount.bound * np.abs(mdp.rewards).max()
    expected, alive, alive_sum = rewards, np.ones(mdp.states), 1.0
    for t in range(1, MOST_TERMS, BLOCK):
        block = np.arange(t, t + BLOCK)
        shares = mdp.discount(block) * np.exp(mdp.hazard.log_survival(block) - block * math.log(slowest))
        for share in np.asarray(shares):
            total = total + share * (first @ expected)
            expected, alive = chain @ expected, chain @ alive
            most = float(alive.max())
            if most < 1 and scale * alive_sum * most / (1 - most) <= TOLERANCE * np.abs(total).max():
                return total.reshape(mdp.rewards.shape)
            alive_sum += most
        if t > ESTIMATED_AT and most ** (MOST_TERMS / t) > TOLERANCE:
            break
    raise InputError(TOO_LONG)


class Optimum(NamedTuple):
    """An optimal policy and its values.

    Attributes:
        policy: The best action in each state [S].
        values: The action values [S A].
    """

    policy: Int[np.ndarray, " S"]
    values: Float[np.ndarray, "S A"]


def optimal_control(mdp: HazardousMDP) -> Optimum:
    """Returns an optimal policy for a known hazard and an exponential discount, found by policy iteration.

    Under any other discount there is no Bellman equation: the best action depends on how long ago the plan was made.

    Args:
        mdp: The MDP. It needs a known hazard λ and an exponential discount with γ e^{-λ} < 1.

    Returns:
        The best action in each state [S] and the action values [S A].

    Raises:
        InputError: If the hazard is not known, the discount is not exponential, or γ e^{-λ} is 1.
    """
    gamma = _known_gamma(check_mdp(mdp))
    if gamma is None:
        raise InputError(
            "optimal control needs a known hazard (Dirac) and an exponential discount, "
            f"not {mdp.hazard} and {mdp.discount.label}"
        )
    if gamma >= 1:
        raise InputError("optimal control needs a discount or a hazard: γ e^{-λ} must be below 1")
    ahead = mdp.discounted(gamma)
    actions = np.argmax(mdp.rewards, axis=1)
    while True:
        chain, rewards = mdp.under(np.eye(mdp.actions)[actions], gamma)
        states = solve(chain, rewards)
        values = mdp.rewards + (ahead @ states).reshape(mdp.rewards.shape)
        gain = values.max(axis=1) - values[np.arange(mdp.states), actions]
        # A gain within rounding errors does not change an action. Otherwise tied actions could alternate for ever.
        better = gain > 1e-12 * max(1.0, np.abs(values).max())
        if not np.any(better):
            return Optimum(actions, values)
        actions = np.where(better, values.argmax(axis=1), actions)
