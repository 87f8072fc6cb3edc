"""Priors, discounts and horizons: the mathematics of discounting, independent of agents.

hazard prior → discount d(t) → Horizons (γ, weights)
"""

from multihorizon.discounting import discount, hazard
from multihorizon.discounting.discount import Discount
from multihorizon.discounting.grids import Form, Sum, gauss_grid, paper_grid
from multihorizon.discounting.horizons import Fit, Horizons, single
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
