"""Finds new weights for given discount factors, so that a trained agent can act by another discount.

The heads of a trained agent have fixed γ's. Any discount that Σ wᵢ γᵢ^t can express needs new weights only.
"""

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

MOST_SUGGESTED = 12  # heads
SAME_AS_ONE = 100  # if γ's effective horizon is SAME_AS_ONE · t_max / tolerance, γ^t is nearly 1 up to t_max
LONGEST_SUGGESTED = 1e15  # effective horizon, in steps; floats cannot express a much longer one


@dataclass(frozen=True)
class Reweighting:
    """Horizons with new weights, and how well they express the requested discount.

    Attributes:
        horizons: The given discount factors with their new weights. `horizons.discount` is the discount they reach.
        target: The requested discount.
        t_max: The last step over which the error is measured.
        max_error: The largest |Σ wᵢ γᵢ^t - d(t)| over t = 0, 1, ..., t_max.
        max_error_at: The step at which it occurs.
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
        horizons: The discount factors. Their weights are not used.
        discount: The discount to express: a `Discount`, such as `discount.hyperbolic(0.1)`, a hazard `Prior`, or a
            Python function of t.
        t_max: The last step over which the error is measured, at least 1. Give the length of an episode.
        method: The criterion for the best weights.
        tolerance: The largest error that is accepted, as a share of d(0). A deadline jumps from 1 to 0, which no sum of
            exponentials does. For a deadline, set the tolerance to 0.5 with the minimax methods, and to as much as
            0.65 with the least-squares methods.

    Returns:
        The same discount factors with new weights, the largest error, and the step at which it occurs.

    Raises:
        InputError: If the discount rises or is not positive at 0; or if the largest error exceeds `tolerance` ·
            d(0). The message then says which tolerance accepts the fit, and how many heads, which largest γ, or which
            method would express the discount.
    """
    instance("horizons", horizons, Horizons, "Horizons, such as gauss_grid(discount.hyperbolic(0.1), 3)")
    wanted = as_discount(discount, "a change of discount")
    values = sampled(wanted, at_least("t_max", t_max, 1))
    allowed = positive("tolerance", tolerance) * values[0]
    found, fit = _fitted(horizons, wanted, values, member("method", method, FitMethod))
    if fit.max_error > allowed:
        raise InputError(
            f"{_counted(len(horizons))} with γ ≤ {_largest(horizons)} cannot express {wanted}: the largest "
            f"error over t = 0..{t_max} is {fit.max_error:.3g} at t = {fit.max_error_at}, the tolerance is "
            f"{allowed:.3g}; {_remedy(horizons, wanted, values, allowed, method)}; "
            f"tolerance={_accepting(fit, values)} accepts this fit; if episodes are shorter than {t_max} steps, give "
            "their length as t_max"
        )
    return Reweighting(found, wanted, int(t_max), fit.max_error, fit.max_error_at)


def _fitted(horizons: Horizons, wanted: Discount, values: np.ndarray, method: FitMethod) -> tuple[Horizons, Fit]:
    found = Horizons(horizons.gammas, values[0] * best_weights(horizons.gammas, values / values[0], method))
    return found, found.fit(wanted, len(values) - 1)


def _accepting(fit: Fit, values: np.ndarray) -> str:
    """Returns a tolerance that accepts a fit, rounded up to two digits."""
    share = fit.max_error / values[0]
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    return f"{math.ceil(share / unit * (1 + 1e-9)) * unit:.2g}"


def _remedy(horizons: Horizons, wanted: Discount, values: np.ndarray, allowed: float, method: FitMethod) -> str:
    """Describes what would express the discount: more heads, a larger cap, or weights of either sign."""
    target, share = values / values[0], allowed / values[0]
    longest_horizon = min(SAME_AS_ONE * len(values) / max(share, 1e-100), LONGEST_SUGGESTED)
    longest = 1 - 1 / longest_horizon
    cap = float(np.clip(horizons.gammas.max(), 1e-6, longest))
    if least_error(target, cap) <= share:
        count, verb = _enough_heads(wanted, values, cap, allowed)
        return f"{count} with the same largest γ, chosen by minimax_grid, would {verb}"
    floor = least_error(target, longest)
    if floor <= share:
        low, high = np.log(1 / (1 - cap)), np.log(longest_horizon)  # log of the effective horizon; longer is better
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (low, middle) if least_error(target, 1 - np.exp(-middle)) <= 0.98 * share else (middle, high)
        needed = 1 - float(f"{0.95 * np.exp(-high):.1e}")
        count, verb = _enough_heads(wanted, values, needed, allowed)
        return (
            f"no number of heads with γ ≤ {shown_gamma(cap)} would suffice; with a largest γ of {needed:.15g}, {count} "
            f"chosen by minimax_grid would {verb} (its effective horizon is {1 / (1 - needed):.3g} steps)"
        )
    words = f"heads with weights of at least 0 cannot reach an error below {floor * values[0]:.3g}"
    if wanted.prior is None:
        words += ", because this discount is not a mixture of exponentials"
    if method.most is not None:
        return words
    smooth = _fitted(horizons, wanted, values, FitMethod.SIGNED_MINIMAX)[1]
    if smooth.max_error <= allowed:
        return f"{words}; method=FitMethod.SIGNED_MINIMAX reaches {smooth.max_error:.3g} with these heads"
    jumps = _fitted(horizons, wanted, values, FitMethod.SIGNED_LEAST_SQUARES)[1]
    return (
        f"{words}; method=FitMethod.SIGNED_LEAST_SQUARES, tolerance={_accepting(jumps, values)} is accepted, with a "
        f"largest error of {jumps.max_error:.3g} at t = {jumps.max_error_at} and the smallest mean squared error"
    )


def _enough_heads(wanted: Discount, values: np.ndarray, cap: float, allowed: float) -> tuple[str, str]:
    """Returns the number of heads with γ ≤ cap that express the discount, and whether they suffice, in words."""
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
