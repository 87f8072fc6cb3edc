"""Chooses discount factors for a family of discounts, so that one trained agent can act by each of the discounts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from jaxtyping import Float

from multihorizon.discounting.discount import Discount, hyperbolic
from multihorizon.discounting.fitting import FitMethod, best_weights, least_error
from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.horizons import MOST_HEADS, Horizons
from multihorizon.discounting.reweighting import Reweighting
from multihorizon.discounting.search import NO_WEIGHT, fill_gaps, search, settled
from multihorizon.discounting.sources import as_discount, sampled
from multihorizon.errors import InputError, at_least, inside, is_number, shown_gamma

PER_DECADE = 3  # the search uses at least PER_DECADE values of k per decade
CHECKED = 6  # if the search uses n values of k, the stated errors are computed at about CHECKED · n values
Source = Discount | Prior | Callable[[float], float]


@dataclass(frozen=True)
class Design:
    """Discount factors for a family of discounts, and the errors that more heads or a larger cap would give.

    Attributes:
        gammas: The discount factors, increasing [H].
        fits: The best weights and the largest error for each discount that the search used.
        gamma_max: The upper bound on γ.
        between: The best weights and the largest error for values of k that the search did not use. Empty if the design
            is for a list of discounts.
    """

    gammas: Float[np.ndarray, " H"]
    fits: tuple[Reweighting, ...]
    gamma_max: float
    between: tuple[Reweighting, ...] = ()

    @property
    def horizons(self) -> Horizons:
        """Horizons to train with: the discount factors, with the weights for the middle discount of `fits`."""
        return self.fits[len(self.fits) // 2].horizons

    @property
    def worst(self) -> Reweighting:
        """The fit with the largest error relative to d(0)."""
        return max((*self.fits, *self.between), key=_share)

    @property
    def max_error(self) -> float:
        """The largest error over all discounts and steps, relative to d(0).

        For a range of k, errors are computed at 18 or more values of k per decade. The error at another k in the range
        exceeds `max_error` by at most about 1%.
        """
        return _share(self.worst)

    @cached_property
    def one_more_head(self) -> float:
        """The `max_error` of a design with one more head."""
        return self._variant(len(self.gammas) + 1, self.gamma_max)

    @cached_property
    def doubled_cap(self) -> float:
        """The `max_error` of a design whose largest effective horizon 1 / (1 - gamma_max) is twice as long."""
        return self._variant(len(self.gammas), (1 + self.gamma_max) / 2)

    @cached_property
    def least_error(self) -> float:
        """The smallest `max_error` that any number of heads can reach with γ ≤ gamma_max and weights of at least 0."""
        values = [sampled(fit.target, self._t_max) for fit in self.fits]
        return max(least_error(one / one[0], self.gamma_max) for one in values)

    def _variant(self, heads: int, cap: float) -> float:
        family, between = ([fit.target for fit in fits] for fits in (self.fits, self.between))
        found = _designed(family, between, heads, cap, self._t_max).max_error
        # More heads or a larger γ cannot make the best design worse. The search could still find a worse design.
        return min(found, self.max_error)

    @property
    def _t_max(self) -> int:
        return self.fits[0].t_max

    def report(self) -> str:
        """Returns a short text: the design, its errors, and the errors with one more head or a larger γ."""
        heads = len(self.gammas)
        rows = [f"  {fit.target}: {fit.max_error:.3g} at t = {fit.max_error_at}" for fit in self.fits]
        gammas = ", ".join(f"{gamma:.6g}" for gamma in self.gammas)
        return "\n".join(
            [
                f"{heads} heads with γ ≤ {shown_gamma(self.gamma_max)}: {gammas}",
                f"largest error {self.max_error:.3g} over t = 0..{self._t_max}, for {self.worst.target}",
                f"largest error for each discount{' that the search used' if self.between else ''}:",
                *rows,
                f"with {heads + 1} heads: {self.one_more_head:.3g}",
                f"with γ ≤ {shown_gamma((1 + self.gamma_max) / 2)}: {self.doubled_cap:.3g}",
                f"with any number of heads with γ ≤ {shown_gamma(self.gamma_max)}: {self.least_error:.3g}",
            ]
        )


def design_horizons(
    discounts: Sequence[Source] | tuple[float, float] | np.ndarray,
    heads: int,
    *,
    gamma_max: float = 0.99,
    t_max: int = 1000,
) -> Design:
    """Finds the discount factors that minimise the largest error over a family of discounts.

    An agent that is trained with these horizons can act by each discount of the family after `reweight`. Because γ is
    bounded, some discounts have an error that no number of heads can remove. The search ignores this unavoidable error,
    so one difficult discount hardly worsens the fit of the other discounts.

    Args:
        discounts: Two or more discounts, priors or functions of t. Or two numbers: the smallest and the largest k of a
            range of hyperbolic discounts 1 / (1 + kt). Within a range, the search uses values of k that are at most a
            third of a decade apart, and `max_error` covers the whole range.
        heads: The number of discount factors.
        gamma_max: The upper bound on γ, in (0, 1).
        t_max: The last step at which the error is measured, at least 1. Use the length of an episode.

    Returns:
        The discount factors, and the weights and the error for each discount.

    Raises:
        InputError: If a discount rises or is not positive at 0, or an argument lies outside its range.
    """
    heads = at_least("heads", heads, 1, MOST_HEADS)
    cap = inside("gamma_max", gamma_max, 0, 1)
    family, between = _family(discounts)
    return _designed(family, between, heads, cap, at_least("t_max", t_max, 1))


def _family(
    discounts: Sequence[Source] | tuple[float, float] | np.ndarray,
) -> tuple[list[Discount], list[Discount]]:
    given = list(discounts) if isinstance(discounts, Sequence | np.ndarray) else []
    if len(given) == 2 and all(is_number(k) for k in given):
        low, high = (float(k) for k in given)
        if not 0 < low < high < np.inf:
            raise InputError(f"a range of k must be two positive numbers, the smaller first, got ({low:g}, {high:g})")
        steps = int(PER_DECADE * np.log10(high / low)) + 1
        every = [hyperbolic(float(k)) for k in np.geomspace(low, high, steps * CHECKED + 1)]
        return every[::CHECKED], [one for i, one in enumerate(every) if i % CHECKED]
    if len(given) < 2:
        raise InputError("discounts must be a list of two or more discounts, or the smallest and the largest k")
    return [as_discount(one, "design_horizons") for one in given], []


def _share(fit: Reweighting) -> float:
    return fit.max_error / float(fit.target(0.0))


def _designed(family: list[Discount], between: list[Discount], heads: int, cap: float, t_max: int) -> Design:
    values = [sampled(one, t_max) for one in family]
    wanted = np.stack([one / one[0] for one in values])
    floors = np.array([least_error(one, cap) for one in wanted])
    *_, best = islice(search(wanted, cap, floors), heads)
    best = settled(best, wanted, cap, floors)
    used = best.weights.max(axis=0) > NO_WEIGHT
    gammas = fill_gaps(np.unique(best.gammas(cap)[used]), heads, cap)
    fits, checked = (tuple(_fit(gammas, one, t_max) for one in discounts) for discounts in (family, between))
    return Design(gammas, fits, cap, checked)


def _fit(gammas: Float[np.ndarray, " H"], one: Discount, t_max: int) -> Reweighting:
    values = sampled(one, t_max)
    horizons = Horizons(gammas, values[0] * best_weights(gammas, values / values[0], FitMethod.MINIMAX))
    fit = horizons.fit(one, t_max)
    return Reweighting(horizons, one, t_max, fit.max_error, fit.max_error_at)
