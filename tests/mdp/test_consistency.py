"""Checks naive, precommitted and sophisticated agents by worked examples and by brute force in small MDPs."""

import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multihorizon.discounting import Horizons, discount, single
from multihorizon.discounting.hazard import Dirac, Exponential
from multihorizon.errors import InputError
from multihorizon.mdp import (
    HazardousMDP,
    acting_head_values,
    action_values,
    naive,
    naive_by_heads,
    optimal_control,
    own_head_values,
    precommitted,
    precommitted_by_heads,
    sophisticated,
)
from multihorizon.mdp.weighted_heads import WeightedHeads

DO, WAIT = 0, 1


def quasi(beta: float, delta: float) -> Horizons:
    """Returns the discount 1, βδ, βδ², ... as two horizons."""
    return Horizons(np.array([0.0, delta]), np.array([1 - beta, beta]))


def chore(cost: float, pay: float = 1.8) -> HazardousMDP:
    """Returns O'Donoghue and Rabin's chore: a cost now, and a reward one step later. The agent may also wait."""
    transitions = np.zeros((2, 2, 2))
    transitions[0, DO, 1] = transitions[0, WAIT, 0] = 1
    return HazardousMDP(transitions, np.array([[-cost, 0.0], [pay, pay]]))


def fork() -> HazardousMDP:
    """Returns an MDP with a choice in state 1: a reward of 1 now, or 1.8 two steps later. State 0 leads to state 1."""
    transitions = np.zeros((4, 2, 4))
    transitions[0, :, 1] = transitions[1, WAIT, 2] = transitions[2, :, 3] = 1
    rewards = np.zeros((4, 2))
    rewards[1, DO], rewards[3] = 1, 1.8
    return HazardousMDP(transitions, rewards)


def random_mdp(seed: int, states: int = 3, actions: int = 2) -> tuple[HazardousMDP, Horizons]:
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.full(states, 0.3), size=(states, actions)) * rng.uniform(0.7, 1)
    horizons = Horizons(rng.uniform(0, 0.95, size=3), rng.dirichlet(np.ones(3)))
    return HazardousMDP(transitions, rng.normal(size=(states, actions)), Dirac(rng.uniform(0, 0.1))), horizons


def every_policy(mdp: HazardousMDP) -> list[np.ndarray]:
    return [np.array(one) for one in product(range(mdp.actions), repeat=mdp.states)]


def values_of(mdp: HazardousMDP, horizons: Horizons, actions: np.ndarray) -> np.ndarray:
    """Returns Q under the discount of the horizons, computed without heads."""
    return action_values(replace(mdp, discount=horizons.discount), np.eye(mdp.actions)[actions])


def test_naive_agent_procrastinates_forever() -> None:
    beta, delta, cost, pay = 0.5, 0.99, 1.0, 1.8
    mdp, horizons = chore(cost), quasi(beta, delta)
    puts_off = naive(mdp, horizons)
    assert puts_off.actions.tolist() == [[WAIT, DO]]
    assert puts_off.values[0] == pytest.approx(0)
    planned = precommitted(mdp, horizons)
    assert planned.actions[:2, 0].tolist() == [WAIT, DO]
    assert planned.values[0] == pytest.approx(beta * delta * (-cost + delta * pay))
    # The sophisticated agent expects that no later self does the chore. Doing the chore now does not pay: βδ · 1.8 < 1.
    resigned = sophisticated(mdp, horizons)
    assert resigned.actions[0, 0] == WAIT
    assert resigned.values[0] == pytest.approx(0)
    assert (resigned.others, resigned.exhaustive) == ((), True)


def test_best_responses_that_cycle_raise_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multihorizon.mdp.consistency.MOST_POLICIES", 1)
    monkeypatch.setattr("multihorizon.mdp.consistency.BEST_RESPONSES", 20)
    with pytest.raises(InputError, match="40 best responses were tried from each of 3 initial policies"):
        sophisticated(chore(0.8), quasi(0.5, 0.99))


