"""Dilemmas: small deterministic worlds in which the best plan today need not be the best plan tomorrow.

Under the hyperbolic discount 1 / (1 + t), naive, precommitted and sophisticated agents with one head per γ behave
differently in every dilemma except the control.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from multihorizon.discounting.discount import Discount, hyperbolic, none
from multihorizon.discounting.hazard import Dirac, Prior
from multihorizon.mdp import HazardousMDP

if TYPE_CHECKING:
    from multihorizon.envs.finite import FiniteWorld

DISCOUNT = hyperbolic(1.0)
OVER = -1  # the next state of a move that ends the episode
Move = tuple[float, int]  # a reward and the next state


@dataclass(frozen=True)
class Dilemma:
    """A deterministic world that starts in state 0.

    Attributes:
        name: The name. The environment is called `dilemma/NAME`.
        about: A one-line description.
        choices: The names of the actions.
        moves: The reward and the next state of each action, by state. A state without a choice has a single move.
        most_steps: The number of steps after which an episode is truncated; 0 means never.
    """

    name: str
    about: str
    choices: tuple[str, ...]
    moves: tuple[tuple[Move, ...], ...]
    most_steps: int = 0

    def move(self, state: int, action: int) -> Move:
        """Returns the reward and the next state of an action.

        Args:
            state: The state.
            action: The action.

        Returns:
            The reward, and the next state or `OVER`.
        """
        moves = self.moves[state]
        return moves[action] if len(moves) > 1 else moves[0]

    def mdp(self, hazard: Prior = Dirac(0.0), discount: Discount = none()) -> HazardousMDP:
        """Returns the world as a finite MDP, without its time limit.

        Args:
            hazard: The hazard prior.
            discount: The discount d(t).

        Returns:
            The MDP. State 0 is the start.
        """
        states, actions = len(self.moves), len(self.choices)
        transitions, rewards = np.zeros((states, actions, states)), np.zeros((states, actions))
        for state, action in product(range(states), range(actions)):
            rewards[state, action], following = self.move(state, action)
            if following != OVER:
                transitions[state, action, following] = 1
        return HazardousMDP(transitions, rewards, hazard, discount)

    def environment(self) -> "FiniteWorld":
        """Returns the world as an environment. The observation is the one-hot state."""
        from multihorizon.envs.finite import FiniteWorld  # imports JAX, which `mdp` does not need

        return FiniteWorld(self.mdp(), np.zeros(1, dtype=int), (len(self.moves),), self.most_steps)


def _walk(first: int, steps: int, pays: float) -> tuple[tuple[Move, ...], ...]:
    """Returns the moves of a chain of `steps` states. The last move earns the reward `pays` and ends the episode."""
    return (*(((0.0, first + i + 1),) for i in range(steps - 1)), ((pays, OVER),))


def temptation(name: str, about: str, small: float, large: float, bound: float) -> Dilemma:
    """Returns a world with two roads.

    The open road offers the reward `small` at t = 4 and the reward `large` at t = 8. Taking the small reward ends the
    episode. The other road has a single reward, `bound`, at t = 8.
    """
    past, tied = 5, 9  # first state after the temptation, first state of the other road
    moves = (
        ((0.0, 1), (0.0, tied)),
        *(((0.0, place + 1),) for place in (1, 2, 3)),
        ((small, OVER), (0.0, past)),  # state 4, at t = 4
        *_walk(past, 4, large),
        *_walk(tied, 8, bound),
    )
    return Dilemma(name, about, ("open road; take", "other road; pass"), moves)


def chore(costs: Sequence[float]) -> Dilemma:
    """Returns a world with a chore that must be done once. `costs` lists the cost on each day."""
    last = len(costs) - 1
    moves = tuple(((-cost, OVER), (0.0, day + 1)) if day < last else ((-cost, OVER),) for day, cost in enumerate(costs))
    return Dilemma("chore", "A chore costs more each day, and must be done by the last day.", ("do it", "wait"), moves)


def crossroads(near: float, near_steps: int, far: float, far_steps: int, most_steps: int = 60) -> Dilemma:
    """Returns a world with a near and a far reward at the ends of two roads. The agent can wait at the fork."""
    there = 1 + near_steps
    moves = (
        ((0.0, 1), (0.0, there), (0.0, 0)),
        *_walk(1, near_steps, near),
        *_walk(there, far_steps, far),
    )
    about = "A short road pays little and a long road pays much. The agent can wait at the crossroads."
    return Dilemma("crossroads", about, ("near", "far", "wait"), moves, most_steps)


TEMPTATION = temptation(
    "temptation",
    "A small reward lies on the way to a large reward. A second road has no temptation and pays a medium reward.",
    small=1,
    large=3,
    bound=2.6,
)
# As in O'Donoghue and Rabin (1999): doing the chore means missing a film, and the films get better.
CHORE = chore((0.6, 1.0, 1.8, 2.6))
CROSSROADS = crossroads(near=1, near_steps=1, far=6.6, far_steps=10)
CONTROL = temptation("control", "The small reward is too small to tempt anyone.", small=0.3, large=3, bound=2.6)
DILEMMAS = {dilemma.name: dilemma for dilemma in (TEMPTATION, CHORE, CROSSROADS, CONTROL)}
