"""Training and evaluation of agents in environments."""
