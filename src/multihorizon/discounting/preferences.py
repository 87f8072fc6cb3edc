"""Choices between a smaller reward sooner and a larger one later (the paper's opening example)."""

from dataclasses import dataclass

import numpy as np

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.hazard.prior import times
from multihorizon.errors import positive

TIE = 1e-12


@dataclass(frozen=True)
class Offer:
    """`sooner` after a wait, or `later` a further `delay` after that."""

    sooner: float = 1.0
    later: float = 1.1
    delay: float = 1.0

    def __post_init__(self) -> None:
        positive("the sooner reward", self.sooner)
        positive("the later reward", self.later)
        positive("the delay", self.delay)

    def values(self, discount: Discount, wait: float) -> tuple[float, float]:
        """What the sooner and the later reward are worth now."""
        times(wait)
        return self.sooner * float(discount(wait)), self.later * float(discount(wait + self.delay))

    def taken(self, discount: Discount, wait: float) -> str:
        """'sooner', 'later', or 'either' where they are worth the same."""
        sooner, later = self.values(discount, wait)
        if abs(sooner - later) <= TIE * max(sooner, later):
            return "either"
        return "sooner" if sooner > later else "later"

    def reversal(self, discount: Discount, longest_wait: int) -> float | None:
        """The wait at which the preference of a wait of 0 first turns into the other one; None if it never does."""
        waits = np.arange(longest_wait + 1)
        sooner, later = self.sooner * discount(waits), self.later * discount(waits + self.delay)
        gain = np.where(np.abs(later - sooner) <= TIE * np.maximum(sooner, later), 0.0, later - sooner)
        turned = np.flatnonzero(gain * gain[0] < 0)
        if len(turned) == 0:
            return None
        low, high = float(turned[0] - 1), float(turned[0])
        while low > 0 and gain[int(low)] == 0:
            low -= 1
        first = self.taken(discount, 0)
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if self.taken(discount, middle) == first else (low, middle)
        return high
