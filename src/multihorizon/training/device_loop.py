"""Training wholly on the device: environments, replay and learner in one compiled program.

Written for one seed, as a pure function of some cycles of steps; `DeviceTrainer` vmaps it over seeds and compiles it.
"""

import time
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Int, Key, PyTree

from multihorizon.agents import replay as replays
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner, LearnerState
from multihorizon.agents.networks import Torso
from multihorizon.agents.replay import Replay, ReplayShape
from multihorizon.envs.environment import Environment
from multihorizon.errors import at_least
from multihorizon.kernels.convolution import convolve_for
from multihorizon.training.compiling import call, compiled, updates
from multihorizon.training.evaluation import play_episodes
from multihorizon.training.guard import Guard
from multihorizon.training.iterations import (
    MOST_EVALUATION_STEPS,
    Outcome,
    Progress,
    Report,
    Schedule,
    Tally,
    evaluation_keys,
    held_steps,
    mean_loss,
    outcome_of,
    pace_of,
    ratios,
)
from multihorizon.training.streams import Episodes, Stream, play, start_stream

SECONDS_BETWEEN_REPORTS = 1.0


class Training(NamedTuple):
    """Everything that training changes: the whole state of one seed."""

    streams: Stream  # [N]
    replay: Replay
    learner: LearnerState
    key: Key[Array, ""]
    tally: Tally
    episodes: Episodes  # of this iteration


