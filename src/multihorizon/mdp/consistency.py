"""Three ways to act by a discount d(t) = Σ wᵢ γᵢ^t that is not exponential, solved exactly.

Under such a discount a plan that is best today need not be best tomorrow. A *naive* agent plans again at each step. A
*precommitted* agent keeps the plan of the first step. It updates its belief as it survives, so that after t steps head
i has the weight wᵢ γᵢ^t. A *sophisticated* agent knows that its later selves will choose for themselves, and plays a
best response to them.

`naive` and `precommitted` solve for the best plan itself. The paper's agent instead has one head per γ, and each head
bootstraps from its own best action. Its heads therefore have the values of H different plans; `naive_by_heads` and
`precommitted_by_heads` are the limits of such agents. If all heads bootstrap from the acting policy, their fixed points
are the equilibria of `sophisticated`.
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

MOST_POLICIES = 20_000  # up to this number, all policies are tested for an equilibrium
BEST_RESPONSES = 200  # `_respond` gives up each of its two series of best responses after this many
Response = Callable[[Int[np.ndarray, " S"]], Int[np.ndarray, " S"]]


@dataclass(frozen=True, eq=False)
class Equilibrium(Behaviour):
    """Behaviour that no self can improve by changing its own action alone.

    Attributes:
        others: Equilibria with other values, if several were found. This one has the largest mean value.
        exhaustive: Whether `others` lists every other equilibrium in pure policies, apart from ties.
    """

    others: tuple[Behaviour, ...] = ()
    exhaustive: bool = True


def own_head_values(mdp: HazardousMDP, horizons: Horizons) -> Float[np.ndarray, "H S A"]:
    """Returns Q_γ of each head, bootstrapped from its own best action as in the paper's agents.

    Args:
        mdp: The MDP, with a known hazard. Its discount is not used.
        horizons: The discount factors, with γ e^{-λ} < 1.
    """
    check_mdp(mdp)
    check_horizons(horizons)
    return np.stack([optimal_control(replace(mdp, discount=exponential(float(g)))).values for g in horizons.gammas])


def acting_head_values(
    mdp: HazardousMDP, horizons: Horizons, actions: Int[np.ndarray, " S"]
) -> Float[np.ndarray, "H S A"]:
    """Returns Q_γ of each head, bootstrapped from the action that the agent takes.

    Args:
        mdp: The MDP, with a known hazard. Its discount is not used.
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
        mdp: The MDP, with a known hazard. Its discount is not used.
        horizons: The discount Σ wᵢ γᵢ^t.
        steps: The length of an episode, if it is cut off; by default it is not.

    Raises:
        InputError: If the hazard is not known, transitions have durations, or there is too much to compute for so many
            steps. Without `steps`, also if the head with the largest γ has a negative weight or γ e^{-λ} is 1.
    """
    heads = WeightedHeads(mdp, horizons)
    if steps is None:
        return heads.behaviour(heads.plan(None)[:1])
    return heads.behaviour(heads.first_actions(at_least("steps", steps, 1, MOST_STEPS))[::-1], ends=True)


def precommitted(mdp: HazardousMDP, horizons: Horizons, steps: int | None = None) -> Behaviour:
    """Returns the behaviour of an agent that keeps its first plan, which is the best by its discount.

    The plan is found backwards in time. At time t head i has the weight wᵢ γᵢ^t, and for large t only the head with the
    largest γ matters.

    Args:
        mdp: The MDP, with a known hazard. Its discount is not used.
        horizons: The discount Σ wᵢ γᵢ^t.
        steps: The length of an episode, if it is cut off; by default it is not.

    Raises:
        InputError: In the same cases as `naive`.
    """
    heads = WeightedHeads(mdp, horizons)
    return heads.behaviour(
        heads.plan(None if steps is None else at_least("steps", steps, 1, MOST_STEPS)), ends=steps is not None
    )


def naive_by_heads(mdp: HazardousMDP, horizons: Horizons) -> Behaviour:
    """Returns what the paper's agent converges to: argmax Σ wᵢ Q_γᵢ, each head bootstrapped from its own best action.

    Args:
        mdp: The MDP, with a known hazard. Its discount is not used.
        horizons: The discount Σ wᵢ γᵢ^t.
    """
    check_horizons(horizons)
    chosen = np.tensordot(horizons.weights, own_head_values(mdp, horizons), 1).argmax(axis=1)
    return WeightedHeads(mdp, horizons).behaviour(chosen[None])


def precommitted_by_heads(mdp: HazardousMDP, horizons: Horizons) -> Behaviour:
    """Returns the limit of a precommitted agent with one head per γ: argmax Σ wᵢ γᵢ^t Q_γᵢ at time t.

    Each head is bootstrapped from its own best action.

    Args:
        mdp: The MDP, with a known hazard. Its discount is not used.
        horizons: The discount Σ wᵢ γᵢ^t.
    """
    heads = WeightedHeads(mdp, horizons)
    heads.require_unit_steps()
    own = own_head_values(mdp, heads.horizons)
    return heads.behaviour(np.stack([np.tensordot(w, own, 1).argmax(axis=1) for w in heads.beliefs()]))


def sophisticated(mdp: HazardousMDP, horizons: Horizons, steps: int | None = None) -> Equilibrium:
    """Returns an equilibrium of the agent's selves: each self's action is the best, given the actions of the others.

    Where the horizon is finite, because `steps` is given or because no state can be visited twice, the equilibrium is
    found backwards in time and is unique except for ties. Otherwise it is a fixed point among pure policies that do not
    depend on time: all policies are tried if there are at most 20,000; otherwise best responses are iterated
    from several starts.

    Args:
        mdp: The MDP, with a known hazard. Its discount is not used.
        horizons: The discount Σ wᵢ γᵢ^t.
        steps: The length of an episode, if it is cut off; by default it is not.

    Raises:
        InputError: If the hazard is not known, or if no equilibrium exists or none is found (the message says which).
            Where the horizon is not finite, also if γ e^{-λ} is 1.
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
    """Returns the states, each listed after all states that it leads to; None if a state can be visited twice."""
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
    """Yields fixed points of repeated best responses, first in all states at once, then in one state at a time."""
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
        tried = f"none of the {len(candidates):,} pure policies is one"
    else:
        starts = [
            optimal_control(replace(heads.mdp, discount=exponential(float(g)))).policy for g in heads.horizons.gammas
        ]
        starts.append(np.tensordot(weights, own_head_values(heads.mdp, heads.horizons), 1).argmax(axis=1))
        stable = [found for start in starts for found in _respond(response, start)]
        tried = f"{2 * BEST_RESPONSES} best responses from each of {len(starts)} starts found none"
    if not stable:
        raise InputError(
            f"no equilibrium in pure policies that do not depend on time: {tried}; give steps (the length of an "
            "episode); then an equilibrium always exists"
        )
    found: list[Behaviour] = []
    for policy in stable:
        one = heads.behaviour(policy[None])
        if not any(np.allclose(one.values, other.values, rtol=1e-8, atol=1e-10) for other in found):
            found.append(one)
    best, *others = sorted(found, key=lambda one: -float(one.values.mean()))
    return Equilibrium(best.actions, best.values, tuple(others), exhaustive)
