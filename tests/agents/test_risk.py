"""Tests acting by a CVaR or a quantile of the weighted return."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import multihorizon as mh
from multihorizon.agents.risk import Risk, restored_risk
from multihorizon.runs.configuration import plain

SUPPORT = np.linspace(-2, 2, 9)


def random_heads(seed: int, heads: int = 3, actions: int = 2) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(len(SUPPORT), 0.4), (heads, actions)), rng.random(heads)


def scores(risk: Risk, probabilities: np.ndarray, weights: np.ndarray) -> np.ndarray:
    call = risk.quantiles if isinstance(risk, mh.Quantile) else risk.scores
    return np.asarray(call(jnp.asarray(probabilities), jnp.asarray(SUPPORT), jnp.asarray(weights)))


def coupled(probabilities: np.ndarray, weights: np.ndarray, draws: np.ndarray) -> np.ndarray:
    """Returns samples [U] of an action's weighted return. `draws` are the levels of the heads' quantiles."""
    each = np.broadcast_to(draws, (len(weights), draws.shape[-1]))
    cumulated = np.cumsum(probabilities, axis=-1)
    found = [SUPPORT[np.minimum(np.searchsorted(c, u), len(SUPPORT) - 1)] for c, u in zip(cumulated, each, strict=True)]
    return weights @ np.stack(found)


def test_scores_match_values_computed_by_hand() -> None:
    support, weights = jnp.array([0.0, 1.0, 10.0]), jnp.array([1.0])
    p = jnp.array([[[0.5, 0.0, 0.5], [0.0, 1.0, 0.0], [0.1, 0.8, 0.1]]])
    np.testing.assert_allclose(mh.CVaR(0.5).scores(p, support, weights), [0.0, 1.0, 0.8])
    np.testing.assert_allclose(mh.CVaR(0.75).scores(p, support, weights), [10 / 3, 1.0, 0.65 / 0.75], rtol=1e-5)
    np.testing.assert_allclose(mh.CVaR(1.0).scores(p, support, weights), [5.0, 1.0, 1.8], rtol=1e-6)
    np.testing.assert_allclose(mh.Quantile(0.5).quantiles(p, support, weights), [0.0, 1.0, 1.0])
    np.testing.assert_allclose(mh.Quantile(0.95).quantiles(p, support, weights), [10.0, 1.0, 10.0])
    # Among actions with equal quantiles, the mean decides.
    np.testing.assert_allclose(mh.Quantile(0.5).scores(p, support, weights), [-np.inf, 1.0, 1.8])


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_scores_match_simulated_comonotone_returns(seed: int, level: float) -> None:
    probabilities, weights = random_heads(seed)
    draws = (np.arange(20_000) + 0.5) / 20_000
    for action in range(2):
        weighted = np.sort(coupled(probabilities[:, action], weights, draws))
        cvar = scores(mh.CVaR(level), probabilities, weights)[action]
        assert cvar == pytest.approx(weighted[: int(level * 20_000)].mean(), abs=2e-3)
        quantile = scores(mh.Quantile(level), probabilities, weights)[action]
        assert (
            weighted[int((level - 1e-3) * 20_000)] - 1e-4 <= quantile <= weighted[int((level + 1e-3) * 20_000)] + 1e-4
        )


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from([0.1, 0.25, 0.5, 0.9]))
def test_the_cvar_score_is_a_lower_bound_if_returns_are_not_comonotone(seed: int, level: float) -> None:
    probabilities, weights = random_heads(seed)
    draws = (np.arange(4_000) + 0.5) / 4_000
    rng = np.random.default_rng(seed)
    for copies in ([rng.permutation(draws) for _ in weights], [draws, draws[::-1], rng.permutation(draws)]):
        weighted = np.sort(coupled(probabilities[:, 0], weights, np.stack(copies)))
        true = weighted[: int(level * 4_000)].mean()
        assert scores(mh.CVaR(level), probabilities, weights)[0] <= true + 5e-3


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.floats(0.05, 0.9))
def test_scores_grow_with_the_level_and_the_cvar_at_level_1_is_the_mean(seed: int, level: float) -> None:
    probabilities, weights = random_heads(seed)
    for kind in (mh.CVaR, mh.Quantile):
        low, high = (scores(kind(one), probabilities, weights) for one in (level, level + 0.09))
        assert np.all(low <= high + 1e-5)
    mean = weights @ (probabilities @ SUPPORT)
    np.testing.assert_allclose(scores(mh.CVaR(1.0), probabilities, weights), mean, atol=1e-5)


def test_stored_risk_measures_are_restored_and_invalid_levels_are_rejected() -> None:
    for risk in (mh.CVaR(0.25), mh.Quantile(0.5), None):
        assert restored_risk(plain(risk)) == risk
    for level in (0.0, -1.0, 1.5, float("nan"), 0.99e-4):
        with pytest.raises(mh.InputError, match=r"level of a CVaR must lie in \[0.0001, 1\]"):
            mh.CVaR(level)
    for level in (1.0, 0.99e-4, 1 - 0.99e-4):
        with pytest.raises(mh.InputError, match=r"level of a quantile must lie in \[0.0001, 0.9999\]"):
            mh.Quantile(level)


def test_agents_with_the_smallest_risk_level_avoid_a_rare_bad_outcome() -> None:
    """The first action has the larger mean. With probability 2e-4, it has the worst outcome."""
    support, weights = jnp.linspace(-10, 10, 51), jnp.array([0.4, 0.6])
    risky = np.full(51, 1e-30)
    risky[[0, -1]] = 2e-4, 1 - 2e-4
    safe = np.full(51, 1e-30)
    safe[[1, 2]] = 0.5
    p = jnp.asarray(np.broadcast_to(np.stack([risky, safe]), (2, 2, 51)), jnp.float32)
    for rule in (mh.CVaR(1e-4), mh.Quantile(1e-4)):
        assert int(jnp.argmax(rule.scores(p, support, weights))) == 1
        assert int(jnp.argmax(mh.CVaR(1.0).scores(p, support, weights))) == 0
    np.testing.assert_allclose(mh.CVaR(1e-4).scores(p, support, weights), [-10, -9.6], rtol=1e-5)
    np.testing.assert_allclose(mh.Quantile(3e-4).quantiles(p, support, weights), [10, -9.6], rtol=1e-5)
