"""Finite MDPs under hazard and any discount, solved exactly: the ground truth for agents."""

from multihorizon.mdp.consistency import (
    Equilibrium,
    acting_head_values,
    naive,
    naive_by_heads,
    own_head_values,
    precommitted,
    precommitted_by_heads,
    sophisticated,
)
from multihorizon.mdp.learning import q_learning
from multihorizon.mdp.model import HazardousMDP
from multihorizon.mdp.simulation import Estimate, simulate
from multihorizon.mdp.values import Optimum, action_values, optimal_control
from multihorizon.mdp.weighted_heads import Behaviour

__all__ = [
    "Behaviour",
    "Equilibrium",
    "Estimate",
    "HazardousMDP",
    "Optimum",
    "acting_head_values",
    "action_values",
    "naive",
    "naive_by_heads",
    "optimal_control",
    "own_head_values",
    "precommitted",
    "precommitted_by_heads",
    "q_learning",
    "simulate",
    "sophisticated",
]
