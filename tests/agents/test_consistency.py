"""Tests weights, settings and updates of naive, precommitted and sophisticated agents."""

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multihorizon as mh
from multihorizon.agents.acting import weights_after
from multihorizon.agents.learner import Learner, Parameters
from multihorizon.agents.replay import Transition
from multihorizon.discounting import Horizons
from multihorizon.envs.timing import Timing
from multihorizon.mdp import HazardousMDP, acting_head_values, own_head_values, sophisticated

NAIVE, PRECOMMITTED, SOPHISTICATED = mh.Consistency
STATES, ACTIONS = 4, 2


def test_precommitted_weights_match_exact_arithmetic() -> None:
    weights, gammas = np.array([0.25, 0.5, 0.25]), np.array([0.0, 0.5, 0.75])
    for t in (0, 1, 2, 30):
        exact = [Fraction(w) * Fraction(g) ** t / Fraction(3, 4) ** t for w, g in zip(weights, gammas, strict=True)]
        expected = [float(x) for x in exact]
        np.testing.assert_allclose(weights_after(t, weights, gammas), expected, rtol=1e-12)
        np.testing.assert_allclose(weights_after(jnp.asarray(t), weights, gammas), expected, rtol=1e-5)


def test_precommitted_weights_do_not_underflow_and_zero_weights_stay_zero() -> None:
    weights, gammas = np.array([0.3, 0.7, 0.0]), np.array([0.5, 0.9, 0.99])
    for elapsed in (1_000_000, jnp.asarray(1_000_000)):
        np.testing.assert_allclose(weights_after(elapsed, weights, gammas), [0, 0.7, 0], rtol=1e-6)
    alone = weights_after(np.array([0, 5]), np.array([1.0]), np.zeros(1))  # the only γ is 0
    np.testing.assert_array_equal(alone, [[1], [1]])


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(0, 500), st.integers(0, 500))
def test_weights_after_s_and_then_t_steps_equal_weights_after_s_plus_t_steps(seed: int, first: int, then: int) -> None:
    rng = np.random.default_rng(seed)
    weights, gammas = rng.dirichlet(np.ones(3)), rng.uniform(0.5, 1, size=3)
    twice = weights_after(then, weights_after(first, weights, gammas), gammas)
    np.testing.assert_allclose(twice, weights_after(first + then, weights, gammas), rtol=1e-9, atol=1e-300)


TWO = Horizons(np.array([0.5, 0.9]), np.array([0.4, 0.6]))


def test_sophisticated_agents_bootstrap_from_the_acting_policy() -> None:
    agent = mh.agent("hyper-dqn", consistency="sophisticated")
    assert agent.bootstrap is mh.Bootstrap.ACTING
    assert agent.with_settings(consistency=NAIVE).bootstrap is mh.Bootstrap.OWN
    assert mh.agent("hyper-dqn", bootstrap="acting", consistency="sophisticated") == replace(
        agent, chosen=("bootstrap", "consistency")
    )
    assert mh.agent("hyper-dqn", bootstrap="acting").with_settings(consistency=SOPHISTICATED).bootstrap.name == "ACTING"
    assert mh.agent("hyper-dqn").consistency is NAIVE


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: mh.agent("hyper-dqn", consistency=SOPHISTICATED, bootstrap="own"), "needs bootstrap=acting, got own"),
        (lambda: mh.agent("hyper-dqn", bootstrap="own").with_settings(consistency=SOPHISTICATED), "bootstrap=acting"),
        (lambda: mh.agent("hyper-dqn", consistency=PRECOMMITTED, bootstrap="acting"), "needs bootstrap=own"),
        (lambda: mh.agent("multi-dqn", consistency=PRECOMMITTED), "needs acting=weighted, got largest_gamma"),
        (lambda: mh.agent("hyper-dqn", acting="sampled-head", consistency=SOPHISTICATED), "got sampled_head"),
        (lambda: mh.agent("hyper-dqn", acting=0.9, horizons=TWO, consistency=PRECOMMITTED), r"got γ = 0\.9"),
        (lambda: mh.agent("hyper-dqn", consistency="patient"), "consistency"),
        (lambda: mh.agent("hyper-dqn", consistency=3), r"consistency must be one of Consistency\.NAIVE, .*, got 3$"),
        (
            lambda: mh.agent(
                "hyper-dqn", horizons=Horizons(TWO.gammas, np.array([1.0, -0.1])), consistency=PRECOMMITTED
            ),
            "negative in the long run",
        ),
        (
            lambda: mh.agent("hyper-dqn", horizons=Horizons(TWO.gammas, np.zeros(2)), consistency=PRECOMMITTED),
            "all weights are 0",
        ),
    ],
)
def test_invalid_combinations_are_rejected_with_a_one_line_message(make: Callable[[], object], words: str) -> None:
    with pytest.raises(mh.InputError, match=words) as refused:
        make()
    assert "\n" not in str(refused.value)


