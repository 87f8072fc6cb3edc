"""Compares Adam and RMSProp with TensorFlow 1's formulas for a scalar."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Float

from multihorizon.agents.optimisers import Adam, Optimiser, RmsProp

GRADIENTS = np.random.default_rng(0).normal(scale=1e-4, size=400)


def changes(optimiser: Optimiser, gradients: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    made = optimiser.make()

    def step(state: Any, gradient: Any) -> tuple[Any, Any]:
        change, state = made.update(gradient, state, jnp.zeros(()))
        return state, change

    return np.asarray(jax.lax.scan(step, made.init(jnp.zeros(())), jnp.asarray(gradients, jnp.float32))[1], float)


def tensorflow_adam(rate: float, epsilon: float) -> Float[np.ndarray, " n"]:
    """tf.train.AdamOptimizer: lr_t = lr √(1 - β₂ᵗ) / (1 - β₁ᵗ), Δ = -lr_t m / (√v + ε)."""
    m = v = 0.0
    out = []
    for t, g in enumerate(GRADIENTS, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        out.append(-rate * math.sqrt(1 - 0.999**t) / (1 - 0.9**t) * m / (math.sqrt(v) + epsilon))
    return np.array(out)


def tensorflow_rmsprop(rate: float, decay: float, epsilon: float) -> Float[np.ndarray, " n"]:
    """tf.train.RMSPropOptimizer(centered=True), whose `rms` slot starts at 1."""
    mean, square = 0.0, 1.0
    out = []
    for g in GRADIENTS:
        mean, square = decay * mean + (1 - decay) * g, decay * square + (1 - decay) * g * g
        out.append(-rate * g / math.sqrt(square - mean * mean + epsilon))
    return np.array(out)


def test_adam_with_epsilon_hat_matches_tensorflow() -> None:
    ours = changes(Adam(6.25e-5, 1.5e-4, epsilon_hat=True), GRADIENTS)
    np.testing.assert_allclose(ours, tensorflow_adam(6.25e-5, 1.5e-4), rtol=2e-4)


def test_rmsprop_with_initial_square_1_matches_tensorflow() -> None:
    ours = changes(RmsProp(2.5e-4, 0.95, 1e-5, initial_square=1.0), GRADIENTS)
    np.testing.assert_allclose(ours, tensorflow_rmsprop(2.5e-4, 0.95, 1e-5), rtol=1e-3)


@pytest.mark.parametrize(("update", "times"), [(1, 32), (100, 3.2), (1_000, 1.26)])
def test_the_position_of_adams_epsilon_matters_in_early_updates(update: int, times: float) -> None:
    """For gradients far below ε, the usual Adam update is 1/√(1 - β₂ᵗ) times the TensorFlow update."""
    gradients = np.full(update, 1e-9)
    usual, hat = (changes(Adam(1.0, 1.5e-4, epsilon_hat=hat), gradients)[-1] for hat in (False, True))
    assert usual / hat == pytest.approx(times, rel=0.02)


@pytest.mark.parametrize("hat", [False, True])
def test_summing_ten_losses_equals_averaging_with_a_tenth_of_epsilon(hat: bool) -> None:
    """Only ε makes Adam's updates depend on the scale of the loss. Multi-Rainbow averages its losses."""
    summed = changes(Adam(6.25e-5, 1.5e-4, epsilon_hat=hat), 10 * GRADIENTS)
    averaged = changes(Adam(6.25e-5, 1.5e-5, epsilon_hat=hat), GRADIENTS)
    np.testing.assert_allclose(summed, averaged, rtol=1e-4)
    assert not np.allclose(averaged, changes(Adam(6.25e-5, 1.5e-4, epsilon_hat=hat), GRADIENTS), rtol=0.1)
