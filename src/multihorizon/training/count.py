"""Episodes of environments on the host, counted as they end."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float


class Count:
    """Episodes of every seed, counted on the host. An environment that is not counted on is out of the game."""

    def __init__(self, seeds: int, environments: int) -> None:
        self._return = np.zeros((seeds, environments))
        self.steps, self.ended, self.returns = (np.zeros(seeds, kind) for kind in (int, int, float))

    def add(self, rewards: Float[np.ndarray, "S N"], over: Bool[np.ndarray, "S N"], counts: Any = True) -> None:
        self._return += rewards
        self.steps += (np.ones_like(over) & counts).sum(axis=1)
        self.ended += (over & counts).sum(axis=1)
        self.returns += np.where(over & counts, self._return, 0).sum(axis=1)
        self._return[over] = 0
