"""Checks durations and survivals against linear systems, unit steps and simulation."""

import math
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from multihorizon.discounting import Horizons, discount
from multihorizon.discounting.hazard import Dirac, Exponential, Gamma, Prior, Samples
from multihorizon.errors import InputError
from multihorizon.mdp import HazardousMDP, action_values, optimal_control, q_learning, simulate


def random_mdp(seed: int, whole: bool) -> tuple[HazardousMDP, np.ndarray]:
    """Returns a random MDP and a random policy. The durations are whole or real numbers up to 4."""
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.ones(3), size=(3, 2)) * 0.95
    durations = rng.integers(1, 5, size=(3, 2)) if whole else rng.uniform(0.2, 4, size=(3, 2))
    survivals = rng.uniform(0.6, 1, size=(3, 2))
    mdp = HazardousMDP(transitions, rng.normal(size=(3, 2)), durations=durations, survivals=survivals)
    return mdp, rng.dirichlet(np.ones(2), size=3)


def values_by_linear_system(mdp: HazardousMDP, policy: np.ndarray, gamma: float) -> np.ndarray:
    """Solves the Bellman equation Q = R + γ^{dt} e^{-λ} P V."""
    assert mdp.durations is not None
    assert mdp.survivals is not None
    transitions = np.asarray(mdp.transitions) * (gamma**mdp.durations * mdp.survivals)[..., None]
    ahead = np.einsum("sat,tb->satb", transitions, policy).reshape(6, 6)
    return np.linalg.solve(np.eye(6) - ahead, mdp.rewards.reshape(6)).reshape(3, 2)


@given(st.integers(0, 1000), st.floats(0, 0.99), st.floats(0, 0.5))
def test_heads_discount_by_gamma_to_the_power_of_the_duration(seed: int, gamma: float, risk: float) -> None:
    mdp, policy = random_mdp(seed, whole=False)
    mdp = replace(mdp, discount=discount.exponential(gamma), hazard=Dirac(risk))
    exact = values_by_linear_system(mdp, policy, gamma * np.exp(-risk))
    np.testing.assert_allclose(action_values(mdp, policy), exact, rtol=1e-9, atol=1e-12)
    best = optimal_control(replace(mdp, discount=discount.exponential(min(gamma, 0.95))))
    every = [np.eye(2)[list(actions)] for actions in product(range(2), repeat=3)]
    values = [values_by_linear_system(mdp, one, min(gamma, 0.95) * np.exp(-risk)) for one in every]
    np.testing.assert_allclose(best.values, np.max(values, axis=0), rtol=1e-9, atol=1e-12)


@settings(max_examples=6)
@given(st.integers(0, 1000), st.sampled_from([Dirac(0.1), Exponential(0.2), Gamma(0.1, 2.0)]))
def test_values_with_whole_durations_match_an_average_over_hazards(seed: int, prior: Prior) -> None:
    """The average is taken over the solutions of one linear system for each hazard."""
    mdp, policy = random_mdp(seed, whole=True)
    mdp = replace(mdp, hazard=prior, discount=discount.quasi_hyperbolic(0.7, 0.95))
    exact = action_values(mdp, policy)
    x, w = np.polynomial.legendre.leggauss(200)
    averaged = sum(
        width / 2 * (0.3 * mdp.rewards + 0.7 * values_by_linear_system(mdp, policy, 0.95 * np.exp(-rate)))
        for rate, width in zip(prior.quantile((1 + x) / 2), w, strict=True)
    )
    np.testing.assert_allclose(exact, averaged, rtol=1e-4, atol=1e-4)
    split = mdp.in_unit_steps()
    assert split.durations is None
    assert split.states == 3 + int((np.asarray(mdp.durations) - 1).sum())


