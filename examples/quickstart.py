"""Train a hyperbolic agent in CartPole, look at its Q-values, evaluate it, save it and load it again."""

import tempfile
from pathlib import Path

import gymnasium

import multihorizon as mh

# Four discount factors. The weighted sum of their γ^t is within 0.001 of the hyperbolic discount 1 / (1 + 0.05 t), for
# t up to 1000.
horizons = mh.minimax_grid(mh.discount.hyperbolic(0.05), heads=4, gamma_max=0.999)
agent = mh.agent("hyper-dqn", horizons=horizons, warm_up_steps=500, epsilon=mh.Epsilon(decay_steps=2_000))

run = mh.train(
    agent, "CartPole-v1", steps=6_000, training_steps=2_000, evaluation_steps=1_000, watcher=mh.PrintedProgress()
)
print(run)

policy = run.policy()
observation, _ = gymnasium.make("CartPole-v1").reset(seed=0)
print("discount factors:", policy.horizons.gammas.round(3))
print("Q-values, one row per horizon and one column per action:")
print(policy.q_values(observation).round(2))
print("greedy action:", policy.act(observation))
print("evaluation:", mh.evaluate(policy, episodes=20))

with tempfile.TemporaryDirectory() as folder:
    policy.save(Path(folder) / "cartpole")
    print("loaded:", mh.load(Path(folder) / "cartpole"))
