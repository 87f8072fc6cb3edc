"""Estimates the memory that a run needs, and checks that it is available."""

import jax

from multihorizon.room import bytes_of, check_fits, shown
from multihorizon.training.trainer import Trainer


def needed_bytes(trainer: Trainer) -> tuple[int, int]:
    """Returns the bytes of the replay buffers, and the bytes of all training data together."""
    state = jax.eval_shape(lambda: trainer.init(0))
    gradients_and_updates = 2 * bytes_of(state.learner.parameters)
    return bytes_of(state.replay), bytes_of(state) + gradients_and_updates


def check(*trainers: Trainer) -> str:
    """Describes the total memory of the trainers in one line.

    Raises:
        InputError: If too little memory is available.
    """
    replay, whole = map(sum, zip(*map(needed_bytes, trainers), strict=True))
    check_fits(
        f"this run, with {shown(replay)} of replay,",
        whole,
        "use fewer horizons, fewer seeds or a smaller replay buffer",
    )
    return f"memory: {shown(whole)}, of which {shown(replay)} is replay"
