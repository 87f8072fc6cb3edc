"""Episodes of environments on the host, counted as they end."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float


class Count:
    """Episodes of every seed, counted on the host. An environment that is not counted on is out of the game."""

    def __init__(self, seeds: int, environments: int) -> None:
        self._return = np.zeros((seeds, environments))
        self.forget()

    def forget(self) -> None:
        """All but what episodes under way have earned."""
        self.steps, self.ended, self.returns = (np.zeros(len(self._return), kind) for kind in (int, int, float))

    def add(
        self, rewards: Float[np.ndarray, "S m"], over: Bool[np.ndarray, "S m"], counts: Any = True, first: int = 0
    ) -> None:
        """A step of all environments, or of some, from number `first` on."""
        running = self._return[:, first : first + rewards.shape[1]]
        running += rewards
        self.steps += (np.ones_like(over) & counts).sum(axis=1)
        self.ended += (over & counts).sum(axis=1)
        self.returns += np.where(over & counts, running, 0).sum(axis=1)
        running[over] = 0
