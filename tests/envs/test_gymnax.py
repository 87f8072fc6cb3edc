"""Checks the adapter for JAX environments with any version of gymnax's interface."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import pytest

import multihorizon as mh
from multihorizon.envs.gymnax import Gymnax, is_like


class Params(NamedTuple):
    max_steps_in_episode: int = 5


class State(NamedTuple):
    time: Any
    place: Any


class Space(NamedTuple):
    n: int


class Old:
    """An environment whose `done` means terminated or truncated. The episode terminates at place 3."""

    default_params = Params()

    def action_space(self, params: Any) -> Space:
        return Space(2)

    def reset(self, key: Any, params: Any) -> Any:
        return jnp.zeros(3), State(jnp.int32(0), jnp.int32(0))

    def step_env(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        state = State(state.time + 1, state.place + action)
        done = (state.place >= 3) | (state.time >= params.max_steps_in_episode)
        return jax.nn.one_hot(state.place, 3), state, jnp.where(state.place >= 3, 7.0, 0.0), done, {}

    step = step_env


class New(Old):
    """An environment with a separate method for the time limit."""

    def step_env(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        seen, state, reward, _, info = super().step_env(key, state, action, params)
        return seen, state, reward, state.place >= 3, info

    def is_truncated(self, state: Any, params: Any) -> Any:
        return (state.time >= params.max_steps_in_episode) & (state.place < 3)


class Apart(New):
    """An environment that returns two values, terminated and truncated, instead of `done`."""

    def step_env(self, key: Any, state: Any, action: Any, params: Any) -> Any:
        seen, state, reward, terminated, info = super().step_env(key, state, action, params)
        return seen, state, reward, terminated, self.is_truncated(state, params), info


@pytest.mark.parametrize("kind", [Old, New, Apart])
@pytest.mark.parametrize(("action", "steps", "terminated"), [(1, 3, True), (0, 5, False)])
def test_termination_and_truncation_are_distinguished(kind: Any, action: int, steps: int, terminated: bool) -> None:
    assert is_like(kind())
    adapted = Gymnax.of(kind())
    state, observation = adapted.reset(jax.random.key(0))
    assert observation.shape == adapted.observation_shape == (3,)
    for count in range(1, steps + 1):
        state, step = adapted.step(jax.random.key(1), state, jnp.int32(action))
        ended = bool(step.terminated), bool(step.truncated)
        assert ended == ((terminated, not terminated) if count == steps else (False, False))


def test_agents_train_in_environments_with_and_without_parameters() -> None:
    agent = mh.agent("dqn", warm_up_steps=200, replay_capacity=1_000, batch=8)
    for env in (New(), (New(), Params(4))):
        run = mh.train(agent, env, steps=400, training_steps=400, evaluation_steps=0)
        assert run.metrics[-1]["episodes"] > 0


def test_continuous_actions_raise_an_error() -> None:
    class Continuous(Old):
        def action_space(self, params: Any) -> Any:
            return object()

    with pytest.raises(mh.InputError, match="only discrete actions are supported"):
        mh.train("dqn", Continuous())
