"""A full replay buffer. Frames consist of random blocks, and the reward depends on the middle block."""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp

from multihorizon.agents import replay as replays
from multihorizon.agents.replay import Replay, ReplayShape

SHAPE = ReplayShape(16_000, 80, (84, 84, 1), "uint8", 4, 3, 32)
ACTIONS = 18


def _one(key: Any) -> Replay:
    replay = replays.init(SHAPE)
    keys = jax.random.split(key, 4)
    count = replay.actions.shape[0]
    blocks = jax.random.randint(keys[0], (count, 7, 7, 1), 0, 256).astype(jnp.uint8)
    frames = jnp.repeat(jnp.repeat(blocks, 12, axis=1), 12, axis=2)
    priorities = jax.random.uniform(keys[1], replay.priorities.shape, minval=0.1)
    return replay._replace(
        frames=frames,
        actions=jax.random.randint(keys[2], (count,), 0, ACTIONS),
        rewards=(blocks[:, 3, 3, 0] > 200).astype(jnp.float32),
        ends=jax.random.bernoulli(keys[3], 0.01, (count,)).astype(jnp.uint8),
        ages=jnp.full(count, 100, jnp.uint8),
        priorities=priorities,
        block_sums=priorities.sum(axis=1),
        written=jnp.full(SHAPE.streams, SHAPE.rows, jnp.int32),
    )


@cache
def filled(seeds: int) -> Replay:
    """Returns the replay buffers of several seeds. The buffers are cached, so copy them before you donate them."""
    return jax.jit(jax.vmap(_one))(jax.random.split(jax.random.key(3), seeds))
