"""Compares exact solutions of the dilemmas with values computed by hand."""

import numpy as np
import pytest

import multihorizon as mh
from multihorizon.envs.dilemmas import CHORE, CONTROL, CROSSROADS, DILEMMAS, DISCOUNT, TEMPTATION, Dilemma, chore
from multihorizon.experiments.consistency import HORIZONS, LONGEST, Outcome, exact
from multihorizon.mdp import naive, precommitted

NAIVE, PRECOMMITTED, SOPHISTICATED = mh.Consistency


def outcomes(dilemma: Dilemma) -> list[Outcome]:
    return [exact(dilemma, rule) for rule in mh.Consistency]


def test_horizons_of_the_dilemmas_fit_their_discount() -> None:
    assert HORIZONS.fit(DISCOUNT, 40).max_error < 2e-3


def test_the_naive_agent_takes_the_temptation_that_it_planned_to_pass() -> None:
    """At the start, the small reward is worth 1/5, the large reward 3/9, and the reward of the other road 2.6/9.

    At the temptation, the small reward is worth 1, and the large reward 3/5.
    """
    found = outcomes(TEMPTATION)
    assert [one.undiscounted for one in found] == [1, 3, 2.6]
    assert [one.earned for one in found] == pytest.approx([1 / 5, 3 / 9, 2.6 / 9], abs=2e-3)
    plan = precommitted(TEMPTATION.mdp(), HORIZONS)
    assert plan.actions[4, 4] == 1  # the first plan passes the temptation
    assert naive(TEMPTATION.mdp(), HORIZONS).actions[0, 4] == 0


def test_the_naive_agent_does_the_chore_on_the_last_day() -> None:
    """On each day, doing the chore tomorrow seems cheaper: 1.0/2 < 0.6, 1.8/2 < 1.0, 2.6/2 < 1.8."""
    found = outcomes(CHORE)
    assert [len(one.path) - 1 for one in found] == [3, 1, 0]  # the day on which the chore is done
    assert [one.earned for one in found] == pytest.approx([-2.6 / 4, -1 / 2, -0.6], abs=2e-3)


def test_only_heads_that_bootstrap_from_their_own_actions_wait_at_the_crossroads() -> None:
    """The far road is worth 6.6/11 now and 6.6/12 after one step of waiting, so the best plan does not wait.

    If each head bootstraps from its own best action, the heads plan to take different roads after waiting. The weighted
    sum of the heads then prefers to wait.
    """
    found = outcomes(CROSSROADS)
    assert [one.undiscounted for one in found] == [0, 6.6, 6.6]
    assert len(found[0].path) == LONGEST
    assert found[0].believed > 6.6 / 11 > found[2].believed - 2e-3
    assert found[2].earned == pytest.approx(6.6 / 11, abs=2e-3)
    assert found[1].earned < found[2].earned  # with heads, the precommitted agent waits for a step
    for rule in (naive, precommitted):
        assert rule(CROSSROADS.mdp(), HORIZONS).actions[0, 0] == 1


def test_all_agents_behave_alike_in_the_control() -> None:
    found = outcomes(CONTROL)
    assert [one.undiscounted for one in found] == [3, 3, 3]
    for one in found[1:]:
        np.testing.assert_array_equal(one.path, found[0].path)


def test_agents_with_heads_earn_as_much_as_planning_agents_except_at_the_crossroads() -> None:
    for dilemma in (TEMPTATION, CHORE, CONTROL):
        for rule, by_plans in ((NAIVE, naive), (PRECOMMITTED, precommitted)):
            assert exact(dilemma, rule).earned == pytest.approx(by_plans(dilemma.mdp(), HORIZONS).values[0])


@pytest.mark.parametrize("name", DILEMMAS)
def test_agents_can_be_configured_for_each_dilemma(name: str) -> None:
    environment = DILEMMAS[name].environment()
    assert environment.observation_shape == (len(DILEMMAS[name].moves),)
    resolved = mh.agent("hyper-dqn").resolved(f"dilemma/{name}")
    assert resolved.origins["epsilon"] == "environment"


def test_error_for_an_unknown_dilemma_suggests_a_name() -> None:
    with pytest.raises(mh.InputError, match="dilemma/chore"):
        mh.agent("dqn").resolved("dilemma/chores")


def test_chore_with_one_day_is_done_at_once() -> None:
    assert exact(chore((2.0,)), SOPHISTICATED).earned == pytest.approx(-2, abs=2e-3)
