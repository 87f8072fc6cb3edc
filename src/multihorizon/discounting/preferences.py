"""Choices between a smaller, sooner reward and a larger, later reward (as in the paper's introduction)."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.hazard.prior import Values, times
from multihorizon.discounting.sources import MOST_STEPS, check_discount
from multihorizon.errors import InputError, at_least, between, positive

LONGEST_WAIT = 1e300
TIE = 1e-12  # two rewards have equal value if the logarithms of their values differ by at most TIE


@dataclass(frozen=True)
class Offer:
    """A choice between two rewards: `sooner` after a wait, or `later` after the wait plus `delay`.

    Args:
        sooner: The reward that comes first, positive.
        later: The reward that comes second, positive.
        delay: The time between the two rewards, positive.
    """

    sooner: float = 1.0
    later: float = 1.1
    delay: float = 1.0

    def __post_init__(self) -> None:
        for name in ("sooner", "later", "delay"):
            object.__setattr__(self, name, positive(name, getattr(self, name)))

    def values(self, discount: Discount, wait: float) -> tuple[float, float]:
        """Returns the present values of the sooner and the later reward (equation 2).

        Args:
            discount: The discount d(t).
            wait: The time before the sooner reward, at least 0.
        """
        check_discount(discount)
        wait = between("wait", wait, 0, LONGEST_WAIT)
        values = self.sooner * float(discount(wait)), self.later * float(discount(wait + self.delay))
        if not np.all(np.isfinite(values)):
            raise InputError(f"the value of a reward is too large for a float: {values[0]:g} and {values[1]:g}")
        return values

    def advantage(self, discount: Discount, wait: ArrayLike) -> Values:
        """Returns ln(value of later / value of sooner), which is positive if the later reward is preferred.

        The logarithm also compares values that would underflow. The advantage is 0 if the values of both rewards are 0.

        Args:
            discount: The discount d(t).
            wait: The time before the sooner reward, or an array of times, at least 0.
        """
        check_discount(discount)
        wait = times(wait)
        sooner, later = np.asarray(discount.log(wait)), np.asarray(discount.log(wait + self.delay))
        with np.errstate(invalid="ignore"):
            gain = np.log(self.later) - np.log(self.sooner) + later - sooner
        tied = (np.isneginf(sooner) & np.isneginf(later)) | (np.abs(gain) <= TIE)
        return np.where(tied, 0.0, gain)[()]

    def taken(self, discount: Discount, wait: float) -> str:
        """Returns which reward is preferred: 'sooner', 'later', or 'either' if their values are equal.

        Args:
            discount: The discount d(t).
            wait: The time before the sooner reward, at least 0.
        """
        wait = between("wait", wait, 0, LONGEST_WAIT)
        return ("either", "later", "sooner")[int(np.sign(self.advantage(discount, wait)))]

    def reversal(self, discount: Discount, longest_wait: int) -> float | None:
        """Finds the shortest wait at which the preference is the opposite of the preference without a wait.

        Args:
            discount: The discount d(t).
            longest_wait: The longest wait to search, a whole number of at least 1.

        Returns:
            The wait, or None if the preference does not change up to `longest_wait`.
        """
        waits = np.arange(at_least("longest_wait", longest_wait, 1, MOST_STEPS) + 1)
        preferred = np.sign(self.advantage(discount, waits))
        turned = np.flatnonzero(preferred * preferred[0] < 0)
        if len(turned) == 0:
            return None
        low, high = 0.0, float(turned[0])
        for _ in range(80):
            middle = (low + high) / 2
            same = np.sign(self.advantage(discount, middle)) == preferred[0]
            low, high = (middle, high) if same else (low, middle)
        return high if high > 1e-9 else 0.0
