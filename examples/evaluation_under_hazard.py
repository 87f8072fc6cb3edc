"""Evaluate two time preferences, with and without hazard.

Under hazard, each episode draws a risk λ from a prior and ends at every step with probability 1 - e^{-λ}. A small meal
of 2 is one step to the left. A large meal of 9 is seven steps to the right.
"""

from dataclasses import replace

import multihorizon as mh
from multihorizon.envs.foraging import Foraging

MAP = """
#0
2S>>>>>>9
#0
"""
env = Foraging(MAP).environment()
agent = mh.agent(
    "multi-dqn",
    horizons=mh.Horizons(gammas=[0.7, 0.95], weights=[0.5, 0.5]),
    warm_up_steps=1_000,
    target_period_steps=100,
    epsilon=mh.Epsilon(final=0.5),
)
policy = mh.train(agent, env, network=mh.MlpTorso((32,)), steps=4_000, evaluation_steps=0).policy()

print(f"{'acts by':10}{'hazard':22}{'mean return':>12}{'95% interval':>16}{'mean length':>13}")
for gamma in (0.7, 0.95):
    # The network has a head for each discount factor, but this agent acts by a single head.
    chosen = replace(policy, agent=policy.agent.with_settings(acting=gamma))
    for hazard in (None, mh.hazard.Exponential(1.0)):
        returns = mh.evaluate(chosen, env, episodes=1_000, hazard=hazard, epsilon=0.0)
        interval = "{:.2f} to {:.2f}".format(*returns.interval)
        name = "none" if hazard is None else str(hazard)
        print(f"γ = {gamma:<6}{name:22}{returns.mean:12.2f}{interval:>16}{returns.lengths.mean():13.1f}")
