"""Every use of randomness in a run has its own key."""

import jax
import jax.numpy as jnp
import numpy as np

from multihorizon.training.keys import EVALUATION, TRAINING, environment_seeds, make_keys


def test_no_two_uses_of_randomness_share_a_key() -> None:
    keys = [key for seed in range(3) for key in make_keys(jnp.asarray(seed))]
    used = [*keys, *(jax.random.fold_in(key, number) for key in keys for number in range(20))]
    drawn = {tuple(np.asarray(jax.random.key_data(key)).tolist()) for key in used}
    assert len(drawn) == 3 * 6 * 21


def test_environment_seeds_are_unique_and_do_not_depend_on_other_seeds_of_the_run() -> None:
    seeds = environment_seeds(5, 3, 2, TRAINING, 8)
    assert len(set(seeds.reshape(-1).tolist())) == 24
    np.testing.assert_array_equal(environment_seeds(6, 1, 2, TRAINING, 8)[0], seeds[1])
    assert not set(environment_seeds(5, 3, 2, EVALUATION, 8).reshape(-1)) & set(seeds.reshape(-1))
    assert not set(environment_seeds(5, 3, 3, TRAINING, 8).reshape(-1)) & set(seeds.reshape(-1))
