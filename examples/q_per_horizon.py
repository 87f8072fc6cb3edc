"""Plot Q over horizons: which action is best depends on how far the agent looks ahead.

In Pathworld the first action chooses a path. Path i is i² steps long and pays i at its end, so Q = i γ^(i²). The figure
shows the learned and the exact Q of each path.

Usage: python examples/q_per_horizon.py [OUT.png]
"""

import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")  # draws to a file and needs no display
import matplotlib.pyplot as plt
import numpy as np

import multihorizon as mh

PATHS = 5
gammas = np.array([0.5, 0.7, 0.8, 0.9, 0.95, 0.97, 0.99])
agent = mh.agent(
    "multi-dqn",
    horizons=mh.Horizons(gammas, np.full(7, 1 / 7)),
    warm_up_steps=500,
    optimiser=mh.Adam(5e-4, epsilon=1e-5),
)
run = mh.train(agent, "pathworld", steps=10_000, training_steps=10_000)
policy = run.policy()

start = np.zeros(policy.observation_shape)
start[0] = 1  # in state 0 the agent chooses a path
values = policy.q_values(start)  # [H A]
for gamma, row in zip(gammas, values, strict=True):
    print(f"γ = {gamma}: path {row.argmax() + 1} is best, Q = {row.max():.2f}")

figure, axes = plt.subplots(figsize=(6, 4))
horizons = policy.horizons.effective_horizons  # 1 / (1 - γ), in steps
for path in range(1, PATHS + 1):
    (line,) = axes.plot(horizons, path * gammas ** (path**2), label=f"path {path}")
    axes.plot(horizons, values[:, path - 1], "o", color=line.get_color())
axes.set(xscale="log", xlabel="effective horizon 1 / (1 - γ), steps", ylabel="Q (line: exact, dots: learned)")
axes.legend()
out = Path(sys.argv[1] if len(sys.argv) > 1 else "runs/q_per_horizon.png")
out.parent.mkdir(parents=True, exist_ok=True)
figure.savefig(out, dpi=150, bbox_inches="tight")
print("wrote", out)
