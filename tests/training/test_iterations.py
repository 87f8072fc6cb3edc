"""What the two loops share: keys of evaluation, and training that goes wrong."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from test_host_loop import small, trainer_of

from multihorizon.agents.presets import Adam
from multihorizon.training.iterations import NotFinite, evaluation_keys
from multihorizon.training.run import train


def test_evaluation_draws_nothing_that_training_draws() -> None:
    drawn = {tuple(np.asarray(jax.random.key_data(k)).tolist()) for i in range(50) for k in evaluation_keys(0, 1, i)}
    of_training = {
        tuple(row)
        for n in (2, 3)
        for row in np.asarray(jax.random.key_data(jax.random.split(jax.random.key(0), n))).tolist()
    }
    assert len(drawn) == 50
    assert not drawn & of_training


def test_a_loss_that_is_not_finite_stops_training() -> None:
    with pytest.raises(NotFinite, match=r"not finite at update \d+") as caught:
        train(trainer_of(small("dqn", optimiser=Adam(1e30, 1e-8)), steps=2_000), 0)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(caught.value.parameters))


def test_weights_that_an_iterations_last_update_spoils_are_not_handed_on() -> None:
    """Its loss was finite still."""
    trainer = trainer_of(small(), steps=124)
    programs = trainer.programs
    learn = programs.learn_one

    def spoils(training: Any) -> Any:
        training = learn(training)
        spoilt = jax.tree.map(lambda leaf: leaf * jnp.nan, training.learner.parameters)
        return training._replace(learner=training.learner._replace(parameters=spoilt))

    programs.learn_one = spoils
    with pytest.raises(NotFinite, match="weights are not finite at update 0") as caught:
        train(trainer, 0)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(caught.value.parameters))
