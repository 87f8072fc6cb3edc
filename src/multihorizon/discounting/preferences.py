"""Choices between a smaller reward sooner and a larger one later (the paper's opening example)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.hazard.prior import Values, times
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

    def advantage(self, discount: Discount, wait: ArrayLike) -> Values:
        """ln(later's worth / sooner's worth): above 0 the later is taken. In logarithms, since both may be tiny."""
        wait = times(wait)
        gain = np.log(self.later / self.sooner) + discount.log(wait + self.delay) - discount.log(wait)
        return np.where(np.abs(gain) <= TIE, 0.0, gain)[()]

    def taken(self, discount: Discount, wait: float) -> str:
        """'sooner', 'later', or 'either' where they are worth the same."""
        return ("either", "later", "sooner")[int(np.sign(self.advantage(discount, wait)))]

    def reversal(self, discount: Discount, longest_wait: int) -> float | None:
        """The wait beyond which the preference of a wait of 0 first turns into the other one; None if it never does."""
        gain = np.asarray(self.advantage(discount, np.arange(longest_wait + 1)))
        turned = np.flatnonzero(gain * gain[0] < 0)
        if len(turned) == 0:
            return None
        low, high = 0.0, float(turned[0])
        for _ in range(80):
            middle = (low + high) / 2
            same = self.advantage(discount, middle) * gain[0] > 0
            low, high = (middle, high) if same else (low, middle)
        return high if high > 1e-9 else 0.0
