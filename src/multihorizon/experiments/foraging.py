"""Trains Rainbow and Hyper-Rainbow to forage without hazard, and evaluates their returns under hazard."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner
from multihorizon.agents.presets import preset
from multihorizon.discounting import discount, paper_grid, single
from multihorizon.discounting.hazard import Prior
from multihorizon.envs.finite import FiniteWorld
from multihorizon.envs.foraging import HAZARD as PRIOR
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.hazard import Hazard
from multihorizon.mdp import action_values, optimal_control
from multihorizon.runs.recording import train
from multihorizon.training.compiling import compiled
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.evaluation import play_episodes
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import IterationMetrics, Report, Trainer
from multihorizon.training.worlds import world

SEEDS, ENVIRONMENTS = 3, 4
JUDGING_EPISODES = 10_000


def rainbow(gamma: float = 0.99) -> AgentConfig:
    """Returns Rainbow with one γ, adapted to the foraging world."""
    agent = world("foraging").adapt(replace(preset("rainbow"), horizons=single(gamma)))
    return replace(agent, name=f"rainbow, γ = {gamma:g}")


def hyper_rainbow() -> AgentConfig:
    """Returns Hyper-Rainbow with horizons for the hazard of the foraging world."""
    horizons = paper_grid(PRIOR, heads=10, gamma_max=0.99)
    agent = world("foraging").adapt(replace(preset("hyper-rainbow"), horizons=horizons))
    return replace(agent, name="hyper-rainbow, k = 0.5")


@dataclass(frozen=True)
class Forager:
    """The meal that each seed chooses from each start, and the returns under hazard."""

    agent: str
    meals: Int[np.ndarray, "S starts"]  # the rewards of the chosen meals
    earned: Float[np.ndarray, " S"]  # the mean undiscounted return of simulated episodes under hazard
    standard_error: float  # the standard error of the mean return over all seeds and episodes


def forage(
    agent: AgentConfig,
    steps: int,
    seed: int = 0,
    report: Report = lambda progress: None,
    finished: Callable[[IterationMetrics], None] = lambda outcome: None,
) -> Forager:
    """Trains an agent with three seeds and evaluates it under hazard."""
    world_ = Foraging().environment()
    schedule = Schedule(iterations=1, training_steps=steps, evaluation_steps=0)
    collector = DeviceCollector(agent, world_, world("foraging").torso, schedule, SEEDS, ENVIRONMENTS)
    trainer = Trainer(collector, schedule)
    trained = train(trainer, seed, report, finished)
    keys = jax.random.split(jax.random.key(seed), SEEDS)
    play = compiled(
        jax.vmap(
            lambda parameters, key: play_episodes(
                trainer.learner, Hazard(world_, PRIOR), parameters, key, JUDGING_EPISODES, world_.most_steps, 0.0
            )
        )
    )
    returns = np.asarray(play(trained.learner.parameters, keys).returns)
    meals = chosen_meals(trainer.learner, world_, trained.learner.parameters)
    error = float(returns.std() / np.sqrt(returns.size))
    return Forager(agent.name, meals, returns.mean(axis=1), error)


def chosen_meals(learner: Learner, world_: FiniteWorld, parameters: PyTree[Array]) -> Int[np.ndarray, "S starts"]:
    """Returns the meal that each seed's greedy policy reaches from each start without hazard."""
    observations = jax.vmap(world_.observe)(jnp.arange(world_.mdp.states))
    values = jax.vmap(lambda p: jax.vmap(lambda o: learner.acting_weights @ learner.values(p, o))(observations))
    greedy = np.asarray(values(parameters).argmax(axis=-1))  # [S states]
    paid = [action_values(world_.mdp, np.eye(world_.actions)[policy]) for policy in greedy]
    return (
        np.stack([q[world_.starts, policy[world_.starts]] for q, policy in zip(paid, greedy, strict=True)])
        .round()
        .astype(int)
    )


@dataclass(frozen=True)
class Choice:
    """The meal that a policy reaches from each start, and its mean return under hazard."""

    meals: Int[np.ndarray, " starts"]
    earned: float


def exact_choice(agent: AgentConfig) -> Choice:
    """Returns the choices of an agent whose heads have the optimal values for their own γ."""
    field = Foraging()
    heads = zip(agent.horizons.gammas, agent.horizons.weights, strict=True)
    values = sum(
        weight * optimal_control(field.mdp(discount=discount.exponential(float(gamma)))).values
        for gamma, weight in heads
    )
    return choice_of(np.argmax(values, axis=1))


def best_choice(prior: Prior = PRIOR) -> Choice:
    """Returns the best choices under a prior. Agents choose only at the start, because trails have one direction."""
    field = Foraging()
    mdp = field.mdp(prior)
    actions = np.argmax(mdp.rewards, axis=1)
    for start in field.starts:
        worth = []
        for action in range(mdp.actions):
            actions[start] = action
            worth.append(action_values(mdp, np.eye(mdp.actions)[actions])[start, action])
        actions[start] = int(np.argmax(worth))
    return choice_of(actions, prior)


def choice_of(actions: Int[np.ndarray, " states"], prior: Prior = PRIOR) -> Choice:
    """Returns the meals and the mean return of a policy under a hazard prior."""
    field, policy = Foraging(), np.eye(4)[actions]
    at = field.starts, actions[field.starts]
    meals = action_values(field.mdp(), policy)[at]
    return Choice(meals.round().astype(int), float(action_values(field.mdp(prior), policy)[at].mean()))
