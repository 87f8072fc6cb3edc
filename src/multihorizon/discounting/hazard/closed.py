"""Priors whose survival has a closed form: the priors of the paper's Table 1, and the gamma prior."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from multihorizon.discounting.hazard.prior import Atoms, Prior, Values, probabilities, rates, times
from multihorizon.errors import InputError, between, positive, shown


def log1p_product(k: float, t: Values) -> Values:
    """Returns ln(1 + kt), even where kt overflows."""
    with np.errstate(over="ignore"):
        product = k * t
    huge = np.isinf(product)
    return np.where(huge, np.log(k) + np.log(t, out=np.zeros(t.shape), where=huge), np.log1p(product))[()]


@dataclass(frozen=True)
class Dirac(Prior):
    """A known hazard k, which implies the exponential discount γ^t with γ = e^{-k} (equations 4 and 5).

    Args:
        k: The hazard per step, at least 0. With k = 0 there is no risk; with k = ∞ no episode survives its first step.
    """

    k: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", between("k, the hazard of a Dirac prior,", self.k, 0, np.inf))

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
        with np.errstate(over="ignore"):
            return -np.multiply(self.k, t, out=np.zeros(t.shape), where=t > 0)[()]  # ∞ · 0 must be 0, because s(0) = 1

    def hazard_rate(self, t: ArrayLike) -> Values:
        return np.full(times(t).shape, float(self.k))[()]


@dataclass(frozen=True)
class Exponential(Prior):
    """The exponential prior p(λ) = e^{-λ/k} / k, which implies the hyperbolic discount 1 / (1 + kt) (equation 7).

    Args:
        k: The mean hazard per step, positive.
    """

    k: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("k", self.k))

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    @property
    def mean(self) -> float:
        return self.k

    def density(self, rate: ArrayLike) -> Values:
        return np.exp(-rates(rate) / self.k) / self.k

    def cdf(self, rate: ArrayLike) -> Values:
        with np.errstate(over="ignore"):
            return -np.expm1(-rates(rate) / self.k)

    def quantile(self, probability: ArrayLike) -> Values:
        with np.errstate(divide="ignore", over="ignore"):  # the quantile at 1 is ∞
            return -self.k * np.log1p(-probabilities(probability))

    def log_survival(self, t: ArrayLike) -> Values:
        return -log1p_product(self.k, times(t))

    def hazard_rate(self, t: ArrayLike) -> Values:
        return 1 / (1 / self.k + times(t))

    def _weighting_at_zero(self) -> float:
        return 1.0 if self.k == 1 else 0.0 if self.k < 1 else np.inf  # w(γ) = γ^{1/k - 1} / k


@dataclass(frozen=True)
class Gamma(Prior):
    """The gamma prior, which implies the generalised hyperbolic discount (1 + kt)^{-a}.

    With a = 1 this is the exponential prior.

    Args:
        k: The scale, positive. The mean hazard is a·k.
        a: The shape, positive.
    """

    k: float
    a: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("k", self.k))
        object.__setattr__(self, "a", positive("a", self.a))

    @property
    def support(self) -> tuple[float, float]:
        return 0.0, np.inf

    @property
    def mean(self) -> float:
        return self.a * self.k

    def density(self, rate: ArrayLike) -> Values:
        with np.errstate(over="ignore"):
            x = rates(rate) / self.k
        finite = np.where(np.isfinite(x), x, 1.0)
        found = np.exp(special.xlogy(self.a - 1, finite) - finite - special.gammaln(self.a)) / self.k
        return np.where(np.isfinite(x), found, 0.0)[()]

    def cdf(self, rate: ArrayLike) -> Values:
        with np.errstate(over="ignore"):
            return special.gammainc(self.a, rates(rate) / self.k)

    def quantile(self, probability: ArrayLike) -> Values:
        with np.errstate(over="ignore"):
            return self.k * special.gammaincinv(self.a, probabilities(probability))

    def log_survival(self, t: ArrayLike) -> Values:
        with np.errstate(over="ignore"):  # ln s is -∞ where s is 0
            return -self.a * log1p_product(self.k, times(t))

    def hazard_rate(self, t: ArrayLike) -> Values:
        return self.a / (1 / self.k + times(t))

    def _weighting_at_zero(self) -> float:
        shape_alone = 1.0 if self.a == 1 else 0.0 if self.a < 1 else np.inf  # limit of (-ln γ)^{a - 1} / Γ(a)
        return shape_alone if self.k == 1 else 0.0 if self.k < 1 else np.inf


@dataclass(frozen=True)
class Uniform(Prior):
    """The uniform prior on [low, k]. With low = 0, as in the paper's Table 1, s(t) = (1 - e^{-kt}) / kt.

    Args:
        k: The largest hazard per step, positive.
        low: The smallest hazard per step, in [0, k).
    """

    k: float
    low: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "k", positive("k", self.k))
        object.__setattr__(self, "low", between("low", self.low, 0, np.inf))
        if self.low >= self.k:
            raise InputError(f"low must lie in [0, k) = [0, {shown(self.k)}), got {shown(self.low)}")

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
        with np.errstate(over="ignore"):
            return np.clip((rates(rate) - self.low) / (self.k - self.low), 0, 1)

    def quantile(self, probability: ArrayLike) -> Values:
        return self.low + (self.k - self.low) * probabilities(probability)

    def log_survival(self, t: ArrayLike) -> Values:
        t, width = times(t), self.k - self.low
        with np.errstate(over="ignore"):
            x, certain = width * t, -self.low * t
        huge = np.isinf(x)
        uncertain = -np.log(width) - np.log(t, out=np.zeros(t.shape), where=huge)
        return (certain + np.where(huge, uncertain, np.log(special.exprel(-np.where(huge, 0.0, x)))))[()]

    def hazard_rate(self, t: ArrayLike) -> Values:
        # For small x = ct, rounding errors dominate 1/t - c/(e^{ct} - 1). For x < 1e-2, the series is exact to 1e-13.
        c = self.k - self.low
        x = np.asarray(c * times(t))
        small = np.minimum(x, 1e-2)
        series = 1 / 2 - small / 12 + small**3 / 720
        safe = np.where(x > 1e-2, x, 1.0)
        closed = 1 / safe - np.exp(-safe) / -np.expm1(-safe)
        return (self.low + c * np.where(x > 1e-2, closed, series))[()]
