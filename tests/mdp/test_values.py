"""Checks exact values and simulations, including the paper's two equivalences and its Lemma."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse, special

from multihorizon.discounting import Horizons, discount, hazard, single
from multihorizon.discounting.hazard import Density, Dirac, Exponential, Gamma, Mixture, Samples, Uniform
from multihorizon.mdp import HazardousMDP, action_values, optimal_control, simulate

PRIORS = [
    Dirac(0.1),
    Exponential(0.05),
    Gamma(0.1, 2.0),
    Uniform(0.2),
    Mixture([Exponential(0.1), Dirac(0.02)], [0.4, 0.6]),
    Samples([0.01, 0.1, 0.3]),
    Density(lambda x: max(0.0, 1 - abs(x / 0.1 - 1)) / 0.1, (0.0, 0.2)),
]


def random_mdp(seed: int, ends: float = 0.1) -> tuple[HazardousMDP, np.ndarray]:
    """Returns an MDP and a policy. Each step ends the episode with probability `ends` or more."""
    rng = np.random.default_rng(seed)
    transitions = rng.dirichlet(np.full(5, 0.5), size=(5, 3)) * rng.uniform(1 - 3 * ends, 1 - ends, size=(5, 3, 1))
    return HazardousMDP(transitions, rng.normal(size=(5, 3))), rng.dirichlet(np.ones(3), size=5)


def values_by_linear_system(mdp: HazardousMDP, policy: np.ndarray, continuing: float, gamma: float) -> np.ndarray:
    """Returns Q for the transitions P_λ = e^{-λ} P and the discount γ^t, by solving the Bellman equation."""
    transitions = mdp.matrix.toarray().reshape(5, 3, 5)
    p_lambda = continuing * transitions
    chain = np.einsum("sa,sat->st", policy, p_lambda)
    states = np.linalg.solve(np.eye(5) - gamma * chain, (policy * mdp.rewards).sum(axis=1))
    return mdp.rewards + gamma * p_lambda @ states


def values_by_averaging_over_hazards(
    mdp: HazardousMDP, policy: np.ndarray, prior: hazard.Prior, gamma: float
) -> np.ndarray:
    """Averages Q over the hazards of a prior, by quadrature if the prior has no point masses."""
    if isinstance(prior, Mixture):
        parts = [values_by_averaging_over_hazards(mdp, policy, c, gamma) for c in prior.components]
        return sum(w * part for w, part in zip(prior.weights, parts, strict=True))
    if prior.atoms.rates.size:
        weighted = zip(prior.atoms.rates, prior.atoms.masses, strict=True)
    else:
        x, w = np.polynomial.legendre.leggauss(400)
        weighted = zip(prior.quantile((1 + x) / 2), w / 2, strict=True)
    return sum(mass * values_by_linear_system(mdp, policy, np.exp(-rate), gamma) for rate, mass in weighted)


@given(st.integers(0, 1000), st.floats(0.3, 0.999))
def test_exponential_discounting_equals_a_known_hazard(seed: int, gamma: float) -> None:
    """Equation 9: Q^{δ(0), γ^t} = Q^{δ(-ln γ), 1}."""
    mdp, policy = random_mdp(seed)
    discounted = action_values(replace(mdp, discount=discount.exponential(gamma)), policy)
    at_risk = action_values(replace(mdp, hazard=Dirac(-np.log(gamma))), policy)
    np.testing.assert_allclose(discounted, at_risk, rtol=1e-10)
    np.testing.assert_allclose(discounted, values_by_linear_system(mdp, policy, 1.0, gamma), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(at_risk, values_by_linear_system(mdp, policy, gamma, 1.0), rtol=1e-9, atol=1e-12)


@settings(max_examples=20)
@given(st.integers(0, 1000), st.floats(0.01, 1))
def test_hyperbolic_discounting_equals_exponential_hazard(seed: int, k: float) -> None:
    """Appendix A: Q^{δ(0), Γ_k} = Q^{p_k, 1}, which is an average over hazards."""
    mdp, policy = random_mdp(seed)
    discounted = action_values(replace(mdp, discount=discount.hyperbolic(k)), policy)
    at_risk = action_values(replace(mdp, hazard=Exponential(k)), policy)
    np.testing.assert_allclose(discounted, at_risk, rtol=1e-10)
    averaged = values_by_averaging_over_hazards(mdp, policy, Exponential(k), 1.0)
    np.testing.assert_allclose(discounted, averaged, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_values_are_averages_over_hazards(prior: hazard.Prior, gamma: float) -> None:
    mdp, policy = random_mdp(3)
    ours = action_values(replace(mdp, hazard=prior, discount=discount.exponential(gamma)), policy)
    averaged = values_by_averaging_over_hazards(mdp, policy, prior, gamma)
    np.testing.assert_allclose(ours, averaged, rtol=2e-5, atol=2e-5)


@given(st.integers(0, 1000), st.sampled_from(PRIORS), st.integers(1, 6))
def test_the_papers_lemma_holds_for_finitely_many_horizons(seed: int, prior: hazard.Prior, heads: int) -> None:
    """d(t) = Σ wᵢ γᵢ^t gives Q^{H, d} = Σ wᵢ Q^{H, γᵢ}, for weights of either sign."""
    rng = np.random.default_rng(seed)
    mdp, policy = random_mdp(seed)
    mdp = replace(mdp, hazard=prior)
    horizons = Horizons(rng.uniform(0, 0.99, size=heads), rng.normal(size=heads))
    whole = action_values(replace(mdp, discount=horizons.discount), policy)
    parts = [action_values(replace(mdp, discount=discount.exponential(g)), policy) for g in horizons.gammas]
    np.testing.assert_allclose(whole, np.tensordot(horizons.weights, np.stack(parts), 1), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("prior", [Exponential(0.3), Uniform(0.5), Gamma(0.1, 2.0)], ids=repr)
def test_the_papers_lemma_holds_for_the_integral_over_gamma(prior: hazard.Prior) -> None:
    """Q^{H, d} = ∫ w(γ) Q^{H, γ} dγ, with w(γ) from the prior that implies d."""
    mdp, policy = random_mdp(5)
    mdp = replace(mdp, hazard=Exponential(0.05))
    whole = action_values(replace(mdp, discount=discount.from_prior(prior)), policy)
    low = np.exp(-prior.support[1])
    x, w = np.polynomial.legendre.leggauss(120)
    gammas, widths = low + (1 - low) * (1 + x) / 2, (1 - low) * w / 2
    integral = sum(
        width * prior.weighting(g) * action_values(replace(mdp, discount=discount.exponential(float(g))), policy)
        for g, width in zip(gammas, widths, strict=True)
    )
    np.testing.assert_allclose(whole, integral, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("prior", PRIORS, ids=lambda p: type(p).__name__)
def test_simulation_matches_exact_values_within_its_error(prior: hazard.Prior) -> None:
    mdp, policy = random_mdp(7)
    mdp = replace(mdp, hazard=prior, discount=discount.quasi_hyperbolic(0.8, 0.97))
    exact = action_values(mdp, policy)
    for state, action in [(0, 0), (3, 2)]:
        found = simulate(mdp, policy, state, action, 40_000, np.random.default_rng(state))
        assert abs(found.mean - exact[state, action]) < 4 * found.standard_error
        assert 0 < found.standard_error < 0.05


def test_simulated_hazard_and_simulated_discount_have_equal_values() -> None:
    mdp, policy = random_mdp(11)
    for d, prior in [(discount.exponential(0.9), Dirac(-np.log(0.9))), (discount.hyperbolic(0.2), Exponential(0.2))]:
        discounted = simulate(replace(mdp, discount=d), policy, 1, 1, 60_000, np.random.default_rng(1))
        at_risk = simulate(replace(mdp, hazard=prior), policy, 1, 1, 60_000, np.random.default_rng(2))
        spread = np.hypot(discounted.standard_error, at_risk.standard_error)
        assert abs(discounted.mean - at_risk.mean) < 4 * spread
        undiscounted = simulate(mdp, policy, 1, 1, 60_000, np.random.default_rng(3))
        assert abs(undiscounted.mean - discounted.mean) > 4 * spread  # the test can detect a difference


def endless(reward: float = 1.0) -> tuple[HazardousMDP, np.ndarray]:
    """Returns an MDP with one action, which always leads to state 1, and the policy that takes this action."""
    transitions = np.array([[[0.0, 1.0]], [[0.0, 1.0]]])
    return HazardousMDP(transitions, np.array([[1.0], [reward]])), np.ones((2, 1))


@pytest.mark.parametrize("d", [discount.hyperbolic(0.1), discount.none(), discount.uniform(0.1)], ids=repr)
def test_infinite_values_raise_an_error(d: object) -> None:
    mdp, policy = endless()
    with pytest.raises(ValueError, match="the values can be infinite: from state 0 this policy earns for ever"):
        action_values(replace(mdp, discount=d), policy)


def test_exponential_discount_or_hazard_makes_endless_values_finite() -> None:
    mdp, policy = endless()
    np.testing.assert_allclose(action_values(replace(mdp, discount=discount.exponential(0.9)), policy), 10)
    np.testing.assert_allclose(action_values(replace(mdp, hazard=Dirac(-np.log(0.9))), policy), 10)
    mixed = replace(mdp, hazard=Exponential(0.1), discount=discount.exponential(0.9))
    np.testing.assert_allclose(action_values(mixed, policy), sum(0.9**t / (1 + 0.1 * t) for t in range(2000)))
    bounded = replace(mdp, hazard=Uniform(0.3, 0.1))
    np.testing.assert_allclose(action_values(bounded, policy), Uniform(0.3, 0.1).survival(np.arange(2000)).sum())


def test_absorbing_state_without_reward_ends_the_episode() -> None:
    mdp, policy = endless(reward=0.0)
    assert action_values(replace(mdp, discount=discount.hyperbolic(0.1)), policy).ravel().tolist() == [1, 0]


@pytest.mark.parametrize(("k", "a"), [(0.1, 1.5), (1.0, 1.01), (0.01, 3.0), (0.1, 1.0001)])
def test_values_under_power_laws_match_the_zeta_function(k: float, a: float) -> None:
    """Σ (1 + kt)^{-a} = k^{-a} ζ(a, 1/k)."""
    mdp, policy = endless()
    values = action_values(replace(mdp, discount=discount.generalised_hyperbolic(k, a)), policy)
    np.testing.assert_allclose(values, k**-a * special.zeta(a, 1 / k), rtol=1e-12)
    believed = action_values(replace(mdp, hazard=Gamma(k, a)), policy)
    np.testing.assert_allclose(believed, values, rtol=1e-12)


def test_hyperbolic_discount_under_hazard_has_finite_values() -> None:
    mdp, policy = endless()
    both = action_values(replace(mdp, discount=discount.hyperbolic(0.1), hazard=Exponential(0.1)), policy)
    np.testing.assert_allclose(both, 100 * special.zeta(2, 10), rtol=1e-12)


def test_values_of_an_endless_cycle_match_the_zeta_function() -> None:
    """A reward comes every seven steps, so the value of the first state is Σ_j (1 + 0.7 j)^{-1.5}."""
    transitions = np.roll(np.eye(7), 1, axis=1)[:, None]
    mdp = HazardousMDP(transitions, np.eye(7)[:, :1], discount=discount.generalised_hyperbolic(0.1, 1.5))
    values = action_values(mdp, np.ones((7, 1)))[:, 0]
    waits = -np.arange(7) % 7
    np.testing.assert_allclose(values, 0.7**-1.5 * special.zeta(1.5, (1 + 0.1 * waits) / 0.7), rtol=1e-12)


@settings(max_examples=6)
@given(st.integers(0, 1000), st.floats(1.1, 3.0))
def test_values_under_power_laws_are_averages_over_hazards(seed: int, a: float) -> None:
    """In an endless MDP, Q_λ grows as c/λ for λ → 0, where c is the mean reward per step.

    The test therefore averages the smooth function Q_λ - c/λ by quadrature, and adds c E[1/λ] = c/(k(a-1)).
    """
    rng = np.random.default_rng(seed)
    mdp = HazardousMDP(rng.dirichlet(np.ones(5), size=(5, 3)), rng.normal(size=(5, 3)))
    policy, k = rng.dirichlet(np.ones(3), size=5), 0.3
    exact = action_values(replace(mdp, discount=discount.generalised_hyperbolic(k, a)), policy)
    chain, rewards = mdp.under(policy)
    stationary = np.linalg.lstsq(
        np.vstack([chain.toarray().T - np.eye(5), np.ones(5)]), np.append(np.zeros(5), 1), rcond=None
    )[0]
    gain = float(stationary @ rewards)
    x, w = special.roots_genlaguerre(60, a - 1)
    averaged = sum(
        weight * (values_by_linear_system(mdp, policy, np.exp(-k * node), 1.0) - gain / (k * node))
        for node, weight in zip(x, w / special.gamma(a), strict=True)
    ) + gain / (k * (a - 1))
    np.testing.assert_allclose(exact, averaged, rtol=1e-6, atol=1e-6)


def test_rounding_does_not_change_whether_a_task_ends() -> None:
    stays = HazardousMDP(np.ones((1, 2, 1)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="earns for ever"):  # a policy with a rounding error
        action_values(stays, np.array([[0.5, 0.5 - 1e-10]]))
    with pytest.raises(ValueError, match="earns for ever"):  # a transition with a rounding error
        action_values(HazardousMDP(np.full((1, 1, 1), 1 - 1e-10), np.ones((1, 1))), np.ones((1, 1)))
    third = np.full((1, 3), 1 / 3)
    fair = HazardousMDP(np.ones((1, 3, 1)), np.array([[0.1, 0.2, -0.3]]))  # the expected reward is not 0 in floats
    np.testing.assert_allclose(action_values(fair, third), fair.rewards, atol=1e-15)
    ends = HazardousMDP(np.array([[[1.0], [0.0]]]), np.ones((1, 2)))
    rare = action_values(ends, np.array([[1 - 2.0**-40, 2.0**-40]]))
    np.testing.assert_allclose(rare, [[2.0**40 + 1, 1]])  # an unlikely end is not a rounding error


@pytest.mark.parametrize("kept", [np.asarray, np.float64, sparse.csr_array], ids=["float32", "converted", "sparse"])
@pytest.mark.parametrize("seed", range(20))
def test_float32_rounding_of_probabilities_does_not_end_episodes(kept: Any, seed: int) -> None:
    rng = np.random.default_rng(seed)
    drawn = rng.exponential(size=(30, 40, 30)).astype(np.float32)
    transitions = drawn / drawn.sum(axis=2, keepdims=True)
    policy = rng.exponential(size=(30, 40)).astype(np.float32)
    policy /= policy.sum(axis=1, keepdims=True)
    assert transitions.dtype == policy.dtype == np.float32
    rewards = rng.normal(size=(30, 40))
    given = kept(transitions if kept is not sparse.csr_array else transitions.reshape(-1, 30))
    found = HazardousMDP(given, rewards, discount=discount.generalised_hyperbolic(0.1, 2.0))
    doubles = [one.astype(float) for one in (transitions, policy)]
    exact = [one / one.sum(axis=-1, keepdims=True) for one in doubles]
    expected = action_values(replace(found, transitions=exact[0]), exact[1])
    np.testing.assert_allclose(action_values(found, policy), expected, atol=1e-12 * np.abs(expected).max())


def test_float32_probabilities_with_a_sum_clearly_below_1_end_episodes() -> None:
    ends = np.full((2, 1, 2), np.float32(0.4999))
    found = action_values(HazardousMDP(ends, np.ones((2, 1))), np.ones((2, 1), np.float32))
    np.testing.assert_allclose(found, 1 / (1 - 2 * float(np.float32(0.4999))), rtol=1e-10)
    with pytest.raises(ValueError, match=r"those of state 1, action 0 add up to 1\.0002"):
        HazardousMDP(np.array([ends[0], ends[1] + np.float32(2e-4)]), np.ones((2, 1)))


@pytest.mark.parametrize("s", [0.011, 0.03, 0.05, 0.06])
@pytest.mark.parametrize("k", [0.01, 3.0])
def test_values_under_stretched_exponentials_match_the_gamma_function(s: float, k: float) -> None:
    """Σ e^{-(kt)^s} is about Γ(1 + 1/s) / k. For s = 0.05, times near 1e26 matter most."""
    mdp, policy = endless()
    found = action_values(replace(mdp, discount=discount.ebert_prelec(k, s)), policy)
    np.testing.assert_allclose(found, special.gamma(1 + 1 / s) / k, rtol=1e-10)
    believed = action_values(replace(mdp, hazard=hazard.Stable(k, s)), policy)
    np.testing.assert_allclose(believed, found, rtol=1e-12)


def test_discount_that_matters_at_times_beyond_1e280_raises_an_error() -> None:
    mdp, policy = endless()
    with pytest.raises(ValueError, match="times beyond 1e\\+280 matter"):
        action_values(replace(mdp, discount=discount.ebert_prelec(1e-78, 0.01)), policy)


def test_values_under_a_numerical_prior_match_its_closed_form() -> None:
    mdp, policy = endless()
    exact = Gamma(0.1, 1.02)
    numerical = Density(lambda x: float(exact.density(x)))
    for prior in (numerical, Mixture([numerical, Gamma(0.1, 1.02)])):
        found = action_values(replace(mdp, hazard=prior), policy)
        np.testing.assert_allclose(found, 0.1**-1.02 * special.zeta(1.02, 10), rtol=1e-9)


def test_values_of_a_one_state_mdp_match_a_hand_calculation() -> None:
    """The state pays 2 and continues with probability ½: Q = Σ 2 · 2^{-t} d(t)."""
    mdp = HazardousMDP(np.array([[[0.5]]]), np.array([[2.0]]), Exponential(1.0), discount.quasi_hyperbolic(0.5, 0.8))
    expected = 2 + sum(2 * 0.5**t * 0.5 * 0.8**t / (1 + t) for t in range(1, 200))
    assert action_values(mdp, np.ones((1, 1)))[0, 0] == pytest.approx(expected, rel=1e-11)


@given(st.integers(0, 500), st.floats(0.5, 0.99))
def test_no_policy_beats_optimal_control(seed: int, gamma: float) -> None:
    mdp, _ = random_mdp(seed)
    mdp = replace(mdp, hazard=Dirac(0.01), discount=discount.exponential(gamma))
    best = optimal_control(mdp)
    np.testing.assert_allclose(action_values(mdp, np.eye(3)[best.policy]), best.values, rtol=1e-9, atol=1e-11)
    everything = np.stack(np.meshgrid(*[range(3)] * 5), axis=-1).reshape(-1, 5)
    for policy in everything[np.random.default_rng(seed).choice(243, 20)]:
        assert np.all(action_values(mdp, np.eye(3)[policy]) <= best.values + 1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (
            lambda m: optimal_control(replace(m, discount=discount.hyperbolic(0.1))),
            "an exponential discount, not Dirac",
        ),
        (lambda m: optimal_control(replace(m, hazard=Exponential(0.1))), "needs a known hazard"),
        (optimal_control, "must be below 1"),
        (lambda m: action_values(m, np.ones((5, 3))), "with each row adding up to 1"),
        (lambda m: action_values(m, np.ones((2, 3)) / 3), r"an array \[5 3\]"),
        (lambda m: replace(m, rewards=np.zeros((4, 3))), r"must be \[4 3 4\]"),
        (lambda m: HazardousMDP(np.ones((2, 1, 2)), np.zeros((2, 1))), "add up to at most 1"),
        (lambda m: HazardousMDP(-np.ones((1, 1, 1)), np.zeros((1, 1))), "at least 0"),
        (lambda m: HazardousMDP(np.zeros((1, 1, 1)), np.full((1, 1), np.inf)), "finite array"),
        (lambda m: HazardousMDP(np.full((1, 1, 1), np.nan), np.zeros((1, 1))), "at least 0"),
        (lambda m: action_values(m, np.full((5, 3), np.nan)), "adding up to 1"),
        (lambda m: simulate(m, np.full((5, 3), 1 / 3), 9, 0, 2, np.random.default_rng(0)), "no state 9"),
        (lambda m: simulate(*endless(), 0, 0, 2, np.random.default_rng(0)), "have not ended after"),
    ],
)
def test_invalid_input_raises_an_error(make: object, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multihorizon.mdp.simulation.MOST_STEPS", 1000)
    mdp, _ = random_mdp(0)
    with pytest.raises(ValueError, match=words):
        make(mdp)  # type: ignore[operator]


def test_episodes_too_long_to_sum_raise_an_error() -> None:
    slow = HazardousMDP(np.full((1, 1, 1), 1 - 1e-7), np.ones((1, 1)), discount=discount.hyperbolic(0.1))
    with pytest.raises(ValueError, match="too long to sum"):
        action_values(slow, np.ones((1, 1)))


def test_values_with_a_single_horizon_equal_exponentially_discounted_values() -> None:
    mdp, policy = random_mdp(1)
    np.testing.assert_allclose(
        action_values(replace(mdp, discount=single(0.9).discount), policy),
        action_values(replace(mdp, discount=discount.exponential(0.9)), policy),
    )
