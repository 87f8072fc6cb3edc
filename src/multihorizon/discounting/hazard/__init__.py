"""Hazard priors: what one believes about the risk λ of an episode, drawn once and constant until its end.

Each prior is a row of the paper's Table 1, extended: density p(λ), sampling, mean, survival
s(t) = E[e^{-λt}], hazard rate -d ln s/dt, and the weighting w(γ) for which s(t) = ∫ w(γ) γ^t dγ.
"""

from multihorizon.discounting.hazard.closed import Dirac, Exponential, Gamma, Uniform
from multihorizon.discounting.hazard.density import Density
from multihorizon.discounting.hazard.mixed import Mixture, Samples
from multihorizon.discounting.hazard.prior import Atoms, Prior

__all__ = ["Atoms", "Density", "Dirac", "Exponential", "Gamma", "Mixture", "Prior", "Samples", "Uniform"]
