"""A prior given by any density function p(λ), which is integrated numerically."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.polynomial.legendre import leggauss, legint, legval, legvander
from numpy.typing import ArrayLike

from multihorizon.discounting.hazard.mixed import Samples
from multihorizon.discounting.hazard.prior import Prior, Values, probabilities, rates, times
from multihorizon.errors import InputError, as_function, numbers, shown

SMALLEST, LARGEST = 1e-60, 1e12  # over practical numbers of steps, hazards outside this range are as good as 0 or ∞
LONGEST = 1e30  # longest time, in steps; up to this time, hazards below SMALLEST have no effect
ORDER = 16
MOST_PANELS = 20_000
TOLERANCE = 1e-10  # largest accepted error of the integral over one panel
PROBES = (-0.8, -0.4, 0.0, 0.3, 0.7)  # points in [-1, 1] at which a panel is compared with its halves
HALVINGS = 50  # number of bisections to find a quantile within a panel
POWER_ERROR = 1e-6  # rounding error of the estimated exponent of a power-law tail
NEAR = (1e-3, 1e-6, 1e-9)  # distances from an end of the support, in units of the distance from the end to the median
X, W = leggauss(ORDER)


class Panels(NamedTuple):
    """Intervals of λ that together cover the support, each with a Gauss-Legendre rule for p."""

    edges: np.ndarray  # [n + 1]
    nodes: np.ndarray  # [n, ORDER]
    masses: np.ndarray  # [n, ORDER]


# Maps the masses of a panel's nodes to the Legendre coefficients of the integrated density [ORDER + 1, ORDER].
_FIT = np.linalg.inv(legvander(X, ORDER - 1))
_INTEGRAL = np.stack([legint(column, lbnd=-1) for column in _FIT.T], axis=1) / W


def _evaluate(function: Callable[[float], float], at: np.ndarray) -> np.ndarray:
    """Returns p at each hazard, and ∞ where the function divides by zero."""

    def one(rate: float) -> float:
        try:
            value = function(rate)
            return float(value)
        except ZeroDivisionError:
            return np.inf
        except (TypeError, ValueError, ArithmeticError) as problem:
            raise InputError(f"the density must return a number, but at λ = {rate:g} it fails: {problem}") from problem

    with np.errstate(all="ignore"):  # ∞ is allowed, and `_require` rejects NaN
        values = np.array([one(float(x)) for x in at.reshape(-1)]).reshape(at.shape)
    _require(values >= 0, at)
    return values


def _require(held: np.ndarray, at: np.ndarray) -> None:
    if not np.all(held):
        where = at[~held].flat[0]
        raise InputError(f"a density must be finite and at least 0 inside its support, but at λ = {where:g} it is not")


def _rule(function: Callable[[float], float], low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    half = (high - low)[:, None] / 2
    nodes = low[:, None] + half * (1 + X)
    # Rounding must not move a node to an end of its panel, where the density may be singular.
    nodes = np.clip(nodes, np.nextafter(low, np.inf)[:, None], np.nextafter(high, -np.inf)[:, None])
    values = _evaluate(function, nodes)
    _require(np.isfinite(values), nodes)
    return nodes, values * half * W


def _cumulative(masses: np.ndarray, x: float) -> np.ndarray:
    """Integrates the interpolant of each panel from the left end, -1, to the point x in [-1, 1]."""
    return masses @ (legval(x, np.eye(ORDER + 1)) @ _INTEGRAL)


def _integrate(function: Callable[[float], float], support: tuple[float, float]) -> Panels:
    """Integrates p adaptively: halves each panel until the halves give the same integral as the whole panel.

    The first panels are evenly spaced in ln λ, at least four per decade, to resolve a prior of any scale. If the
    support is finite, eighty panels evenly spaced in λ are added to find narrow peaks.
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
        for x in PROBES:  # an interpolant of p can be wrong although its integral over the panel is right
            parts = _cumulative(left[1], 2 * x + 1) if x < 0 else left[1].sum(1) + _cumulative(right[1], 2 * x - 1)
            change = np.maximum(change, np.abs(parts - _cumulative(masses, x)))
        narrow = (highs - lows) <= 1e-14 * highs  # the density jumps or is singular here
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
        support: The smallest and the largest hazard. Give the support if p is narrow, such as a peak whose width is a
            thousandth of its location.

    Raises:
        InputError: If the support is not an interval in [0, ∞], or if the density is negative or infinite inside the
            support, does not integrate to 1, or is too rough to integrate. At the ends of the support, the density may
            be ∞.
    """

    function: Callable[[float], float]
    support: tuple[float, float] = (0.0, np.inf)

    def __post_init__(self) -> None:
        as_function("the density", self.function, "one hazard")
        support = numbers("support", self.support)
        if support.shape != (2,) or not 0 <= support[0] < support[1]:
            raise InputError(f"support must be (low, high) with 0 ≤ low < high, got {shown(self.support)}")
        low, high = support.tolist()
        object.__setattr__(self, "support", (low, high))
        total = self.panels.masses.sum()
        if abs(total - 1) > 1e-4:
            raise InputError(
                f"the density must integrate to 1 over ({low:g}, {high:g}), but integrates to {total:.6g}; divide it "
                f"by that number, or give the support on which it is positive{self._unresolved(total)}"
            )

    def _unresolved(self, total: float) -> str:
        """Returns a hint if the density grows without bound towards an end of the support."""
        ends = [end for end in self.support if 0 < end < np.inf and self._is_unbounded(end)]
        if total > 1 or not ends:
            return ""
        return (
            f". The density grows without bound near λ = {ends[-1]:g}, where floats may be too coarse to integrate it. "
            "In that case, draw hazards from the prior and use hazard.Samples"
        )

    def __repr__(self) -> str:
        return f"Density({getattr(self.function, '__name__', 'function')})"

    @cached_property
    def panels(self) -> Panels:
        return _integrate(self.function, self.support)

    @cached_property
    def nodes(self) -> Samples:
        """The quadrature nodes as a prior of point masses."""
        masses = self.panels.masses.reshape(-1)
        return Samples(self.panels.nodes.reshape(-1), masses / masses.sum())

    @cached_property
    def _before(self) -> np.ndarray:
        """The probability that λ lies below each edge of the panels [n + 1]."""
        before = np.concatenate([[0.0], np.cumsum(self.panels.masses.sum(1))])
        return before / before[-1]

    @cached_property
    def _coefficients(self) -> np.ndarray:
        return np.asarray(_INTEGRAL @ self.panels.masses.T / self.panels.masses.sum())

    def _cdf_within(self, panel: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Returns the cdf inside the given panels, as a function of one point in [-1, 1] per panel."""
        low, high = self._before[panel], self._before[panel + 1]
        coefficients = self._coefficients[:, panel]
        return lambda x: np.clip(low + legval(x, coefficients, tensor=False), low, high)

    @cached_property
    def mean(self) -> float:
        return self.nodes.mean + self._mean_beyond()

    def _mean_beyond(self) -> float:
        """Returns the contribution of hazards above `LARGEST` to the mean, if p has a power-law tail."""
        if self.support[1] <= LARGEST:
            return 0.0
        near, far = _evaluate(self.function, np.array([LARGEST / 10, LARGEST]))
        if far == 0:
            return 0.0
        exponent = np.log10(near / far)
        if exponent <= 2 + POWER_ERROR:
            return np.inf
        return float(far * LARGEST**2 / (exponent - 2))

    def _is_unbounded(self, end: float) -> bool:
        """Returns whether the density grows without bound towards a finite end of its support.

        Rounding of λ can make p finite at the end itself. The method therefore evaluates p at three points that
        approach the end. If the limit of p is finite, p changes less from the second to the third point than from the
        first to the second.
        """
        near = end + np.array(NEAR) * (float(self.quantile(0.5)) - end)
        far, middle, last = _evaluate(self.function, near)
        return bool(last - middle > max(0.75 * (middle - far), 1e-6 * middle))

    def density(self, rate: ArrayLike) -> Values:
        rate = rates(rate)
        inside = (rate >= self.support[0]) & (rate <= self.support[1])
        values = np.zeros(rate.shape)
        for end in self.support:
            is_end = inside & (rate == end)
            if np.isfinite(end) and np.any(is_end) and self._is_unbounded(end):
                values[is_end] = np.inf
                inside = inside & ~is_end
        values[inside] = _evaluate(self.function, rate[inside])
        return values[()]

    def cdf(self, rate: ArrayLike) -> Values:
        rate, edges = rates(rate), self.panels.edges
        flat = np.clip(rate.reshape(-1), edges[0], edges[-1])
        panel = np.clip(np.searchsorted(edges, flat, side="right") - 1, 0, len(edges) - 2)
        x = 2 * (flat - edges[panel]) / (edges[panel + 1] - edges[panel]) - 1
        inner = self._cdf_within(panel)(x).reshape(rate.shape)
        return np.where(rate <= edges[0], 0.0, np.where(rate >= edges[-1], 1.0, inner))[()]

    def quantile(self, probability: ArrayLike) -> Values:
        u, edges = probabilities(probability), self.panels.edges
        flat = u.reshape(-1)
        panel = np.clip(np.searchsorted(self._before, flat) - 1, 0, len(edges) - 2)
        cdf = self._cdf_within(panel)
        low, high = np.full(flat.shape, -1.0), np.ones(flat.shape)
        for _ in range(HALVINGS):
            middle = (low + high) / 2
            enough = cdf(middle) >= flat
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        found = edges[panel] + (edges[panel + 1] - edges[panel]) * (1 + high) / 2
        return np.where(u == 0, self.support[0], np.where(u == 1, self.support[1], found.reshape(u.shape)))[()]

    @property
    def longest_time(self) -> float:
        return LONGEST

    def log_survival(self, t: ArrayLike) -> Values:
        return self.nodes.log_survival(t)

    def hazard_rate(self, t: ArrayLike) -> Values:
        return np.where(times(t) == 0, self.mean, self.nodes.hazard_rate(t))[()]
