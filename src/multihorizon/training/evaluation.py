"""What an agent earns with its weights frozen, in environments that live on the device."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Int, Key, PyTree

from multihorizon.agents.learner import Learner
from multihorizon.envs.environment import Environment
from multihorizon.training.streams import Episodes, Stream, play, start_stream


class _Playing(NamedTuple):
    streams: Stream  # [N]
    active: Bool[Array, " N"]
    episodes: Episodes  # [N]
    steps: Int[Array, ""]
    key: Key[Array, ""]


def play_episodes(
    learner: Learner,
    environment: Environment,
    parameters: PyTree[Array],
    key: Key[Array, ""],
    streams: int,
    most_steps: int,
    epsilon: float,
    steps: int | Int[Array, ""] = 0,
) -> Episodes:
    """Episodes [N] begin in every stream until `steps` were played in all of them, and those that began are finished:
    with 0, one in each. One that is not over after `most_steps` counts as it stands, and its stream rests.

    Pure: jit it, and vmap it over seeds' parameters and keys.
    """
    start_key, key = jax.random.split(key)
    started = jax.vmap(partial(start_stream, environment))(jax.random.split(start_key, streams))
    none = jnp.zeros(streams, jnp.int32)
    playing = _Playing(started, jnp.ones(streams, bool), Episodes(none, jnp.zeros(streams), none), none[0], key)

    def step(now: _Playing) -> _Playing:
        key, act_key, world_key = jax.random.split(now.key, 3)
        following, played = play(
            learner, environment, parameters, now.streams, act_key, world_key, jnp.asarray(epsilon)
        )
        total = now.steps + now.active.sum()
        cut = (following.length >= most_steps) & ~following.first
        standing = Episodes(cut.astype(jnp.int32), jnp.where(cut, following.return_, 0.0), following.length * cut)
        episodes = jax.tree.map(
            lambda so_far, new, left: so_far + jnp.where(now.active, new + left, 0),
            now.episodes,
            played.episodes,
            standing,
        )
        rests = cut | ((played.episodes.ended > 0) & (total >= steps))
        return _Playing(following, now.active & ~rests, episodes, total, key)

    return jax.lax.while_loop(lambda now: jnp.any(now.active), step, playing).episodes
