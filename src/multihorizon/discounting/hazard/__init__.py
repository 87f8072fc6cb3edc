"""Hazard priors: distributions of the hazard λ, which is drawn at the start of an episode and then stays constant.

The priors extend the paper's Table 1. Each prior has a density p(λ), samples, a mean, the survival s(t) = E[e^{-λt}],
the hazard rate -d ln s/dt, and the weighting w(γ) with s(t) = ∫ w(γ) γ^t dγ. The density and the weighting leave out
point masses, which `atoms` lists.
"""

from multihorizon.discounting.hazard.closed import Dirac, Exponential, Gamma, Uniform
from multihorizon.discounting.hazard.density import Density
from multihorizon.discounting.hazard.mixed import Mixture, Samples
from multihorizon.discounting.hazard.prior import Atoms, Prior
from multihorizon.discounting.hazard.stable import MittagLeffler, Stable

__all__ = [
    "Atoms",
    "Density",
    "Dirac",
    "Exponential",
    "Gamma",
    "MittagLeffler",
    "Mixture",
    "Prior",
    "Samples",
    "Stable",
    "Uniform",
]
