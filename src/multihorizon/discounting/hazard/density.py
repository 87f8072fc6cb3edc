"""A prior given by any density function p(λ), which is integrated numerically."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.interpolate import PchipInterpolator

from multihorizon.discounting.hazard.mixed import Samples
from multihorizon.discounting.hazard.prior import Prior, Values, probabilities, rates
from multihorizon.errors import InputError

SMALLEST, LARGEST = 1e-60, 1e12  # hazards outside this range behave as 0 and ∞ over any practical number of steps
ORDER = 16
MOST_PANELS = 20_000
TOLERANCE = 1e-10  # error of the integral over one panel; the whole integral is 1
X, W = np.polynomial.legendre.leggauss(ORDER)


class Panels(NamedTuple):
    """Intervals of λ that together cover the support, each with a Gauss-Legendre rule for p."""

    edges: np.ndarray  # [n + 1]
    nodes: np.ndarray  # [n, ORDER]
    masses: np.ndarray  # [n, ORDER]


def _elementwise(function: Callable[[float], float], at: np.ndarray) -> np.ndarray:
    values = np.array([float(function(float(x))) for x in at.reshape(-1)]).reshape(at.shape)
    if not np.all(np.isfinite(values) & (values >= 0)):
        bad = at[~(np.isfinite(values) & (values >= 0))].flat[0]
        raise InputError(f"a density must be finite and at least 0 everywhere; at λ = {bad:g} it is not")
    return values


def _rule(function: Callable[[float], float], low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = (high - low)[:, None] / 2
    nodes = low[:, None] + half * (1 + X)
    return nodes, _elementwise(function, nodes) * half * W


def _integrate(function: Callable[[float], float], support: tuple[float, float]) -> Panels:
    """Integrates p adaptively: halves each panel until its halves agree with it.

    The first panels are evenly spaced in ln λ, four per decade, so that a prior of any scale is found and e^{-λt} is
    smooth on each of them for any t. In a finite support eighty more, evenly spaced in λ, find narrow peaks.
    """
    low, high = support
    bottom, top = max(low, SMALLEST), min(high, LARGEST)
    edges = np.geomspace(bottom, top, int(4 * np.log10(top / bottom)) + 9)
    if np.isfinite(high):
        edges = np.union1d(edges, np.linspace(bottom, high, 81))
    lows, highs = edges[:-1], edges[1:]
    nodes, masses = _rule(function, lows, highs)
    done: list[tuple[np.ndarray, ...]] = []
    count = len(lows)
    while len(lows):
        middle = (lows + highs) / 2
        left, right = _rule(function, lows, middle), _rule(function, middle, highs)
        change = np.abs(left[1].sum(1) + right[1].sum(1) - masses.sum(1))
        narrow = (highs - lows) <= 1e-14 * highs  # the density jumps here
        good = (change <= TOLERANCE) | narrow
        done.append((lows[good], highs[good], nodes[good], masses[good]))
        bad = ~good
        count += int(bad.sum())
        if count > MOST_PANELS:
            raise InputError("the density is too rough to integrate; give its support, or use hazard.Samples")
        nodes = np.concatenate([left[0][bad], right[0][bad]])
        masses = np.concatenate([left[1][bad], right[1][bad]])
        lows, highs = np.concatenate([lows[bad], middle[bad]]), np.concatenate([middle[bad], highs[bad]])
    lows, highs, nodes, masses = (np.concatenate(column) for column in zip(*done, strict=True))
    order = np.argsort(lows)
    return Panels(np.append(lows[order], highs.max()), nodes[order], masses[order])


@dataclass(frozen=True, eq=False, repr=False)
class Density(Prior):
    """A prior with any density p(λ).

    Args:
        function: The density, a function of one hazard λ that integrates to 1 over the support.
        support: The smallest and the largest hazard. Give it where p is narrow, for example a peak whose width is a
            thousandth of its location.

    Raises:
        InputError: If the density is negative or not finite somewhere, does not integrate to 1, or is too rough to
            integrate, or if the support is not an interval in [0, ∞].
    """

    function: Callable[[float], float]
    support: tuple[float, float] = (0.0, np.inf)

    def __post_init__(self) -> None:
        low, high = self.support
        if not 0 <= low < high:
            raise InputError(f"support must be (low, high) with 0 ≤ low < high, got ({low:g}, {high:g})")
        total = self.panels.masses.sum()
        if abs(total - 1) > 1e-4:
            raise InputError(
                f"the density must integrate to 1 over ({low:g}, {high:g}), but integrates to {total:.6g}; "
                "divide it by that number, or give the support on which it is positive"
            )

    def __repr__(self) -> str:
        return f"Density({getattr(self.function, '__name__', 'function')})"

    @cached_property
    def panels(self) -> Panels:
        """The intervals and nodes of the numerical integration."""
        return _integrate(self.function, self.support)

    @cached_property
    def nodes(self) -> Samples:
        """The quadrature nodes as a prior of point masses: E[f(λ)] is the mean of f over them."""
        masses = self.panels.masses.reshape(-1)
        return Samples(self.panels.nodes.reshape(-1), masses / masses.sum())

    @cached_property
    def _cdf_and_quantile(self) -> tuple[PchipInterpolator, PchipInterpolator]:
        """Interpolants of the cdf and its inverse, exact at the ends and nodes of the panels."""
        legendre = np.polynomial.legendre.Legendre
        fit = np.linalg.inv(np.polynomial.legendre.legvander(X, ORDER - 1))  # values at nodes -> coefficients
        inside = np.stack([legendre(column).integ(lbnd=-1)(X) for column in fit.T], axis=1) / W  # [node, node]
        before = np.concatenate([[0.0], np.cumsum(self.panels.masses.sum(1))])
        at_nodes = before[:-1, None] + self.panels.masses @ inside.T
        rates_ = np.concatenate([self.panels.edges[:-1, None], self.panels.nodes], axis=1).reshape(-1)
        reached = np.concatenate([before[:-1, None], at_nodes], axis=1).reshape(-1)
        rates_, reached = np.append(rates_, self.panels.edges[-1]), np.append(reached, before[-1]) / before[-1]
        reached = np.maximum.accumulate(np.clip(reached, 0, 1))
        rises = np.concatenate([[True], np.diff(reached) > 1e-16])
        rates_, reached = rates_[rises], reached[rises]
        return PchipInterpolator(rates_, reached), PchipInterpolator(reached, rates_)

    @property
    def mean(self) -> float:
        return self.nodes.mean

    def density(self, rate: ArrayLike) -> Values:
        rate = rates(rate)
        inside = (rate >= self.support[0]) & (rate <= self.support[1])
        values = np.zeros(rate.shape)
        values[inside] = _elementwise(self.function, rate[inside])
        return values[()]

    def cdf(self, rate: ArrayLike) -> Values:
        cdf, _ = self._cdf_and_quantile
        return cdf(np.clip(rates(rate), cdf.x[0], cdf.x[-1]))[()]

    def quantile(self, probability: ArrayLike) -> Values:
        _, quantile = self._cdf_and_quantile
        return quantile(np.clip(probabilities(probability), quantile.x[0], quantile.x[-1]))[()]

    def log_survival(self, t: ArrayLike) -> Values:
        return self.nodes.log_survival(t)

    def hazard_rate(self, t: ArrayLike) -> Values:
        return self.nodes.hazard_rate(t)
