from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents.acting import Acting, Epsilon, acting_weights, choose
from multihorizon.agents.presets import preset
from multihorizon.discounting import Horizons
from multihorizon.errors import InputError

HORIZONS = Horizons(np.array([0.5, 0.99, 0.9]), np.array([0.2, 0.5, 0.3]))


def test_acting_weights_follow_the_acting_rule() -> None:
    assert acting_weights(Acting.WEIGHTED, HORIZONS).tolist() == [0.2, 0.5, 0.3]
    assert acting_weights(Acting.LARGEST_GAMMA, HORIZONS).tolist() == [0, 1, 0]
    assert acting_weights(0.9, HORIZONS).tolist() == [0, 0, 1]
    doubled = Horizons(HORIZONS.gammas, 2 * HORIZONS.weights)
    np.testing.assert_allclose(acting_weights(Acting.SAMPLED_HEAD, doubled), [0.2, 0.5, 0.3])


def test_epsilon_follows_the_papers_schedule() -> None:
    epsilon = Epsilon()
    steps = [0, 20_000, 145_000, 270_000, 10_000_000]
    for given in (steps, jnp.asarray(steps)):  # on the host and on the device
        found = [float(epsilon.at(step, 20_000)) for step in given]
        np.testing.assert_allclose(found, [1, 1, 0.505, 0.01, 0.01], rtol=1e-4)


def test_greedy_action_maximises_the_weighted_values() -> None:
    q = jnp.array([[0.0, 1.0], [3.0, 0.0], [0.0, 1.0]])
    for weights, action in (([0.5, 0.0, 0.5], 1), ([0.1, 0.8, 0.1], 0)):
        assert int(choose(jax.random.key(0), q, jnp.array(weights), jnp.asarray(0.0))) == action


def test_exploration_and_sampled_heads_have_the_expected_frequencies() -> None:
    keys = jax.random.split(jax.random.key(1), 20_000)
    q = jnp.eye(3)  # head h prefers action h
    weights = jnp.array([0.2, 0.5, 0.3])
    sampled = jax.vmap(lambda k: choose(k, q, weights, jnp.asarray(0.0), sampled_head=True))(keys)
    np.testing.assert_allclose(np.bincount(sampled) / len(keys), weights, atol=0.015)
    explored = jax.vmap(lambda k: choose(k, q, jnp.array([0.0, 1.0, 0.0]), jnp.asarray(0.3)))(keys)
    np.testing.assert_allclose(np.bincount(explored) / len(keys), [0.1, 0.8, 0.1], atol=0.015)


def test_invalid_input_is_rejected_with_a_message() -> None:
    with pytest.raises(ValueError, match=r"no head with γ = 0.8; the heads have γ = 0.5, 0.99, 0.9"):
        acting_weights(0.8, HORIZONS)
    with pytest.raises(ValueError, match="acting=sampled_head needs weights of at least 0"):
        acting_weights(Acting.SAMPLED_HEAD, Horizons(np.array([0.5]), np.array([-1.0])))


@pytest.mark.parametrize("acting", [Acting.WEIGHTED, Acting.SAMPLED_HEAD])
def test_weights_that_are_zero_or_infinite_in_float32_are_rejected(acting: Acting) -> None:
    gammas = np.array([0.5, 0.9])
    for weights, words in (([0, 0], "all weights are 0"), ([1e-60, 0], "got 1e-60"), ([1e60, 0], r"got 1e\+60")):
        with pytest.raises(InputError, match=words):
            replace(preset("hyper-rainbow"), acting=acting, horizons=Horizons(gammas, np.array(weights, float)))
    unused = Horizons(gammas, np.zeros(2))
    for one_head in (Acting.LARGEST_GAMMA, 0.9):
        assert acting_weights(one_head, unused).tolist() == [0, 1]
