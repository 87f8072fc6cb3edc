"""Tests that benchmarks/hazard_in_games.py computes returns under hazard from episodes without hazard."""

import sys
from pathlib import Path

import numpy as np
import pytest

import multihorizon as mh
from multihorizon.experiments.evidence import PRIORS

BENCHMARKS = str(Path(__file__).parents[2] / "benchmarks")


def test_discounted_returns_equal_returns_under_sampled_hazard(monkeypatch: pytest.MonkeyPatch) -> None:
    """d(t) is the probability of surviving t steps, so Σ d(t) r_t has the same mean as the return under hazard."""
    monkeypatch.setattr(sys, "path", [BENCHMARKS, *sys.path])
    import hazard_in_games

    run = mh.train("dqn", "foraging", steps=2_500, training_steps=2_500, evaluation_steps=0)
    policy = run.policy()
    found = hazard_in_games.results([policy], episodes=500)
    for name in ("exponential-0.1", "two-point"):
        sampled = mh.evaluate(policy, episodes=4_000, hazard=PRIORS[name])
        error = sampled.std / np.sqrt(len(sampled)) * np.hypot(1, np.sqrt(4_000 / 500))
        assert found["returns"][name][0] == pytest.approx(sampled.mean, abs=4 * error)
        assert found["returns"][name][0] < 0.9 * found["undiscounted"][0]
