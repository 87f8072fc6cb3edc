"""Shortcut: a grid world with a short, dangerous route, a muddy route and a dry route.

The muddy route has fewer steps than the dry route, but takes more time. Each step reports its duration and its survival
probability. The best route depends on the discount: an impatient agent takes the risk.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int, UInt8
from scipy import sparse

from multihorizon.discounting.discount import Discount, none
from multihorizon.discounting.hazard import Dirac, Prior
from multihorizon.envs.foraging import MOVES
from multihorizon.errors import InputError, at_least, instance, is_number, positive, shown
from multihorizon.mdp import HazardousMDP

if TYPE_CHECKING:
    from multihorizon.envs.finite import FiniteWorld

THREE_WAYS = """
.~~~~~.
.#####.
S!!!!!G
.#####.
.#####.
.......
"""


@dataclass(frozen=True)
class Shortcut:
    """A map with danger and mud.

    S is a start, and all starts are equally likely. G pays 1 and ends the episode. ! is dangerous ground, ~ is mud,
    . is open ground, and # is a wall. The four actions move up, down, left and right.

    Args:
        field: The map.
        survival: The probability of surviving a step onto dangerous ground, in (0, 1].
        mud_duration: The duration of a step into mud; other steps last 1.
        most_steps: The number of steps after which an episode is truncated; 0 means never.

    Raises:
        InputError: If the map has other characters, no start or no goal, or a number is out of range.
    """

    field: str = THREE_WAYS
    survival: float = 0.9
    mud_duration: float = 3.0
    most_steps: int = 200

    def __post_init__(self) -> None:
        instance("field", self.field, str, "a map, a string of several lines")
        wrong = set(self.field) - set("SG.!~#\n")
        if wrong:
            raise InputError(f"a shortcut map is drawn with S G . ! ~ and #, not {' '.join(sorted(wrong))}")
        if not {"S", "G"} <= set(self.field):
            raise InputError("a shortcut map needs a start, S, and a goal, G")
        if not (is_number(self.survival) and 0 < self.survival <= 1):
            raise InputError(f"survival must lie in (0, 1], got {shown(self.survival)}")
        positive("mud_duration", self.mud_duration)
        at_least("most_steps", self.most_steps, 0)

    @property
    def rows(self) -> list[str]:
        """The rows of the map, padded with walls to equal length."""
        lines = self.field.strip("\n").split("\n")
        return [line.ljust(max(map(len, lines)), "#") for line in lines]

    @property
    def shape(self) -> tuple[int, int]:
        """The height and the width of the map."""
        return len(self.rows), len(self.rows[0])

    @property
    def starts(self) -> Int[np.ndarray, " n"]:
        """The states in which episodes start."""
        return np.flatnonzero(np.array(list("".join(self.rows))) == "S")

    def mdp(self, hazard: Prior = Dirac(0.0), discount: Discount = none()) -> HazardousMDP:
        """Returns the map as an MDP. States are cells, row by row.

        A move into a wall counts as a step onto the agent's own cell, which may be dangerous.

        Args:
            hazard: The hazard prior.
            discount: The discount d(t).

        Returns:
            The MDP, with the duration and the survival of each step.
        """
        height, width = self.shape
        cells = "".join(self.rows)
        rewards = np.zeros((len(cells), len(MOVES)))
        durations, survivals = np.ones_like(rewards), np.ones_like(rewards)
        rows, columns = [], []
        for cell in (cell for cell, what in enumerate(cells) if what not in "#G"):
            for action, (down, right) in enumerate(MOVES.values()):
                y, x = cell // width + down, cell % width + right
                is_inside = 0 <= y < height and 0 <= x < width
                there = y * width + x if is_inside and cells[y * width + x] != "#" else cell
                if cells[there] == "G":
                    rewards[cell, action] = 1.0
                    continue
                durations[cell, action] = self.mud_duration if cells[there] == "~" else 1.0
                survivals[cell, action] = self.survival if cells[there] == "!" else 1.0
                rows.append(cell * len(MOVES) + action)
                columns.append(there)
        shape = (len(cells) * len(MOVES), len(cells))
        transitions = sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape)
        return HazardousMDP(transitions, rewards, hazard, discount, durations, survivals)

    def environment(self) -> "FiniteWorld":
        """Returns the environment. Its steps report durations and survivals; `Lethal` turns survivals into deaths."""
        from multihorizon.envs.finite import FiniteWorld  # imports JAX, which `mdp` does not need

        return FiniteWorld(self.mdp(), self.starts, (*self.shape, 1), self.most_steps, self.backdrop())

    def backdrop(self) -> UInt8[np.ndarray, "h w 3"]:
        """Returns the colour of each cell."""
        colours = {"#": (46, 92, 60), "!": (205, 80, 60), "~": (120, 88, 60), "G": (240, 190, 40)}
        ground = (236, 228, 205)
        return np.array([[colours.get(cell, ground) for cell in row] for row in self.rows], np.uint8)
