"""Environments on the device as a loop sees them: streams of steps, in which an episode follows upon another."""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from multihorizon.agents.learner import Learner
from multihorizon.agents.replay import GOES_ON, TERMINATED, TRUNCATED, Rows
from multihorizon.envs.environment import Environment


class Stream(NamedTuple):
    """One environment as the loop sees it, between two steps."""

    state: Any
    observation: Array
    first: Bool[Array, ""]  # is the observation an episode's first?
    return_: Float[Array, ""]  # so far
    length: Int[Array, ""]


class Episodes(NamedTuple):
    """Episodes that ended: how many, and the sums of their returns and lengths."""

    ended: Int[Array, ""]
    returns: Float[Array, ""]
    lengths: Int[Array, ""]


class Played(NamedTuple):
    """What a step of a stream leaves behind. `last` is what the episode ended with, if it did."""

    row: Rows
    last: Array
    truncated: Bool[Array, ""]
    episodes: Episodes


def start_stream(environment: Environment, key: Key[Array, ""]) -> Stream:
    state, observation = environment.reset(key)
    return Stream(state, observation, jnp.ones((), bool), jnp.zeros(()), jnp.zeros((), jnp.int32))


def advance(
    environment: Environment, key: Key[Array, ""], stream: Stream, action: Int[Array, ""]
) -> tuple[Stream, Played]:
    """One step, and where it ended the episode the start of a new one."""
    step_key, reset_key = jax.random.split(key)
    state, step = environment.step(step_key, stream.state, action)
    ended = step.terminated | step.truncated
    earned, length = stream.return_ + step.reward, stream.length + 1
    stepped = Stream(state, step.observation, jnp.zeros((), bool), earned, length)
    following = jax.tree.map(partial(jnp.where, ended), start_stream(environment, reset_key), stepped)
    truncated = step.truncated & ~step.terminated
    end = jnp.where(step.terminated, TERMINATED, jnp.where(truncated, TRUNCATED, GOES_ON))
    row = Rows(stream.observation, action, step.reward, end.astype(jnp.uint8), stream.first)
    episodes = Episodes(ended.astype(jnp.int32), jnp.where(ended, earned, 0.0), jnp.where(ended, length, 0))
    return following, Played(row, step.observation, truncated, episodes)


def play(
    learner: Learner,
    environment: Environment,
    parameters: PyTree[Array],
    streams: Stream,
    act_key: Key[Array, ""],
    world_key: Key[Array, ""],
    epsilon: Float[Array, ""],
) -> tuple[Stream, Played]:
    """A step of every stream."""
    count = streams.first.shape[0]
    act = partial(learner.act, parameters)
    actions = jax.vmap(act, (0, 0, None))(jax.random.split(act_key, count), streams.observation, epsilon)
    return jax.vmap(partial(advance, environment))(jax.random.split(world_key, count), streams, actions)


def follow(stack: Array, frame: Array, first: Bool[Array, ""]) -> Array:
    """The stack one frame on, the newest last; at the start of an episode it is alone."""
    older = jnp.where(first, jnp.zeros((), stack.dtype), stack[..., frame.shape[-1] :])
    return jnp.concatenate([older, frame.astype(stack.dtype)], axis=-1)
