"""Exact values of a policy under any hazard and discount, and optimal control under exponential discounts."""

import math
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse import csgraph
from scipy.sparse.linalg import splu

from multihorizon.discounting import hazard
from multihorizon.errors import InputError
from multihorizon.mdp.model import HazardousMDP, Policy

TOLERANCE = 1e-12  # of the sum of the series, relative to the largest value
BLOCK = 64  # times at which s(t) d(t) is evaluated together
MOST_TERMS = 2_000_000
ESTIMATED_AT = 4096  # terms after which it is clear how many are needed


def action_values(mdp: HazardousMDP, policy: Policy) -> Float[np.ndarray, "S A"]:
    """Q^{H,d}_π(s, a) = E_λ E_{π,P_λ}[Σ d(t) R(s_t, a_t)] (equation 8), to 1e-12 of the largest value.

    Averaged over λ, what is left of a reward at t is s(t) d(t), so Q = Σ_t s(t) d(t) E[R_t]. Where s·d is an
    exponential this is one linear system; otherwise the series is summed until a bound on its rest is negligible.
    The values of tasks that never end can be infinite under discounts that fall slower than every exponential
    (the paper's footnote 2), so these are refused.
    """
    policy = mdp.check_policy(policy)
    chain, rewards = mdp.under(policy)
    slowest = math.exp(-mdp.hazard.support[0]) * mdp.discount.slowest_gamma
    live = _earning(chain, rewards)
    _refuse_endless(mdp, chain, live, slowest)
    # Beyond the states that can still earn nothing counts: leave them out, so that a state that is absorbing and
    # pays nothing is an end of the episode.
    keep = sparse.diags_array(live.astype(float))
    chain = sparse.csr_array(slowest * (keep @ chain @ keep))
    first = slowest * (mdp.matrix @ keep)
    if isinstance(mdp.hazard, hazard.Dirac) and isinstance(mdp.discount.prior, hazard.Dirac):
        states = _solve(chain, rewards)
        return mdp.rewards + (first @ states).reshape(mdp.rewards.shape)
    return _series(mdp, chain, rewards, first, slowest)


def _earning(chain: sparse.csr_array, rewards: Float[np.ndarray, " S"]) -> np.ndarray:
    """Which states can still meet a reward."""
    return _reaching(chain, rewards != 0)


def _reaching(chain: sparse.csr_array, goal: np.ndarray) -> np.ndarray:
    """Which states lead to one of `goal` (or are one)."""
    size = chain.shape[0]
    sources = np.flatnonzero(goal)
    if len(sources) == 0:
        return np.zeros(size, dtype=bool)
    # One more node, with an arrow from it to each goal, makes it a single search along reversed arrows.
    arrows = sparse.coo_array(chain)
    held = arrows.data > 0
    starts = np.concatenate([arrows.coords[1][held], np.full(len(sources), size)])
    ends = np.concatenate([arrows.coords[0][held], sources])
    graph = sparse.csr_array((np.ones(len(starts)), (starts, ends)), shape=(size + 1, size + 1))
    found = csgraph.breadth_first_order(graph, size, return_predecessors=False)
    reached = np.zeros(size + 1, dtype=bool)
    reached[found] = True
    return reached[:size]


def _refuse_endless(mdp: HazardousMDP, chain: sparse.csr_array, live: np.ndarray, slowest: float) -> None:
    if slowest < 1:
        return
    stays = chain @ live.astype(float)
    leaves = live & (stays < 1 - 1e-12)
    endless = live & ~_reaching(chain, leaves)
    if np.any(endless):
        raise InputError(
            f"the values can be infinite: from state {int(np.flatnonzero(endless)[0])} this policy earns for ever, and "
            f"{mdp.discount.label} under hazard {mdp.hazard} is not known to fall as fast as any exponential; "
            "use an episodic task, an exponential discount, or a hazard that is bounded away from 0"
        )


def _solve(chain: sparse.csr_array, rewards: Float[np.ndarray, " S"]) -> Float[np.ndarray, " S"]:
    """v = r + chain v."""
    system = sparse.csc_array(sparse.eye_array(chain.shape[0]) - chain)
    return np.asarray(splu(system).solve(rewards))


def _series(
    mdp: HazardousMDP,
    chain: sparse.csr_array,
    rewards: Float[np.ndarray, " S"],
    first: sparse.csr_array,
    slowest: float,
) -> Float[np.ndarray, "S A"]:
    """Σ_t s(t) d(t) E[R_t], with the slowest exponential taken out of s·d and put into the chain.

    With c(t) = s(t) d(t) / slowest^t ≤ bound and m_j = max_s P(still earning after j steps), what is left after t
    terms is at most bound · max|R| · Σ_{j≥t} m_j. As m_{i+j} ≤ m_i m_j, that is Σ_{j<t} m_j · m_t / (1 - m_t) at most.
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
    raise InputError(f"episodes under this policy are too long to sum: more than {MOST_TERMS:,} steps of them matter")


class Optimum(NamedTuple):
    """The best policy (an action for each state) and its action values."""

    policy: Int[np.ndarray, " S"]
    values: Float[np.ndarray, "S A"]


def optimal_control(mdp: HazardousMDP) -> Optimum:
    """Policy iteration, for a known hazard and an exponential discount that together fall: γ e^{-λ} < 1.

    Under any other discount there is no Bellman equation to solve: what is best from a state depends on how long
    ago the plan was made.
    """
    if not (isinstance(mdp.hazard, hazard.Dirac) and isinstance(mdp.discount.prior, hazard.Dirac)):
        raise InputError(
            "optimal control needs a known hazard (Dirac) and an exponential discount, "
            f"not {mdp.hazard} and {mdp.discount.label}"
        )
    gamma = math.exp(-mdp.hazard.k - mdp.discount.prior.k)
    if gamma >= 1:
        raise InputError("optimal control needs a discount or a hazard: γ e^{-λ} must be below 1")
    actions = np.argmax(mdp.rewards, axis=1)
    while True:
        chain, rewards = mdp.under(np.eye(mdp.actions)[actions])
        states = _solve(sparse.csr_array(gamma * chain), rewards)
        values = mdp.rewards + gamma * (mdp.matrix @ states).reshape(mdp.rewards.shape)
        gain = values.max(axis=1) - values[np.arange(mdp.states), actions]
        better = gain > 1e-12 * max(1.0, np.abs(values).max())
        if not np.any(better):  # ties keep their action, so that rounding cannot make it turn for ever
            return Optimum(actions, values)
        actions = np.where(better, values.argmax(axis=1), actions)
