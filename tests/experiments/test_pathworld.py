"""Checks every number of the paper's Pathworld tables."""

import numpy as np
import pytest

from multihorizon.experiments import pathworld

PAPER = {
    "matching_prior": [0.002, 0.566, 1.461, 2.253, 2.288, 2.809],
    "wrong_k": [0.002, 0.493, 0.814, 1.281],
    "gamma_max": [0.002, 0.003, 0.233, 1.638, 2.281],
}


@pytest.fixture(scope="module")
def outcomes() -> dict[str, pathworld.PathworldResult]:
    return {outcome.experiment.name: outcome for outcome in pathworld.run()}


def test_closed_forms_match_every_digit_of_the_paper(outcomes: dict[str, pathworld.PathworldResult]) -> None:
    for name, figures in PAPER.items():
        table = outcomes[name].table()
        assert [round(row["ours"], 3) for row in table.values()] == figures
        assert [row["paper"] for row in table.values()] == figures


def test_errors_under_uniform_hazard_match_the_paper_within_sampling_noise(
    outcomes: dict[str, pathworld.PathworldResult],
) -> None:
    table = outcomes["uniform_hazard"].table()
    assert [round(row["ours"], 3) for row in table.values()] == [0.229, 0.267, 0.478, 4.006]
    for row in table.values():
        assert row["ours"] == pytest.approx(row["paper"], rel=0.03)


def test_learned_values_match_closed_forms(outcomes: dict[str, pathworld.PathworldResult]) -> None:
    for outcome in outcomes.values():
        for agent, values in outcome.learned.items():
            assert np.abs(values - outcome.closed[agent]).max() < 0.01 * outcome.true.max()


def test_simulated_values_match_closed_forms(outcomes: dict[str, pathworld.PathworldResult]) -> None:
    for outcome in outcomes.values():
        rewards = np.arange(1, 16)
        share = outcome.true / rewards
        standard_error = rewards * np.sqrt(share * (1 - share) / pathworld.JUDGING_EPISODES)
        assert np.all(np.abs(outcome.simulated - outcome.true) < 4.5 * standard_error)


def test_errors_of_learned_values_match_errors_of_closed_forms(outcomes: dict[str, pathworld.PathworldResult]) -> None:
    for outcome in outcomes.values():
        for row in outcome.table().values():
            assert row["learned"] == pytest.approx(row["ours"], rel=0.02, abs=0.002)
