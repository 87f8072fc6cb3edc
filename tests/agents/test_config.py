"""Tests that the numbers in an agent's configuration have limits, so that they fit into 32 bits."""

from typing import Any

import jax
import jax.numpy as jnp
import pytest

import multihorizon as mh
from multihorizon.agents.acting import MOST_STEPS
from multihorizon.agents.config import MOST_UPDATE_PERIOD_STEPS
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import MlpTorso
from multihorizon.errors import InputError

LARGEST = {
    "n_steps": MOST_STEPS,
    "batch": MOST_STEPS,
    "replay_capacity": MOST_STEPS,
    "warm_up_steps": MOST_STEPS,
    "target_period_steps": MOST_STEPS,
    "update_period_steps": MOST_UPDATE_PERIOD_STEPS,
    "epsilon.decay_steps": MOST_STEPS,
}


@pytest.mark.parametrize("name", LARGEST)
@pytest.mark.parametrize("times", [1, 2**20])
def test_numbers_above_their_limit_are_rejected(name: str, times: int) -> None:
    too_large: dict[str, Any] = {name: LARGEST[name] * times + 1}
    with pytest.raises(InputError, match=rf"^{name} must be at most {LARGEST[name]:,}, got "):
        mh.agent("dqn").with_settings(**too_large)
    assert mh.agent("dqn").with_settings(**{name: LARGEST[name]})


def test_the_largest_settings_do_not_overflow_on_the_device() -> None:
    agent = mh.agent("dqn", **LARGEST | {"update_period_steps": 1, "n_steps": 1, "batch": 1})
    learner = Learner(agent, 2, (3,), MlpTorso((4,)))
    step = jnp.asarray(MOST_STEPS)
    assert not jax.jit(learner.copies_target_after)(step - 1)
    assert jax.jit(lambda step: agent.epsilon.at(step, agent.warm_up_steps))(step) == 1.0
