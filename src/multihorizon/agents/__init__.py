"""Value-based agents over many horizons. DQN is the special case of one horizon."""