def random_world(seed: int, timed: bool = False) -> tuple[HazardousMDP, Horizons]:
    """Returns a deterministic MDP and random horizons. About a third of the transitions end the episode."""
    rng = np.random.default_rng(seed)
    transitions = np.zeros((STATES, ACTIONS, STATES))
    for state in range(STATES):
        for action in range(ACTIONS):
            if rng.random() < 0.7:
                transitions[state, action, rng.integers(STATES)] = 1
    horizons = Horizons(rng.uniform(0, 0.95, size=3), rng.dirichlet(np.ones(3)))
    mdp = HazardousMDP(transitions, rng.normal(size=(STATES, ACTIONS)))
    if timed:
        durations = rng.choice([0.5, 1, 3.25], size=(STATES, ACTIONS))
        mdp = replace(mdp, durations=durations, survivals=rng.uniform(0.5, 1, size=(STATES, ACTIONS)))
    return mdp, horizons


def tabular(agent: mh.AgentConfig) -> Learner:
    return Learner(agent, ACTIONS, (STATES,), lambda key, shape: eqx.nn.Identity())


def parameters_of(learner: Learner, values: np.ndarray) -> Parameters:
    """Returns parameters of a network that outputs `values` [H S A] for one-hot states."""
    zeros = jax.tree.map(jnp.zeros_like, learner.init(jax.random.key(0)).parameters)
    heads, _, actions = values.shape
    table = jnp.asarray(values.transpose(0, 2, 1).reshape(heads * actions, STATES), jnp.float32)
    return zeros | {"heads.weight": zeros["heads.weight"].at[: heads * actions].set(table)}


def transitions_of(mdp: HazardousMDP, policy: np.ndarray, n_steps: int, cut_off: int) -> Transition:
    """Returns one n-step transition for each state and first action. Later actions follow `policy`.

    Transitions from even states are truncated after `cut_off` steps.
    """
    moves = mdp.moves.toarray().reshape(STATES, ACTIONS, STATES)
    rows = []
    for state in range(STATES):
        for action in range(ACTIONS):
            here, does, rewards, over = state, action, np.zeros(n_steps), False
            durations, survivals = np.zeros(n_steps), np.ones(n_steps)
            longest = min(n_steps, cut_off) if state % 2 == 0 else n_steps
            for step in range(longest):
                rewards[step] = mdp.rewards[here, does]
                if mdp.durations is not None and mdp.survivals is not None:
                    durations[step], survivals[step] = mdp.durations[here, does], mdp.survivals[here, does]
                over = moves[here, does].sum() == 0
                if over:
                    break
                here = int(moves[here, does].argmax())
                does = int(policy[here])
            ahead = np.eye(STATES)[here]
            rows.append((np.eye(STATES)[state], action, rewards, step + 1, over, ahead, durations, survivals))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    *fields, durations, survivals = (
        jnp.asarray(column, jnp.float32 if column.dtype == float else None) for column in columns
    )
    return Transition(*fields, Timing() if mdp.durations is None else Timing(durations, survivals))


