"""Discount functions d(t): what a reward t steps away is worth now, as a share of itself.

All but a plain function come from a hazard prior: d(t) is the survival s(t) under it.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from multihorizon.discounting.hazard import Dirac, Exponential, Gamma, Mixture, Prior, Uniform
from multihorizon.discounting.hazard.prior import Values, times
from multihorizon.errors import InputError, inside, positive


@dataclass(frozen=True)
class Discount:
    """d(t) as a value to call.

    `prior` is the belief behind it, where there is one. `slowest_gamma` and `bound` say how slowly it may fall:
    |d(t)| ≤ bound · slowest_gamma^t.
    """

    label: str
    function: Callable[[np.ndarray], Values]
    prior: Prior | None = None
    slowest_gamma: float = 1.0
    bound: float = 1.0

    def __call__(self, t: ArrayLike) -> Values:
        return self.function(times(t))

    def log(self, t: ArrayLike) -> Values:
        """ln d(t), which does not underflow where a prior knows it."""
        if self.prior is not None:
            return self.prior.log_survival(t)
        with np.errstate(divide="ignore"):
            return np.log(self(t))

    def __repr__(self) -> str:
        return self.label


def from_prior(prior: Prior, label: str | None = None) -> Discount:
    """The discount that a belief about risk implies: d(t) = s(t)."""
    slowest = math.exp(-prior.support[0])
    return Discount(label or f"survival under {prior}", prior.survival, prior, slowest)


def from_function(function: Callable[[float], float], label: str | None = None) -> Discount:
    """Any Python function of one time, not rising above where it starts: d(0) ≥ d(t) ≥ 0."""
    start = float(function(0.0))

    def evaluate(t: np.ndarray) -> Values:
        values = np.array([float(function(float(x))) for x in t.reshape(-1)]).reshape(t.shape)
        wrong = ~((values >= 0) & (values <= start * (1 + 1e-12)))
        if np.any(wrong):
            at, value = t[wrong].flat[0], values[wrong].flat[0]
            raise InputError(f"a discount must lie between 0 and d(0) = {start:g}, but d({at:g}) = {value:g}")
        return values[()]

    if not (start > 0 and math.isfinite(start)):
        raise InputError(f"a discount must start at a positive number, but d(0) = {start:g}")
    return Discount(label or str(getattr(function, "__name__", "function")), evaluate, bound=start)


def exponential(gamma: float) -> Discount:
    """γ^t: a known risk of 1 - γ a step."""
    if not 0 <= gamma <= 1:
        raise InputError(f"γ must lie in [0, 1], got {gamma:g}")
    return from_prior(Dirac(-math.log(gamma) if gamma > 0 else math.inf), f"exponential(γ={gamma:g})")


def hyperbolic(k: float) -> Discount:
    """1 / (1 + kt): an exponential prior over the risk."""
    return from_prior(Exponential(k), f"hyperbolic(k={k:g})")


def generalised_hyperbolic(k: float, a: float) -> Discount:
    """(1 + kt)^{-a}: a gamma prior over the risk."""
    return from_prior(Gamma(k, a), f"generalised hyperbolic(k={k:g}, a={a:g})")


def quasi_hyperbolic(beta: float, delta: float) -> Discount:
    """1, βδ, βδ², ...: with probability 1 - β nothing comes after now, otherwise a known risk."""
    if not 0 < beta <= 1:
        raise InputError(f"β must lie in (0, 1], got {beta:g}")
    inside("δ", delta, 0, 1)
    prior = Mixture([Dirac(math.inf), Dirac(-math.log(delta))], [1 - beta, beta])
    return from_prior(prior, f"quasi-hyperbolic(β={beta:g}, δ={delta:g})")


def uniform(k: float) -> Discount:
    """(1 - e^{-kt}) / kt: any risk λ in [0, k] alike."""
    return from_prior(Uniform(positive("k", k)), f"uniform prior(k={k:g})")


def none() -> Discount:
    """1: a reward is worth the same whenever it comes."""
    return from_prior(Dirac(0.0), "no discount")
