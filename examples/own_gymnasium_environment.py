"""Train in your own Gymnasium environment, with a small prize nearby and a large prize far away.

One agent learns Q for two discount factors. With γ = 0.6, the near prize of 2 is worth more. With γ = 0.95, the far
prize of 10 is worth more. Rewards are clipped to [-1, 1] only in Atari.
"""

import gymnasium
import numpy as np

import multihorizon as mh


class Corridor(gymnasium.Env):
    """A corridor of places 0 to 8. Episodes start at 2 and end at 0, which pays 2, or at 8, which pays 10."""

    observation_space = gymnasium.spaces.Box(0, 1, (9,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)  # left, right

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.steps = 2, 0
        return self.observe(), {}

    def step(self, action):
        self.place += 1 if action == 1 else -1
        self.steps += 1
        reward = {0: 2.0, 8: 10.0}.get(self.place, 0.0)
        terminated = self.place in (0, 8)
        truncated = self.steps >= 50 and not terminated
        return self.observe(), reward, terminated, truncated, {}

    def observe(self):
        return np.eye(9, dtype=np.float32)[self.place]


agent = mh.agent(
    "multi-dqn",  # acts by the head with the largest discount factor
    horizons=mh.Horizons(gammas=[0.6, 0.95], weights=[0.5, 0.5]),
    warm_up_steps=1_000,
    target_period_steps=200,
    epsilon=mh.Epsilon(final=0.5),
)
# Pass the class or a function, not an instance: training and evaluation make several copies.
policy = mh.train(agent, Corridor, steps=5_000, evaluation_steps=0).policy()

observation, _ = Corridor().reset()
for gamma, values in zip(policy.horizons.gammas, policy.q_values(observation), strict=True):
    print(f"γ = {gamma}: Q(left) = {values[0]:.2f}, Q(right) = {values[1]:.2f}: {['left', 'right'][values.argmax()]}")
print(mh.evaluate(policy, Corridor, episodes=10, epsilon=0.0, max_steps=50))