def test_chore_without_an_equilibrium_raises_an_error() -> None:
    """If no later self does the chore, doing the chore is best. If a later self does the chore, waiting is best."""
    mdp, horizons = chore(0.8), quasi(0.5, 0.99)
    with pytest.raises(
        InputError, match=r"no equilibrium was found in pure policies .* \(all 4 were tried\); set steps to the length"
    ):
        sophisticated(mdp, horizons)
    # With a deadline there is an equilibrium: the agent does the chore at the last step at which the chore pays.
    ended = sophisticated(mdp, horizons, steps=4)
    assert ended.actions[:, 0].tolist() == [WAIT, WAIT, DO, WAIT]
    assert ended.values[0] == pytest.approx(0.5 * 0.99**2 * (-0.8 + 0.99 * 1.8))
    assert precommitted(mdp, horizons, steps=4).actions[:, 0].tolist() == [WAIT, DO, DO, WAIT]


def test_naive_agent_reverses_its_preference() -> None:
    beta, delta = 0.6, 0.95
    mdp, horizons = fork(), quasi(beta, delta)
    small, large = beta * delta, beta * delta**3 * 1.8  # state 0 prefers the large reward
    assert small < large
    assert beta * delta**2 * 1.8 < 1  # state 1 prefers the small reward
    for behaviour in (naive(mdp, horizons), naive_by_heads(mdp, horizons), sophisticated(mdp, horizons)):
        assert behaviour.actions[0, 1] == DO
        assert behaviour.values[0] == pytest.approx(small)
    for behaviour in (precommitted(mdp, horizons), precommitted_by_heads(mdp, horizons)):
        assert behaviour.actions[1, 1] == WAIT
        assert behaviour.values[0] == pytest.approx(large)


def test_own_and_acting_bootstraps_give_different_values() -> None:
    """With `own`, the patient head plans to wait for reward 1.8. With `acting`, this head expects reward 1."""
    mdp, horizons = fork(), quasi(0.6, 0.95)
    own = own_head_values(mdp, horizons)
    acting = acting_head_values(mdp, horizons, naive_by_heads(mdp, horizons).actions[0])
    np.testing.assert_allclose(own[:, 0, 0], [0, 0.95**3 * 1.8])
    np.testing.assert_allclose(acting[:, 0, 0], [0, 0.95])
    np.testing.assert_allclose(own[:, 1], acting[:, 1])  # in state 1, no choice is left after the first action


@settings(max_examples=12)
@given(st.integers(0, 10_000))
def test_precommitted_agent_follows_the_best_time_dependent_plan(seed: int) -> None:
    mdp, horizons = random_mdp(seed, states=2)
    survivals = np.random.default_rng(seed).uniform(0.6, 1, size=(2, 2))
    mdp = replace(mdp, survivals=survivals)
    transitions = np.asarray(mdp.transitions) * survivals[..., None] * np.exp(-mdp.hazard.mean)
    best = np.full(2, -np.inf)
    for plan in product(product(range(2), repeat=2), repeat=3):
        value, reached = np.zeros(2), np.eye(2)
        for t, row in enumerate(plan):
            value += float(horizons.discount(t)) * reached @ mdp.rewards[[0, 1], row]
            reached = reached @ transitions[[0, 1], row]
        best = np.maximum(best, value)
    found = precommitted(mdp, horizons, steps=3)
    np.testing.assert_allclose(found.values, best, rtol=1e-9, atol=1e-12)
    first = [precommitted(mdp, horizons, steps=left).actions[0] for left in (3, 2, 1)]
    np.testing.assert_array_equal(naive(mdp, horizons, steps=3).actions, first)