@settings(max_examples=20)
@given(
    st.integers(0, 1000),
    st.sampled_from([[1, 2, 5], [1, 3e5, 1e6], [0.1, 0.2, 0.3, 0.7], [0.37211, math.pi]]),
    st.booleans(),
)
def test_values_summed_over_reward_times_match_an_average_over_linear_systems(
    seed: int, lengths: list[float], at_risk: bool
) -> None:
    """There is one linear system for each γ of the discount and each hazard of the prior."""
    mdp, policy = random_mdp(seed, whole=True)
    rng = np.random.default_rng(seed)
    horizons = Horizons(rng.uniform(0, 0.99, size=3), rng.normal(size=3))
    prior = Samples(rng.uniform(0, 0.2, size=2)) if at_risk else Dirac(0.0)
    mdp = replace(mdp, durations=rng.choice(lengths, size=(3, 2)), hazard=prior, discount=horizons.discount)
    exact = sum(
        weight * mass * values_by_linear_system(mdp, policy, gamma * np.exp(-rate))
        for gamma, weight in zip(horizons.gammas, horizons.weights, strict=True)
        for rate, mass in zip(*prior.atoms, strict=True)
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("multihorizon.mdp.values.FEW_ROWS", 0)  # otherwise whole durations are split into unit steps
        found = action_values(mdp, policy)
    np.testing.assert_allclose(found, exact, atol=1e-11 * np.abs(exact).max())


@settings(max_examples=10)
@given(st.integers(0, 1000))
def test_values_with_whole_durations_equal_values_of_the_same_task_in_unit_steps(seed: int) -> None:
    mdp, policy = random_mdp(seed, whole=True)
    mdp = replace(mdp, discount=discount.hyperbolic(0.3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("multihorizon.mdp.values.FEW_ROWS", 0)
        by_times = action_values(mdp, policy)
    np.testing.assert_allclose(by_times, action_values(mdp, policy), atol=1e-11 * np.abs(by_times).max())


def test_long_durations_do_not_slow_down_the_sum() -> None:
    cycle = np.array([[[0.0, 1.0]], [[1.0, 0.0]]])
    mdp = HazardousMDP(cycle, np.array([[1.0], [10.0]]), durations=np.array([[1e6], [3.0]]))
    began = time.process_time()
    for last, wanted in ((50.0, [1, 11]), (3e6, [23, 33])):
        found = action_values(replace(mdp, discount=discount.deadline(last)), np.ones((2, 1)))
        np.testing.assert_allclose(found[:, 0], wanted, rtol=1e-12)
    ends = replace(mdp, transitions=0.5 * cycle, discount=discount.hyperbolic(1e-6))
    t = np.arange(60) * (1e6 + 3)
    series = 0.25 ** np.arange(60) * (1 / (1 + 1e-6 * t) + 10 * 0.5 / (1 + 1e-6 * (t + 1e6)))
    np.testing.assert_allclose(action_values(ends, np.ones((2, 1)))[0, 0], series.sum(), rtol=1e-12)
    assert time.process_time() - began < 5


def test_values_do_not_change_if_all_durations_and_survivals_are_1() -> None:
    plain, policy = random_mdp(1, whole=True)
    plain = replace(plain, durations=None, survivals=None, discount=discount.hyperbolic(0.1))
    ones = replace(plain, durations=np.ones((3, 2)), survivals=np.ones((3, 2)))
    np.testing.assert_allclose(action_values(ones, policy), action_values(plain, policy), rtol=1e-12)


def test_values_of_a_dangerous_shortcut_match_a_hand_calculation() -> None:
    """Action 0 has duration 4 and is safe. Action 1 has duration 1 and survival probability ½. The reward is 1."""
    transitions = np.zeros((2, 2, 2))
    transitions[0, :, 1] = 1
    rewards = np.array([[0.0, 0.0], [1.0, 1.0]])
    mdp = HazardousMDP(
        transitions, rewards, durations=np.array([[4, 1], [1, 1]]), survivals=np.array([[1, 0.5], [1, 1]])
    )
    either = np.full((2, 2), 0.5)
    hyperbolic = action_values(replace(mdp, discount=discount.hyperbolic(1.0)), either)
    np.testing.assert_allclose(hyperbolic[0], [1 / 5, 0.5 / 2])
    for gamma, taken in [(0.9, 0), (0.7, 1)]:  # action 0 is better if γ³ > ½
        best = optimal_control(replace(mdp, discount=discount.exponential(gamma)))
        np.testing.assert_allclose(best.values[0], [gamma**4, 0.5 * gamma])
        assert best.policy[0] == taken
    np.testing.assert_allclose(action_values(mdp, either)[0], [1, 0.5])  # undiscounted: durations do not matter


@pytest.mark.parametrize("whole", [True, False])
def test_simulation_and_q_learning_match_exact_values(whole: bool) -> None:
    mdp, policy = random_mdp(5, whole)
    gamma = 0.9
    valued = replace(mdp, hazard=Dirac(0.05), discount=discount.exponential(gamma))
    found = simulate(valued, policy, 1, 0, 40_000, np.random.default_rng(0))
    assert abs(found.mean - action_values(valued, policy)[1, 0]) < 4 * found.standard_error
    learned = q_learning(mdp, [gamma], 0, 15_000, np.random.default_rng(1))[..., 0]
    exact = optimal_control(replace(mdp, discount=discount.exponential(gamma))).values
    np.testing.assert_allclose(learned, exact, atol=0.05)


@pytest.mark.parametrize(
    ("first", "second", "last"),
    [(0.1, 0.2, 0.3), (1.1, 2.2, 3.3), (0.3721193257293, 1e-9, 0.3721193267293)],
)
def test_durations_are_added_without_rounding_errors(first: float, second: float, last: float) -> None:
    """The reward comes exactly at the deadline, so a rounding error would change the value."""
    assert first + second != last
    path = np.zeros((3, 1, 3))
    path[0, 0, 1] = path[1, 0, 2] = 1
    durations = np.array([[first], [second], [1.0]])
    for deadline, wanted in ((last, 1.0), (last - 1e-12, 0.0)):
        mdp = HazardousMDP(
            path, np.array([[0.0], [0.0], [1.0]]), discount=discount.deadline(deadline), durations=durations
        )
        assert action_values(mdp, np.ones((3, 1)))[0, 0] == wanted
        assert simulate(mdp, np.ones((3, 1)), 0, 0, 2, np.random.default_rng(0)).mean == wanted


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda m: replace(m, durations=np.zeros((3, 2))),
            "positive and finite, but state 0, action 0 has 0",
        ),
        (lambda m: replace(m, durations=np.full((3, 2), -1.0)), "durations must be positive"),
        (lambda m: replace(m, durations=np.full((3, 2), np.inf)), "durations must be positive and finite"),
        (lambda m: replace(m, survivals=np.zeros((3, 2))), r"survivals must be in \(0, 1\]"),
        (lambda m: replace(m, survivals=np.full((3, 2), 1.1)), r"survivals must be in \(0, 1\], but .* has 1.1"),
        (lambda m: replace(m, survivals=np.full((3, 2), np.nan)), "survivals must be"),
        (lambda m: replace(m, durations=np.ones(3)), r"durations must be an array \[3 2\], like rewards, got \[3\]"),
        (
            lambda m: action_values(replace(m, discount=discount.hyperbolic(0.1)), np.full((3, 2), 0.5)),
            "rewards come at more than 100 different times",
        ),
        (lambda m: m.in_unit_steps(), "only whole durations can be split into steps"),
        (lambda m: replace(m, durations=np.full((3, 2), 1e6)).in_unit_steps(), "would have 5,999,997 states, too many"),
    ],
)
def test_invalid_input_raises_an_error(
    make: Callable[[HazardousMDP], object], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multihorizon.mdp.durations.MOST_TIMES", 100)
    mdp, _ = random_mdp(0, whole=False)
    with pytest.raises(InputError, match=words):
        make(mdp)


def test_simulated_time_beyond_the_float_range_raises_an_error() -> None:
    durations = np.full((2, 2), 1e308)
    mdp = HazardousMDP(np.full((2, 2, 2), 0.25), np.ones((2, 2)), durations=durations)
    with pytest.raises(InputError, match="lasts longer than a float can express"):
        simulate(mdp, np.full((2, 2), 0.5), 0, 0, 50, np.random.default_rng(0))
