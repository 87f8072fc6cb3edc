"""Durations and survivals reach the replay buffer, the targets and the checkpoints."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete
from scripted import Scripted, host_collector, small, small_groups

import multihorizon as mh
from multihorizon.agents import replay as replays
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.networks import MlpTorso
from multihorizon.agents.replay import FINAL, INTERRUPTED, TERMINATED, TRUNCATED
from multihorizon.agents.returns import bootstrap_factors, n_step_returns
from multihorizon.discounting.discount import exponential
from multihorizon.envs.finite import FiniteWorld
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.gymnasium_vector import Gymnasium
from multihorizon.envs.timing import TimingFields
from multihorizon.errors import InputError
from multihorizon.mdp import HazardousMDP, optimal_control
from multihorizon.runs.checkpoint import Checkpoints
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.host_collector import HostCollector
from multihorizon.training.schedule import Schedule
from multihorizon.training.state import TrainingState
from multihorizon.training.trainer import Trainer

STATES, MOST_STEPS = 12, 7
GAMMAS = np.array([0.0, 0.7, 0.95])
TORSO = MlpTorso((4,))


def chain(seed: int) -> HazardousMDP:
    """Returns a deterministic MDP with one action.

    About a third of the states end the episode. The first two states lead to each other. Every second state has a whole
    number as its duration.
    """
    rng = np.random.default_rng(seed)
    transitions = np.zeros((STATES, 1, STATES))
    transitions[np.arange(STATES), 0, rng.integers(STATES, size=STATES)] = rng.random(STATES) < 0.67
    transitions[:2] = np.eye(STATES)[[1, 0]][:, None]
    durations = rng.uniform(0.2, 4, size=(STATES, 1))
    durations[::2] = np.ceil(durations[::2])
    return HazardousMDP(
        transitions, rng.normal(size=(STATES, 1)), durations=durations, survivals=rng.uniform(0.5, 1, (STATES, 1))
    )


class Walk(gymnasium.Env[Any, Any]):
    """An MDP as a Gymnasium environment, with durations and survivals in `info`."""

    metadata = {"timing": ("duration", "survival")}  # noqa: RUF012 - as in Gymnasium
    observation_space, action_space = Box(0, 1, (STATES,)), Discrete(1)

    def __init__(self, mdp: HazardousMDP) -> None:
        self._mdp, self._place, self._time = mdp, 0, 0

    def _seen(self) -> np.ndarray:
        return np.eye(STATES, dtype=np.float32)[self._place]

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self._place, self._time = int(self.np_random.integers(STATES)), 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        here, following = self._place, np.asarray(self._mdp.transitions)[self._place, 0]
        duration = float(np.asarray(self._mdp.durations)[here, 0])
        info = {
            "duration": int(duration) if duration == int(duration) else duration,
            "survival": np.asarray(self._mdp.survivals)[here, 0],
        }
        ends = following.sum() == 0
        self._place = here if ends else int(following.argmax())
        self._time += 1
        return self._seen(), float(self._mdp.rewards[here, 0]), bool(ends), self._time >= MOST_STEPS, info


def on_device(mdp: HazardousMDP, agent: AgentConfig) -> Trainer:
    schedule = Schedule(1, 400, 0)
    world = FiniteWorld(mdp, np.arange(STATES), (STATES,), MOST_STEPS)
    return Trainer(DeviceCollector(agent, world, TORSO, schedule, 2, 4), schedule)


def on_host(mdp: HazardousMDP, agent: AgentConfig) -> Trainer:
    schedule = Schedule(1, 400, 0)
    make = partial(Gymnasium, lambda: Walk(mdp))
    return Trainer(HostCollector(agent, make, TORSO, schedule, 2, 4, small_groups), schedule)


def trained(trainer: Trainer) -> TrainingState:
    state, _ = trainer.iterate(trainer.init(3), 0, 3, lambda progress: None)
    return state


@pytest.mark.parametrize(("make", "n_steps"), [(on_device, 3), (on_host, 3), (on_host, 1)])
def test_targets_that_bootstrap_from_exact_values_are_exact(make: Callable[..., Trainer], n_steps: int) -> None:
    """Episodes terminate or are truncated. On the host, some episodes are also interrupted."""
    mdp = chain(n_steps)
    trainer = make(mdp, small("hyper-dqn", n_steps=n_steps))
    assert trainer.shape.timing == TimingFields(duration=True, survival=True)
    state = trained(trainer)
    assert np.isfinite(np.asarray(state.tally.losses)).all()
    assert np.asarray(state.tally.updates).min() > 50
    exact = np.stack([optimal_control(replace(mdp, discount=exponential(gamma))).values[:, 0] for gamma in GAMMAS])
    gammas, kinds = jnp.asarray(GAMMAS, jnp.float32), set()
    for seed in range(2):
        replay = jax.tree.map(lambda x, seed=seed: x[seed], state.replay)
        kinds |= set(np.asarray(replay.ends)[: int(replay.written.min()) * 4].tolist())
        for draw in range(8):
            batch = replays.sample(trainer.shape, replay, jax.random.key(draw)).transitions
            returns = jax.vmap(lambda one: n_step_returns(one.rewards, gammas, one.timing))(batch)
            factors = jax.vmap(lambda one: bootstrap_factors(gammas, one.steps, one.terminated, one.timing))(batch)
            here, there = (np.asarray(x).argmax(axis=1) for x in (batch.observation, batch.next_observation))
            target = np.asarray(returns) + np.asarray(factors) * exact[:, there].T
            np.testing.assert_allclose(target, exact[:, here].T, rtol=1e-4, atol=1e-4)
    assert kinds >= {0, TERMINATED, TRUNCATED, FINAL}
    assert (INTERRUPTED in kinds) == (make is on_host)


def test_the_replay_buffer_stores_no_timing_if_the_environment_reports_no_timing() -> None:
    host = host_collector(small(), make=Scripted)
    schedule = Schedule(1, 400, 0)
    device = DeviceCollector(small(), Foraging("1S...9").environment(), TORSO, schedule)
    for collector in (host, device):
        state = jax.eval_shape(lambda collector=collector: collector.init(0))
        names = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state.replay)]
        assert len(names) == 9
        assert not any("timing" in name for name in names)
    host.close()


def test_a_checkpoint_contains_durations_and_survivals(tmp_path: Path) -> None:
    trainer = on_device(chain(1), small())
    state = trained(trainer)
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity={})
    kept.save(state, 1)
    back, _ = kept.restore(lambda: trainer.init(0), pytest.fail)
    filled = int(np.asarray(state.replay.written).max()) * 4
    assert filled < trainer.shape.rows * 4
    for name in ("duration", "survival"):
        before, after = (np.asarray(getattr(one.replay.timing, name)) for one in (state, back))
        np.testing.assert_array_equal(before[:, :filled], after[:, :filled])
        assert np.all(after[:, filled:] == 0)  # checkpoints store only the filled part
    trainer.iterate(back, 1, 3, lambda progress: None)  # zeros in the empty part raise no error


class Slow(gymnasium.Env[Any, Any]):
    """An endless environment with steps of 3 time units."""

    metadata = {"timing": "duration"}  # noqa: RUF012 - as in Gymnasium
    observation_space, action_space = Box(0, 1, (2,)), Discrete(2)

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        return np.zeros(2, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        return np.zeros(2, np.float32), 1.0, False, False, {"duration": 3}


def test_hazard_in_an_evaluation_depends_on_durations() -> None:
    """The probability of surviving a step is e^{-3λ}."""
    policy = mh.train(mh.agent("dqn", warm_up_steps=100), Slow, steps=200, evaluation_steps=0).policy(seed=0)
    lengths = mh.evaluate(policy, Slow, episodes=600, hazard=mh.hazard.Dirac(0.1)).lengths
    wanted = 1 / (1 - np.exp(-0.3))
    assert lengths.mean() == pytest.approx(wanted, abs=4 * wanted / np.sqrt(600))


class Wrong(FiniteWorld):
    """An environment in which one state reports a duration of 0."""

    def step(self, key: Any, state: Any, action: Any) -> Any:
        following, step = super().step(key, state, action)
        return following, step._replace(duration=jnp.where(state.place == 5, 0.0, step.duration))


def test_an_invalid_duration_on_the_device_stops_training() -> None:
    world = Wrong(chain(1), np.arange(STATES), (STATES,), MOST_STEPS)
    schedule = Schedule(1, 160, 0)
    collector = DeviceCollector(small(warm_up_steps=160), world, TORSO, schedule)
    with pytest.raises(InputError, match=r"^the environment gave a duration of 0; a duration must be positive"):
        trained(Trainer(collector, schedule))
