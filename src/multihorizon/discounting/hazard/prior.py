"""What every hazard prior can answer."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from multihorizon.errors import InputError

Values = np.ndarray | np.float64
"""The result of an elementwise function: an array for an array, a scalar for a scalar."""


class Atoms(NamedTuple):
    """Point masses of a prior: hazards and the probability of each."""

    rates: Float[np.ndarray, " n"]
    masses: Float[np.ndarray, " n"]


NO_ATOMS = Atoms(np.empty(0), np.empty(0))


def times(t: ArrayLike) -> np.ndarray:
    array = np.asarray(t, dtype=float)
    wrong = ~((array >= 0) & np.isfinite(array))
    if np.any(wrong):
        raise InputError(f"a time must be at least 0 and finite, got {array[wrong].flat[0]:g}")
    return array


def rates(rate: ArrayLike) -> np.ndarray:
    array = np.asarray(rate, dtype=float)
    if not np.all(array >= 0):
        raise InputError(f"a hazard must be at least 0, got {array[~(array >= 0)].flat[0]:g}")
    return array


def probabilities(u: ArrayLike) -> np.ndarray:
    array = np.asarray(u, dtype=float)
    if not np.all((array >= 0) & (array <= 1)):
        raise InputError("a probability must lie in [0, 1]")
    return array


class Prior(ABC):
    """A probability distribution of the hazard λ ∈ [0, ∞].

    `density` and `weighting` describe the continuous part alone; point masses are listed in `atoms`.
    """

    @property
    def atoms(self) -> Atoms:
        return NO_ATOMS

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest and the largest hazard that can occur."""

    @property
    @abstractmethod
    def mean(self) -> float: ...

    @abstractmethod
    def density(self, rate: ArrayLike) -> Values:
        """p(λ)."""

    @abstractmethod
    def cdf(self, rate: ArrayLike) -> Values:
        """P(hazard ≤ λ)."""

    @abstractmethod
    def quantile(self, probability: ArrayLike) -> Values:
        """The smallest λ with cdf(λ) ≥ probability."""

    @abstractmethod
    def log_survival(self, t: ArrayLike) -> Values: ...

    @abstractmethod
    def hazard_rate(self, t: ArrayLike) -> Values:
        """h(t) = -d ln s/dt: the mean hazard of those that survived until t."""

    def sample(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " {size}"]:
        return np.asarray(self.quantile(rng.random(size)))

    def survival(self, t: ArrayLike) -> Values:
        """s(t) = ∫ p(λ) e^{-λt} dλ, the discount that this belief implies."""
        return np.exp(self.log_survival(t))

    def weighting(self, gamma: ArrayLike) -> Values:
        """w(γ) = p(-ln γ) / γ: the substitution γ = e^{-λ} in s(t), for 0 < γ ≤ 1."""
        gamma = np.asarray(gamma, dtype=float)
        if not np.all((gamma > 0) & (gamma <= 1)):
            raise InputError("a discount factor γ must lie in (0, 1] to be weighted")
        return np.asarray(self.density(-np.log(gamma)) / gamma)[()]
