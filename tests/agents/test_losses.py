"""Compares returns, losses and priorities with simple loops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multihorizon.agents.losses import Bootstrap, Categorical, Huber, Priority, next_actions, of_action, priority
from multihorizon.agents.returns import bootstrap_factors, n_step_returns

seeds = st.integers(0, 10_000)
C51 = Categorical(atoms=21, v_max=5.0)


def project_by_hand(support: np.ndarray, values: np.ndarray, probabilities: np.ndarray) -> np.ndarray:
    out = np.zeros(len(support))
    spacing = support[1] - support[0]
    for value, p in zip(np.clip(values, support[0], support[-1]), probabilities, strict=True):
        place = (value - support[0]) / spacing
        low = min(int(np.floor(place)), len(support) - 1)
        high = min(low + 1, len(support) - 1)
        out[low] += p * (1 - (place - low))
        out[high] += p * (place - low)
    return out


@given(seeds, st.integers(1, 6))
def test_n_step_returns_match_a_loop(seed: int, n: int) -> None:
    rng = np.random.default_rng(seed)
    rewards, gammas = rng.normal(size=n), np.append(rng.uniform(size=3), 0.0)
    expected = [sum(g**j * rewards[j] for j in range(n)) for g in gammas]
    np.testing.assert_allclose(
        n_step_returns(jnp.asarray(rewards), jnp.asarray(gammas)), expected, rtol=1e-5, atol=1e-6
    )


def test_the_bootstrap_factor_is_0_only_after_termination() -> None:
    gammas = jnp.array([0.5, 0.9])
    np.testing.assert_allclose(bootstrap_factors(gammas, jnp.array(2), jnp.array(False)), [0.25, 0.81], rtol=1e-6)
    np.testing.assert_allclose(bootstrap_factors(gammas, jnp.array(2), jnp.array(True)), [0, 0])


@given(seeds, st.floats(-8, 8), st.floats(0, 1))
def test_projection_matches_a_loop(seed: int, return_: float, bootstrap: float) -> None:
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.ones(21))
    support = np.asarray(C51.support, dtype=float)
    ours = np.asarray(C51.project(jnp.asarray(return_), jnp.asarray(bootstrap), jnp.asarray(p)))
    np.testing.assert_allclose(ours, project_by_hand(support, return_ + bootstrap * support, p), atol=2e-5)
    assert ours.sum() == pytest.approx(1, abs=1e-5)
    moved = return_ + bootstrap * support
    if moved.min() >= -5 and moved.max() <= 5:
        assert ours @ support == pytest.approx(moved @ p, abs=1e-4)


@given(seeds)
def test_categorical_losses_match_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    logits, ahead = rng.normal(size=(3, 4, 21)), rng.normal(size=(3, 4, 21))
    returns, bootstraps, chosen = rng.normal(size=3), rng.uniform(size=3), rng.integers(4, size=3)
    ours = C51.losses(jnp.asarray(logits[:, 2]), C51.target(*map(jnp.asarray, (returns, bootstraps, ahead, chosen))))
    support = np.asarray(C51.support, dtype=float)
    for h in range(3):
        p = np.exp(ahead[h, chosen[h]]) / np.exp(ahead[h, chosen[h]]).sum()
        target = project_by_hand(support, returns[h] + bootstraps[h] * support, p)
        log_q = logits[h, 2] - np.log(np.exp(logits[h, 2]).sum())
        assert float(ours[h]) == pytest.approx(-(target @ log_q), rel=1e-4)
    q = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    np.testing.assert_allclose(C51.values(jnp.asarray(logits)), q @ support, atol=1e-5)


@given(seeds)
def test_huber_losses_match_a_loop(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, ahead = 2 * rng.normal(size=(3, 4)), 2 * rng.normal(size=(3, 4))
    returns, bootstraps, chosen = rng.normal(size=3), rng.uniform(size=3), rng.integers(4, size=3)
    ours = Huber().losses(jnp.asarray(q[:, 1]), Huber().target(*map(jnp.asarray, (returns, bootstraps, ahead, chosen))))
    for h in range(3):
        error = abs(q[h, 1] - (returns[h] + bootstraps[h] * ahead[h, chosen[h]]))
        assert float(ours[h]) == pytest.approx(0.5 * error**2 if error <= 1 else error - 0.5, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("loss", [C51, Huber()], ids=["categorical", "huber"])
def test_targets_have_no_gradient(loss: Categorical | Huber) -> None:
    shape = loss.output_shape(2, 3)
    outputs = jax.random.normal(jax.random.key(0), shape), jax.random.normal(jax.random.key(1), shape)

    def total(output: jax.Array, ahead: jax.Array) -> jax.Array:
        target = loss.target(jnp.ones(2), jnp.full(2, 0.9), ahead, jnp.zeros(2, int))
        return loss.losses(of_action(output, jnp.array(0)), target).sum()

    own, of_target = jax.grad(total, argnums=(0, 1))(*outputs)
    assert jnp.abs(own).max() > 0
    assert jnp.abs(of_target).max() == 0


def test_next_actions_follow_the_bootstrap_rule() -> None:
    q = jnp.array([[1.0, 5.0, 0.0], [3.0, 2.0, 0.0]])
    assert next_actions(q, jnp.array([0.1, 0.9]), Bootstrap.OWN).tolist() == [1, 0]
    assert next_actions(q, jnp.array([0.1, 0.9]), Bootstrap.ACTING).tolist() == [0, 0]
    assert next_actions(q, jnp.array([0.9, 0.1]), Bootstrap.ACTING).tolist() == [1, 1]


@pytest.mark.parametrize(
    ("by", "expected"),
    [(Priority.AVERAGED, 8 / 3), (Priority.LARGEST_GAMMA, 2.0), (Priority.ACTING, 0.25 * 1 + 0.75 * 5)],
)
def test_priorities_match_values_computed_by_hand(by: Priority, expected: float) -> None:
    losses, gammas, weights = jnp.array([1.0, 4.0, 25.0]), jnp.array([0.5, 0.99, 0.9]), jnp.array([0.1, 0.0, 0.3])
    assert float(priority(losses, gammas, weights, by)) == pytest.approx(expected)
    assert float(priority(jnp.zeros(3), gammas, weights, by)) == pytest.approx(1e-5)


def test_a_single_atom_is_rejected() -> None:
    with pytest.raises(ValueError, match="atoms must be a whole number of at least 2"):
        Categorical(atoms=1)
