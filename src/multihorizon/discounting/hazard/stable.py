"""Priors of the discounts e^{-(kt)^s} and 1 / (1 + k t^s): the one-sided stable and the Mittag-Leffler distribution.

The survival has a closed form, and the cdf is computed numerically. For both distributions,
λ = scale · (E / B(U))^{1/power}, where E is exponential, U is uniform, and the function B is increasing (Kanter, 1975;
Kozubowski, 2001). This formula gives exact samples. One tail of the distribution is G(y) = ∫₀¹ exp(-y B(u)) du with
y = (λ / scale)^power. As a function of v = logit u, the integrand is analytic and vanishes at both ends, so the
trapezoidal rule converges exponentially.

The logit of G is a smooth function of ln y. Splines of degree 7 interpolate this function, and its inverse for
quantiles. The tests check the cdf to a relative error of 1e-10, and quantiles to 1e-10 / s.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special
from scipy.interpolate import BSpline, make_interp_spline

from multihorizon.discounting.hazard.closed import log1p_product
from multihorizon.discounting.hazard.prior import Prior, Values, probabilities, rates, times
from multihorizon.errors import InputError, between, positive

LEAST, MOST = 0.01, 0.99  # range of s in which the quadrature needs a practical number of nodes
HIGH = 75.0  # largest logit u of the quadrature
STEP = 0.25  # step of the trapezoidal rule, relative to the width over which the integrand changes
GONE = math.log(746.0)  # e^{-x} is 0 in floats if ln x is larger than GONE
UNTOUCHED = -150.0  # e^{-x} is treated as 1 if ln x is smaller than UNTOUCHED
LARGEST_LOGIT = 46.0  # largest logit G in the table; beyond it, ln y is a linear function of logit G
DEGREE = 7  # degree of the splines
SPACING = 0.03  # distance between the points of the table, on the scale of `_bent`
BEND = 10.0  # `_bent` is almost linear for |logit| < BEND and logarithmic for larger logits


class _Table(NamedTuple):
    """Points of logit G as an increasing function of -ln y, and splines through these points."""

    logits: Float[np.ndarray, " points"]
    places: Float[np.ndarray, " points"]  # -ln y
    logit: BSpline
    place: BSpline


def _bent(logit: Values) -> np.ndarray:
    """Compresses large logits, so that the points of the table are nearly evenly spaced."""
    return np.asarray(BEND * np.arcsinh(logit / BEND))


def _straightened(bent: Values) -> np.ndarray:
    return np.asarray(BEND * np.sinh(bent / BEND))


class _Inverted(Prior):
    """Base class of the two priors, with y(λ) = (λ / scale)^power."""

    k: float
    s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("k", self.k))
        try:
            object.__setattr__(self, "s", between("s", self.s, LEAST, MOST))
        except InputError as problem:
            raise InputError(f"{problem}; for s = 1 use {self._limit}") from None

    @property
    @abstractmethod
    def _limit(self) -> str:
        """The prior to use for s = 1, as text for the error message."""

    @property
    @abstractmethod
    def _log_scale(self) -> float: ...

    @property
    @abstractmethod
    def _power(self) -> float:
        """The power in y(λ). G(y) is 1 - cdf(λ) for a positive power, and cdf(λ) for a negative power."""

    @property
    @abstractmethod
    def _steepness(self) -> float:
        """The largest slope of ln B in logit u."""

    @abstractmethod
    def _log_b(self, u: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Returns ln B(u). `rest` is an accurate value of 1 - u."""

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    @property
    def mean(self) -> float:
        return np.inf

    def _weighting_at_zero(self) -> float:
        return np.inf  # the density falls as a power of λ, and e^λ grows faster

    @property
    def _least_logits(self) -> tuple[float, float]:
        """The smallest logit u of the quadrature, and the smallest logit G of the table.

        If the power is positive, G is 1 - cdf. In float64, the largest cdf below 1 is 1 - 2^{-53}, so G is at least
        e^{-37}. If the power is negative, G falls exponentially in y, and the table ends at G = e^{-700}.
        """
        return (-HIGH, -45.0) if self._power > 0 else (-40.0, -700.0)

    @cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """The nodes of the trapezoidal rule as ln B, and the weights of the nodes."""
        step = STEP / self._steepness
        v = np.arange(self._least_logits[0], HIGH, step)
        u, rest = special.expit(v), special.expit(-v)
        return self._log_b(u, rest), step * u * rest

    def _integrals(self, log_y: Float[np.ndarray, " n"]) -> Float[np.ndarray, "3 n"]:
        """Returns G(y), 1 - G(y) and -y G'(y)."""
        log_b, weights = self._nodes
        before = np.append(0.0, np.cumsum(weights))
        after = np.append(np.cumsum(weights[::-1])[::-1], 0.0)
        begin, end = (np.searchsorted(log_b, limit - log_y) for limit in (UNTOUCHED, GONE))
        found = np.empty((3, len(log_y)))
        # e^{-yB} is 1 for the nodes before `first`, and 0 for the nodes from `last` on.
        for i, (first, last) in enumerate(zip(begin, end, strict=True)):
            exponent, weight = np.exp(log_y[i] + log_b[first:last]), weights[first:last]
            gone = np.exp(-exponent)
            found[0, i] = before[first] + (gone * weight).sum()
            found[1, i] = after[last] - (np.expm1(-exponent) * weight).sum()
            found[2, i] = (exponent * gone * weight).sum()
        return found

    @cached_property
    def _table(self) -> _Table:
        least = self._least_logits[1]
        v = _straightened(np.arange(float(_bent(np.float64(least))), float(_bent(np.float64(LARGEST_LOGIT))), SPACING))
        places = self._log_b(special.expit(v), special.expit(-v))  # at y = 1 / B(u), logit G is near logit u
        if self._power < 0:  # B has a minimum b > 0, so logit G is about -b y for large y
            places = places - np.log1p(np.logaddexp(0, -v))
        inner, outer, _ = self._integrals(-places)
        logits = np.log(inner) - np.log(outer)
        bent = _bent(logits)
        return _Table(
            logits, places, make_interp_spline(places, bent, k=DEGREE), make_interp_spline(bent, places, k=DEGREE)
        )

    def _log_y(self, rate: np.ndarray) -> np.ndarray:
        with np.errstate(divide="ignore"):
            return np.asarray(self._power * (np.log(rate) - self._log_scale))

    def density(self, rate: ArrayLike) -> Values:
        rate = rates(rate)
        inside = (rate > 0) & np.isfinite(rate)
        values = np.where(rate == 0, np.inf if self._power > 0 else 0.0, 0.0)
        x = rate[inside]
        values[inside] = abs(self._power) * self._integrals(self._log_y(x))[2] / x
        return values[()]

    def cdf(self, rate: ArrayLike) -> Values:
        table, place = self._table, -self._log_y(rates(rate))
        last = table.places[-1]
        inner = _straightened(table.logit(np.clip(place, table.places[0], last)))
        with np.errstate(invalid="ignore"):
            outer = table.logits[-1] + (place - last) / self._steepness
        logit = np.where(place < table.places[0], -np.inf, np.where(place > last, outer, inner))
        return special.expit(-logit if self._power > 0 else logit)[()]

    def quantile(self, probability: ArrayLike) -> Values:
        u, table = probabilities(probability), self._table
        logit = -special.logit(u) if self._power > 0 else special.logit(u)
        last = table.logits[-1]
        place = table.place(_bent(np.clip(logit, table.logits[0], last)))
        place = place + np.maximum(logit - last, 0.0) * self._steepness
        with np.errstate(over="ignore"):
            found = np.exp(self._log_scale - place / self._power)
        return np.where(u == 0, 0.0, np.where(u == 1, np.inf, found))[()]

    def _draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " {size}"]:
        u, drawn = np.maximum(rng.random(size), 2.0**-54), rng.exponential(size=size)
        with np.errstate(over="ignore"):
            return np.exp(self._log_scale + (np.log(drawn) - self._log_b(u, 1 - u)) / self._power)


