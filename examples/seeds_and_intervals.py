"""Train several seeds side by side, and compute two kinds of interval.

The interval over episodes states how precisely the mean return of one trained policy is known. The interval over seeds
also includes the variation between training runs. Only the interval over seeds supports a claim about an algorithm.
"""

import numpy as np
from scipy import stats

import multihorizon as mh

SEEDS = 3
agent = mh.agent(
    "dqn", horizons=mh.single(0.95), warm_up_steps=500, target_period_steps=200, epsilon=mh.Epsilon(decay_steps=1_000)
)
run = mh.train(agent, "CartPole-v1", steps=3_000, seeds=SEEDS, evaluation_steps=0)

means = []
for seed in run.seeds:
    returns = mh.evaluate(run.policy(seed=seed), episodes=20, seed=seed)
    low, high = returns.interval
    print(f"seed {seed}: mean return {returns.mean:.1f}, 95% interval over episodes {low:.1f} to {high:.1f}")
    means.append(returns.mean)

mean, error = np.mean(means), stats.sem(means)
low, high = stats.t.interval(0.95, SEEDS - 1, loc=mean, scale=error)
print(f"over {SEEDS} seeds: mean return {mean:.1f}, 95% interval {low:.1f} to {high:.1f}")
