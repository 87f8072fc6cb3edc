"""Designs discount factors for a family of discounts, so that an agent that is trained once can act by any of them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from multihorizon.discounting.discount import Discount, hyperbolic
from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.horizons import MOST_HEADS, Horizons
from multihorizon.discounting.minimax import (
    Heads,
    Problem,
    descend,
    fitted_steps,
    gaps,
    problem_at,
    refine,
)
from multihorizon.discounting.reweighting import (
    FitMethod,
    Reweighting,
    best_weights,
    least_error,
    minimax_weights,
)
from multihorizon.discounting.sources import as_discount, sampled
from multihorizon.errors import InputError, at_least, inside

FITTED_TIMES = 80  # fewer than for one discount: the linear program has a row for each time and discount
PER_DECADE = 3  # discounts per decade that represent a range of k
FASTEST = (0.05, 0.3, 1.0, 3.0)  # hazard of the fastest head at the start of each search
TRIED = 3  # best starts, from which the search descends
DESCENTS = 30

Source = Discount | Prior | Callable[[float], float]


@dataclass(frozen=True)
class Design:
    """Discount factors that serve a family of discounts, and the errors of other designs.

    Attributes:
        gammas: The discount factors, increasing [H].
        fits: The best weights for each discount of the family, with the largest error.
        gamma_max: The upper bound on γ.
    """

    gammas: Float[np.ndarray, " H"]
    fits: tuple[Reweighting, ...]
    gamma_max: float

    @property
    def horizons(self) -> Horizons:
        """The discount factors with the weights of the discount in the middle of the family, to train with."""
        return self.fits[len(self.fits) // 2].horizons

    @property
    def worst(self) -> Reweighting:
        """The fit with the largest error relative to d(0)."""
        return max(self.fits, key=_share)

    @property
    def max_error(self) -> float:
        """The largest error over all discounts and steps, as a share of d(0)."""
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
        """The smallest `max_error` that any number of heads with γ ≤ gamma_max and weights of at least 0 can reach."""
        values = [sampled(fit.target, self._t_max) for fit in self.fits]
        return max(least_error(one / one[0], self.gamma_max) for one in values)

    def _variant(self, heads: int, cap: float) -> float:
        # Starts from these discount factors too, so that it does not end in a worse local optimum.
        return _designed([fit.target for fit in self.fits], heads, cap, self._t_max, [self.gammas]).max_error

    @property
    def _t_max(self) -> int:
        return self.fits[0].t_max

    def report(self) -> str:
        """Returns the design, its errors, and what one more head or a larger cap would achieve, in a few lines."""
        heads = len(self.gammas)
        rows = [f"  {fit.target}: {fit.max_error:.3g} at t = {fit.max_error_at}" for fit in self.fits]
        gammas = ", ".join(f"{gamma:.6g}" for gamma in self.gammas)
        return "\n".join(
            [
                f"{heads} heads with γ ≤ {self.gamma_max:g}: {gammas}",
                f"largest error {self.max_error:.3g} over t = 0..{self._t_max}, for {self.worst.target}",
                "largest error for each discount:",
                *rows,
                f"with {heads + 1} heads: {self.one_more_head:.3g}",
                f"with γ ≤ {(1 + self.gamma_max) / 2:.6g}: {self.doubled_cap:.3g}",
                f"with any number of heads with γ ≤ {self.gamma_max:g}: {self.least_error:.3g}",
            ]
        )


def design_horizons(
    discounts: Sequence[Source] | tuple[float, float], heads: int, *, gamma_max: float = 0.99, t_max: int = 1000
) -> Design:
    """Finds the discount factors that minimise the largest error over a whole family of discounts.

    An agent that is trained with these horizons can act by each of the discounts, and by those between them, after
    `reweight`. The search counts only the part of a discount's error that more heads with γ ≤ gamma_max could remove.
    If the bound makes one discount hard to express, the others are still expressed as well as possible.
    The search improves all heads together by sequential linear programming, from several starts.

    Args:
        discounts: The family: two or more discounts, priors or functions of t; or two numbers, the smallest and the
            largest k of hyperbolic discounts 1 / (1 + kt), of which three per decade are used.
        heads: The number of discount factors.
        gamma_max: The upper bound on γ, in (0, 1).
        t_max: The last step over which the error is measured, at least 1. Give the length of an episode.

    Returns:
        The discount factors, the weights and errors for each discount, and what one more head or a larger bound
        would achieve.

    Raises:
        InputError: If a discount rises or is not positive at 0, or an argument lies outside its range.
    """
    heads = at_least("heads", heads, 1, MOST_HEADS)
    cap = inside("gamma_max", gamma_max, 0, 1)
    return _designed(_family(discounts), heads, cap, at_least("t_max", t_max, 1))


def _family(discounts: Sequence[Source] | tuple[float, float]) -> list[Discount]:
    given = list(discounts) if isinstance(discounts, Sequence) else []
    if len(given) == 2 and all(isinstance(k, int | float) for k in given):
        low, high = (float(k) for k in given)  # type: ignore[arg-type]
        if not 0 < low < high < np.inf:
            raise InputError(f"a range of k must be two positive numbers, the smaller first, got ({low:g}, {high:g})")
        return [hyperbolic(float(k)) for k in np.geomspace(low, high, int(PER_DECADE * np.log10(high / low)) + 2)]
    if len(given) < 2:
        raise InputError("discounts must be a list of two or more discounts, or the smallest and the largest k")
    return [as_discount(one, "design_horizons") for one in given]  # type: ignore[arg-type]


def _share(fit: Reweighting) -> float:
    return fit.max_error / float(fit.target(0.0))


def _completed(problem: Problem, log_rates: Float[np.ndarray, " less"], heads: int) -> Heads:
    """Returns heads at these rates and at others, which are added one by one, each in the gap where it helps most."""
    best = _weighted(problem, log_rates)
    while len(best.log_rates) < heads:
        added = [_weighted(problem, np.append(best.log_rates, gap)) for gap in gaps(problem, best)]
        best = min(added, key=problem.error)
    return best


def _weighted(problem: Problem, log_rates: Float[np.ndarray, " H"]) -> Heads:
    """Returns heads at these rates with the best weights for each discount."""
    terms = Heads(log_rates, np.empty((0, len(log_rates)))).terms(problem.t)
    return Heads(log_rates, np.stack([minimax_weights(terms, target) for target in problem.target]))


def _designed(family: list[Discount], heads: int, cap: float, t_max: int, known: Sequence[np.ndarray] = ()) -> Design:
    """Returns the best of several local searches; `known` are discount factors of other designs to start from."""
    values = [sampled(one, t_max) for one in family]
    wanted = np.stack([one / one[0] for one in values])
    floors = np.array([least_error(one, cap) for one in wanted])
    chosen = fitted_steps(t_max, FITTED_TIMES)
    problem = problem_at(chosen, wanted, cap, floors)
    starts = [np.linspace(problem.low, max(np.log(fastest), problem.low + 1), heads) for fastest in FASTEST]
    tried = sorted((_completed(problem, start, heads) for start in starts), key=problem.error)[:TRIED]
    tried += [_completed(problem, np.log(-np.log(np.maximum(gammas, 1e-17))), heads) for gammas in known]
    best = min((descend(problem, one, DESCENTS) for one in tried), key=problem.error)
    best = refine(best, wanted, cap, chosen, floors)
    gammas = np.sort(np.minimum(np.exp(-np.exp(best.log_rates)), cap))
    gammas[gammas < 1e-15] = 0.0
    fits = []
    for one, scaled in zip(family, wanted, strict=True):
        horizons = Horizons(gammas, float(one(0.0)) * best_weights(gammas, scaled, FitMethod.MINIMAX))
        fit = horizons.fit(one, t_max)
        fits.append(Reweighting(horizons, one, t_max, fit.max_error, fit.max_error_at))
    return Design(gammas, tuple(fits), cap)
