"""Priors, discounts and horizons: the mathematics of discounting, independent of agents.

hazard prior → discount d(t) → Horizons (γ, weights)
"""

from multihorizon.discounting import discount, hazard
from multihorizon.discounting.decoding import RewardTimeline, decode_rewards
from multihorizon.discounting.design import Design, design_horizons
from multihorizon.discounting.discount import Discount
from multihorizon.discounting.fitting import FitMethod
from multihorizon.discounting.grid_report import GridReport, report_grid
from multihorizon.discounting.grids import Form, Sum, gauss_grid, paper_grid
from multihorizon.discounting.horizons import Fit, Horizons, single
from multihorizon.discounting.minimax import minimax_grid
from multihorizon.discounting.preferences import Offer
from multihorizon.discounting.reweighting import Reweighting, reweight

__all__ = [
    "Design",
    "Discount",
    "Fit",
    "FitMethod",
    "Form",
    "GridReport",
    "Horizons",
    "Offer",
    "RewardTimeline",
    "Reweighting",
    "Sum",
    "decode_rewards",
    "design_horizons",
    "discount",
    "gauss_grid",
    "hazard",
    "minimax_grid",
    "paper_grid",
    "report_grid",
    "reweight",
    "single",
]