@dataclass(frozen=True)
class Stable(_Inverted):
    """The one-sided stable prior, which implies the Ebert-Prelec discount e^{-(kt)^s}.

    Its mean is infinite: the hazard rate s k^s t^{s-1} falls from ∞ at t = 0.

    Args:
        k: The scale, positive. The discount is 1/e at t = 1/k.
        s: The exponent, in [0.01, 0.99]. As s approaches 1, the prior approaches the point mass at k.
    """

    k: float
    s: float

    @property
    def _limit(self) -> str:
        return f"Dirac({self.k:g})"

    @property
    def _log_scale(self) -> float:
        return math.log(self.k)

    @property
    def _power(self) -> float:
        return -self.s / (1 - self.s)

    @property
    def _steepness(self) -> float:
        return 1 / (1 - self.s)

    def _log_b(self, u: np.ndarray, rest: np.ndarray) -> np.ndarray:
        s, angle = self.s, np.pi * u
        top = s * np.log(np.sin(s * angle)) + (1 - s) * np.log(np.sin((1 - s) * angle))
        return (top - np.log(np.sin(np.pi * np.minimum(u, rest)))) / (1 - s)

    def log_survival(self, t: ArrayLike) -> Values:
        with np.errstate(over="ignore"):
            return -(self.k**self.s) * times(t) ** self.s

    def hazard_rate(self, t: ArrayLike) -> Values:
        with np.errstate(divide="ignore"):
            return self.s * self.k**self.s * times(t) ** (self.s - 1)


@dataclass(frozen=True)
class MittagLeffler(_Inverted):
    """The Mittag-Leffler prior, which implies Rachlin's discount 1 / (1 + k t^s).

    The prior is a mixture of stable priors in which k^s is exponentially distributed. Its mean is infinite: the hazard
    rate k s t^{s-1} / (1 + k t^s) falls from ∞ at t = 0.

    Args:
        k: How fast the discount falls, positive. The discount is one half at t = k^{-1/s}.
        s: The exponent, in [0.01, 0.99]. As s approaches 1, the prior approaches the exponential prior with mean k.
    """

    k: float
    s: float

    @property
    def _limit(self) -> str:
        return f"Exponential({self.k:g})"

    @property
    def _log_scale(self) -> float:
        return math.log(self.k) / self.s

    @property
    def _power(self) -> float:
        return 1.0

    @property
    def _steepness(self) -> float:
        return 1 / self.s

    def _log_b(self, u: np.ndarray, rest: np.ndarray) -> np.ndarray:
        angle = np.pi * self.s
        return (np.log(np.sin(angle * u)) - np.log(np.sin(angle * rest))) / self.s

    def log_survival(self, t: ArrayLike) -> Values:
        return -log1p_product(self.k, times(t) ** self.s)

    def hazard_rate(self, t: ArrayLike) -> Values:
        t = times(t)
        with np.errstate(divide="ignore"):
            return self.s * t ** (self.s - 1) / (1 / self.k + t**self.s)
