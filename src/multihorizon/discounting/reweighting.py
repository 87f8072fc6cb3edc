"""Finds new weights for given discount factors, so that a trained agent can act by another discount."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.fitting import FitMethod, best_weights, least_error
from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.horizons import Fit, Horizons
from multihorizon.discounting.minimax import as_horizons
from multihorizon.discounting.search import search
from multihorizon.discounting.sources import as_discount, sampled
from multihorizon.errors import InputError, at_least, instance, member, positive, shown_gamma

MOST_SUGGESTED = 12  # largest number of heads that a message suggests
# A message suggests an effective horizon of at most SAME_AS_ONE · t_max / tolerance steps. With longer horizons, γ^t
# would be nearly 1 at all steps.
SAME_AS_ONE = 100
LONGEST_SUGGESTED = 1e15  # longest effective horizon that a message suggests, in steps


@dataclass(frozen=True)
class Reweighting:
    """Horizons with new weights, and how well they express the requested discount.

    Attributes:
        horizons: The given discount factors with new weights. `horizons.discount` approximates the requested discount.
        target: The requested discount.
        t_max: The last step at which the error is measured.
        max_error: The largest |Σ wᵢ γᵢ^t - d(t)| over t = 0, 1, ..., t_max.
        max_error_at: The step t with the largest error.
    """

    horizons: Horizons
    target: Discount
    t_max: int
    max_error: float
    max_error_at: int

    def __str__(self) -> str:
        return (
            f"{self.target}, expressed by {_counted(len(self.horizons))} with γ ≤ {_largest(self.horizons)}: "
            f"largest error {self.max_error:.3g} at t = {self.max_error_at}, over t = 0..{self.t_max}"
        )


def reweight(
    horizons: Horizons,
    discount: Discount | Prior | Callable[[float], float],
    *,
    t_max: int = 1000,
    method: FitMethod = FitMethod.MINIMAX,
    tolerance: float = 0.05,
) -> Reweighting:
    """Finds the weights with which the given discount factors best express a discount.

    Args:
        horizons: The discount factors. The weights of these horizons are not used.
        discount: The discount to express: a `Discount`, such as `discount.hyperbolic(0.1)`, a hazard `Prior`, or a
            Python function of t.
        t_max: The last step at which the error is measured, at least 1. Use the length of an episode.
        method: The criterion for the best weights.
        tolerance: The largest accepted error, relative to d(0). No sum of exponentials can jump from 1 to 0 as a
            deadline does. For a deadline, use a tolerance of 0.5 with the minimax methods, and of up to 0.65 with the
            least-squares methods.

    Returns:
        The same discount factors with new weights, and their largest error.

    Raises:
        InputError: If the discount rises or is not positive at 0, or the largest error exceeds `tolerance` · d(0). If
            the error is too large, the message suggests a tolerance, more heads, a larger γ or another method.
    """
    instance("horizons", horizons, Horizons, "Horizons, such as gauss_grid(discount.hyperbolic(0.1), 3)")
    wanted = as_discount(discount, "a change of discount")
    values = sampled(wanted, at_least("t_max", t_max, 1))
    allowed = positive("tolerance", tolerance) * values[0]
    found, fit = _fitted(horizons, wanted, values, member("method", method, FitMethod))
    if fit.max_error > allowed:
        raise InputError(
            f"{_counted(len(horizons))} with γ ≤ {_largest(horizons)} cannot express the discount '{wanted}': the "
            f"largest error over t = 0..{t_max} is {fit.max_error:.3g} at t = {fit.max_error_at}, but the tolerance is "
            f"{allowed:.3g}. Set tolerance={_accepting(fit, values)} to accept this error. "
            f"{_remedy(horizons, wanted, values, allowed, method)}. If episodes are shorter than {t_max} steps, set "
            "t_max to their length."
        )
    return Reweighting(found, wanted, int(t_max), fit.max_error, fit.max_error_at)


def _fitted(horizons: Horizons, wanted: Discount, values: np.ndarray, method: FitMethod) -> tuple[Horizons, Fit]:
    found = Horizons(horizons.gammas, values[0] * best_weights(horizons.gammas, values / values[0], method))
    return found, found.fit(wanted, len(values) - 1)


def _accepting(fit: Fit, values: np.ndarray) -> str:
    """Returns a tolerance that accepts the fit, rounded up to two digits."""
    share = fit.max_error / values[0]
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    return f"{math.ceil(share / unit * (1 + 1e-9)) * unit:.2g}"


def _remedy(horizons: Horizons, wanted: Discount, values: np.ndarray, allowed: float, method: FitMethod) -> str:
    """Suggests more heads, a larger γ or another method."""
    target, share = values / values[0], allowed / values[0]
    longest_horizon = min(SAME_AS_ONE * len(values) / max(share, 1e-100), LONGEST_SUGGESTED)
    longest = 1 - 1 / longest_horizon
    cap = float(np.clip(horizons.gammas.max(), 1e-6, longest))
    if least_error(target, cap) <= share:
        count, verb = _enough_heads(wanted, values, cap, allowed)
        return f"With the same largest γ, {count} chosen by minimax_grid would {verb}"
    floor = least_error(target, longest)
    if floor <= share:
        low, high = np.log(1 / (1 - cap)), np.log(longest_horizon)  # log effective horizons
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if least_error(target, 1 - np.exp(-middle)) <= 0.98 * share else (middle, high)
        needed = 1 - float(f"{0.95 * np.exp(-high):.1e}")
        count, verb = _enough_heads(wanted, values, needed, allowed)
        return (
            f"No number of heads with γ ≤ {shown_gamma(cap)} would suffice. With a largest γ of {needed:.15g}, {count} "
            f"chosen by minimax_grid would {verb} (effective horizon: {1 / (1 - needed):.3g} steps)"
        )
    words = f"Heads with weights of at least 0 cannot reach an error below {floor * values[0]:.3g}"
    if wanted.prior is None:
        words += ", because this discount is not a mixture of exponentials"
    if method.most is not None:
        return words
    smooth = _fitted(horizons, wanted, values, FitMethod.SIGNED_MINIMAX)[1]
    if smooth.max_error <= allowed:
        return f"{words}. With these heads, method=FitMethod.SIGNED_MINIMAX reaches {smooth.max_error:.3g}"
    jumps = _fitted(horizons, wanted, values, FitMethod.SIGNED_LEAST_SQUARES)[1]
    return (
        f"{words}. For the smallest mean squared error, set method=FitMethod.SIGNED_LEAST_SQUARES, "
        f"tolerance={_accepting(jumps, values)}; the largest error is then {jumps.max_error:.3g} at t = "
        f"{jumps.max_error_at}"
    )


def _enough_heads(wanted: Discount, values: np.ndarray, cap: float, allowed: float) -> tuple[str, str]:
    """Returns two parts of a message, such as "3 heads" and "suffice", on the heads that the discount needs."""
    target = values / values[0]
    found = search(target[None], cap, np.array([least_error(target, cap)]))
    for count, heads in enumerate(islice(found, MOST_SUGGESTED), 1):
        if as_horizons(heads, count, cap, values[0]).fit(wanted, len(values) - 1).max_error <= allowed:
            return _counted(count), "suffice"
    return f"more than {MOST_SUGGESTED} heads", "be needed"


def _largest(horizons: Horizons) -> str:
    return shown_gamma(float(horizons.gammas.max()))


def _counted(heads: int) -> str:
    return "1 head" if heads == 1 else f"{heads} heads"
