"""Training wholly on the device: environments, replay and learner in one compiled program.

Written for one seed, as a pure function of a chunk of steps; `Trainer` vmaps it over seeds and compiles it.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from multihorizon.agents import replay as replays
from multihorizon.agents.learner import Learner, LearnerState, Metrics
from multihorizon.agents.networks import Torso, convolve_for
from multihorizon.agents.presets import Agent
from multihorizon.agents.replay import FINAL, GOES_ON, TERMINATED, TRUNCATED, Replay, ReplayShape, Rows
from multihorizon.envs.environment import Environment
from multihorizon.errors import InputError, at_least


class Stream(NamedTuple):
    """One environment as the loop sees it, between two steps."""

    state: Any
    observation: Array
    first: Bool[Array, ""]  # is the observation an episode's first?
    over: Bool[Array, ""]  # is it the last? Then the next step starts a new episode
    return_: Float[Array, ""]  # so far
    length: Int[Array, ""]


class Episodes(NamedTuple):
    """Episodes that ended: how many, and the sums of their returns and lengths."""

    ended: Int[Array, ""]
    returns: Float[Array, ""]
    lengths: Int[Array, ""]


class Training(NamedTuple):
    """Everything that training changes: the whole state of one seed."""

    streams: Stream  # [N]
    replay: Replay
    learner: LearnerState
    key: Key[Array, ""]


class Report(NamedTuple):
    """What a chunk of training has to say."""

    episodes: Episodes
    metrics: Metrics  # [updates ...]


def start_stream(environment: Environment, key: Key[Array, ""]) -> Stream:
    state, observation = environment.reset(key)
    no = jnp.zeros((), bool)
    return Stream(state, observation, ~no, no, jnp.zeros(()), jnp.zeros((), jnp.int32))


def advance(
    environment: Environment, key: Key[Array, ""], stream: Stream, action: Int[Array, ""]
) -> tuple[Stream, Rows, Episodes]:
    """One step, or where the last episode is over the start of a new one; the row to store; an episode that ended."""
    step_key, reset_key = jax.random.split(key)
    state, step = environment.step(step_key, stream.state, action)
    ended = step.terminated | step.truncated
    earned, length = stream.return_ + step.reward, stream.length + 1
    stepped = Stream(state, step.observation, jnp.zeros((), bool), ended, earned, length)
    following = jax.tree.map(partial(jnp.where, stream.over), start_stream(environment, reset_key), stepped)
    end = jnp.where(step.terminated, TERMINATED, jnp.where(step.truncated, TRUNCATED, GOES_ON))
    row = Rows(
        stream.observation,
        jnp.where(stream.over, 0, action),
        jnp.where(stream.over, 0.0, step.reward),
        jnp.where(stream.over, FINAL, end).astype(jnp.uint8),
        stream.first,
    )
    counts = ended & ~stream.over
    episodes = Episodes(counts.astype(jnp.int32), jnp.where(counts, earned, 0.0), jnp.where(counts, length, 0))
    return following, row, episodes


class Trainer:
    """Trains `seeds` runs of an agent side by side, each with its own network, environments, replay and keys."""

    def __init__(
        self, agent: Agent, environment: Environment, torso: Torso, seeds: int = 1, environments: int = 1
    ) -> None:
        self.agent, self.environment = agent, environment
        self.seeds = at_least("the number of seeds", seeds, 1)
        self.environments = at_least("the number of environments", environments, 1)
        shape = tuple(environment.observation_shape)
        convolve = convolve_for(jax.default_backend(), in_loop=True)
        self.learner = Learner(agent, environment.actions, shape, torso, convolve)
        self.shape = ReplayShape(
            agent.replay_capacity, environments, shape, environment.observation_dtype, 1, agent.n_steps, agent.batch
        )
        # The shortest pattern with one update for every `update_period_steps` steps of all environments together.
        period = agent.update_period_steps
        common = math.gcd(period, environments)
        self.rows_per_cycle, self.updates_per_cycle = period // common, environments // common
        self.steps_per_cycle = self.rows_per_cycle * environments
        if agent.warm_up_steps < agent.batch + agent.n_steps * environments:
            raise InputError(
                f"warm_up_steps must fill a batch and its returns, {agent.batch + agent.n_steps * environments} steps, "
                f"got {agent.warm_up_steps}"
            )
        self._collect = jax.jit(self._vmapped(partial(self._chunk, learning=False)), static_argnums=2, donate_argnums=0)
        self._train = jax.jit(self._vmapped(partial(self._chunk, learning=True)), static_argnums=2, donate_argnums=0)

    def _vmapped(self, chunk: Any) -> Any:
        def over_seeds(training: Training, cycle: Int[Array, ""], cycles: int) -> tuple[Training, Report]:
            return jax.vmap(lambda one: chunk(one, cycle, cycles))(training)

        return over_seeds

    def init(self, seed: int) -> Training:
        """Run s of several is the same as a single run with seed + s."""
        keys = jax.vmap(jax.random.key)(jnp.arange(seed, seed + self.seeds))
        return jax.jit(jax.vmap(self._init))(keys)

    def _init(self, key: Key[Array, ""]) -> Training:
        network_key, stream_key, key = jax.random.split(key, 3)
        streams = jax.vmap(partial(start_stream, self.environment))(jax.random.split(stream_key, self.environments))
        return Training(streams, replays.init(self.shape), self.learner.init(network_key), key)

    def warm_up_cycles(self) -> int:
        return -(-self.agent.warm_up_steps // self.steps_per_cycle)

    def run(self, training: Training, cycle: int, cycles: int) -> tuple[Training, Report]:
        """The next `cycles` cycles after the first `cycle`; gives up the state it is given."""
        chunk = self._collect if cycle < self.warm_up_cycles() else self._train
        return chunk(training, jnp.asarray(cycle), cycles)

    def _chunk(self, training: Training, cycle: Int[Array, ""], cycles: int, learning: bool) -> tuple[Training, Report]:
        def one(training: Training, index: Int[Array, ""]) -> tuple[Training, Report]:
            training, episodes = self._play(training, index * self.steps_per_cycle)
            if not learning:
                heads = len(self.agent.horizons)
                return training, Report(episodes, Metrics(jnp.zeros((0, heads)), jnp.zeros((0, heads))))
            updates = (index - self.warm_up_cycles()) * self.updates_per_cycle + jnp.arange(self.updates_per_cycle)
            training, metrics = jax.lax.scan(self._learn, training, updates)
            return training, Report(episodes, metrics)

        training, reports = jax.lax.scan(one, training, cycle + jnp.arange(cycles))
        metrics = jax.tree.map(lambda x: x.reshape(-1, x.shape[-1]), reports.metrics)
        return training, Report(jax.tree.map(lambda x: x.sum(), reports.episodes), metrics)

    def _play(self, training: Training, step: Int[Array, ""]) -> tuple[Training, Episodes]:
        """The rows of one cycle: a step of every environment each."""

        def one(training: Training, row: Int[Array, ""]) -> tuple[Training, Episodes]:
            key, act_key, world_key = jax.random.split(training.key, 3)
            epsilon = self.agent.epsilon.at(step + row * self.environments, self.agent.warm_up_steps)
            streams, rows, episodes = play(
                self.learner,
                self.environment,
                training.learner.parameters,
                training.streams,
                act_key,
                world_key,
                epsilon,
            )
            if self.agent.clip_rewards:
                rows = rows._replace(reward=jnp.clip(rows.reward, -1, 1))
            replay = replays.add(self.shape, training.replay, rows)
            return training._replace(streams=streams, replay=replay, key=key), episodes

        training, episodes = jax.lax.scan(one, training, jnp.arange(self.rows_per_cycle))
        return training, jax.tree.map(lambda x: x.sum(axis=0), episodes)

    def _learn(self, training: Training, update: Int[Array, ""]) -> tuple[Training, Metrics]:
        key, learn_key = jax.random.split(training.key)
        learner, replay, metrics = self.learner.learn(self.shape, training.learner, training.replay, learn_key, update)
        return training._replace(learner=learner, replay=replay, key=key), metrics


def play(
    learner: Learner,
    environment: Environment,
    parameters: PyTree[Array],
    streams: Stream,
    act_key: Key[Array, ""],
    world_key: Key[Array, ""],
    epsilon: Float[Array, ""],
) -> tuple[Stream, Rows, Episodes]:
    """A step of every stream; the episodes that ended are summed."""
    count = streams.over.shape[0]
    act = partial(learner.act, parameters)
    actions = jax.vmap(act, (0, 0, None))(jax.random.split(act_key, count), streams.observation, epsilon)
    streams, rows, episodes = jax.vmap(partial(advance, environment))(
        jax.random.split(world_key, count), streams, actions
    )
    return streams, rows, jax.tree.map(lambda x: x.sum(), episodes)
