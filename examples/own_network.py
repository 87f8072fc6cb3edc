"""Train with your own network, save the policy, and load it by passing the network again.

A network is an equinox module, made by a class or function with the arguments `(key, observation_shape)`. The module
maps one observation to a vector of features. The library adds a head for each horizon.
"""

import tempfile

import equinox as eqx
import jax
import numpy as np

import multihorizon as mh


class Residual(eqx.Module):
    """Two layers with a skip connection and layer normalisation."""

    first: eqx.nn.Linear
    second: eqx.nn.Linear
    norm: eqx.nn.LayerNorm

    def __init__(self, key, observation_shape):
        first_key, second_key = jax.random.split(key)
        self.first = eqx.nn.Linear(int(np.prod(observation_shape)), 32, key=first_key)
        self.second = eqx.nn.Linear(32, 32, key=second_key)
        self.norm = eqx.nn.LayerNorm(32)

    def __call__(self, observation):
        x = jax.nn.relu(self.first(observation.reshape(-1)))
        return jax.nn.relu(self.norm(x + self.second(x)))


agent = mh.agent("hyper-dqn", horizons=mh.minimax_grid(mh.discount.hyperbolic(0.05), heads=3), warm_up_steps=500)
policy = mh.train(agent, "CartPole-v1", network=Residual, steps=2_000, evaluation_steps=0).policy()

with tempfile.TemporaryDirectory() as folder:
    policy.save(folder)
    try:
        mh.load(folder)
    except mh.InputError as problem:
        print("without the network:", problem)
    loaded = mh.load(folder, network=Residual)

observations = np.random.default_rng(0).normal(size=(5, 4))
same = np.array_equal(policy.q_values(observations), loaded.q_values(observations))
print("the loaded policy has the same Q-values:", same)
