"""Checks the hazard wrapper for JAX environments, and MinAtar."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.discounting.hazard import Dirac, Exponential, Mixture, Prior, Uniform
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.hazard import Hazard
from multihorizon.envs.minatar import MinAtar

EPISODES = 20_000


@pytest.mark.parametrize(
    "prior", [Exponential(0.2), Uniform(0.5), Dirac(0.1), Mixture([Dirac(0.0), Exponential(1.0)], [0.3, 0.7])], ids=repr
)
def test_survival_of_episodes_matches_the_prior(prior: Prior) -> None:
    world = Hazard(Foraging("S.", most_steps=0).environment(), prior)  # ends only by hazard

    def lifetime(key: jax.Array) -> jax.Array:
        reset_key, key = jax.random.split(key)
        state, _ = world.reset(reset_key)

        def one(alive: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
            _, step = world.step(key, state, jnp.asarray(0))
            return alive & ~step.terminated, alive & ~step.terminated

        return jax.lax.scan(one, jnp.asarray(True), jax.random.split(key, 30))[1]

    alive = np.asarray(jax.jit(jax.vmap(lifetime))(jax.random.split(jax.random.key(0), EPISODES))).mean(axis=0)
    expected = np.asarray(prior.survival(np.arange(1, 31)))
    error = np.sqrt(expected * (1 - expected) / EPISODES)
    assert np.all(np.abs(alive - expected) < 4.5 * error + 1e-4)


def test_a_step_in_which_the_agent_dies_earns_its_reward() -> None:
    world = Hazard(Foraging("S9").environment(), Dirac(50.0))
    state, _ = world.reset(jax.random.key(0))
    _, step = world.step(jax.random.key(1), state, jnp.asarray(3))
    assert (float(step.reward), bool(step.terminated)) == (9.0, True)


def test_a_minatar_game_can_be_played_to_its_end() -> None:
    game = MinAtar("breakout")
    assert (game.actions, game.observation_shape) == (3, (10, 10, 4))
    state, observation = game.reset(jax.random.key(0))
    assert observation.shape == (10, 10, 4)
    step = jax.jit(game.step)
    ended = False
    for i in range(300):
        state, seen = step(jax.random.key(i), state, jnp.asarray(0))
        ended = ended or bool(seen.terminated)
    assert ended
    with pytest.raises(ValueError, match=r"unknown MinAtar game 'breakot'.*did you mean 'breakout'"):
        MinAtar("breakot")
