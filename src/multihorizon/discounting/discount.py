"""Discount functions d(t): the present value of a reward of 1 that comes after t steps.

Every discount here is the survival s(t) of a hazard prior, except `deadline` and `from_function`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from multihorizon.discounting.hazard import (
    Dirac,
    Exponential,
    Gamma,
    MittagLeffler,
    Mixture,
    Prior,
    Stable,
    Uniform,
)
from multihorizon.discounting.hazard.prior import Values, check_prior, times
from multihorizon.discounting.hazard.stable import LEAST as LEAST_S
from multihorizon.discounting.hazard.stable import MOST as MOST_S
from multihorizon.errors import InputError, as_function, between, inside, instance, positive, shown, shown_gamma

LATEST = 1e300  # latest possible deadline, in steps


@dataclass(frozen=True)
class Discount:
    """A discount function d(t). Call it with a time or an array of times, in steps.

    Make one with `hyperbolic`, `exponential`, `from_prior`, `from_function` or another function of this module.

    Attributes:
        label: A short name, such as "hyperbolic(k=0.01)".
        function: Computes d for an array of times.
        prior: The hazard prior whose survival is d, or None.
        slowest_gamma: The base of an exponential bound: |d(t)| ≤ bound · slowest_gamma^t.
        bound: The factor of this exponential bound.
    """

    label: str
    function: Callable[[np.ndarray], Values]
    prior: Prior | None = None
    slowest_gamma: float = 1.0
    bound: float = 1.0

    def __call__(self, t: ArrayLike) -> Values:
        """Returns d(t). The time t, or each time in an array t, is in steps, and must be finite and at least 0."""
        return self.function(times(t))

    def log(self, t: ArrayLike) -> Values:
        """Returns ln d(t). If the discount has a prior, ln d(t) is finite even where d(t) underflows.

        Args:
            t: A time or an array of times in steps, finite and at least 0.
        """
        if self.prior is not None:
            return self.prior.log_survival(t)
        with np.errstate(divide="ignore"):
            return np.log(self(t))

    def __repr__(self) -> str:
        return self.label


def from_prior(prior: Prior, label: str | None = None) -> Discount:
    """Returns the discount that a hazard prior implies: its survival s(t) (equations 2 and 6).

    Args:
        prior: The belief about the hazard per step.
        label: The name of the discount. By default it names the prior.
    """
    slowest = math.exp(-check_prior(prior, "prior").support[0])
    _check_label(label)
    return Discount(label or f"survival under {prior}", prior.survival, prior, slowest)


def from_function(function: Callable[[float], float], label: str | None = None) -> Discount:
    """Returns a discount computed by a Python function.

    The discount has no prior, so `paper_grid` and `gauss_grid` reject it; use `minimax_grid`.

    Args:
        function: A function of one time t in steps, with 0 ≤ d(t) ≤ d(0). It is called with one number at a time.
        label: The name of the discount. By default it is the function's name.

    Raises:
        InputError: If `function` is not callable, or d(0) is not a positive, finite number. The returned discount
            raises this error at times t where d(t) is negative or exceeds d(0).
    """
    as_function("function", function, "one time")
    _check_label(label)

    def at(t: float) -> float:
        try:
            value = function(t)
        except (TypeError, ValueError, ArithmeticError) as problem:
            raise InputError(f"function must return a number, but at t = {t:g} it fails: {problem}") from problem
        try:
            return float(value)
        except (TypeError, ValueError):
            name = type(value).__name__
            raise InputError(f"function must return a number, but at t = {t:g} it returns a {name}") from None

    start = at(0.0)

    def evaluate(t: np.ndarray) -> Values:
        values = np.array([at(float(x)) for x in t.reshape(-1)]).reshape(t.shape)
        wrong = ~((values >= 0) & (values <= start * (1 + 1e-12)))
        if np.any(wrong):
            when, value = t[wrong].flat[0], values[wrong].flat[0]
            raise InputError(
                f"a discount must lie between 0 and d(0) = {shown(start)}, but d({when:g}) = {shown(value)}"
            )
        return values[()]

    if not (start > 0 and math.isfinite(start)):
        raise InputError(f"a discount must start at a positive number, but d(0) = {start:g}")
    return Discount(label or str(getattr(function, "__name__", "function")), evaluate, bound=start)


def _check_label(label: str | None) -> None:
    if label is not None:
        instance("label", label, str, "a text")


def exponential(gamma: float) -> Discount:
    """Returns the exponential discount γ^t, which a known hazard of -ln γ implies (equation 4).

    Args:
        gamma: The discount factor, in [0, 1].
    """
    gamma = between("gamma", gamma, 0, 1)
    return from_prior(Dirac(-math.log(gamma) if gamma > 0 else math.inf), f"exponential(γ={shown_gamma(gamma)})")


def hyperbolic(k: float) -> Discount:
    """Returns the hyperbolic discount 1 / (1 + kt), which an exponential prior of mean k implies (equation 7).

    Args:
        k: How fast the discount falls, positive. d(t) is one half at t = 1/k.
    """
    return from_prior(Exponential(k), f"hyperbolic(k={k:g})")


def generalised_hyperbolic(k: float, a: float) -> Discount:
    """Returns the generalised hyperbolic discount (1 + kt)^{-a}, which a gamma prior implies.

    Args:
        k: The scale of the prior, positive.
        a: The shape of the prior, positive. With a = 1 the discount is hyperbolic.
    """
    return from_prior(Gamma(k, a), f"generalised hyperbolic(k={k:g}, a={a:g})")


def rachlin(k: float, s: float) -> Discount:
    """Returns Rachlin's discount 1 / (1 + k t^s), which a Mittag-Leffler prior implies.

    Args:
        k: How fast the discount falls, positive.
        s: The sensitivity to delay, in [0.01, 0.99] or exactly 1. With s = 1 the discount is hyperbolic.

    Raises:
        InputError: If k or s lies outside its range. With s > 1 the discount is not a mixture of exponentials and has
            no prior.
    """
    s = _sensitivity(s, "1 / (1 + k * t**s)")
    prior = Exponential(k) if s == 1 else MittagLeffler(k, s)
    return from_prior(prior, f"rachlin(k={k:g}, s={s:g})")


def ebert_prelec(k: float, s: float) -> Discount:
    """Returns Ebert and Prelec's discount e^{-(kt)^s}, which a stable prior implies.

    Args:
        k: How fast the discount falls, positive.
        s: The sensitivity to time, in [0.01, 0.99] or exactly 1. With s = 1 the discount is exponential, with
            γ = e^{-k}.

    Raises:
        InputError: If k or s lies outside its range. With s > 1 the discount is not a mixture of exponentials and has
            no prior.
    """
    s = _sensitivity(s, "math.exp(-((k * t) ** s))")
    prior = Dirac(positive("k", k)) if s == 1 else Stable(k, s)
    return from_prior(prior, f"ebert-prelec(k={k:g}, s={s:g})")


def _sensitivity(s: float, formula: str) -> float:
    if between("s", s, 0, math.inf) > 1:
        raise InputError(
            f"s must be at most 1, got {shown(s)}: with s > 1 the discount is not a mixture of exponentials; use "
            f"minimax_grid(discount.from_function(lambda t: {formula}), heads), and check the error of the grid"
        )
    if s != 1 and not LEAST_S <= s <= MOST_S:
        raise InputError(f"s must lie in [{LEAST_S}, {MOST_S}] or be 1, got {shown(s)}")
    return s


def deadline(last: float) -> Discount:
    """Returns the discount that is 1 up to the time `last` and 0 after it.

    This discount is not a mixture of exponentials and has no prior.

    Args:
        last: The last time at which a reward has value, in steps, at least 0.
    """
    last = between("last", last, 0, LATEST)
    # d(t) ≤ e^{1 - t / (last + 1)}. In tasks without an end, the exact solver needs an exponential bound.
    return Discount(
        f"deadline({last:g})", lambda t: np.where(t <= last, 1.0, 0.0)[()], None, math.exp(-1 / (last + 1)), math.e
    )


def quasi_hyperbolic(beta: float, delta: float) -> Discount:
    """Returns the quasi-hyperbolic discount 1, βδ, βδ², ...

    Its prior is a mixture: with probability 1 - β the hazard is infinite, and otherwise it is -ln δ.

    Args:
        beta: The factor on every reward that is not immediate, in (0, 1].
        delta: The discount factor per step, in (0, 1).
    """
    if between("beta", beta, 0, 1) == 0:
        raise InputError("beta must lie in (0, 1], got 0")
    delta = inside("delta", delta, 0, 1)
    prior = Mixture([Dirac(math.inf), Dirac(-math.log(delta))], [1 - beta, beta])
    return from_prior(prior, f"quasi-hyperbolic(β={beta:g}, δ={delta:g})")


def uniform(k: float) -> Discount:
    """Returns the discount (1 - e^{-kt}) / kt, which a uniform prior on [0, k] implies (Table 1).

    Args:
        k: The largest hazard per step, positive.
    """
    return from_prior(Uniform(positive("k", k)), f"uniform prior(k={k:g})")


def none() -> Discount:
    """Returns the constant discount d(t) = 1, which a hazard of 0 implies."""
    return from_prior(Dirac(0.0), "no discount")
