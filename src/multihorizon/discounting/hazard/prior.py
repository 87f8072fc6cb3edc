"""The interface of all hazard priors, and checks of their arguments."""

from abc import ABC, abstractmethod
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from multihorizon.errors import InputError, at_least, instance, numbers, shown

MOST_SAMPLES = 100_000_000

Values = np.ndarray | np.float64
"""The result of an elementwise function: an array if the argument is an array, otherwise a scalar."""


class Atoms(NamedTuple):
    """The point masses of a prior.

    Attributes:
        rates: The hazards that have a positive probability [n].
        masses: The probability of each hazard [n].
    """

    rates: Float[np.ndarray, " n"]
    masses: Float[np.ndarray, " n"]


NO_ATOMS = Atoms(np.empty(0), np.empty(0))


def times(t: ArrayLike) -> np.ndarray:
    """Returns `t` as an array of floats, checked to be finite and at least 0."""
    array = numbers("a time", t)
    wrong = ~((array >= 0) & np.isfinite(array))
    if np.any(wrong):
        raise InputError(f"a time must be at least 0 and finite, got {shown(array[wrong].flat[0])}")
    return array


def rates(rate: ArrayLike) -> np.ndarray:
    """Returns `rate` as an array of floats, checked to be at least 0."""
    array = numbers("a hazard", rate)
    if not np.all(array >= 0):
        raise InputError(f"a hazard must be at least 0, got {shown(array[~(array >= 0)].flat[0])}")
    return array


def probabilities(u: ArrayLike) -> np.ndarray:
    """Returns `u` as an array of floats, checked to lie in [0, 1]."""
    array = numbers("a probability", u)
    wrong = ~((array >= 0) & (array <= 1))
    if np.any(wrong):
        raise InputError(f"a probability must lie in [0, 1], got {shown(array[wrong].flat[0])}")
    return array


def generator(rng: np.random.Generator) -> np.random.Generator:
    """Returns `rng`, or raises an error if `rng` is not a NumPy generator."""
    return instance("rng", rng, np.random.Generator, "a NumPy generator, such as np.random.default_rng(0)")


class Prior(ABC):
    """A probability distribution over the hazard λ ∈ [0, ∞].

    The hazard is drawn once per episode, and each step is survived with probability e^{-λ}. A prior therefore implies
    a discount: its survival function s(t) (equation 6). `density` and `weighting` describe the continuous part of the
    distribution. `atoms` lists the point masses.

    All methods that take a time, a rate, a probability or a γ are elementwise: they return a scalar for a scalar and
    an array of the same shape for an array.
    """

    @property
    def atoms(self) -> Atoms:
        """The point masses of the prior. Empty for a continuous prior."""
        return NO_ATOMS

    @property
    @abstractmethod
    def support(self) -> tuple[float, float]:
        """The smallest and the largest hazard that can occur."""

    @property
    @abstractmethod
    def mean(self) -> float:
        """The mean hazard E[λ]."""

    @property
    def longest_time(self) -> float:
        """The longest time at which `log_survival` and `hazard_rate` are accurate, in steps."""
        return 1e280

    @abstractmethod
    def density(self, rate: ArrayLike) -> Values:
        """Returns the probability density p(λ) of the continuous part.

        Args:
            rate: Hazards λ, at least 0.
        """

    @abstractmethod
    def cdf(self, rate: ArrayLike) -> Values:
        """Returns the probability that the hazard is at most λ.

        Args:
            rate: Hazards λ, at least 0.
        """

    @abstractmethod
    def quantile(self, probability: ArrayLike) -> Values:
        """Returns the smallest λ in the support for which cdf(λ) ≥ probability.

        Args:
            probability: Probabilities in [0, 1].
        """

    @abstractmethod
    def log_survival(self, t: ArrayLike) -> Values:
        """Returns ln s(t), which stays finite where s(t) underflows.

        Args:
            t: Times in steps, finite and at least 0.
        """

    @abstractmethod
    def hazard_rate(self, t: ArrayLike) -> Values:
        """Returns h(t) = -d ln s/dt (equation 3): the mean hazard among the episodes that survive until t.

        Args:
            t: Times in steps, finite and at least 0.
        """

    def sample(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " {size}"]:
        """Draws hazards from the prior.

        Args:
            rng: The source of randomness.
            size: How many hazards to draw.

        Returns:
            The hazards [size].
        """
        return self._draw(generator(rng), at_least("size", size, 0, MOST_SAMPLES))

    def _draw(self, rng: np.random.Generator, size: int) -> Float[np.ndarray, " {size}"]:
        return np.asarray(self.quantile(rng.random(size)))

    def survival(self, t: ArrayLike) -> Values:
        """Returns s(t) = ∫ p(λ) e^{-λt} dλ (equation 6), the discount that the prior implies.

        Args:
            t: Times in steps, finite and at least 0.
        """
        return np.exp(self.log_survival(t))

    def weighting(self, gamma: ArrayLike) -> Values:
        """Returns w(γ) = p(-ln γ) / γ, the weighting for which s(t) = ∫ w(γ) γ^t dγ (equation 18, Table 1).

        Args:
            gamma: Discount factors in [0, 1]. At γ = 0 the weighting is its limit, which may be ∞.

        Raises:
            InputError: If a discount factor lies outside [0, 1].
        """
        gamma = numbers("gamma", gamma)
        wrong = ~((gamma >= 0) & (gamma <= 1))
        if np.any(wrong):
            raise InputError(f"gamma must lie in [0, 1], got {shown(gamma[wrong].flat[0])}")
        values = np.empty(gamma.shape)
        held = gamma > 0
        with np.errstate(over="ignore"):
            values[held] = np.asarray(self.density(-np.log(gamma[held]))) / gamma[held]
        if not np.all(held):
            values[~held] = self._weighting_at_zero()
        return values[()]

    def _weighting_at_zero(self) -> float:
        """Estimates the limit of p(λ) e^λ as λ grows. Priors with a known limit override this method.

        The method compares two changes of ln p + λ: from λ = 175 to 350, and from λ = 350 to 700. If the second change
        is more than 0.75 times the first change, ln p + λ is assumed to diverge. The limit of p e^λ is then 0 or ∞.
        """
        if np.isfinite(self.support[1]):
            return 0.0
        at = np.array([175.0, 350.0, 700.0])
        with np.errstate(divide="ignore"):
            height = np.log(self.density(at)) + at
        if np.isneginf(height[-1]):
            return 0.0
        first, second = np.diff(height)
        if abs(second) > max(0.75 * abs(first), 1e-9):
            return np.inf if second > 0 else 0.0
        return float(np.exp(height[-1]))


def check_prior(prior: Prior, name: str = "hazard") -> Prior:
    """Returns `prior`, or raises an error if `prior` is not a `Prior`."""
    if not isinstance(prior, Prior):
        raise InputError(f"{name} must be a prior, such as hazard.Exponential(0.01), got {shown(prior)}")
    return prior
