"""Agents learn the exact values of environments with durations and survivals, and act like the solver."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.losses import Categorical
from multihorizon.agents.presets import preset
from multihorizon.discounting import Horizons
from multihorizon.envs.finite import FiniteWorld
from multihorizon.envs.pathworld import Pathworld
from multihorizon.envs.shortcut import Shortcut
from multihorizon.mdp import naive_by_heads, own_head_values
from multihorizon.runs.recording import train
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import Trainer
from multihorizon.training.worlds import world

pytestmark = pytest.mark.usefixtures("optimised")
HORIZONS = Horizons(np.array([0.7, 0.85, 0.97]), np.array([0.2, 0.3, 0.5]))
DOWN, RIGHT = 1, 3


def learned_values(agent: AgentConfig, environment: FiniteWorld, places: np.ndarray, steps: int) -> np.ndarray:
    """Returns the values [H S A] that an agent learns in `steps` steps."""
    schedule = Schedule(1, steps, 0)
    trainer = Trainer(DeviceCollector(agent, environment, world("shortcut").torso, schedule, num_envs=8), schedule)
    parameters = jax.tree.map(lambda x: x[0], train(trainer, 0).learner.parameters)
    values = jax.jit(jax.vmap(lambda place: trainer.learner.values(parameters, environment.observe(place))))
    return np.asarray(values(jnp.asarray(places))).transpose(1, 0, 2)


def test_an_agent_learns_the_values_of_the_shortcut_and_acts_like_the_solver() -> None:
    ways = Shortcut()
    agent = replace(world("shortcut").adapt(preset("hyper-dqn")), horizons=HORIZONS)
    places = np.flatnonzero([cell not in "#G" for cell in "".join(ways.rows)])
    learned = learned_values(agent, ways.environment(), places, 20_000)
    exact = own_head_values(ways.mdp(), HORIZONS)[:, places]
    assert np.abs(learned - exact).max() < 0.01
    start = list(places).index(ways.starts[0])
    assert learned[:, start].argmax(axis=1).tolist() == [RIGHT, RIGHT, DOWN]  # only the last head avoids the risk
    assert np.all(_lost(exact, learned.argmax(axis=2)) < 1e-9)
    # The weighted sum of the heads chooses the same actions as `naive_by_heads`, except for ties.
    weighted = np.tensordot(HORIZONS.weights, learned, 1).argmax(axis=1)
    solved = naive_by_heads(ways.mdp(), HORIZONS).actions[0, places]
    worth = np.tensordot(HORIZONS.weights, exact, 1)
    rows = np.arange(len(places))
    np.testing.assert_allclose(worth[rows, weighted], worth[rows, solved], atol=1e-9)


def _lost(exact: np.ndarray, actions: np.ndarray) -> np.ndarray:
    """Returns the value of the best actions minus the value of `actions` [H S]."""
    return exact.max(axis=2) - np.take_along_axis(exact, actions[..., None], axis=2)[..., 0]


def test_an_agent_with_three_step_returns_learns_the_values_of_paths_with_durations() -> None:
    """All actions on a path have the same effect, so n-step returns are correct under any behaviour."""
    rng = np.random.default_rng(0)
    plain = Pathworld(3).mdp()
    durations = np.repeat(rng.uniform(0.3, 2, size=(plain.states, 1)), 3, axis=1)
    survivals = np.repeat(rng.uniform(0.85, 1, size=(plain.states, 1)), 3, axis=1)
    mdp = replace(plain, durations=durations, survivals=survivals)
    agent = replace(world("pathworld").adapt(preset("hyper-rainbow")), horizons=HORIZONS, loss=Categorical(51, 4.0))
    assert agent.n_steps == 3
    environment = FiniteWorld(mdp, np.zeros(1, int), (mdp.states,))
    learned = learned_values(agent, environment, np.arange(1), 20_000)
    exact, untimed = (own_head_values(one, HORIZONS)[:, :1] for one in (mdp, plain))
    assert np.abs(learned - exact).max() < 0.04 * exact.max()
    assert np.abs(untimed - exact).max() > 0.2 * exact.max()  # an agent that ignored timing would fail
