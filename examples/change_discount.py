"""Train an agent once, then act with several discounts and show when the agent expects reward.

In Pathworld the first action chooses a path. Path i is i² steps long and pays i at its end. The longest path is best
for a patient agent, and the shortest path for an impatient agent.
"""

import numpy as np

import multihorizon as mh

# Five discount factors that suit every hyperbolic discount with k from 0.01 to 1.
design = mh.design_horizons((0.01, 1.0), heads=5, gamma_max=0.99, t_max=30)
agent = mh.agent("hyper-dqn", horizons=design.horizons, warm_up_steps=500, optimiser=mh.Adam(5e-4, epsilon=1e-5))
policy = mh.train(agent, "pathworld", steps=10_000, training_steps=10_000).policy()

start = np.zeros(policy.observation_shape)
start[0] = 1  # in state 0 the agent chooses a path
for discount in (mh.discount.hyperbolic(0.01), mh.discount.hyperbolic(1.0), mh.hazard.Gamma(0.5, 2.0)):
    changed = policy.with_discount(discount, t_max=30)
    print(changed.reweighting)
    print(f"  chooses path {changed.act(start) + 1}")

try:
    policy.with_discount(mh.discount.deadline(10), t_max=30)
except mh.InputError as problem:
    print("refused:", problem)

patient = policy.with_discount(mh.discount.hyperbolic(0.01), t_max=30)
timeline = patient.expected_rewards(start, t_max=60)
peak = int(timeline.rewards.argmax())
print(f"expects the most reward in {timeline.starts[peak]} to {timeline.ends[peak] - 1} steps")
