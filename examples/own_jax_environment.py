"""Train in your own JAX environment, which runs on the device together with the agent.

An environment has three attributes and two pure functions, `reset` and `step`, written for a single environment. In
this example, capital grows by 1 per step until the agent cashes it in. The value of waiting t steps is (1 + t) γ^t.
This value is largest at t = 1 for γ = 0.6, and at the last step for γ = 0.95.
"""

import jax
import jax.numpy as jnp
import numpy as np

import multihorizon as mh

LAST = 6


class Savings:
    """Action 0 waits and action 1 cashes in. At the last step, both actions cash in."""

    actions = 2
    observation_shape = (LAST + 1,)
    observation_dtype = "float32"

    def reset(self, key):
        """Returns the state of a new episode, which is any pytree of arrays, and the first observation."""
        return jnp.int32(0), jax.nn.one_hot(0, LAST + 1)

    def step(self, key, state, action):
        """Returns the next state and the step. A terminated episode is over; a truncated one was cut off."""
        cashes_in = (action == 1) | (state == LAST)
        reward = jnp.where(cashes_in, 1.0 + state, 0.0)
        state = jnp.minimum(state + 1, LAST)
        return state, mh.envs.Step(
            jax.nn.one_hot(state, LAST + 1), reward, terminated=cashes_in, truncated=jnp.bool_(False)
        )


horizons = mh.Horizons(gammas=[0.6, 0.95], weights=[0.5, 0.5])
agent = mh.agent(
    "multi-dqn", horizons=horizons, warm_up_steps=500, target_period_steps=200, epsilon=mh.Epsilon(final=0.3)
)
policy = mh.train(agent, Savings(), steps=6_000, evaluation_steps=0).policy()

values = policy.q_values(np.eye(LAST + 1))  # [B H A]: all states as one batch
for gamma, actions in zip(policy.horizons.gammas, values[:LAST].argmax(axis=-1).T, strict=True):
    waits = int(actions.argmax()) if actions.any() else LAST
    print(f"γ = {gamma}: cashes in after {waits} step{'s' if waits > 1 else ''}")
print(mh.evaluate(policy, Savings(), episodes=10, epsilon=0.0, max_steps=50))
