"""The four Pathworld tables (Section 7.3 and Appendix F): the errors of each agent's values of the paths.

As in the paper, an agent's value of a path is the discounted reward without hazard. The true value is the undiscounted
return under hazard. A table lists mean squared errors over the paths. In the column `ours`, all values have closed
forms. In the column `learned`, Q-learning estimates the agents' values, and simulation estimates the true values.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from multihorizon.discounting import Horizons, discount, hazard, paper_grid, single
from multihorizon.envs.pathworld import HAZARD, Pathworld
from multihorizon.mdp import q_learning, simulate

K = HAZARD.k  # the true hazard: λ ~ Exponential(k)
HEADS, GAMMA_MAX = 100, 0.999
LEARNING_EPISODES = 1_000
JUDGING_EPISODES = 200_000  # simulated episodes that estimate the true value of each path


@dataclass(frozen=True)
class PathworldTable:
    """One table: the true hazard prior, and the horizons and the published error of each agent."""

    name: str
    title: str
    truth: hazard.Prior
    agents: Mapping[str, Horizons]
    paper: Mapping[str, float]


def _hyperbolic(k: float = K, gamma_max: float = GAMMA_MAX) -> Horizons:
    return paper_grid(hazard.Exponential(k), HEADS, gamma_max=gamma_max)


def experiments() -> list[PathworldTable]:
    """Returns the paper's four tables."""
    true = hazard.Exponential(K)
    matching = {
        "hyperbolic": (_hyperbolic(), 0.002),
        "gamma=0.975": (single(0.975), 0.566),
        "gamma=0.95": (single(0.95), 1.461),
        "gamma=0.9": (single(0.9), 2.253),
        "gamma=0.99": (single(0.99), 2.288),
        "gamma=0.75": (single(0.75), 2.809),
    }
    wrong_k = {
        "k=0.05": (_hyperbolic(0.05), 0.002),
        "k=0.1": (_hyperbolic(0.1), 0.493),
        "k=0.025": (_hyperbolic(0.025), 0.814),
        "k=0.2": (_hyperbolic(0.2), 1.281),
    }
    uniform = {
        "hyperbolic": (_hyperbolic(), 0.235),
        "gamma=0.975": (single(0.975), 0.266),
        "gamma=0.95": (single(0.95), 0.470),
        "gamma=0.99": (single(0.99), 4.029),
    }
    capped = {
        "gamma_max=0.999": (_hyperbolic(gamma_max=0.999), 0.002),
        "gamma_max=0.9999": (_hyperbolic(gamma_max=0.9999), 0.003),
        "gamma_max=0.99": (_hyperbolic(gamma_max=0.99), 0.233),
        "gamma_max=0.95": (_hyperbolic(gamma_max=0.95), 1.638),
        "gamma_max=0.9": (_hyperbolic(gamma_max=0.9), 2.281),
    }
    listed = [
        ("matching_prior", "the agent's prior is the true prior", true, matching),
        ("wrong_k", "agents with different k; the world's k is 0.05", true, wrong_k),
        ("uniform_hazard", "the world's hazard is uniform, with the same mean", hazard.Uniform(2 * K), uniform),
        ("gamma_max", "the largest γ that is learned", true, capped),
    ]
    return [
        PathworldTable(name, title, truth, {a: h for a, (h, _) in rows.items()}, {a: p for a, (_, p) in rows.items()})
        for name, title, truth, rows in listed
    ]


@dataclass(frozen=True)
class PathworldResult:
    """The true values of the paths and the values of all agents, both in closed form and estimated."""

    experiment: PathworldTable
    true: Float[np.ndarray, " paths"]
    simulated: Float[np.ndarray, " paths"]
    closed: Mapping[str, Float[np.ndarray, " paths"]]
    learned: Mapping[str, Float[np.ndarray, " paths"]]

    def table(self) -> dict[str, dict[str, float]]:
        """Returns the mean squared errors of each agent, by column."""
        return {
            agent: {
                "paper": self.experiment.paper[agent],
                "ours": float(np.mean((self.closed[agent] - self.true) ** 2)),
                "learned": float(np.mean((self.learned[agent] - self.simulated) ** 2)),
            }
            for agent in self.experiment.agents
        }


def run(seed: int = 0) -> list[PathworldResult]:
    """Computes all four tables from one run of Q-learning over all horizons."""
    learning_rng, judging_rng = np.random.default_rng(seed).spawn(2)
    world, listed = Pathworld(), experiments()
    gammas = np.unique(np.concatenate([h.gammas for e in listed for h in e.agents.values()]))
    tables = q_learning(world.mdp(), gammas, start=0, episodes=LEARNING_EPISODES, rng=learning_rng)[0]  # [A H]
    judged = {truth: _judge(world, truth, judging_rng) for truth in dict.fromkeys(e.truth for e in listed)}
    return [
        PathworldResult(
            experiment,
            world.values(discount.from_prior(experiment.truth)),
            judged[experiment.truth],
            {a: world.values(h.discount) for a, h in experiment.agents.items()},
            {a: tables[:, np.searchsorted(gammas, h.gammas)] @ h.weights for a, h in experiment.agents.items()},
        )
        for experiment in listed
    ]


def _judge(world: Pathworld, truth: hazard.Prior, rng: np.random.Generator) -> Float[np.ndarray, " paths"]:
    mdp = world.mdp(truth)
    policy = np.eye(mdp.actions)[np.zeros(mdp.states, dtype=int)]
    return np.array([simulate(mdp, policy, 0, path, JUDGING_EPISODES, rng).mean for path in range(world.paths)])
