"""Mixtures: observed hazards (a mixture of point masses) and mixtures of any priors."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special

from multihorizon.discounting.hazard.prior import Atoms, Prior, Values, probabilities, rates, times
from multihorizon.errors import InputError, numbers, shown

CHUNK = 2_000_000  # largest number of entries of the [atoms, times] table in memory
MOST_TURNS = 250  # largest number of iterations of the search for a quantile
RELATIVE = 4 * np.finfo(float).eps  # relative precision of the search, in the hazard or in the probability
LEAST, MOST = 1e-300, 1e300  # smallest and largest hazard on the logarithmic scale of the search


def _probabilities(weights: Sequence[float] | np.ndarray, count: int, of: str) -> np.ndarray:
    array = numbers(f"the weights of {of}", weights)
    if array.size == 0:
        return np.full(count, 1 / count)
    if array.shape != (count,) or not np.all((array >= 0) & (array < 2)) or abs(array.sum() - 1) > 1e-9:
        raise InputError(f"the weights of {of} must be {count} non-negative numbers that add up to 1")
    return array


def _posterior_mean(log_weights: np.ndarray, rates: np.ndarray) -> Values:
    """Returns Σ wᵢ λᵢ / Σ wᵢ over the first axis, given ln wᵢ. Omits terms with wᵢ = 0, because λᵢ may be ∞."""
    weights = special.softmax(log_weights, axis=0)
    return np.sum(np.multiply(weights, rates, out=np.zeros_like(weights), where=weights > 0), axis=0)


def _crossings(
    cdf: Callable[[np.ndarray], Values],
    u: Float[np.ndarray, " n"],
    low: Float[np.ndarray, " n"],
    high: Float[np.ndarray, " n"],
) -> Float[np.ndarray, " n"]:
    """Returns the hazards between `low` and `high` at which a continuous cdf reaches u.

    Uses the Illinois method. Every third iteration halves the interval, which limits the number of iterations.
    """
    low, high = low.copy(), high.copy()
    left, right = (np.asarray(cdf(end)) - u for end in (low, high))
    side = np.zeros(u.shape)  # the end that the previous iteration moved: 1 for `high`, -1 for `low`
    for turn in range(MOST_TURNS):
        todo = np.flatnonzero((low < (1 - RELATIVE) * high) & (left < 0))
        if len(todo) == 0:
            break
        a, b, f, g = low[todo], high[todo], left[todo], right[todo]
        share = np.full(a.shape, 0.5) if turn % 3 == 2 else -f / (g - f)
        between = _between(a, b, np.clip(share, 0.001, 0.999))
        reached = np.asarray(cdf(between)) - u[todo]
        above = reached >= 0
        low[todo], high[todo] = np.where(above, a, between), np.where(above, between, b)
        repeated = side[todo] == np.where(above, 1, -1)
        left[todo] = np.where(above, np.where(repeated, f / 2, f), reached)
        right[todo] = np.where(above, reached, np.where(repeated, g / 2, g))
        side[todo] = np.where(above, 1, -1)
        exact = np.abs(reached) <= RELATIVE * u[todo]
        high[todo[exact]] = low[todo[exact]] = between[exact]
    return high


def _between(low: np.ndarray, high: np.ndarray, share: np.ndarray) -> np.ndarray:
    """Interpolates between `low` and `high`, on a logarithmic scale if they are far apart."""
    with np.errstate(over="ignore", invalid="ignore"):
        first, last = np.maximum(low, LEAST), np.minimum(high, MOST)
        far = np.exp((1 - share) * np.log(first) + share * np.log(last))
        return np.where(last > 4 * first, far, low + share * (high - low))


@dataclass(frozen=True, eq=False, repr=False)
class Samples(Prior):
    """Observed hazards: a prior with a point mass at each hazard.

    Args:
        rates: The hazards per step, finite and at least 0 [n]. They are rates, not times: episodes with a mean length
            of 20 steps have a hazard of 1/20.
        weights: The probabilities of the hazards, which sum to 1 [n]. Equal by default.

    Raises:
        InputError: If a rate is negative or not finite, or the weights are not n probabilities.
    """

    rates: Sequence[float] | np.ndarray
    weights: Sequence[float] | np.ndarray = ()

    def __post_init__(self) -> None:
        rates = np.atleast_1d(numbers("observed hazards", self.rates))
        if rates.ndim != 1 or rates.size == 0 or not np.all((rates >= 0) & np.isfinite(rates)):
            raise InputError("observed hazards must be one or more finite numbers of at least 0")
        masses = _probabilities(self.weights, len(rates), "observed hazards")
        order = np.argsort(rates)
        order = order[masses[order] > 0]
        object.__setattr__(self, "rates", rates[order])
        object.__setattr__(self, "weights", masses[order])

    def __repr__(self) -> str:
        if len(self.rates) <= 4:
            return f"Samples({', '.join(f'{rate:g}' for rate in self.rates)})"
        return f"Samples({len(self.rates)} hazards with mean {self.mean:.4g})"

    @property
    def atoms(self) -> Atoms:
        return Atoms(np.asarray(self.rates), np.asarray(self.weights))

    @property
    def support(self) -> tuple[float, float]:
        return float(self.rates[0]), float(self.rates[-1])

    @property
    def mean(self) -> float:
        return float(self.atoms.rates @ self.atoms.masses)

    def density(self, rate: ArrayLike) -> Values:
        return np.zeros(rates(rate).shape)[()]

    def cdf(self, rate: ArrayLike) -> Values:
        cumulative = np.concatenate([[0.0], np.cumsum(self.weights)])
        return cumulative[np.searchsorted(self.rates, rates(rate), side="right")]

    def quantile(self, probability: ArrayLike) -> Values:
        cumulative = np.cumsum(self.weights)
        found = np.searchsorted(cumulative, probabilities(probability) - 1e-15)  # tolerates rounding
        return self.atoms.rates[np.minimum(found, len(cumulative) - 1)]

    def _log_terms(self, t: np.ndarray) -> Float[np.ndarray, "n t"]:
        return np.log(self.weights)[:, None] - np.multiply.outer(self.atoms.rates, t)

    def _chunks(self, t: ArrayLike) -> list[np.ndarray]:
        flat = times(t).reshape(-1)
        return np.array_split(flat, max(1, len(self.rates) * flat.size // CHUNK))

    def log_survival(self, t: ArrayLike) -> Values:
        parts = [special.logsumexp(self._log_terms(part), axis=0) for part in self._chunks(t)]
        return np.concatenate(parts).reshape(np.shape(t))[()]

    def hazard_rate(self, t: ArrayLike) -> Values:
        parts = [_posterior_mean(self._log_terms(part), self.atoms.rates[:, None]) for part in self._chunks(t)]
        return np.concatenate(parts).reshape(np.shape(t))[()]


@dataclass(frozen=True, repr=False)
class Mixture(Prior):
    """A mixture of priors: each prior applies with a probability equal to its weight.

    Args:
        components: The priors, one or more.
        weights: The probabilities of the priors, which sum to 1. Equal by default.

    Raises:
        InputError: If there are no priors, or the weights are not one probability per prior.
    """

    components: Sequence[Prior]
    weights: Sequence[float] | np.ndarray = ()

    def __post_init__(self) -> None:
        given = self.components
        if not isinstance(given, Sequence) or len(given) == 0 or not all(isinstance(one, Prior) for one in given):
            raise InputError(f"a mixture needs a list of one or more priors, got {shown(given)}")
        weights = _probabilities(self.weights, len(given), "a mixture")
        held = [(c, float(w)) for c, w in zip(given, weights, strict=True) if w > 0]
        object.__setattr__(self, "components", tuple(c for c, _ in held))
        object.__setattr__(self, "weights", tuple(w for _, w in held))

    def __repr__(self) -> str:
        return " + ".join(f"{w:.4g} {c}" for w, c in zip(self.weights, self.components, strict=True))

    def _average(self, of_components: list[Values]) -> Values:
        return np.tensordot(np.asarray(self.weights), np.stack(of_components), 1)[()]

    @property
    def atoms(self) -> Atoms:
        parts = [c.atoms for c in self.components]
        masses = [w * part.masses for w, part in zip(self.weights, parts, strict=True)]
        return Atoms(np.concatenate([part.rates for part in parts]), np.concatenate(masses))

    @property
    def support(self) -> tuple[float, float]:
        return min(c.support[0] for c in self.components), max(c.support[1] for c in self.components)

    @property
    def mean(self) -> float:
        return float(sum(w * c.mean for w, c in zip(self.weights, self.components, strict=True)))

    @property
    def longest_time(self) -> float:
        return min(c.longest_time for c in self.components)

    def density(self, rate: ArrayLike) -> Values:
        return self._average([c.density(rate) for c in self.components])

    def cdf(self, rate: ArrayLike) -> Values:
        return self._average([c.cdf(rate) for c in self.components])

    def quantile(self, probability: ArrayLike) -> Values:
        u = probabilities(probability)
        flat = u.reshape(-1)
        each = np.stack([np.asarray(c.quantile(flat)) for c in self.components])
        low, high = each.min(axis=0), each.max(axis=0)
        for rate in np.unique(self.atoms.rates):  # the cdf jumps only at atoms
            reached = self.cdf(rate)
            mass = self.atoms.masses[self.atoms.rates == rate].sum()
            low = np.where((flat > reached - mass) & (low < rate), np.minimum(rate, high), low)
            high = np.where((flat <= reached) & (high > rate), np.maximum(rate, low), high)
        found = _crossings(self.cdf, flat, low, high).reshape(u.shape)
        # At u = 0 and u = 1 the quantile is an end of the support. Because of rounding, the search could stop earlier.
        return np.where(u == 1, self.support[1], np.where(u == 0, self.support[0], found))[()]

    def _draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " {size}"]:
        counts = rng.multinomial(size, self.weights)
        drawn = [c.sample(rng, int(count)) for c, count in zip(self.components, counts, strict=True)]
        return rng.permutation(np.concatenate(drawn))

    def _log_terms(self, t: ArrayLike) -> np.ndarray:
        log_weights = np.log(self.weights)
        return np.stack([w + c.log_survival(t) for w, c in zip(log_weights, self.components, strict=True)])

    def log_survival(self, t: ArrayLike) -> Values:
        return special.logsumexp(self._log_terms(t), axis=0)

    def _weighting_at_zero(self) -> float:
        return float(self._average([c.weighting(0.0) for c in self.components]))

    def hazard_rate(self, t: ArrayLike) -> Values:
        rates = np.stack([np.asarray(c.hazard_rate(t)) for c in self.components])
        return _posterior_mean(self._log_terms(t), rates)
