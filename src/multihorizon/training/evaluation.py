"""What an agent earns with its weights frozen: whole episodes, one for each stream."""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from multihorizon.agents.learner import Learner
from multihorizon.envs.environment import Environment
from multihorizon.training.loop import Stream, play, start_stream


class Played(NamedTuple):
    """Of each episode; one that was not over after the most steps has the return it had then."""

    returns: Float[Array, " N"]
    lengths: Int[Array, " N"]
    over: Bool[Array, " N"]


def play_episodes(
    learner: Learner,
    environment: Environment,
    parameters: PyTree[Array],
    key: Key[Array, ""],
    episodes: int,
    most_steps: int,
    epsilon: float,
) -> Played:
    """One episode of each of `episodes` streams. Pure: jit it, and vmap it over seeds' parameters and keys."""
    start_key, key = jax.random.split(key)
    streams = jax.vmap(partial(start_stream, environment))(jax.random.split(start_key, episodes))

    def going(carry: tuple[Stream, Key[Array, ""], Int[Array, ""]]) -> Bool[Array, ""]:
        return ~jnp.all(carry[0].over) & (carry[2] < most_steps)

    def step(carry: tuple[Stream, Key[Array, ""], Int[Array, ""]]) -> tuple[Stream, Key[Array, ""], Int[Array, ""]]:
        streams, key, steps = carry
        key, act_key, world_key = jax.random.split(key, 3)
        following, _, _ = play(learner, environment, parameters, streams, act_key, world_key, jnp.asarray(epsilon))

        def held(new: Array, old: Array) -> Array:
            return jnp.where(streams.over.reshape(-1, *[1] * (new.ndim - 1)), old, new)

        return jax.tree.map(held, following, streams), key, steps + 1

    streams, _, _ = jax.lax.while_loop(going, step, (streams, key, jnp.zeros((), jnp.int32)))
    return Played(streams.return_, streams.length, streams.over)
