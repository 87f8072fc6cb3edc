"""Collects transitions and learns from them entirely on the device, in one compiled program."""

import time
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from multihorizon.agents import replay as replays
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import Torso
from multihorizon.agents.replay import ReplayShape, end_codes, has_final
from multihorizon.envs.environment import Environment, Step, timing_fields
from multihorizon.errors import at_least
from multihorizon.kernels.convolution import convolve_for
from multihorizon.training.compiling import call, compiled, updates
from multihorizon.training.schedule import Schedule, make_pace
from multihorizon.training.state import Core, Streams, TrainingState
from multihorizon.training.trainer import SECONDS_BETWEEN_REPORTS, Iteration, Reporter


class DeviceEnvironments(NamedTuple):
    """The states of environments [N] on the device, and their streams."""

    states: Any
    streams: Streams


class DeviceCollector:
    """Runs the environments, replay buffers and learners of all seeds in one program."""

    whole_every = 1  # a run can resume after every iteration, because its whole state is on the device

    def __init__(
        self,
        agent: AgentConfig,
        environment: Environment,
        torso: Torso,
        schedule: Schedule,
        num_seeds: int = 1,
        num_envs: int = 1,
    ) -> None:
        self.environment = environment
        self.num_seeds, self.num_envs = at_least("the number of seeds", num_seeds, 1), num_envs
        self.pace = make_pace(agent, num_envs)
        self.cycles = self.pace.cycles(schedule.training_steps)
        shape, dtype = tuple(environment.observation_shape), environment.observation_dtype
        learner = Learner(agent, environment.actions, shape, torso, convolve_for(in_loop=True))
        timing = timing_fields(environment)
        self.core = Core(
            learner, ReplayShape(agent.replay_capacity, num_envs, shape, dtype, 1, agent.n_steps, agent.batch, timing)
        )
        self._init = compiled(jax.vmap(self._init_one))
        self._run = compiled(self._run_all, static_argnums=3, donate_argnums=0)

    def init(self, seed: int) -> TrainingState:
        return call(self._init, jnp.arange(seed, seed + self.num_seeds))

    def _init_one(self, seed: Int[Array, ""]) -> TrainingState:
        state = self.core.init(seed)
        states, observations = jax.vmap(self.environment.reset)(jax.random.split(state.keys.resets, self.num_envs))
        return state._replace(environments=DeviceEnvironments(states, self.core.start(observations)))

    def collect(self, state: TrainingState, iteration: Iteration, reporter: Reporter) -> TrainingState:
        """Runs the cycles of one iteration, in calls that last about as long as the time between reports."""
        cycle, last = iteration.first_cycle, iteration.first_cycle + self.cycles
        piece = max(1, self.cycles // 20)
        while cycle < last:
            learning = cycle >= iteration.learns_from
            count = min(piece, (last if learning else min(last, iteration.learns_from)) - cycle)
            started = time.perf_counter()
            state = self._run(state, jnp.asarray(cycle), jnp.asarray(count), learning)
            cycle += count
            reporter.tell(state, cycle * self.pace.steps)  # waits for the device
            took = time.perf_counter() - started
            piece = max(1, round(count * min(2.0, SECONDS_BETWEEN_REPORTS / took)))
        return state

    def close(self) -> None:
        """Does nothing, because the device's memory is freed with the state."""

    def _run_all(
        self, state: TrainingState, first: Int[Array, ""], count: Int[Array, ""], learning: bool
    ) -> TrainingState:
        return jax.vmap(lambda one: self._run_one(one, first, count, learning))(state)

    def _run_one(
        self, state: TrainingState, first: Int[Array, ""], count: Int[Array, ""], learning: bool
    ) -> TrainingState:
        def cycle(index: Int[Array, ""], state: TrainingState) -> TrainingState:
            steps = index * self.pace.steps + self.num_envs * jnp.arange(self.pace.rows)
            state = jax.lax.scan(self._step, state, steps)[0]
            if not learning:
                return state
            return updates(self._update, state, self.pace.updates_before(index) + jnp.arange(self.pace.updates))[0]

        return jax.lax.fori_loop(first, first + count, cycle, state)

    def _step(self, state: TrainingState, step: Int[Array, ""]) -> tuple[TrainingState, None]:
        states, streams = state.environments
        actions = self.core.act(state.learner.computed_with, state.keys.acting, streams, step)
        keys = jax.random.split(jax.random.fold_in(state.keys.environments, step), self.num_envs)
        states, result, frames = jax.vmap(partial(step_and_reset, self.environment))(keys, states, actions)
        ends = end_codes(result.terminated, result.truncated).astype(jnp.uint8)
        replay, episodes, streams = self.core.observe(
            state.replay, state.episodes, streams, actions, result.reward, ends, frames, timing=result.timing
        )
        replay = replays.add_finals(self.core.shape, replay, result.observation, has_final(ends))
        environments = DeviceEnvironments(states, streams)
        return state._replace(environments=environments, replay=replay, episodes=episodes), None

    def _update(self, state: TrainingState, update: Int[Array, ""]) -> tuple[TrainingState, None]:
        """Makes one update. All seeds share the update number, so vmap keeps `cond` as a branch."""
        state, learner = self.core.learn(state), self.core.learner
        due = learner.copies_target_after(update + 1)
        return state._replace(learner=jax.lax.cond(due, learner.copy_target, lambda same: same, state.learner)), None


def step_and_reset(
    environment: Environment, key: Key[Array, ""], state: Any, action: Int[Array, ""]
) -> tuple[Any, Step, Array]:
    """Steps one environment, and resets it if its episode ended.

    Returns:
        The state, the step and the observation. After the end of an episode, the state and the observation begin the
        next episode.
    """
    step_key, reset_key = jax.random.split(key)
    stepped, step = environment.step(step_key, state, action)
    ended = step.terminated | step.truncated
    reset = environment.reset(reset_key)
    state, observation = jax.tree.map(partial(jnp.where, ended), reset, (stepped, step.observation))
    return state, step, observation
