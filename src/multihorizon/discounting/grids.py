"""Grids that integrate over a prior: the paper's Riemann sum and Gauss quadrature."""

import math
from enum import Enum

import numpy as np
from jaxtyping import Float

from multihorizon.discounting.discount import Discount
from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.horizons import MOST_HEADS, Horizons, single
from multihorizon.discounting.sources import as_prior
from multihorizon.errors import InputError, at_least, inside, member, shown_gamma

# The smallest accepted P(γ < gamma_max). With a smaller probability, the grid is nearly a single exponential.
LEAST_BELOW = 0.05


class Form(Enum):
    """The integral over γ that the paper's Riemann sum approximates.

    Attributes:
        POWER: ∫ γ^{kt} dγ (equation 13), as in the paper's agents. A node x of the sum gives the discount factor x^k.
        LAPLACE: ∫ w(γ) γ^t dγ (equation 23). Its integrand is sharply peaked at γ = 1.
    """

    POWER = "∫ γ^{kt} dγ (equation 13)"
    LAPLACE = "∫ w(γ) γ^t dγ (equation 23)"


class Sum(Enum):
    """Whether the Riemann sum evaluates the integrand at the left or the right end of each interval.

    Attributes:
        LOWER: The left end, as in the paper. Each interval begins at a node, and the last interval ends at 1.
        UPPER: The right end. The interval from the largest node to 1 is left out.
    """

    LOWER = "left end"
    UPPER = "right end"


def paper_grid(
    source: Discount | Prior, heads: int, *, gamma_max: float = 0.99, form: Form = Form.POWER, sum_: Sum = Sum.LOWER
) -> Horizons:
    """Makes the paper's grid, a Riemann sum over γ (Appendix C, equations 25 to 27).

    For the exponential prior with mean k, the grid follows the authors' code: xᵢ = 1 - bⁱ for i = 0..n-1 with
    b = exp(ln(1 - γ_max^{1/k}) / n), and γᵢ = xᵢ^k. For other priors, P(γ > γ_max) replaces 1 - γ_max^{1/k}, and γᵢ is
    defined by P(γ < γᵢ) = xᵢ. The largest γ lies below `gamma_max`. A single head has γ = `gamma_max`.

    Args:
        source: The prior to integrate over, or a discount that has a prior. The prior must not have point masses.
        heads: The number of discount factors n.
        gamma_max: The upper bound on γ, in (0, 1).
        form: The integral to approximate.
        sum_: Whether the Riemann sum evaluates the integrand at the left or the right end of each interval.

    Returns:
        The horizons, in order of increasing γ [H].

    Raises:
        InputError: If the source has no prior, the prior has point masses, another argument lies outside its range,
            P(γ > gamma_max) is 0, or P(γ < gamma_max) is below 0.05. In the last case, the largest γ would have more
            than 95% of the weight (with the default `form` and `sum_`). For the exponential prior, P(γ < gamma_max) is
            γ_max^{1/k}.
    """
    prior = as_prior(source, "paper_grid")
    heads = at_least("heads", heads, 1, MOST_HEADS)
    gamma_max = inside("gamma_max", gamma_max, 0, 1)
    member("form", form, Form)
    member("sum_", sum_, Sum)
    if heads == 1:
        return single(gamma_max)
    if prior.atoms.rates.size:
        raise InputError(f"the paper grid needs a prior without point masses, not {prior}; use gauss or minimax")
    beyond = float(prior.cdf(-np.log(gamma_max)))  # P(γ > gamma_max)
    if beyond == 0:
        raise InputError(
            f"the paper grid cannot be used: under {prior}, γ never exceeds gamma_max = {gamma_max:g}; use gauss or "
            "minimax"
        )
    if beyond > 1 - LEAST_BELOW:
        raise InputError(
            f"nearly all the weight of the paper grid would be in the last head: under {prior}, P(γ < {gamma_max:g}) "
            f"is {1 - beyond:.3g}, but it must be at least {LEAST_BELOW:g}; {_remedy(prior)}use gauss or minimax"
        )
    steps = np.arange(heads) * (np.log(beyond) / heads)  # i ln b
    x = -np.expm1(steps)
    rates = np.asarray(prior.quantile(np.exp(steps)))
    gammas = np.exp(-rates)
    weights = np.diff(np.append(x if form is Form.POWER else gammas, 1.0))
    if sum_ is Sum.UPPER:
        weights = np.append(0.0, weights[:-1])
    if form is Form.LAPLACE:
        used = weights > 0
        weights[used] *= _heights(prior, rates[used])
    return Horizons(gammas, weights)


def _heights(prior: Prior, rates: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Returns w(γ) = p(λ) / γ. The argument is λ, because -ln γ could lie outside the support after rounding."""
    gammas = np.exp(-rates)
    heights, held = np.empty(len(rates)), gammas > 0
    with np.errstate(over="ignore"):
        heights[held] = prior.density(rates[held]) / gammas[held]
    if not np.all(held):
        heights[~held] = prior.weighting(0.0)
    wrong = ~np.isfinite(heights)
    if np.any(wrong):
        raise InputError(
            f"under {prior}, w(γ) grows without bound as γ falls to {gammas[wrong][0]:.4g}; use Form.POWER"
        )
    return heights


def _remedy(prior: Prior) -> str:
    """Suggests a gamma_max that is just large enough for the paper grid. Returns "" if there is none."""
    rest = -math.expm1(-float(prior.quantile(1 - LEAST_BELOW)))
    if not 1e-12 < rest < 1:
        return ""
    unit = 10.0 ** (math.floor(math.log10(rest)) - 1)
    return f"use a gamma_max of at least {shown_gamma(1 - math.floor(rest / unit) * unit)}, or "


def gauss_grid(source: Discount | Prior, heads: int, *, gamma_max: float | None = None) -> Horizons:
    """Makes a grid by Gauss-Legendre quadrature over the quantiles λ(u) of the prior: s(t) = ∫₀¹ e^{-λ(u) t} du.

    For the exponential prior, this integral is ∫ γ^{kt} dγ (equation 13). A prior of at most `heads` point masses is
    reproduced exactly. Equal discount factors are merged, so the grid may have fewer than `heads` heads.

    Args:
        source: The prior to integrate over, or a discount that has a prior.
        heads: The number of discount factors.
        gamma_max: The upper bound on γ, in (0, 1). Larger discount factors are replaced by the bound. By default there
            is no bound.

    Returns:
        The horizons, in order of increasing γ [H], with H ≤ `heads`.

    Raises:
        InputError: If the source has no prior, or another argument lies outside its range.
    """
    prior = as_prior(source, "gauss_grid")
    heads = at_least("heads", heads, 1, MOST_HEADS)
    if len(prior.atoms.rates) <= heads and prior.atoms.masses.sum() > 1 - 1e-12:
        gammas, weights = np.exp(-prior.atoms.rates), prior.atoms.masses
    else:
        nodes, widths = np.polynomial.legendre.leggauss(heads)
        gammas, weights = np.exp(-np.asarray(prior.quantile((1 - nodes) / 2))), widths / 2
    if gamma_max is not None:
        gammas = np.minimum(gammas, inside("gamma_max", gamma_max, 0, 1))
    distinct, which = np.unique(gammas, return_inverse=True)
    return Horizons(distinct, np.bincount(which, weights))
