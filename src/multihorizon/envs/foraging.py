"""Foraging: trails through a meadow, in each of which a near, small meal competes with a far, large one.

Under an exponential hazard with k = 0.5 the starts are so varied that no single γ chooses right from all of them: where
both meals are far the larger is worth the walk, and where the small one is at hand it is not. The exact solver says so
in the tests.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int, UInt8
from scipy import sparse

from multihorizon.discounting.discount import Discount, none
from multihorizon.discounting.hazard import Dirac, Exponential, Prior
from multihorizon.errors import InputError
from multihorizon.mdp import HazardousMDP

if TYPE_CHECKING:
    from multihorizon.envs.finite import FiniteWorld

HAZARD = Exponential(0.5)  # under which no single γ chooses right from every start of the meadow

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
    """A map. Digits are meals that pay that much (0: a barren patch) and end the episode; S are starts, all alike; . is
    open ground; on a trail, < > ^ or v, every action walks on; # and blanks are hedges, which cannot be entered."""

    field: str = MEADOW
    most_steps: int = 200

    def __post_init__(self) -> None:
        wrong = set(self.field) - set("0123456789S.<>^v# \n")
        if wrong:
            raise InputError(f"a foraging map is drawn with digits, S . < > ^ v and #, not {' '.join(sorted(wrong))}")
        if "S" not in self.field:
            raise InputError("a foraging map needs a start, S")

    @property
    def rows(self) -> list[str]:
        lines = self.field.strip("\n").split("\n")
        return [line.ljust(max(map(len, lines)), "#").replace(" ", "#") for line in lines]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.rows), len(self.rows[0])

    @property
    def starts(self) -> Int[np.ndarray, " n"]:
        return np.flatnonzero(np.array(list("".join(self.rows))) == "S")

    def mdp(self, hazard: Prior = Dirac(0.0), discount: Discount = none()) -> HazardousMDP:
        """Cells by row; a move into a hedge stays where it is."""
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
        from multihorizon.envs.finite import FiniteWorld  # JAX, which the mathematics does without

        return FiniteWorld(self.mdp(), self.starts, (*self.shape, 1), self.most_steps, self.backdrop())

    def backdrop(self) -> UInt8[np.ndarray, "h w 3"]:
        """A colour for each cell: hedges green, ground pale, meals the redder the more they pay."""
        colours = {"#": (46, 92, 60), **dict.fromkeys("S.<>^v", (236, 228, 205))}
        colours |= {str(meal): (200 + 5 * meal, 190 - 18 * meal, 120 - 12 * meal) for meal in range(10)}
        return np.array([[colours[cell] for cell in row] for row in self.rows], np.uint8)
