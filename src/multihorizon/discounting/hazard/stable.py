"""Priors of the discounts e^{-(kt)^s} and 1 / (1 + k t^s): the one-sided stable and the Mittag-Leffler distribution.

Their survival has a closed form; their distribution is computed numerically. In both, λ = scale · (E / B(U))^{1/power},
where E is exponential, U is uniform, and the function B is increasing (Kanter, 1975; Kozubowski, 2001). Samples are
therefore exact, and one tail of the distribution is the integral G(y) = ∫₀¹ exp(-y B(u)) du, where y is
(λ / scale)^power. In v = logit u the integrand is analytic and vanishes at both ends, so the trapezoidal rule converges
exponentially. The tests check the distribution function to 1e-11, and to 1e-14 for s = ½, where it has a closed form.
"""

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike
from scipy import special

from multihorizon.discounting.hazard.prior import Prior, Values, probabilities, rates, times
from multihorizon.errors import InputError, positive

LEAST, MOST = 0.01, 0.99  # the range of s in which the quadrature needs a practical number of nodes
LOW, HIGH = -38.0, 70.0  # range of logit u; it resolves 1 - G(y) down to e^{-70}
STEP = 0.25  # step of the trapezoidal rule, in units of the width over which the integrand changes
CHUNK = 2_000_000  # entries of the [y, nodes] table that are in memory at once
HALVINGS = 64  # bisections of the range of ln λ, to find a quantile


class _Inverted(Prior):
    """Base class of the two priors. For λ = scale · (E / B(U))^{1/power}, the variable y(λ) is (λ / scale)^power."""

    k: float
    s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("k", self.k))
        if not LEAST <= self.s <= MOST:
            raise InputError(f"s must lie in [{LEAST:g}, {MOST:g}], got {self.s:g}; for s = 1 use {self._limit}")
        object.__setattr__(self, "s", float(self.s))

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
        """The power in y(λ). If positive, G(y) is the probability of a hazard above λ; if negative, of one below λ."""

    @property
    @abstractmethod
    def _steepness(self) -> float:
        """The largest slope of ln B in logit u."""

    @abstractmethod
    def _log_b(self, u: np.ndarray, rest: np.ndarray) -> np.ndarray:
        """Returns ln B(u). Takes 1 - u as `rest`, because 1 - u is inaccurate in floats if u is close to 1."""

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    @property
    def mean(self) -> float:
        return np.inf

    def _weighting_at_zero(self) -> float:
        return np.inf  # the density falls as a power of λ, and e^λ grows faster

    @cached_property
    def _nodes(self) -> tuple[np.ndarray, np.ndarray]:
        """The nodes of the trapezoidal rule as ln B, and their weights."""
        step = STEP / self._steepness
        v = np.arange(LOW, HIGH, step)
        u, rest = special.expit(v), special.expit(-v)
        return self._log_b(u, rest), step * u * rest

    def _integrals(self, rate: np.ndarray) -> np.ndarray:
        """Returns G(y), 1 - G(y) and -y G'(y) for the y of each hazard [3, ...]."""
        log_b, weights = self._nodes
        with np.errstate(divide="ignore"):
            log_y = self._power * (np.log(rate.reshape(-1)) - self._log_scale)
        parts: list[np.ndarray] = []
        for some in np.array_split(log_y, max(1, log_y.size * len(weights) // CHUNK)):
            with np.errstate(over="ignore"):
                exponent = np.exp(some[:, None] + log_b)
            gone = np.exp(-exponent)
            slopes = np.multiply(exponent, gone, out=np.zeros_like(gone), where=gone > 0)
            parts.append(np.stack([gone @ weights, -np.expm1(-exponent) @ weights, slopes @ weights]))
        return np.concatenate(parts, axis=1).reshape(3, *rate.shape)

    def density(self, rate: ArrayLike) -> Values:
        rate = rates(rate)
        inside = (rate > 0) & np.isfinite(rate)
        x = np.where(inside, rate, 1.0)
        at_zero = np.inf if self._power > 0 else 0.0
        inner = abs(self._power) * self._integrals(x)[2] / x
        return np.where(inside, inner, np.where(rate == 0, at_zero, 0.0))[()]

    def cdf(self, rate: ArrayLike) -> Values:
        above, below, _ = self._integrals(rates(rate))
        smaller, larger = (below, above) if self._power > 0 else (above, below)
        return np.where(smaller < 0.5, smaller, 1 - larger)[()]

    def quantile(self, probability: ArrayLike) -> Values:
        u = probabilities(probability)
        low, high = np.full(u.shape, -745.0), np.full(u.shape, 709.0)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            enough = np.asarray(self.cdf(np.exp(middle))) >= u
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        beyond = (high == 709.0) | (u == 1)  # larger than any float
        return np.where(u == 0, 0.0, np.where(beyond, np.inf, np.exp(high)))[()]

    def sample(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " {size}"]:
        u, drawn = np.maximum(rng.random(size), 2.0**-54), rng.exponential(size=size)
        with np.errstate(over="ignore"):
            return np.exp(self._log_scale + (np.log(drawn) - self._log_b(u, 1 - u)) / self._power)


@dataclass(frozen=True)
class Stable(_Inverted):
    """The one-sided stable prior, which implies the Ebert-Prelec discount e^{-(kt)^s}, a Weibull survival function.

    Its mean is infinite: the hazard rate s k^s t^{s-1} falls from ∞ at t = 0.

    Args:
        k: The scale, positive. The discount is 1/e at t = 1/k.
        s: The exponent, in [0.01, 0.99]. As it nears 1 the prior nears the point mass at k.

    Raises:
        InputError: If k is not a positive number or s lies outside its range.
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
        return -((self.k * times(t)) ** self.s)

    def hazard_rate(self, t: ArrayLike) -> Values:
        with np.errstate(divide="ignore"):
            return self.s * self.k * (self.k * times(t)) ** (self.s - 1)


@dataclass(frozen=True)
class MittagLeffler(_Inverted):
    """The Mittag-Leffler prior, which implies Rachlin's discount 1 / (1 + k t^s).

    It is the mixture of stable priors whose k^s has an exponential distribution. Its mean is infinite: the hazard
    rate k s t^{s-1} / (1 + k t^s) falls from ∞ at t = 0.

    Args:
        k: How fast the discount falls, positive. The discount is one half at t = k^{-1/s}.
        s: The exponent, in [0.01, 0.99]. As it nears 1 the prior nears the exponential prior with mean k.

    Raises:
        InputError: If k is not a positive number or s lies outside its range.
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
        return -np.log1p(self.k * times(t) ** self.s)

    def hazard_rate(self, t: ArrayLike) -> Values:
        t = times(t)
        with np.errstate(divide="ignore"):
            return self.k * self.s * t ** (self.s - 1) / (1 + self.k * t**self.s)
