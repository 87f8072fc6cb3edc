"""Agents learn the exact values of Pathworld, and the best choices of the foraging world under hazard."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents.acting import Acting
from multihorizon.agents.losses import Bootstrap, Huber, Priority
from multihorizon.agents.presets import PRESETS, preset
from multihorizon.envs.pathworld import Pathworld
from multihorizon.experiments import foraging
from multihorizon.runs.configuration import plain
from multihorizon.runs.recording import train
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import Trainer
from multihorizon.training.worlds import world

pytestmark = pytest.mark.usefixtures("optimised")
PATHS = 5


# In Pathworld, all agents act at random. Agents that differ only in their acting rule therefore learn the same values.
LEARNERS = [name for name in PRESETS if not name.startswith("hyper-")]


def without_acting(name: str) -> Any:
    agent = world("pathworld").adapt(preset(name))
    assert agent.epsilon.final == 1
    assert agent.bootstrap is Bootstrap.OWN
    assert agent.priority is not Priority.ACTING
    return plain(replace(agent, name="", base="", chosen=(), acting=Acting.WEIGHTED))


@pytest.mark.parametrize("name", [name for name in PRESETS if name not in LEARNERS])
def test_hyper_and_multi_agents_differ_only_in_their_acting_rule(name: str) -> None:
    assert without_acting(name) == without_acting(name.replace("hyper-", "multi-"))


# These agents are not trained here. They combine parts of c51, rainbow, multi-dqn and multi-rainbow.
BETWEEN = ("dqn", "c51-nstep", "c51-priority", "multi-c51", "multi-c51-nstep", "multi-c51-priority", "any-rainbow")


@pytest.mark.parametrize("name", [name for name in LEARNERS if name not in BETWEEN])
def test_presets_learn_the_values_of_pathworld(name: str) -> None:
    """The error is below 5% of the largest value for every head and path."""
    chosen = world("pathworld")
    agent = chosen.adapt(preset(name))
    steps = 60_000 if isinstance(agent.loss, Huber) else 40_000 if agent.n_steps == 1 else 26_000
    schedule = Schedule(1, steps, 0)
    environment = Pathworld(PATHS).environment()
    trainer = Trainer(DeviceCollector(agent, environment, chosen.torso, schedule, num_envs=8), schedule)
    trained = train(trainer, 0)
    parameters = jax.tree.map(lambda x: x[0], trained.learner.parameters)
    learned = np.asarray(trainer.learner.values(parameters, environment.observe(jnp.asarray(0))))  # [H A]
    paths = np.arange(1, PATHS + 1)
    exact = paths * agent.horizons.gammas[:, None] ** paths**2
    assert np.abs(learned - exact).max() < 0.05 * exact.max()


def test_the_hyperbolic_agent_earns_more_under_hazard_than_any_single_gamma() -> None:
    """The agent is compared with the exact policies of 40 discount factors."""
    singles = {
        float(gamma): foraging.exact_choice(foraging.rainbow(float(gamma))) for gamma in np.linspace(0.6, 0.99, 40)
    }
    best_single = max(singles.values(), key=lambda single: single.earned)
    best = foraging.best_choice()
    hyperbolic = foraging.forage(foraging.hyper_rainbow(), steps=11_000)
    assert np.all(hyperbolic.meals == best.meals)
    assert hyperbolic.earned.mean() == pytest.approx(best.earned, abs=4 * hyperbolic.standard_error)
    assert hyperbolic.earned.mean() > best_single.earned + 4 * hyperbolic.standard_error