@settings(max_examples=10)
@given(st.integers(0, 10_000), st.booleans(), st.sampled_from([1, 100, 10_000_000]))
def test_naive_agent_takes_the_first_action_of_a_new_plan_at_each_step(seed: int, signed: bool, chunk: int) -> None:
    mdp, horizons = random_mdp(seed, states=3)
    if signed:
        horizons = Horizons(horizons.gammas, horizons.weights * np.random.default_rng(seed).choice([-1, 1], size=3))
    steps = 5 + seed % 60
    heads = WeightedHeads(mdp, horizons)
    planned = np.stack([heads.plan(left)[0] for left in range(steps, 0, -1)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("multihorizon.mdp.weighted_heads.CHUNK", chunk)
        np.testing.assert_array_equal(naive(mdp, horizons, steps=steps).actions, planned)


def test_long_episodes_of_a_naive_agent_are_solved_quickly() -> None:
    mdp, _ = random_mdp(3)
    began = time.process_time()
    found = naive(mdp, Horizons(np.array([0.5, 0.9, 0.99]), np.array([0.3, 0.3, 0.4])), steps=2_000)
    assert time.process_time() - began < 8  # computing each plan separately would take minutes
    assert found.actions.shape == (2_000, 3)
    with pytest.raises(InputError, match="too many to compute; use fewer steps"):
        naive(mdp, Horizons(np.array([0.9999, 0.99991]), np.array([0.5, 0.5])), steps=100_000)


@settings(max_examples=6)
@given(st.integers(0, 10_000))
def test_no_policy_is_worth_more_than_the_precommitted_plan(seed: int) -> None:
    mdp, horizons = random_mdp(seed)
    planned = precommitted(mdp, horizons)
    for policy in every_policy(mdp):
        worth = values_of(mdp, horizons, policy)[np.arange(3), policy]
        assert np.all(worth <= planned.values + 1e-9)
    for behaviour in (naive(mdp, horizons), naive_by_heads(mdp, horizons)):
        policy = behaviour.actions[0]
        np.testing.assert_allclose(behaviour.values, values_of(mdp, horizons, policy)[np.arange(3), policy], atol=1e-9)
    assert np.all(precommitted_by_heads(mdp, horizons).values <= planned.values + 1e-9)
    # Without a limit on steps, the plan is the limit of plans for long episodes.
    long = precommitted(mdp, horizons, steps=400)
    np.testing.assert_allclose(planned.values, long.values, atol=1e-6)
    np.testing.assert_array_equal(naive(mdp, horizons).actions[0], planned.actions[0])


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_values_with_durations_and_survivals_match_action_values(seed: int) -> None:
    mdp, horizons = random_mdp(seed)
    rng = np.random.default_rng(seed)
    durations, survivals = rng.choice([0.5, 1, 3.25], size=(3, 2)), rng.uniform(0.6, 1, size=(3, 2))
    mdp = replace(mdp, durations=durations, survivals=survivals)
    found = naive_by_heads(mdp, horizons)
    policy = found.actions[0]
    q = values_of(mdp, horizons, policy)
    np.testing.assert_allclose(found.values, q[np.arange(3), policy], atol=1e-9)
    heads = acting_head_values(mdp, horizons, policy)
    np.testing.assert_allclose(np.tensordot(horizons.weights, heads, 1), q, atol=1e-9)
    own = own_head_values(mdp, horizons)
    best = [acting_head_values(mdp, horizons, one)[:, np.arange(3), one] for one in every_policy(mdp)]
    np.testing.assert_allclose(own.max(axis=2), np.max(best, axis=0), atol=1e-9)
    np.testing.assert_array_equal(np.tensordot(horizons.weights, own, 1).argmax(axis=1), policy)
    try:
        stable = sophisticated(mdp, horizons)
    except InputError:
        return  # there is no equilibrium
    actions = stable.actions[0]
    q = values_of(mdp, horizons, actions)
    np.testing.assert_allclose(stable.values, q[np.arange(3), actions], atol=1e-9)
    assert np.all(q[np.arange(3), actions] >= q.max(axis=1) - 1e-9)


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_solver_for_sophisticated_agents_finds_every_equilibrium(seed: int) -> None:
    mdp, horizons = random_mdp(seed)
    stable = []
    for policy in every_policy(mdp):
        q = values_of(mdp, horizons, policy)  # any first action; the policy chooses the later actions
        if np.all(q[np.arange(3), policy] >= q.max(axis=1) - 1e-9):
            stable.append(q[np.arange(3), policy])
    try:
        found = sophisticated(mdp, horizons)
    except InputError:
        assert stable == []
        return
    values = [found.values, *(other.values for other in found.others)]
    assert len(values) == len({tuple(np.round(one, 7)) for one in stable})
    for one in values:
        assert min(np.abs(one - other).max() for other in stable) < 1e-8
    assert found.values.mean() == max(one.mean() for one in values)


@settings(max_examples=8)
@given(st.integers(0, 10_000))
def test_iterated_best_responses_find_an_equilibrium(seed: int) -> None:
    mdp, horizons = random_mdp(seed, states=4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("multihorizon.mdp.consistency.MOST_POLICIES", 1)
        found = sophisticated(mdp, horizons)
    assert not found.exhaustive
    everything = sophisticated(mdp, horizons)
    values = [everything.values, *(other.values for other in everything.others)]
    assert min(np.abs(found.values - one).max() for one in values) < 1e-8
    fixed = acting_head_values(mdp, horizons, found.actions[0])
    greedy = np.tensordot(horizons.weights, fixed, 1)
    np.testing.assert_allclose(greedy.max(axis=1), found.values, atol=1e-9)


def test_solver_for_sophisticated_agents_reports_both_equilibria() -> None:
    """A repeated project of two phases is worth starting only if later selves continue the project."""
    beta, delta = 0.7, 0.97
    transitions = np.zeros((2, 2, 2))
    transitions[0, DO, 1] = transitions[1, DO, 0] = 1  # WAIT ends the project
    mdp = HazardousMDP(transitions, np.array([[-1.0, 0.0], [1.3, 1.4]]))
    found = sophisticated(mdp, quasi(beta, delta))
    again = (-1 + delta * 1.3) / (1 - delta**2)  # the patient head's value of state 0 while the project continues
    assert found.actions.tolist() == [[DO, DO]]
    assert found.values == pytest.approx([-1 + beta * delta * (1.3 + delta * again), 1.3 + beta * delta * again])
    (stops,) = found.others
    assert stops.actions.tolist() == [[WAIT, WAIT]]
    assert stops.values == pytest.approx([0, 1.4])
    assert found.exhaustive


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.floats(0, 0.95))
def test_all_agents_behave_alike_under_an_exponential_discount(seed: int, gamma: float) -> None:
    mdp, _ = random_mdp(seed)
    horizons = single(gamma)
    best = optimal_control(replace(mdp, discount=discount.exponential(gamma)))
    for rule in (naive, precommitted, sophisticated, naive_by_heads, precommitted_by_heads):
        np.testing.assert_allclose(rule(mdp, horizons).values, best.values.max(axis=1), rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(own_head_values(mdp, horizons)[0], best.values)
    np.testing.assert_allclose(acting_head_values(mdp, horizons, best.policy)[0], best.values, atol=1e-9)


def test_solver_for_sophisticated_agents_solves_large_mdps_in_which_no_state_recurs() -> None:
    rng = np.random.default_rng(0)
    states = 30  # 3^30 policies
    transitions = np.zeros((states, 3, states))
    for state in range(states - 1):
        transitions[state, :, state + 1 :] = rng.dirichlet(np.ones(states - 1 - state), size=3)
    mdp = HazardousMDP(transitions, rng.normal(size=(states, 3)))
    horizons = Horizons(np.array([0.3, 0.9]), np.array([0.5, 0.5]))
    found = sophisticated(mdp, horizons)
    q = values_of(mdp, horizons, found.actions[0])
    np.testing.assert_allclose(q.max(axis=1), found.values, atol=1e-10)
    np.testing.assert_array_equal(q.argmax(axis=1), found.actions[0])


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda m: naive(replace(m, hazard=Exponential(0.1)), single(0.9)), r"for a known hazard \(Dirac\)"),
        (lambda m: naive(m, single(1.0)), "set steps"),
        (lambda m: sophisticated(m, single(1.0)), "set steps"),
        (lambda m: precommitted(m, Horizons(np.array([0.5, 0.9]), np.array([1.0, -0.1]))), "a negative weight, -0.1"),
        (lambda m: precommitted(m, Horizons(np.array([0.5]), np.zeros(1))), "all 0"),
        (lambda m: precommitted(m, Horizons(np.array([0.9999989, 0.999999]), np.ones(2))), "too close together"),
        (lambda m: precommitted(m, single(0.9), steps=0), "steps must"),
        (lambda m: naive(replace(m, durations=np.full((2, 2), 2)), single(0.9)), r"use mdp.in_unit_steps\(\)"),
    ],
)
def test_invalid_input_raises_an_error(make: Callable[[HazardousMDP], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make(chore(1.0))


def test_plan_takes_the_better_action_after_the_discount_underflows() -> None:
    transitions = np.zeros((2, 2, 2))
    transitions[:, 0, 0] = transitions[:, 1, 1] = 1
    mdp = HazardousMDP(transitions, np.array([[0.0, 1.0], [0.0, 1.0]]))
    assert np.all(precommitted(mdp, single(0.01), steps=400).actions == 1)
