"""All random keys of a run. A seed has the same keys whether it trains alone or beside others."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Int, Key

TRAINING, EVALUATION = range(2)  # phases, whose environments on the host have different seeds


class Keys(NamedTuple):
    """The keys of one seed, split once. `network` and `resets` are used once, to initialise a seed.

    Each use of the others folds in the number of its step, update or iteration.
    """

    network: Key[Array, ""]
    resets: Key[Array, ""]
    environments: Key[Array, ""]  # by step
    acting: Key[Array, ""]  # by step
    learning: Key[Array, ""]  # by update
    evaluation: Key[Array, ""]  # by iteration


def make_keys(seed: Int[Array, ""]) -> Keys:
    """Returns the keys of one seed."""
    return Keys(*jax.random.split(jax.random.key(seed), len(Keys._fields)))


def environment_seeds(seed: int, num_seeds: int, iteration: int, phase: int, num_envs: int) -> Int[np.ndarray, "S N"]:
    """Returns the seeds with which environments on the host are reset, in one iteration and phase."""
    drawn = [np.random.SeedSequence([seed + s, iteration, phase]).generate_state(num_envs) for s in range(num_seeds)]
    return np.stack(drawn).astype(np.int64) % 2**31
