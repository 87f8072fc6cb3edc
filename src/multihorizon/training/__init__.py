"""Running agents in worlds: loops, evaluation and records. The only part with side effects."""
