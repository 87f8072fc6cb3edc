"""Foraging: a grid world. From each start, one trail leads to a near, small meal, and one trail to a far, large meal.

Under an exponential hazard prior with k = 0.5, no single γ chooses the better meal from every start. The large meal is
better only from starts where the small meal is also far away.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int, UInt8
from scipy import sparse

from multihorizon.discounting.discount import Discount, none
from multihorizon.discounting.hazard import Dirac, Exponential, Prior
from multihorizon.errors import InputError, at_least, instance
from multihorizon.mdp import HazardousMDP

if TYPE_CHECKING:
    from multihorizon.envs.finite import FiniteWorld

HAZARD = Exponential(0.5)

MOVES = {"^": (-1, 0), "v": (1, 0), "<": (0, -1), ">": (0, 1)}  # the four actions: up, down, left, right

MEADOW = """
#0
1S>>>>>>>>>>>>>>5
#0
2S>>>>4
#0#######0
2<<<<<<<<S>>>>>>>>>>>>>>>>>>>>>>9
#########00
1<<<<<<<<<S>>>>>>>>>>>>>>>>3
#########00
2<<<<<<<<S>>>>>>>>>>>>>>>>>>>>>>7
#########0
1<<<<<<<<S>>>>>>>>>>>>>>>>>>>>>>9
#########0
"""


@dataclass(frozen=True)
class Foraging:
    """A grid world in which meals end the episode. The agent moves up, down, left or right.

    Args:
        field: The map. A digit is a meal with that reward, which may be 0. S is a start, and all starts are equally
            likely. A dot is open ground. <, >, ^ and v are trails: every action moves the agent in the given direction.
            # and blanks are hedges, which the agent cannot enter.
        most_steps: The number of steps after which an episode is truncated; 0 means never.

    Raises:
        InputError: If the map has no start or contains other characters.
    """

    field: str = MEADOW
    most_steps: int = 200

    def __post_init__(self) -> None:
        instance("field", self.field, str, "a map, a string of several lines")
        wrong = set(self.field) - set("0123456789S.<>^v# \n")
        if wrong:
            raise InputError(f"a foraging map is drawn with digits, S . < > ^ v and #, not {' '.join(sorted(wrong))}")
        if "S" not in self.field:
            raise InputError("a foraging map needs a start, S")
        at_least("most_steps", self.most_steps, 0)

    @property
    def rows(self) -> list[str]:
        """The rows of the map, padded with hedges to equal length."""
        lines = self.field.strip("\n").split("\n")
        return [line.ljust(max(map(len, lines)), "#").replace(" ", "#") for line in lines]

    @property
    def shape(self) -> tuple[int, int]:
        """The height and width of the map."""
        return len(self.rows), len(self.rows[0])

    @property
    def starts(self) -> Int[np.ndarray, " n"]:
        """The states in which episodes start."""
        return np.flatnonzero(np.array(list("".join(self.rows))) == "S")

    def mdp(self, hazard: Prior = Dirac(0.0), discount: Discount = none()) -> HazardousMDP:
        """Returns the world as a finite MDP. States are cells, row by row. A move into a hedge has no effect.

        Args:
            hazard: The hazard prior.
            discount: The discount d(t).
        """
        height, width = self.shape
        cells = "".join(self.rows)
        rewards = np.zeros((len(cells), len(MOVES)))
        rows, columns = [], []
        for cell, what in enumerate(cells):
            if what not in "S.<>^v":
                continue
            for action, move in enumerate(MOVES.values()):
                down, right = MOVES.get(what, move)
                y, x = cell // width + down, cell % width + right
                inside = 0 <= y < height and 0 <= x < width
                there = y * width + x if inside and cells[y * width + x] != "#" else cell
                if cells[there].isdigit():
                    rewards[cell, action] = float(cells[there])
                else:
                    rows.append(cell * len(MOVES) + action)
                    columns.append(there)
        shape = (len(cells) * len(MOVES), len(cells))
        return HazardousMDP(
            sparse.csr_array((np.ones(len(rows)), (rows, columns)), shape=shape), rewards, hazard, discount
        )

    def environment(self) -> "FiniteWorld":
        """Returns the world without hazard as an environment. An observation is the one-hot cell."""
        from multihorizon.envs.finite import FiniteWorld  # imports JAX, which `mdp` does not need

        return FiniteWorld(self.mdp(), self.starts, (*self.shape, 1), self.most_steps, self.backdrop())

    def backdrop(self) -> UInt8[np.ndarray, "h w 3"]:
        """Returns the colour of each cell."""
        colours = {"#": (46, 92, 60), **dict.fromkeys("S.<>^v", (236, 228, 205))}
        colours |= {str(meal): (200 + 5 * meal, 190 - 18 * meal, 120 - 12 * meal) for meal in range(10)}
        return np.array([[colours[cell] for cell in row] for row in self.rows], np.uint8)
