"""Finite MDPs under hazard and any discount, solved exactly: the truth that agents are held to."""

from multihorizon.mdp.learning import q_learning
from multihorizon.mdp.model import HazardousMDP
from multihorizon.mdp.simulation import Estimate, simulate
from multihorizon.mdp.values import Optimum, action_values, optimal_control

__all__ = ["Estimate", "HazardousMDP", "Optimum", "action_values", "optimal_control", "q_learning", "simulate"]
