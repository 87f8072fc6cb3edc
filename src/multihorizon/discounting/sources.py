"""Converts the source of a grid to the type that the grid needs: a discount or a prior."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from multihorizon.discounting.discount import Discount, from_function, from_prior
from multihorizon.discounting.hazard import Prior
from multihorizon.errors import InputError, at_least, instance, shown

MOST_STEPS = 10_000_000  # largest number of steps over which discounts can be compared
RISE = 1e-9  # a rise of a discount by less than RISE · d(0) is treated as a rounding error


def as_prior(source: object, grid: str) -> Prior:
    """Converts `source` to a prior. Error messages contain `grid`, the name of the caller."""
    if isinstance(source, Prior):
        return source
    if not isinstance(source, Discount):
        raise InputError(_refusal(source, grid))
    if source.prior is None:
        raise InputError(f"{grid} needs a discount with a prior, but {source} has no prior; use minimax_grid")
    return source.prior


def as_discount(source: Discount | Prior | Callable[[float], float], grid: str) -> Discount:
    """Converts `source` to a discount. Error messages contain `grid`, the name of the caller."""
    if isinstance(source, Discount):
        return source
    if isinstance(source, Prior):
        return from_prior(source)
    if not callable(source) or isinstance(source, type):
        raise InputError(_refusal(source, grid, "a Discount, a Prior or a function of t"))
    return from_function(source)


def check_discount(discount: Discount, name: str = "discount") -> Discount:
    """Returns `discount` if it is a `Discount`. Otherwise raises an error."""
    return instance(name, discount, Discount, "a Discount, such as discount.hyperbolic(0.01)")


def sampled(discount: Discount, t_max: int) -> Float[np.ndarray, " every_step"]:
    """Returns d(0), ..., d(t_max). Raises an error if d(0) is not positive or the discount rises."""
    values = np.asarray(discount(np.arange(at_least("t_max", t_max, 1, MOST_STEPS) + 1)))
    if not (values[0] > 0 and np.all(np.isfinite(values))):
        raise InputError(
            f"a discount must be finite and start at a positive number, but {discount} has d(0) = {values[0]:g}"
        )
    rise = np.flatnonzero(np.diff(values) > RISE * values[0])
    if len(rise):
        t = int(rise[0])
        raise InputError(
            f"a discount must not rise, but {discount} goes from {shown(values[t])} at t = {t} to "
            f"{shown(values[t + 1])} at t = {t + 1}"
        )
    return values


def _refusal(source: object, grid: str, allowed: str = "a Discount or a Prior") -> str:
    needs = f"{grid} needs {allowed}"
    if isinstance(source, type):
        return f"{needs}, got the class {source.__name__}; call it, as in hazard.Exponential(0.01)"
    if callable(source):
        name = getattr(source, "__name__", type(source).__name__)
        return f"{needs}, got the function {name}; wrap it with discount.from_function and use minimax_grid"
    return f"{needs}, such as discount.hyperbolic(0.01) or hazard.Exponential(0.01), got a {type(source).__name__}"
