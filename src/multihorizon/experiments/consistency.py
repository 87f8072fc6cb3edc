"""Trains naive, precommitted and sophisticated agents in the dilemmas, and compares them with exact solutions."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from multihorizon.agents.acting import Consistency
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner, Parameters
from multihorizon.agents.presets import agent as make_agent
from multihorizon.discounting import Horizons, minimax_grid
from multihorizon.envs.dilemmas import DILEMMAS, DISCOUNT, OVER, Dilemma
from multihorizon.envs.finite import FiniteWorld
from multihorizon.mdp import (
    Behaviour,
    HazardousMDP,
    acting_head_values,
    naive_by_heads,
    own_head_values,
    precommitted_by_heads,
    sophisticated,
)
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import Trainer
from multihorizon.training.worlds import world

HORIZONS = minimax_grid(DISCOUNT, heads=4, gamma_max=0.97, t_max=40)
SEEDS, STEPS, ENVIRONMENTS = 10, 20_000, 4
LONGEST = 60  # an agent that still waits after LONGEST steps counts as waiting forever

LIMITS: dict[Consistency, Callable[[HazardousMDP, Horizons], Behaviour]] = {
    Consistency.NAIVE: naive_by_heads,
    Consistency.PRECOMMITTED: precommitted_by_heads,
    Consistency.SOPHISTICATED: sophisticated,
}


@dataclass(frozen=True, eq=False)
class Outcome:
    """The values and the behaviour of an agent in a dilemma.

    Attributes:
        values: The heads' values [H states A].
        path: The visited states [T].
        actions: The action in each visited state [T].
        believed: The weighted value Σ wᵢ Q_γᵢ of the first action.
        earned: The sum of rewards, discounted by Σ wᵢ γᵢ^t.
        undiscounted: The sum of rewards.
    """

    values: Float[np.ndarray, "H states A"]
    path: Int[np.ndarray, " T"]
    actions: Int[np.ndarray, " T"]
    believed: float
    earned: float
    undiscounted: float


def exact(dilemma: Dilemma, rule: Consistency, horizons: Horizons = HORIZONS) -> Outcome:
    """Returns the outcome that an agent with one-step returns converges to.

    Raises:
        InputError: If `rule` is sophisticated and no equilibrium is found.
    """
    mdp = dilemma.mdp()
    behaviour = LIMITS[rule](mdp, horizons)
    if rule is Consistency.SOPHISTICATED:
        values = acting_head_values(mdp, horizons, behaviour.actions[0])
    else:
        values = own_head_values(mdp, horizons)
    return walk(dilemma, horizons, values, behaviour.actions)


def walk(
    dilemma: Dilemma, horizons: Horizons, values: Float[np.ndarray, "H states A"], actions: Int[np.ndarray, "T states"]
) -> Outcome:
    """Follows `actions` for at most `LONGEST` steps. The last row of `actions` also applies to all later times."""
    state = 0
    path: list[int] = []
    taken: list[int] = []
    rewards: list[float] = []
    while state != OVER and len(path) < LONGEST:
        row = actions[min(len(path), len(actions) - 1)]
        action = int(row[state])
        path.append(state)
        taken.append(action)
        reward, state = dilemma.move(state, action)
        rewards.append(float(reward))
    weights = np.asarray(horizons.discount(np.arange(len(rewards))))
    believed = float(horizons.weights @ values[:, 0, taken[0]])
    return Outcome(values, np.array(path), np.array(taken), believed, float(weights @ rewards), sum(rewards))


def agent_for(rule: Consistency, name: str = "hyper-dqn", horizons: Horizons = HORIZONS) -> AgentConfig:
    """Returns an agent with one-step returns, as `exact` assumes."""
    return make_agent(name, horizons=horizons, consistency=rule, n_steps=1)


def learn(dilemma: Dilemma, agent: AgentConfig, seeds: int = SEEDS, steps: int = STEPS) -> list[Outcome]:
    """Trains an agent and returns the greedy behaviour of each seed."""
    return list(snapshots(dilemma, agent, seeds, steps, 1))[-1]


def snapshots(dilemma: Dilemma, agent: AgentConfig, seeds: int, steps: int, count: int) -> Iterator[list[Outcome]]:
    """Trains an agent and yields the greedy behaviour of each seed, `count` times during training."""
    # All dilemmas have the same default settings, so any name would do.
    environment, chosen = dilemma.environment(), world(f"dilemma/{next(iter(DILEMMAS))}")
    schedule = Schedule(iterations=count, training_steps=steps // count, evaluation_steps=0)
    collector = DeviceCollector(chosen.adapt(agent), environment, chosen.torso, schedule, seeds, ENVIRONMENTS)
    learner, trainer = collector.core.learner, Trainer(collector, schedule)
    state = trainer.init(0)
    for number in range(count):
        state, _ = trainer.iterate(state, number, 0, lambda progress: None)
        each = [jax.tree.map(lambda leaf, s=seed: leaf[s], state.learner.parameters) for seed in range(seeds)]
        yield [outcome(dilemma, learner, head_values(learner, environment, one)) for one in each]


def head_values(learner: Learner, environment: FiniteWorld, parameters: Parameters) -> Float[np.ndarray, "H states A"]:
    """Returns the heads' values of all states."""
    observations = jax.vmap(environment.observe)(jnp.arange(environment.mdp.states))
    return np.asarray(jax.vmap(learner.values, (None, 0), 1)(parameters, observations), float)


def outcome(dilemma: Dilemma, learner: Learner, values: Float[np.ndarray, "H states A"]) -> Outcome:
    """Returns the greedy behaviour of an agent with the given values."""
    weights = np.stack([np.asarray(learner.weights_after(jnp.asarray(t)), float) for t in range(LONGEST)])
    actions = np.einsum("th,hsa->tsa", weights, values).argmax(axis=-1)
    return walk(dilemma, learner.agent.horizons, values, actions)


def error_on_path(found: Outcome, truth: Outcome) -> float:
    """Returns the heads' largest error in the states of the exact path, relative to the largest exact value."""
    path = np.unique(truth.path)
    return float(np.abs(found.values - truth.values)[:, path].max() / np.abs(truth.values).max())


def same_way(found: Outcome, truth: Outcome) -> bool:
    """Returns whether an agent visits the states of the exact solution in the same order.

    Waiting times may differ, but an agent that waits forever matches only a solution that waits forever.
    """
    ways = [(list(dict.fromkeys(one.path.tolist())), len(one.path) < LONGEST) for one in (found, truth)]
    return ways[0] == ways[1]
