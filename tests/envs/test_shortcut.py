"""Checks the best route through the shortcut world, with the exact solver and by hand."""

from dataclasses import replace

import numpy as np
import pytest

from multihorizon.discounting.discount import exponential
from multihorizon.envs.shortcut import Shortcut
from multihorizon.errors import InputError
from multihorizon.mdp import optimal_control

UP, DOWN, LEFT, RIGHT = range(4)
START = 14


def best(ways: Shortcut, gamma: float) -> tuple[int, np.ndarray]:
    found = optimal_control(replace(ways.mdp(), discount=exponential(gamma)))
    return int(found.policy[START]), found.values[START]


def test_values_match_a_hand_calculation() -> None:
    """The goal pays 1, so the value of a route is the discount of all steps before the last step.

    Before the last step, the dangerous route has 5 steps with survival probability 0.9. The dry route has 11 steps. The
    muddy route has 4 steps of duration 1 and 5 steps of duration 3.
    """
    for gamma in (0.6, 0.9, 0.98):
        _, values = best(Shortcut(), gamma)
        dry, dangerous = gamma**11, (0.9 * gamma) ** 5
        # After the first step, the agent can continue or turn back.
        assert values[RIGHT] == pytest.approx(max(dangerous, 0.9 * gamma**2 * dry))
        assert values[DOWN] == pytest.approx(max(dry, gamma**2 * dangerous))
        back = max(dry, dangerous)
        assert values[UP] == pytest.approx(max(gamma ** (1 + 1 + 5 * 3 + 1 + 1), gamma**2 * back))


@pytest.mark.parametrize(
    ("ways", "gamma", "first"),
    [
        (Shortcut(), 0.85, RIGHT),  # because 0.9⁵ > γ⁶
        (Shortcut(), 0.97, DOWN),
        (Shortcut(survival=0.6), 0.85, DOWN),
        (Shortcut(survival=1.0), 0.97, RIGHT),
        (Shortcut(mud_duration=1.0), 0.97, UP),  # the muddy route has fewer steps than the dry route
        (Shortcut(mud_duration=1.3), 0.97, UP),
        (Shortcut(mud_duration=1.5), 0.97, DOWN),
    ],
)
def test_best_route_depends_on_discount_danger_and_mud(ways: Shortcut, gamma: float, first: int) -> None:
    assert best(ways, gamma)[0] == first


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"field": "S?G"}, r"drawn with S G \. ! ~ and #, not \?"),
        ({"field": "S.."}, "needs a start, S, and a goal, G"),
        ({"survival": 0.0}, r"survival must lie in \(0, 1\], got 0"),
        ({"survival": 1.5}, r"survival must lie in \(0, 1\], got 1.5"),
        ({"mud_duration": 0.0}, "mud_duration must be a positive number, got 0"),
        ({"mud_duration": -2.0}, "mud_duration must be a positive number, got -2"),
    ],
)
def test_invalid_input_raises_a_one_line_error(given: dict[str, object], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        Shortcut(**given)  # type: ignore[arg-type]
