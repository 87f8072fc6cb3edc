"""Keys of evaluation."""

import jax
import numpy as np

from multihorizon.training.iterations import evaluation_keys


def test_evaluation_draws_nothing_that_training_draws() -> None:
    drawn = {tuple(np.asarray(jax.random.key_data(k)).tolist()) for i in range(50) for k in evaluation_keys(0, 1, i)}
    of_training = {
        tuple(row)
        for n in (2, 3)
        for row in np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), n))).tolist()
    }
    assert len(drawn) == 50
    assert not drawn & of_training
