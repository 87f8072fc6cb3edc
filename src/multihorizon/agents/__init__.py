"""Value-based agents over many horizons. DQN is the case of one horizon."""
