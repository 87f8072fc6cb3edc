"""Solves for the behaviour of naive, precommitted and sophisticated agents under a discount d(t) = Σ wᵢ γᵢ^t.

If the discount is not exponential, the best plan today need not be the best plan tomorrow. A *naive* agent plans again
at each step. A *precommitted* agent keeps its first plan: after t steps, head i has the weight wᵢ γᵢ^t. A
*sophisticated* agent plays a best response to its own later choices.

`naive` and `precommitted` compute the best plans. The paper's agent instead has one head per γ. Each head bootstraps
from its own best action and therefore values a different plan. `naive_by_heads` and `precommitted_by_heads` return the
behaviour that agents with these heads converge to. If all heads bootstrap from the agent's action, the fixed points of
learning are the equilibria of `sophisticated`.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
from jaxtyping import Float, Int
from scipy import sparse
from scipy.sparse import csgraph

from multihorizon.discounting import Horizons, single
from multihorizon.discounting.discount import exponential
from multihorizon.errors import InputError, at_least, numbers, shown
from multihorizon.mdp.model import HazardousMDP, check_mdp
from multihorizon.mdp.values import optimal_control
from multihorizon.mdp.weighted_heads import MOST_STEPS, Behaviour, WeightedHeads, check_horizons

MOST_POLICIES = 20_000  # all pure policies are tried if there are at most MOST_POLICIES
BEST_RESPONSES = 200  # largest number of iterations in each of the two loops of `_respond`
Response = Callable[[Int[np.ndarray, " S"]], Int[np.ndarray, " S"]]


@dataclass(frozen=True, eq=False)
class Equilibrium(Behaviour):
    """Behaviour that the agent cannot improve by changing its action at one step only.

    Attributes:
        others: The other equilibria that were found, in order of decreasing mean value.
        exhaustive: Whether all equilibria in pure policies were found, apart from ties.
    """

    others: tuple[Behaviour, ...] = ()
    exhaustive: bool = True


def own_head_values(mdp: HazardousMDP, horizons: Horizons) -> Float[np.ndarray, "H S A"]:
    """Returns Q_γ of each head, if each head bootstraps from its own best action as in the paper.

    Args:
        mdp: The MDP, with a known hazard. Its discount is ignored.
        horizons: The discount factors, with γ e^{-λ} < 1.
    """
    check_mdp(mdp)
    check_horizons(horizons)
    return np.stack([optimal_control(replace(mdp, discount=exponential(float(g)))).values for g in horizons.gammas])


def acting_head_values(
    mdp: HazardousMDP, horizons: Horizons, actions: Int[np.ndarray, " S"]
) -> Float[np.ndarray, "H S A"]:
    """Returns Q_γ of each head, if all heads bootstrap from the agent's action.

    Args:
        mdp: The MDP, with a known hazard. Its discount is ignored.
        horizons: The discount factors, with γ e^{-λ} < 1.
        actions: The action that the agent takes in each state [S].
    """
    check_horizons(horizons)
    given, actions = actions, numbers("actions", actions)
    if actions.shape != (check_mdp(mdp).states,) or not np.all(np.isin(actions, np.arange(mdp.actions))):
        raise InputError(
            f"actions must be {mdp.states} whole numbers from 0 to {mdp.actions - 1}, one for each state, "
            f"got {shown(given)}"
        )
    actions = actions.astype(int)
    each = [WeightedHeads(mdp, single(float(gamma))) for gamma in horizons.gammas]
    return np.concatenate([head.bootstrapped(actions) for head in each])


def naive(mdp: HazardousMDP, horizons: Horizons, steps: int | None = None) -> Behaviour:
    """Returns the behaviour of an agent that plans again at each step and takes the first action of the best plan.

    Args:
        mdp: The MDP, with a known hazard. Its discount is ignored.
        horizons: The discount Σ wᵢ γᵢ^t.
        steps: The length of an episode; by default unlimited.

    Raises:
        InputError: If the hazard is not known, transitions have durations, or the computation would be too large. If
            `steps` is not given, the largest γ must have a positive weight and satisfy γ e^{-λ} < 1.
    """
    heads = WeightedHeads(mdp, horizons)
    if steps is None:
        return heads.behaviour(heads.plan(None)[:1])
    return heads.behaviour(heads.first_actions(at_least("steps", steps, 1, MOST_STEPS))[::-1], ends=True)


def precommitted(mdp: HazardousMDP, horizons: Horizons, steps: int | None = None) -> Behaviour:
    """Returns the behaviour of an agent that makes the best plan at the first step and keeps it.

    The plan is computed backwards in time. At time t, head i has the weight wᵢ γᵢ^t.

    Args:
        mdp: The MDP, with a known hazard. Its discount is ignored.
        horizons: The discount Σ wᵢ γᵢ^t.
        steps: The length of an episode; by default unlimited.

    Raises:
        InputError: In the same cases as `naive`.
    """
    heads = WeightedHeads(mdp, horizons)
    return heads.behaviour(
        heads.plan(None if steps is None else at_least("steps", steps, 1, MOST_STEPS)), ends=steps is not None
    )


def naive_by_heads(mdp: HazardousMDP, horizons: Horizons) -> Behaviour:
    """Returns the behaviour that the paper's agent converges to: it maximises Σ wᵢ Q_γᵢ(s, a) over a.

    Each head bootstraps from its own best action.

    Args:
        mdp: The MDP, with a known hazard. Its discount is ignored.
        horizons: The discount Σ wᵢ γᵢ^t.
    """
    check_horizons(horizons)
    chosen = np.tensordot(horizons.weights, own_head_values(mdp, horizons), 1).argmax(axis=1)
    return WeightedHeads(mdp, horizons).behaviour(chosen[None])


def precommitted_by_heads(mdp: HazardousMDP, horizons: Horizons) -> Behaviour:
    """Returns the behaviour that a precommitted agent converges to: at time t it maximises Σ wᵢ γᵢ^t Q_γᵢ(s, a) over a.

    Each head bootstraps from its own best action.

    Args:
        mdp: The MDP, with a known hazard. Its discount is ignored.
        horizons: The discount Σ wᵢ γᵢ^t.
    """
    heads = WeightedHeads(mdp, horizons)
    heads.require_unit_steps()
    own = own_head_values(mdp, heads.horizons)
    return heads.behaviour(np.stack([np.tensordot(w, own, 1).argmax(axis=1) for w in heads.beliefs()]))


def sophisticated(mdp: HazardousMDP, horizons: Horizons, steps: int | None = None) -> Equilibrium:
    """Returns an equilibrium, in which every action is a best response to the agent's own later actions.

    If `steps` is given or no state can be visited twice, the equilibrium is computed backwards in time. This
    equilibrium is unique except for ties. Otherwise the search covers only pure policies that do not depend on time. If
    there are at most 20,000 pure policies, the search tries all of them. If there are more pure policies, the search
    iterates best responses from several initial policies.

    Args:
        mdp: The MDP, with a known hazard. Its discount is ignored.
        horizons: The discount Σ wᵢ γᵢ^t.
        steps: The length of an episode; by default unlimited.

    Raises:
        InputError: If the hazard is not known, no equilibrium is found, or values can be infinite because γ e^{-λ} = 1.
    """
    heads = WeightedHeads(mdp, horizons)
    if steps is not None:
        ahead = np.zeros((len(heads.horizons), mdp.states))
        rows = []
        for _ in range(at_least("steps", steps, 1, MOST_STEPS)):
            rows.append(heads.best(heads.horizons.weights, heads.lookahead(ahead)))
            ahead = heads.taken(heads.lookahead(ahead), rows[-1])
        found = heads.behaviour(np.stack(rows[::-1]), ends=True)
        return Equilibrium(found.actions, found.values)
    order = _visited_once(mdp)
    if order is not None:
        return _backwards(heads, order)
    return _fixed_point(heads)


def _visited_once(mdp: HazardousMDP) -> Int[np.ndarray, " S"] | None:
    """Returns the states in an order in which successors come first, or None if a state can be visited twice."""
    rows = sparse.coo_array(mdp.matrix)
    starts, ends = rows.coords[0] // mdp.actions, rows.coords[1]
    graph = sparse.csr_array((np.ones(len(starts)), (starts, ends)), shape=(mdp.states, mdp.states))
    count, _ = csgraph.connected_components(graph, connection="strong")
    if count < mdp.states or np.any(starts == ends):
        return None
    depth = np.zeros(mdp.states, dtype=int)
    for _ in range(mdp.states):  # finds the longest path from each state to the end
        deeper = depth.copy()
        np.maximum.at(deeper, starts, depth[ends] + 1)
        if np.array_equal(deeper, depth):
            break
        depth = deeper
    return np.argsort(depth, kind="stable")


def _backwards(heads: WeightedHeads, order: Int[np.ndarray, " S"]) -> Equilibrium:
    values = np.zeros((len(heads.horizons), heads.mdp.states))
    actions = np.zeros(heads.mdp.states, dtype=int)
    for state in order:
        ahead = heads.lookahead(values)
        actions[state] = heads.best(heads.horizons.weights, ahead)[state]
        values[:, state] = ahead[:, state, actions[state]]
    return Equilibrium(actions[None], heads.horizons.weights @ values)


def _respond(response: Response, policy: Int[np.ndarray, " S"]) -> Iterator[Int[np.ndarray, " S"]]:
    """Iterates best responses in all states at once, then in one state at a time, and yields the fixed points."""
    for at_once in (True, False):
        current = policy
        for turn in range(BEST_RESPONSES):
            wanted = response(current)
            changed = np.flatnonzero(wanted != current)
            if len(changed) == 0:
                yield current
                return
            chosen = changed if at_once else changed[[turn % len(changed)]]
            current = current.copy()
            current[chosen] = wanted[chosen]


def _fixed_point(heads: WeightedHeads) -> Equilibrium:
    heads.require_an_end()
    states, actions = heads.mdp.rewards.shape
    weights = heads.horizons.weights
    exhaustive = actions**states <= MOST_POLICIES

    def response(policy: Int[np.ndarray, " S"]) -> Int[np.ndarray, " S"]:
        return heads.best(weights, heads.bootstrapped(policy), kept=policy)

    if exhaustive:
        candidates = [np.array(one) for one in product(range(actions), repeat=states)]
        stable = [policy for policy in candidates if np.array_equal(response(policy), policy)]
        tried = f"all {len(candidates):,} were tried"
    else:
        starts = [
            optimal_control(replace(heads.mdp, discount=exponential(float(g)))).policy for g in heads.horizons.gammas
        ]
        starts.append(np.tensordot(weights, own_head_values(heads.mdp, heads.horizons), 1).argmax(axis=1))
        stable = [found for start in starts for found in _respond(response, start)]
        tried = f"{2 * BEST_RESPONSES} best responses were tried from each of {len(starts)} initial policies"
    if not stable:
        raise InputError(
            f"no equilibrium was found in pure policies that do not depend on time ({tried}); set steps to the length "
            "of an episode, because every episode of finite length has an equilibrium"
        )
    found: list[Behaviour] = []
    for policy in stable:
        one = heads.behaviour(policy[None])
        if not any(np.allclose(one.values, other.values, rtol=1e-8, atol=1e-10) for other in found):
            found.append(one)
    best, *others = sorted(found, key=lambda one: -float(one.values.mean()))
    return Equilibrium(best.actions, best.values, tuple(others), exhaustive)
