"""Horizons: discount factors γᵢ with weights wᵢ, and the discount Σ wᵢ γᵢ^t that they add up to.

The one value that goes from the mathematics into the agents: a head learns each γ, the weights choose.
Grids that make one: the paper's (`paper_grid`), `single`, `gauss_grid`, and `minimax_grid` in `minimax.py`.
"""

from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from multihorizon.discounting.discount import Discount, exponential
from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.hazard.prior import Values
from multihorizon.errors import InputError, at_least, inside

MOST_HEADS = 10_000


class Fit(NamedTuple):
    """How far a set of horizons is from the discount it stands for, and where."""

    max_error: float
    max_error_at: int


def discount_factors(gammas: ArrayLike) -> Float[np.ndarray, " H"]:
    array = np.array(gammas, dtype=float)
    if array.ndim != 1 or array.size == 0 or not np.all((array >= 0) & (array <= 1)):
        raise InputError("horizons need one or more discount factors γ in [0, 1]")
    return array


@dataclass(frozen=True, eq=False)
class Horizons:
    """Discount factors in [0, 1] and the weight of each: value by d(t) = Σ wᵢ γᵢ^t is Σ wᵢ Q_γᵢ (the paper's Lemma)."""

    gammas: Float[np.ndarray, " H"]
    weights: Float[np.ndarray, " H"]

    def __post_init__(self) -> None:
        gammas = discount_factors(self.gammas)
        weights = np.array(self.weights, dtype=float)
        if weights.shape != gammas.shape or not np.all(np.isfinite(weights)):
            raise InputError(f"horizons need a finite weight for each of their {gammas.size} discount factors")
        gammas.flags.writeable = weights.flags.writeable = False
        object.__setattr__(self, "gammas", gammas)
        object.__setattr__(self, "weights", weights)

    def __len__(self) -> int:
        return len(self.gammas)

    @property
    def effective_horizons(self) -> Float[np.ndarray, " H"]:
        """1 / (1 - γ): how many steps ahead each head looks."""
        with np.errstate(divide="ignore"):
            return 1 / (1 - self.gammas)

    @property
    def discount(self) -> Discount:
        """The discount that these horizons really add up to."""
        if len(self) == 1 and self.weights[0] == 1:
            return exponential(float(self.gammas[0]))
        slowest = float(self.gammas[self.weights != 0].max(initial=0.0))
        return Discount(f"{len(self)} horizons", self._sum, None, slowest, float(np.abs(self.weights).sum()))

    def _sum(self, t: np.ndarray) -> Values:
        flat = t.reshape(-1)
        total = np.zeros(flat.shape)
        for gamma, weight in zip(self.gammas, self.weights, strict=True):  # by head: t may be millions long
            total += weight * np.power(gamma, flat)
        return total.reshape(t.shape)[()]

    def fit(self, target: Discount, t_max: int) -> Fit:
        """The largest |Σ wᵢ γᵢ^t - d(t)| over the steps t = 0, 1, ..., t_max."""
        t = np.arange(at_least("t_max", t_max, 1) + 1)
        error = np.abs(self.discount(t) - target(t))
        worst = int(np.argmax(error))
        return Fit(float(error[worst]), worst)


def single(gamma: float) -> Horizons:
    """One horizon: the exponential discount γ^t."""
    return Horizons(np.array([gamma]), np.ones(1))


class Form(Enum):
    """Which integral over γ the paper's Riemann sum approximates."""

    POWER = "∫ γ^{kt} dγ (equation 13): even weights, each head learns γ^k; the form of the paper's agents"
    LAPLACE = "∫ w(γ) γ^t dγ (equation 23): weights w(γ), sharply peaked at γ = 1"


class Sum(Enum):
    """Which end of each interval the height of its rectangle is taken at."""

    LOWER = "the left end; the last interval closes at 1"
    UPPER = "the right end; what lies beyond the largest node is left out, as its height would be at γ = 1"


def paper_grid(prior: Prior, heads: int, gamma_max: float, form: Form = Form.POWER, sum_: Sum = Sum.LOWER) -> Horizons:
    """The paper's grid (Appendix C), as its authors' code has it.

    Nodes xᵢ = 1 - bⁱ for i = 0..n-1 with b = exp(ln(1 - γ_max^{1/k}) / n): the node n, at γ_max itself, is not
    used, and one head alone is γ_max. For the exponential prior γᵢ = xᵢ^k. In terms of any prior xᵢ is the
    probability of a hazard above -ln γᵢ, so the same grid serves them all.
    """
    heads = at_least("the number of heads", heads, 1, MOST_HEADS)
    gamma_max = inside("the cap on γ", gamma_max, 0, 1)
    if heads == 1:
        return single(gamma_max)
    if prior.atoms.rates.size:
        raise InputError(f"the paper's grid is for priors without point masses, not {prior}; choose gauss or minimax")
    beyond = float(prior.cdf(-np.log(gamma_max)))  # 1 - γ_max^{1/k} for the exponential prior
    if not 0 < beyond < 1:
        raise InputError(
            f"the paper's grid is spaced by the chance of a γ above its cap, which under {prior} and "
            f"{gamma_max:g} is {beyond:g}; choose gauss or minimax"
        )
    b = np.exp(np.log(beyond) / heads)
    x = 1 - b ** np.arange(heads)
    gammas = np.exp(-np.asarray(prior.quantile(b ** np.arange(heads))))
    if form is Form.POWER:
        edges, height = np.append(x, 1.0), np.ones(heads)
    else:
        at_zero = float(prior.weighting(np.finfo(float).tiny))
        if at_zero > 1:
            raise InputError(f"under {prior} w(γ) grows without bound as γ falls to 0; use the other integral form")
        edges, height = np.append(gammas, 1.0), np.zeros(heads)
        height[gammas > 0] = prior.weighting(gammas[gammas > 0])
        height[gammas == 0] = at_zero
    widths = np.diff(edges)
    if sum_ is Sum.UPPER:
        widths = np.append(0.0, widths[:-1])
    return Horizons(gammas, widths * height)


def gauss_grid(prior: Prior, heads: int, gamma_cap: float | None = None) -> Horizons:
    """Gauss-Legendre over the prior's quantiles: s(t) = ∫₀¹ e^{-λ(u) t} du, for the exponential prior ∫ γ^{kt} dγ.

    The quadrature chooses its own largest γ; with a cap, heads beyond it are held at it. A prior of no more point
    masses than heads is its own quadrature. Heads that fall on the same γ become one.
    """
    heads = at_least("the number of heads", heads, 1, MOST_HEADS)
    if len(prior.atoms.rates) <= heads and prior.atoms.masses.sum() > 1 - 1e-12:
        gammas, weights = np.exp(-prior.atoms.rates), prior.atoms.masses
    else:
        nodes, widths = np.polynomial.legendre.leggauss(heads)
        gammas, weights = np.exp(-np.asarray(prior.quantile((1 - nodes) / 2))), widths / 2
    if gamma_cap is not None:
        gammas = np.minimum(gammas, inside("the cap on γ", gamma_cap, 0, 1))
    distinct, which = np.unique(gammas, return_inverse=True)
    return Horizons(distinct, np.bincount(which, weights))
