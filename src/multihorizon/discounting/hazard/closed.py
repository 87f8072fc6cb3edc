"""Priors whose survival is known in closed form: the rows of the paper's Table 1, and the gamma prior."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from multihorizon.discounting.hazard.prior import Atoms, Prior, Values, probabilities, rates, times
from multihorizon.errors import InputError, positive


@dataclass(frozen=True)
class Dirac(Prior):
    """A known hazard k: exponential discounting with γ = e^{-k}. k = 0 is no risk; k = ∞ is certain death."""

    k: float

    def __post_init__(self) -> None:
        if not self.k >= 0:
            raise InputError(f"the hazard k of a Dirac prior must be at least 0, got {self.k:g}")

    @property
    def atoms(self) -> Atoms:
        return Atoms(np.array([float(self.k)]), np.ones(1))

    @property
    def support(self) -> tuple[float, float]:
        return self.k, self.k

    @property
    def mean(self) -> float:
        return self.k

    def density(self, rate: ArrayLike) -> Values:
        return np.zeros(rates(rate).shape)[()]

    def cdf(self, rate: ArrayLike) -> Values:
        return np.where(rates(rate) >= self.k, 1.0, 0.0)[()]

    def quantile(self, probability: ArrayLike) -> Values:
        return np.full(probabilities(probability).shape, float(self.k))[()]

    def log_survival(self, t: ArrayLike) -> Values:
        t = times(t)
        return -np.multiply(self.k, t, out=np.zeros(t.shape), where=t > 0)[()]  # ∞ · 0 is 0 here: s(0) = 1

    def hazard_rate(self, t: ArrayLike) -> Values:
        return np.full(times(t).shape, float(self.k))[()]


@dataclass(frozen=True)
class Exponential(Prior):
    """p(λ) = e^{-λ/k} / k, the belief of the hyperbolic discounter: s(t) = 1 / (1 + kt)."""

    k: float

    def __post_init__(self) -> None:
        positive("k", self.k)

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    @property
    def mean(self) -> float:
        return self.k

    def density(self, rate: ArrayLike) -> Values:
        return np.exp(-rates(rate) / self.k) / self.k

    def cdf(self, rate: ArrayLike) -> Values:
        return -np.expm1(-rates(rate) / self.k)

    def quantile(self, probability: ArrayLike) -> Values:
        with np.errstate(divide="ignore"):  # the largest hazard is ∞
            return -self.k * np.log1p(-probabilities(probability))

    def log_survival(self, t: ArrayLike) -> Values:
        return -np.log1p(self.k * times(t))

    def hazard_rate(self, t: ArrayLike) -> Values:
        return self.k / (1 + self.k * times(t))


@dataclass(frozen=True)
class Gamma(Prior):
    """Shape a and scale k: the generalised hyperbola s(t) = (1 + kt)^{-a}. a = 1 is the exponential prior."""

    k: float
    a: float

    def __post_init__(self) -> None:
        positive("k", self.k)
        positive("a", self.a)

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    @property
    def mean(self) -> float:
        return self.a * self.k

    def density(self, rate: ArrayLike) -> Values:
        x = rates(rate) / self.k
        return np.exp(special.xlogy(self.a - 1, x) - x - special.gammaln(self.a)) / self.k

    def cdf(self, rate: ArrayLike) -> Values:
        return special.gammainc(self.a, rates(rate) / self.k)

    def quantile(self, probability: ArrayLike) -> Values:
        return self.k * special.gammaincinv(self.a, probabilities(probability))

    def log_survival(self, t: ArrayLike) -> Values:
        return -self.a * np.log1p(self.k * times(t))

    def hazard_rate(self, t: ArrayLike) -> Values:
        return self.a * self.k / (1 + self.k * times(t))


@dataclass(frozen=True)
class Uniform(Prior):
    """Any hazard in [low, k] alike; with low = 0, as in the paper, s(t) = (1 - e^{-kt}) / kt."""

    k: float
    low: float = 0.0

    def __post_init__(self) -> None:
        positive("k", self.k)
        if not 0 <= self.low < self.k:
            raise InputError(f"low must lie in [0, k) = [0, {self.k:g}), got {self.low:g}")

    @property
    def support(self) -> tuple[float, float]:
        return self.low, self.k

    @property
    def mean(self) -> float:
        return (self.low + self.k) / 2

    def density(self, rate: ArrayLike) -> Values:
        rate = rates(rate)
        return np.where((rate >= self.low) & (rate <= self.k), 1 / (self.k - self.low), 0.0)[()]

    def cdf(self, rate: ArrayLike) -> Values:
        return np.clip((rates(rate) - self.low) / (self.k - self.low), 0, 1)

    def quantile(self, probability: ArrayLike) -> Values:
        return self.low + (self.k - self.low) * probabilities(probability)

    def log_survival(self, t: ArrayLike) -> Values:
        t = times(t)
        return -self.low * t + np.log(special.exprel(-(self.k - self.low) * t))  # exprel(x) = (e^x - 1) / x

    def hazard_rate(self, t: ArrayLike) -> Values:
        # 1/t - c/(e^{ct} - 1) loses every digit as x = ct falls to 0; below 1e-2 its series is exact to 1e-13.
        c = self.k - self.low
        x = np.asarray(c * times(t))
        series = 1 / 2 - x / 12 + x**3 / 720
        safe = np.where(x > 1e-2, x, 1.0)
        closed = 1 / safe - np.exp(-safe) / -np.expm1(-safe)
        return (self.low + c * np.where(x > 1e-2, closed, series))[()]
