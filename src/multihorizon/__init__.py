"""Reinforcement learning in which time preference is a choice.

A belief about risk gives a discount; a discount is a weighted set of horizons; one network with a head
per horizon can act by any of them. Import what you need from the subpackages: nothing heavy is loaded here.
"""

__version__ = "0.1.0"
