"""Worlds to act in. Import each from its own file: what needs JAX does not burden what does not."""