def losses_at(agent: mh.AgentConfig, values: np.ndarray, transitions: Transition) -> np.ndarray:
    learner = tabular(agent)
    parameters = parameters_of(learner, values)
    np.testing.assert_allclose(learner.values(parameters, jnp.eye(STATES)[1]), values[:, 1], rtol=1e-5, atol=1e-6)
    return np.asarray(jax.vmap(lambda t: learner.transition_losses(parameters, parameters, t)[0])(transitions))


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from([1, 3]), st.booleans(), st.booleans())
def test_an_equilibrium_is_a_fixed_point_of_sophisticated_updates(
    seed: int, n_steps: int, double_q: bool, timed: bool
) -> None:
    """The loss at the exact values is 0, even with truncation, n-step returns, durations and survivals."""
    mdp, horizons = random_world(seed, timed)
    try:
        policy = sophisticated(mdp, horizons).actions[0]
    except mh.InputError:
        return  # there is no equilibrium
    values = acting_head_values(mdp, horizons, policy)
    agent = mh.agent("hyper-dqn", horizons=horizons, consistency=SOPHISTICATED, n_steps=n_steps, double_q=double_q)
    transitions = transitions_of(mdp, policy, n_steps, cut_off=2)
    assert losses_at(agent, values, transitions).max() < 1e-8
    assert losses_at(agent, values + 0.5, transitions).max() > 1e-4


@settings(max_examples=8)
@given(st.integers(0, 10_000), st.sampled_from([NAIVE, PRECOMMITTED]), st.booleans())
def test_optimal_head_values_are_the_fixed_point_of_naive_and_precommitted_updates(
    seed: int, rule: mh.Consistency, timed: bool
) -> None:
    mdp, horizons = random_world(seed, timed)
    values = own_head_values(mdp, horizons)
    agent = mh.agent("hyper-dqn", horizons=horizons, consistency=rule, n_steps=1)
    transitions = transitions_of(mdp, np.zeros(STATES, int), 1, cut_off=1)
    assert losses_at(agent, values, transitions).max() < 1e-8


def test_n_step_returns_move_head_values_away_from_the_optimal_values() -> None:
    """One head would wait for the reward of 2, but the agent takes the reward of 1."""
    transitions = np.zeros((STATES, ACTIONS, STATES))
    transitions[0, :, 1] = transitions[1, 1, 2] = 1
    rewards = np.zeros((STATES, ACTIONS))
    rewards[1, 0], rewards[2] = 1, 2
    mdp, horizons = HazardousMDP(transitions, rewards), Horizons(np.array([0.0, 0.9]), np.array([0.5, 0.5]))
    values = own_head_values(mdp, horizons)
    takes = np.zeros(STATES, int)
    agent = mh.agent("hyper-dqn", horizons=horizons, n_steps=1)
    assert losses_at(agent, values, transitions_of(mdp, takes, 1, 1)).max() < 1e-8
    longer = losses_at(agent.with_settings(n_steps=3), values, transitions_of(mdp, takes, 3, 3))
    assert longer[0, 1] == pytest.approx(0.5 * (0.9**2 * 2 - 0.9) ** 2, rel=1e-4)
    assert longer[0, 0] < 1e-8


def test_only_precommitted_agents_read_the_elapsed_time() -> None:
    def program(rule: mh.Consistency) -> tuple[str, bool]:
        learner = tabular(mh.agent("hyper-dqn", horizons=TWO, consistency=rule))
        parameters = learner.init(jax.random.key(0)).parameters

        def act(elapsed: jax.Array) -> jax.Array:
            return learner.act(parameters, jax.random.key(1), jnp.ones(STATES), jnp.asarray(0.1), elapsed)

        traced = jax.make_jaxpr(act)(jnp.asarray(3)).jaxpr
        return str(traced), any(traced.invars[0] in equation.invars for equation in traced.eqns)

    assert not program(NAIVE)[1]
    assert program(NAIVE) == program(SOPHISTICATED)
    assert program(PRECOMMITTED)[1]
