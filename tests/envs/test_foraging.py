"""Checks the properties of Foraging with the exact solver."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.discounting import single
from multihorizon.envs.foraging import Foraging
from multihorizon.experiments import foraging


def test_no_single_gamma_chooses_the_best_meal_everywhere() -> None:
    best = foraging.best_choice()
    for gamma in np.linspace(0.3, 0.999, 60):
        choice = foraging.exact_choice(replace(foraging.rainbow(), horizons=single(float(gamma))))
        assert np.any(choice.meals != best.meals)
        assert choice.earned < 0.85 * best.earned


def test_hyper_rainbow_chooses_the_best_meal_everywhere() -> None:
    best = foraging.best_choice()
    choice = foraging.exact_choice(foraging.hyper_rainbow())
    assert choice.meals.tolist() == best.meals.tolist() == [1, 2, 9, 3, 7, 9]
    assert choice.earned == pytest.approx(best.earned)


def test_trails_lead_to_their_meals() -> None:
    field = Foraging()
    world = field.environment()
    step = jax.jit(world.step)
    key = jax.random.key(0)
    for start in field.starts:
        for action, end in ((2, 0), (3, -1)):
            state, _ = world.reset(key)
            state = state._replace(place=jnp.asarray(start))
            row = field.rows[start // field.shape[1]].strip("#")
            distance = row.index("S") if end == 0 else len(row) - 1 - row.index("S")
            for t in range(distance):
                state, seen = step(key, state, jnp.asarray(action if t == 0 else 0))
                assert bool(seen.terminated) == (t == distance - 1)
                assert float(seen.reward) == (float(row[end]) if t == distance - 1 else 0)


def test_episode_is_truncated_at_the_largest_number_of_steps() -> None:
    world = Foraging("S.9", most_steps=3).environment()
    state, _ = world.reset(jax.random.key(0))
    for t in range(3):
        state, seen = world.step(jax.random.key(0), state, jnp.asarray(0))
        assert (bool(seen.truncated), bool(seen.terminated)) == (t == 2, False)


def test_invalid_map_raises_an_error() -> None:
    with pytest.raises(ValueError, match="drawn with digits"):
        Foraging("S?9")
    with pytest.raises(ValueError, match="needs a start"):
        Foraging("..9")