class DeviceTrainer:
    """Trains `seeds` runs of an agent side by side, each with its own network, environments, replay and keys."""

    def __init__(
        self,
        agent: AgentConfig,
        environment: Environment,
        torso: Torso,
        schedule: Schedule,
        seeds: int = 1,
        environments: int = 1,
        evaluation_environments: int = 10,
    ) -> None:
        self.agent, self.environment, self.schedule = agent, environment, schedule
        self.seeds = at_least("the number of seeds", seeds, 1)
        self.environments = environments
        self.evaluation_environments = at_least("the number of evaluation environments", evaluation_environments, 1)
        self.pace = pace_of(agent, environments)
        self.cycles = self.pace.cycles(schedule.training_steps)
        self.whole_every = 1
        shape = tuple(environment.observation_shape)
        convolve = convolve_for(in_loop=True)
        self.learner = Learner(agent, environment.actions, shape, torso, convolve)
        self.guard = Guard(self.learner)
        self.shape = ReplayShape(
            agent.replay_capacity, environments, shape, environment.observation_dtype, 1, agent.n_steps, agent.batch
        )
        self._init = compiled(jax.vmap(self._init_one))
        self._run = compiled(self._vmapped, static_argnums=3, donate_argnums=0)
        self._evaluate = compiled(jax.vmap(self._evaluate_one, (0, 0, None)))

    def init(self, seed: int) -> Training:
        keys = jax.vmap(jax.random.key)(jnp.arange(seed, seed + self.seeds))
        return call(self._init, keys)

    def _init_one(self, key: Key[Array, ""]) -> Training:
        network_key, stream_key, key = jax.random.split(key, 3)
        streams = jax.vmap(partial(start_stream, self.environment))(jax.random.split(stream_key, self.environments))
        learner = self.learner.init(network_key)
        return Training(streams, replays.init(self.shape), learner, key, *self._nothing())

    def _nothing(self, first_update: int = 0) -> tuple[Tally, Episodes]:
        none = jnp.zeros((), jnp.int32)
        return Tally.none(len(self.agent.horizons), first_update), Episodes(none, jnp.zeros(()), none)

    def iterate(self, training: Training, iteration: int, seed: int, report: Report) -> tuple[Training, Outcome]:
        begun = time.perf_counter()
        cycle, last = iteration * self.cycles, (iteration + 1) * self.cycles
        learns_from = self.pace.learns_from(cycle, held_steps(training.replay))
        first_update = self.pace.updates_before(learns_from)
        tally, episodes = jax.vmap(lambda _: self._nothing(first_update))(jnp.arange(self.seeds))
        training = training._replace(tally=tally, episodes=episodes)
        self.guard.begin(training)
        piece = max(1, self.cycles // 20)
        while cycle < last:
            learning = cycle >= learns_from
            count = min(piece, (last if learning else min(last, learns_from)) - cycle)
            started = time.perf_counter()
            training = self._run(training, jnp.asarray(cycle), jnp.asarray(count), learning)
            self.guard.check(training)  # waits for the device
            took = time.perf_counter() - started
            cycle += count
            piece = max(1, round(count * min(2.0, SECONDS_BETWEEN_REPORTS / took)))
            step = cycle * self.pace.steps
            report(
                Progress(
                    step=step,
                    returns=ratios(training.episodes.returns, training.episodes.ended),
                    loss=mean_loss(training.tally),
                    epsilon=float(self.agent.epsilon.at(step, self.agent.warm_up_steps)),
                    steps_per_second=count * self.pace.steps * self.seeds / took,
                )
            )
        trained = time.perf_counter() - begun
        steps = self.schedule.evaluation_steps
        evaluated = self.evaluate(training.learner.parameters, iteration, seed, steps) if steps else None
        whole = time.perf_counter() - begun
        return training, outcome_of(self, iteration, training.tally, training.episodes, evaluated, trained, whole)

    def evaluate(self, parameters: PyTree[Array], iteration: int, seed: int, steps: int) -> Episodes:
        return self._evaluate(parameters, evaluation_keys(seed, self.seeds, iteration), jnp.asarray(steps))

    def _evaluate_one(self, parameters: PyTree[Array], key: Key[Array, ""], steps: Int[Array, ""]) -> Episodes:
        played = play_episodes(
            self.learner,
            self.environment,
            parameters,
            key,
            self.evaluation_environments,
            MOST_EVALUATION_STEPS,
            self.agent.epsilon.evaluation,
            steps,
        )
        return jax.tree.map(jnp.sum, played)

    def _vmapped(self, training: Training, cycle: Int[Array, ""], count: Int[Array, ""], learning: bool) -> Training:
        return jax.vmap(lambda one: self._cycles(one, cycle, count, learning))(training)

    def _cycles(self, training: Training, first: Int[Array, ""], count: Int[Array, ""], learning: bool) -> Training:
        def one(index: Int[Array, ""], training: Training) -> Training:
            training = self._play(training, index * self.pace.steps)
            if not learning:
                return training
            first = self.pace.updates_before(index)
            return updates(self._learn, training, first + jnp.arange(self.pace.updates))[0]

        return jax.lax.fori_loop(first, first + count, one, training)

    def _play(self, training: Training, step: Int[Array, ""]) -> Training:
        """The rows of one cycle."""

        def one(training: Training, row: Int[Array, ""]) -> tuple[Training, None]:
            key, act_key, world_key = jax.random.split(training.key, 3)
            epsilon = self.agent.epsilon.at(step + row * self.environments, self.agent.warm_up_steps)
            parameters = training.learner.computed_with
            streams, played = play(
                self.learner, self.environment, parameters, training.streams, act_key, world_key, epsilon
            )
            row_ = played.row
            if self.agent.clip_rewards:
                row_ = row_._replace(reward=jnp.clip(row_.reward, -1, 1))
            replay = replays.add(self.shape, training.replay, row_)
            replay = replays.add_finals(self.shape, replay, played.last, played.truncated)
            episodes = jax.tree.map(lambda old, new: old + new.sum(), training.episodes, played.episodes)
            return training._replace(streams=streams, replay=replay, key=key, episodes=episodes), None

        return jax.lax.scan(one, training, jnp.arange(self.pace.rows))[0]

    def _learn(self, training: Training, update: Int[Array, ""]) -> tuple[Training, None]:
        key, learn_key = jax.random.split(training.key)
        learner, replay, metrics = self.learner.learn(self.shape, training.learner, training.replay, learn_key)
        learner = self.learner.copy_target_if_due(learner, update)
        tally = training.tally.add(metrics)
        return training._replace(learner=learner, replay=replay, key=key, tally=tally), None
