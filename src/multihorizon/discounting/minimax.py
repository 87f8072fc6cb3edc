"""The minimax grid: discount factors and non-negative weights that minimise the largest error."""

from collections.abc import Callable
from itertools import islice

import numpy as np
from jaxtyping import Float

from multihorizon.discounting.descent import Heads
from multihorizon.discounting.discount import Discount
from multihorizon.discounting.fitting import least_error
from multihorizon.discounting.hazard import Prior
from multihorizon.discounting.horizons import MOST_HEADS, Horizons
from multihorizon.discounting.search import NO_WEIGHT, fill_gaps, search, settled
from multihorizon.discounting.sources import as_discount, sampled
from multihorizon.errors import at_least, inside


def minimax_grid(
    source: Discount | Prior | Callable[[float], float], heads: int, *, gamma_max: float = 0.99, t_max: int = 1000
) -> Horizons:
    """Finds the discount factors γ ≤ `gamma_max` and weights ≥ 0 that minimise the largest error.

    The largest error is the maximum of |Σ wᵢ γᵢ^t - d(t)| over the steps t = 0, 1, ..., t_max.

    Because γ is bounded, a few heads often reach the smallest error that any number of heads can reach. The search
    stops when the error is within 1e-5 · d(0) or 0.05% of this smallest error. The remaining heads have weight 0: an
    agent learns these heads but does not act by them. Their discount factors fill the widest gaps between 0 and
    `gamma_max`. The weights need not sum to d(0).

    Args:
        source: The discount to approximate: a `Discount`, a `Prior` or a Python function of t.
        heads: The number of discount factors.
        gamma_max: The upper bound on γ, in (0, 1).
        t_max: The last step at which the error is measured, at least 1.

    Returns:
        The horizons, in order of increasing γ [H].

    Raises:
        InputError: If the source has another type, the discount rises or is not positive at 0, or another argument
            lies outside its range.
    """
    discount = as_discount(source, "minimax_grid")
    heads = at_least("heads", heads, 1, MOST_HEADS)
    cap = inside("gamma_max", gamma_max, 0, 1)
    return searched(sampled(discount, at_least("t_max", t_max, 1)), heads, cap)


def searched(target: Float[np.ndarray, " every_step"], heads: int, cap: float) -> Horizons:
    """Returns the best horizons for a discount given by its values at every step."""
    wanted = target[None] / target[0]
    floors = np.array([least_error(wanted[0], cap)])
    *_, best = islice(search(wanted, cap, floors), heads)
    return as_horizons(settled(best, wanted, cap, floors), heads, cap, target[0])


def as_horizons(best: Heads, heads: int, cap: float, scale: float) -> Horizons:
    """Multiplies the weights by `scale`, and moves heads without weight into the widest gaps between the others."""
    gammas, which = np.unique(best.gammas(cap), return_inverse=True)
    weights = np.bincount(which, best.weights[0])
    used = weights > NO_WEIGHT
    filled = fill_gaps(gammas[used], heads, cap)
    every_weight = np.zeros(heads)
    every_weight[np.searchsorted(filled, gammas[used])] = scale * weights[used]
    return Horizons(filled, every_weight)
