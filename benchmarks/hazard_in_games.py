"""Evaluates agents under several hazard priors, after training without hazard.

    python benchmarks/hazard_in_games.py results/hazard-minatar/minatar-breakout/any-rainbow

Under a prior with discount d(t), the probability of surviving t steps is d(t). If neither the agent nor the game sees
the hazard, the expected return is therefore the expectation of Σ d(t) r_t over episodes without hazard (Section 4 of
the paper). One set of episodes serves all priors, and no deaths are sampled. hazard.json in the run's folder contains
the mean return of each seed under each prior.

A run of `any-rainbow` is also evaluated in two other ways:

- The agent acts by the discount of each prior. hazard.json contains the fraction of visited states in which the greedy
  action differs from the greedy action under the least hazardous prior. For the least hazardous prior itself, the
  comparison is with the most hazardous prior.
- The agent acts by each of its heads alone, like an agent with a single γ.

hazard_table.py makes tables from these files.
"""

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key, PyTree

import multihorizon as mh
from multihorizon.agents.learner import Learner
from multihorizon.envs.environment import Environment
from multihorizon.errors import at_least
from multihorizon.experiments.evidence import PRIORS, T_MAX
from multihorizon.files import write_json
from multihorizon.training.device_collector import step_and_reset
from multihorizon.training.state import act_all
from multihorizon.training.worlds import world

EPISODES, MOST_STEPS = 200, 5_000
CAUTIOUS, BOLD = "exponential-1", "exponential-0.01"


class Played(NamedTuple):
    """Sums over the first episode of each environment [N]."""

    returns: Float[Array, "N P"]  # Σ d(t) r_t under each prior
    undiscounted: Float[Array, " N"]
    lengths: Float[Array, " N"]
    disagreements: Float[Array, " N"]  # number of steps in which the learner `other` has a different greedy action


def play(
    learner: Learner,
    environment: Environment,
    parameters: PyTree[Array],
    key: Key[Array, ""],
    discounts: Float[Array, "T P"],
    episodes: int,
    other: Learner | None = None,
) -> Played:
    """Plays one episode in each of several environments."""
    reset_key, act_key, step_key = jax.random.split(key, 3)
    states, observations = jax.vmap(environment.reset)(jax.random.split(reset_key, episodes))
    zeros = jnp.zeros(episodes)
    nothing = Played(jnp.zeros((episodes, discounts.shape[1])), zeros, zeros, zeros)
    epsilon = jnp.asarray(learner.agent.epsilon.evaluation)

    def step(now: Any) -> Any:
        states, observations, active, played, t = now
        elapsed = jnp.full(episodes, t)
        actions = act_all(learner, parameters, jax.random.fold_in(act_key, t), observations, epsilon, elapsed)
        differs = zeros
        if other is not None:
            greedy = [
                act_all(one, parameters, act_key, observations, jnp.zeros(()), elapsed) for one in (learner, other)
            ]
            differs = (greedy[0] != greedy[1]).astype(jnp.float32)
        keys = jax.random.split(jax.random.fold_in(step_key, t), episodes)
        states, result, observations = jax.vmap(lambda *given: step_and_reset(environment, *given))(
            keys, states, actions
        )
        rewards = jnp.where(active, result.reward, 0.0)
        played = Played(
            played.returns + rewards[:, None] * discounts[t],
            played.undiscounted + rewards,
            played.lengths + active,
            played.disagreements + active * differs,
        )
        return states, observations, active & ~(result.terminated | result.truncated), played, t + 1

    def goes_on(now: Any) -> Any:
        return jnp.any(now[2]) & (now[4] < MOST_STEPS)

    begun = (states, observations, jnp.ones(episodes, bool), nothing, jnp.zeros((), jnp.int32))
    return jax.lax.while_loop(goes_on, step, begun)[3]


def results(
    policies: list[mh.Policy], episodes: int = EPISODES, other: list[mh.Policy] | None = None
) -> dict[str, Any]:
    environment = world(policies[0].environment).make_for_evaluation()
    times = np.arange(MOST_STEPS)
    discounts = jnp.asarray(np.stack([mh.discount.from_prior(prior)(times) for prior in PRIORS.values()], axis=1))
    parameters = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(policy.parameters for policy in policies))
    learner = policies[0]._programs.learner
    against = None if other is None else other[0]._programs.learner

    @jax.jit
    @jax.vmap
    def run(parameters: Any, key: Any) -> Played:
        return jax.tree.map(
            lambda x: x.mean(axis=0), play(learner, environment, parameters, key, discounts, episodes, against)
        )

    played = run(parameters, jax.random.split(jax.random.key(1), len(policies)))
    found: dict[str, Any] = {
        "returns": {name: np.asarray(played.returns[:, p], float).tolist() for p, name in enumerate(PRIORS)},
        "undiscounted": np.asarray(played.undiscounted, float).tolist(),
        "lengths": np.asarray(played.lengths, float).tolist(),
    }
    if other is not None:
        found["disagreement"] = (np.asarray(played.disagreements) / np.asarray(played.lengths)).astype(float).tolist()
    return found


def evaluate(folder: Path, episodes: int = EPISODES) -> None:
    run = mh.load_run(folder)
    policies = [run.policy(seed) for seed in run.seeds]
    found: dict[str, Any] = {"episodes": episodes, "unchanged": results(policies, episodes)}
    if policies[0].agent.name == "any-rainbow":
        changed = {
            name: [one.with_discount(mh.discount.from_prior(prior), t_max=T_MAX) for one in policies]
            for name, prior in PRIORS.items()
        }
        for name, mine in changed.items():
            found[name] = results(mine, episodes, changed[CAUTIOUS if name == BOLD else BOLD])
            reweighting = mine[0].reweighting
            assert reweighting is not None
            found[name]["max_error"] = reweighting.max_error
        found["heads"] = {}
        for gamma in policies[0].agent.horizons.gammas:
            alone = [replace(one, agent=one.agent.with_settings(acting=float(gamma))) for one in policies]
            found["heads"][f"{gamma:.4g}"] = results(alone, episodes)["returns"]
    write_json(folder / "hazard.json", found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of finished runs with weights")
    parser.add_argument("--episodes", type=int, default=EPISODES, help=f"episodes per seed (default: {EPISODES})")
    options = parser.parse_args()
    at_least("--episodes", options.episodes, 1)
    for folder in options.runs:
        evaluate(folder, options.episodes)
        print(f"{folder / 'hazard.json'} written", flush=True)


if __name__ == "__main__":
    main()
