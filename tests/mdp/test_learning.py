"""Tabular Q-learning over many horizons matches the exact solver."""

from dataclasses import replace

import numpy as np
import pytest

from multihorizon.discounting import discount
from multihorizon.mdp import HazardousMDP, optimal_control, q_learning


def test_every_head_learns_its_optimal_values(rng: np.random.Generator) -> None:
    transitions = rng.dirichlet(np.ones(4), size=(4, 2)) * 0.8
    mdp = HazardousMDP(transitions, rng.uniform(0, 1, size=(4, 2)))
    gammas = np.array([0.0, 0.5, 0.9, 0.99])
    learned = q_learning(mdp, gammas, start=0, episodes=15_000, rng=rng)
    for head, gamma in enumerate(gammas):
        exact = optimal_control(replace(mdp, discount=discount.exponential(float(gamma)))).values
        np.testing.assert_allclose(learned[..., head], exact, rtol=0.04)


def test_heads_do_not_influence_each_other() -> None:
    mdp = HazardousMDP(np.full((2, 2, 2), 0.4), np.array([[1.0, 0.0], [0.5, 2.0]]))
    alone = q_learning(mdp, [0.9], 0, 200, np.random.default_rng(5))
    beside = q_learning(mdp, [0.3, 0.9, 0.5], 0, 200, np.random.default_rng(5))
    np.testing.assert_array_equal(alone[..., 0], beside[..., 1])


def test_invalid_input_raises_an_error(rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("multihorizon.mdp.learning.MOST_STEPS", 100)
    endless = HazardousMDP(np.ones((1, 1, 1)), np.ones((1, 1)))
    with pytest.raises(ValueError, match="needs a task that ends"):
        q_learning(endless, [0.9], 0, 1, rng)
    with pytest.raises(ValueError, match="one or more discount factors"):
        q_learning(endless, [], 0, 1, rng)
    with pytest.raises(ValueError, match="the number of episodes"):
        q_learning(endless, [0.9], 0, 0, rng)
