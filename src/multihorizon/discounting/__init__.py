"""From a belief about risk to a discount to a weighted set of horizons. Pure mathematics: no word of agents.

hazard prior → discount d(t) → Horizons (γ, weights)
"""

from multihorizon.discounting import discount, hazard
from multihorizon.discounting.discount import Discount
from multihorizon.discounting.horizons import Fit, Form, Horizons, Sum, gauss_grid, paper_grid, single
from multihorizon.discounting.minimax import minimax_grid

__all__ = [
    "Discount",
    "Fit",
    "Form",
    "Horizons",
    "Sum",
    "discount",
    "gauss_grid",
    "hazard",
    "minimax_grid",
    "paper_grid",
    "single",
]
