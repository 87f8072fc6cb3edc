"""Converts the discount or prior that a grid is given to the one of the two that the grid needs."""

from collections.abc import Callable

from multihorizon.discounting.discount import Discount, from_function, from_prior
from multihorizon.discounting.hazard import Prior
from multihorizon.errors import InputError


def as_prior(source: object, grid: str) -> Prior:
    """Returns the prior that `source` is or has; `grid` names the function that needs it."""
    if isinstance(source, Prior):
        return source
    if not isinstance(source, Discount):
        raise InputError(_refusal(source, grid))
    if source.prior is None:
        raise InputError(f"{grid} needs a discount with a prior, and {source} has none; use minimax_grid")
    return source.prior


def as_discount(source: Discount | Prior | Callable[[float], float], grid: str) -> Discount:
    """Returns the discount that `source` is or implies; `grid` names the function that needs it."""
    if isinstance(source, Discount):
        return source
    if isinstance(source, Prior):
        return from_prior(source)
    if not callable(source) or isinstance(source, type):
        raise InputError(_refusal(source, grid))
    return from_function(source)


def _refusal(source: object, grid: str) -> str:
    needs = f"{grid} needs a Discount or a Prior"
    if isinstance(source, type):
        return f"{needs}, got the class {source.__name__}; call it, as in hazard.Exponential(0.01)"
    if callable(source):
        name = getattr(source, "__name__", type(source).__name__)
        return f"{needs}, got the function {name}; wrap it with discount.from_function and use minimax_grid"
    return f"{needs}, such as discount.hyperbolic(0.01) or hazard.Exponential(0.01), got a {type(source).__name__}"
