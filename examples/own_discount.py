"""Make an agent act by your own discount, given as a function or as a belief about risk.

`mh.minimax_grid` finds the discount factors γ and weights w for which the sum of w γ^t is closest to the discount. More
heads fit better.
"""

import math

import multihorizon as mh

T_MAX = 200  # steps that matter


def stretched(t):
    """Falls fast at first and slowly later: d(t) = exp(-√(t / 20))."""
    return math.exp(-math.sqrt(t / 20))


# A belief: one episode in four is risky (mean hazard 0.5 per step), the others are safe (mean hazard 0.02).
belief = mh.hazard.Mixture([mh.hazard.Exponential(0.5), mh.hazard.Exponential(0.02)], [0.25, 0.75])

for discount in (mh.discount.from_function(stretched), mh.discount.from_prior(belief, "two kinds of episode")):
    for heads in (1, 2, 4):
        horizons = mh.minimax_grid(discount, heads=heads, gamma_max=0.995, t_max=T_MAX)
        error = horizons.fit(discount, T_MAX).max_error
        print(f"{discount}: {heads} head{'s' if heads > 1 else ''}, largest error {error:.4f}")

agent = mh.agent("hyper-dqn", horizons=horizons)
# mh.train(agent, env) would train this agent. It learns one Q per discount factor and acts by their weighted sum.
print(agent.horizons)
print("step   wanted   acted by")
for t in (0, 1, 10, 100):
    print(f"{t:4}   {discount(t):.4f}   {agent.horizons.discount(t):.4f}")
