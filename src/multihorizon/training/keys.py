"""The random keys of a run. A seed's keys do not depend on the other seeds of the run."""

from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Int, Key

TRAINING, EVALUATION = range(2)  # phases of a run; each phase has its own environment seeds


class Keys(NamedTuple):
    """The random keys of one seed.

    `network` and `resets` are used once. All other keys are used repeatedly. Each use folds in the number of the step,
    update or iteration.
    """

    network: Key[Array, ""]
    resets: Key[Array, ""]
    environments: Key[Array, ""]  # one use per step
    acting: Key[Array, ""]  # one use per step
    learning: Key[Array, ""]  # one use per update
    evaluation: Key[Array, ""]  # one use per iteration


def make_keys(seed: Int[Array, ""]) -> Keys:
    """Returns the keys of one seed."""
    return Keys(*jax.random.split(jax.random.key(seed), len(Keys._fields)))


def environment_seeds(seed: int, num_seeds: int, iteration: int, phase: int, num_envs: int) -> Int[np.ndarray, "S N"]:
    """Returns the reset seeds of environments on the host, for one iteration and phase."""
    drawn = [np.random.SeedSequence([seed + s, iteration, phase]).generate_state(num_envs) for s in range(num_seeds)]
    return np.stack(drawn).astype(np.int64) % 2**31
