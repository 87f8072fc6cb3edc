"""Training in environments that step on the CPU while the device learns. Nothing here knows of Atari.

Every row is a step of every environment. With several environments, the updates that a row has earned are handed to the
device after its actions, so that learning and the environments' next step go on at once. With one, they come before the
next action, as in the paper. The environments' state cannot be saved, so that every iteration begins new episodes, and
those under way at its end are cut off there, as by a time limit.
"""

import math
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from multihorizon.agents import replay as replays
from multihorizon.agents.learner import Learner, LearnerState
from multihorizon.agents.networks import Torso, convolve_for
from multihorizon.agents.presets import Agent
from multihorizon.agents.replay import GOES_ON, TERMINATED, TRUNCATED, Replay, ReplayShape, Rows
from multihorizon.envs.vector import Moves, VectorEnvironment
from multihorizon.errors import at_least
from multihorizon.training.compiling import compiled
from multihorizon.training.count import Count
from multihorizon.training.iterations import (
    MOST_EVALUATION_STEPS,
    Outcome,
    Progress,
    Report,
    Schedule,
    Tally,
    check_finite,
    evaluation_keys,
    good_copy,
    mean_loss,
    outcome_of,
    pace_of,
    ratios,
)

SECONDS_BETWEEN_REPORTS = 1.0
TRAINING, EVALUATION = range(2)  # phases of an iteration, each with seeds of its own


class Training(NamedTuple):
    """The whole state of one seed between two iterations."""

    replay: Replay
    learner: LearnerState
    key: Key[Array, ""]
    tally: Tally


class Streams(NamedTuple):
    """What the device knows of the environments [N] between two steps."""

    stacks: Array  # the last frames along the last axis, blank before an episode's start
    actions: Int[Array, " N"]
    first: Bool[Array, " N"]


class HostTrainer:
    """Trains `seeds` runs of an agent side by side, each with its own network, environments, replay and keys.
    `make` makes a vector environment of so many."""

    def __init__(
        self,
        agent: Agent,
        make: Callable[[int], VectorEnvironment],
        torso: Torso,
        schedule: Schedule,
        seeds: int = 1,
        environments: int = 1,
        evaluation_environments: int = 10,
    ) -> None:
        self.agent, self.schedule, self.make = agent, schedule, make
        self.seeds = at_least("the number of seeds", seeds, 1)
        self.environments = environments
        self.pace = pace_of(agent, environments)
        self.cycles = self.pace.cycles(schedule.training_steps)
        self.overlaps = environments > 1
        self.evaluation_environments = at_least("the number of evaluation environments", evaluation_environments, 1)
        self._worlds: dict[int, VectorEnvironment] = {}
        # Handing a thousand kernels to a GPU takes milliseconds, in which the environments should not wait.
        self._teacher = ThreadPoolExecutor(1)
        world = self.world(TRAINING)
        self.frame_shape = tuple(world.frame_shape)
        observed = (*self.frame_shape[:-1], self.frame_shape[-1] * world.stack)
        on_cpu = jax.default_backend() == "cpu"
        convolve = convolve_for(jax.default_backend(), in_loop=seeds > 1)
        self.learner = Learner(agent, world.actions, observed, torso, convolve)
        # As many updates in one program as lie between two moments at which the target network may have to be copied.
        # On a CPU just one: inside a loop XLA's convolutions would have no threads.
        self.updates_at_once = 1 if on_cpu else math.gcd(self.pace.updates, self.learner.target_period_updates)
        self.shape = ReplayShape(
            agent.replay_capacity,
            environments,
            self.frame_shape,
            world.frame_dtype,
            world.stack,
            agent.n_steps,
            agent.batch,
        )
        acting, turning = (0, 0, 0, None), (0, 0, 0, 0, None, 0, 0)
        self._act = compiled(jax.vmap(partial(self._act_one, random=False), acting), donate_argnums=2)
        self._wander = compiled(jax.vmap(partial(self._act_one, random=True), acting), donate_argnums=2)
        self._observe = compiled(jax.vmap(self._observe_one), donate_argnums=(0, 1))
        self._turn = compiled(jax.vmap(partial(self._turn_one, random=False), turning), donate_argnums=(2, 3))
        self._wandering_turn = compiled(jax.vmap(partial(self._turn_one, random=True), turning), donate_argnums=(2, 3))
        self._add_finals = compiled(jax.vmap(partial(replays.add_finals, self.shape)), donate_argnums=0)
        self._learn = compiled(jax.vmap(self._learn_one, (0, None)), donate_argnums=0)
        self._copy_target = compiled(jax.vmap(self.learner.copy_target), donate_argnums=0)
        self._play = compiled(jax.vmap(self._play_one, (0, 0, None, 0)))
        self._follow = compiled(jax.vmap(jax.vmap(follow)))

    def world(self, phase: int) -> VectorEnvironment:
        """The environments of all seeds, made when they are first needed."""
        if phase not in self._worlds:
            count = (self.environments, self.evaluation_environments)[phase]
            self._worlds[phase] = self.make(self.seeds * count)
        return self._worlds[phase]

    def close(self) -> None:
        for world in self._worlds.values():
            world.close()
        self._worlds.clear()
        self._teacher.shutdown()

    def init(self, seed: int) -> Training:
        keys = jax.vmap(jax.random.key)(jnp.arange(seed, seed + self.seeds))
        return jax.jit(jax.vmap(self._init))(keys)

    def _init(self, key: Key[Array, ""]) -> Training:
        network_key, key = jax.random.split(key)
        tally = Tally.none(len(self.agent.horizons))
        return Training(replays.init(self.shape), self.learner.init(network_key), key, tally)

    # One seed's part of a row, as pure functions.

    def _act_one(
        self, parameters: PyTree[Array], key: Key[Array, ""], streams: Streams, step: Int[Array, ""], random: bool
    ) -> tuple[Key[Array, ""], Streams]:
        key, act_key = jax.random.split(key)
        if random:
            actions = jax.random.randint(act_key, streams.actions.shape, 0, self.learner.actions)
        else:
            epsilon = self.agent.epsilon.at(step, self.agent.warm_up_steps)
            actions = self._chosen(parameters, act_key, streams.stacks, epsilon)
        return key, streams._replace(actions=actions)

    def _chosen(
        self, parameters: PyTree[Array], key: Key[Array, ""], stacks: Array, epsilon: Float[Array, ""]
    ) -> Int[Array, " N"]:
        keys = jax.random.split(key, stacks.shape[0])
        return jax.vmap(partial(self.learner.act, parameters), (0, 0, None))(keys, stacks, epsilon)

    def _observe_one(
        self, replay: Replay, streams: Streams, frames: Array, told: Float[Array, "N 2"]
    ) -> tuple[Replay, Streams]:
        """Stores a step, whose action was chosen before: its frames, and the rewards and ends that came of it."""
        rewards, ends = told[:, 0], told[:, 1].astype(jnp.uint8)
        if self.agent.clip_rewards:
            rewards = jnp.clip(rewards, -1, 1)
        latest = streams.stacks[..., -self.frame_shape[-1] :]
        replay = replays.add(self.shape, replay, Rows(latest, streams.actions, rewards, ends, streams.first))
        first = ends != GOES_ON
        return replay, Streams(jax.vmap(follow)(streams.stacks, frames, first), streams.actions, first)

    def _turn_one(
        self,
        parameters: PyTree[Array],
        key: Key[Array, ""],
        replay: Replay,
        streams: Streams,
        step: Int[Array, ""],
        frames: Array,
        told: Float[Array, "N 2"],
        random: bool,
    ) -> tuple[Key[Array, ""], Replay, Streams]:
        """Stores a step and chooses the next action, where nothing is learned in between."""
        replay, streams = self._observe_one(replay, streams, frames, told)
        key, streams = self._act_one(parameters, key, streams, step, random)
        return key, replay, streams

    def _learn_one(self, training: Training, update: Int[Array, ""]) -> Training:
        def one(training: Training, update: Int[Array, ""]) -> tuple[Training, None]:
            key, learn_key = jax.random.split(training.key)
            learner, replay, metrics = self.learner.learn(self.shape, training.learner, training.replay, learn_key)
            return Training(replay, learner, key, training.tally.add(update, metrics)), None

        if self.updates_at_once == 1:
            return one(training, update)[0]
        return jax.lax.scan(one, training, update + jnp.arange(self.updates_at_once))[0]

    def _play_one(
        self, parameters: PyTree[Array], key: Key[Array, ""], row: Int[Array, ""], stacks: Array
    ) -> Int[Array, " N"]:
        epsilon = jnp.asarray(self.agent.epsilon.evaluation)
        return self._chosen(parameters, jax.random.fold_in(key, row), stacks, epsilon)

    # An iteration, on the host.

    def iterate(self, training: Training, iteration: int, seed: int, report: Report) -> tuple[Training, Outcome]:
        begun = time.perf_counter()
        tally = jax.vmap(lambda _: Tally.none(len(self.agent.horizons)))(jnp.arange(self.seeds))
        training = training._replace(tally=tally)
        training, count = self._train(training, iteration, seed, report)
        trained = time.perf_counter() - begun
        steps = self.schedule.evaluation_steps
        evaluated = self.evaluate(training.learner.parameters, iteration, seed, steps) if steps else None
        whole = time.perf_counter() - begun
        return training, outcome_of(self, iteration, training.tally, count, evaluated, trained, whole)

    def _train(self, training: Training, iteration: int, seed: int, report: Report) -> tuple[Training, Count]:
        world, count = self.world(TRAINING), Count(self.seeds, self.environments)
        streams = self._begin(world.reset(self._seeds(seed, iteration, TRAINING)))
        first, rows = iteration * self.cycles, self.cycles * self.pace.rows
        learns_from = self.pace.learns_from(first, int(np.asarray(training.replay.written).min()))
        due: int | None = None  # the cycle whose updates were earned and are not yet handed to the device
        good = good_copy(training.learner.parameters)
        reported, reported_row = time.perf_counter(), 0
        step = first * self.pace.steps
        training, streams = self._choose(training, streams, step)
        for row in range(rows):
            learning: Future[Training] | None = None
            if self.overlaps and due is not None:
                learning, due = self._teacher.submit(self._update, training, due), None
            world.send(np.asarray(streams.actions).reshape(-1))  # waits for the actions, not for the updates
            moves = world.receive()
            if learning is not None:
                training = learning.result()
            step += self.environments
            training, streams = self._store(training, streams, moves, count, step, is_last=row == rows - 1)
            cycle, place = divmod(row, self.pace.rows)
            if place == self.pace.rows - 1 and first + cycle >= learns_from:
                due = first + cycle
            if not self.overlaps:
                if due is not None:
                    training, due = self._update(training, due), None
                training, streams = self._choose(training, streams, step)
            now = time.perf_counter()
            if now - reported > SECONDS_BETWEEN_REPORTS:
                check_finite(training.tally, good)
                good = good_copy(training.learner.parameters, good)
                speed = (row + 1 - reported_row) * self.environments * self.seeds / (now - reported)
                epsilon = float(self.agent.epsilon.at(jnp.asarray(step), self.agent.warm_up_steps))
                report(Progress(step, ratios(count.returns, count.ended), mean_loss(training.tally), epsilon, speed))
                reported, reported_row = time.perf_counter(), row + 1
        if due is not None:
            training = self._update(training, due)
        check_finite(training.tally, good)
        return training, count

    def _begin(self, frames: Any) -> Streams:
        frames = jnp.asarray(self._by_seed(frames))
        blank = jnp.zeros((*frames.shape[:-1], self.frame_shape[-1] * self.shape.stack), frames.dtype)
        first = jnp.ones(frames.shape[:2], bool)
        return Streams(self._follow(blank, frames, first), jnp.zeros(frames.shape[:2], jnp.int32), first)

    def _choose(self, training: Training, streams: Streams, step: int) -> tuple[Training, Streams]:
        """Before the first update every action is random, and the network is left in peace."""
        choose = self._wander if step < self.agent.warm_up_steps else self._act
        key, streams = choose(training.learner.computed_with, training.key, streams, np.int32(step))
        return training._replace(key=key), streams

    def _update(self, training: Training, cycle: int) -> Training:
        """The updates that a cycle has earned."""
        update = (cycle - self.pace.warm_up) * self.pace.updates
        for done in range(0, self.pace.updates, self.updates_at_once):
            training = self._learn(training, np.int32(update + done))
            if (update + done + self.updates_at_once) % self.learner.target_period_updates == 0:
                training = training._replace(learner=self._copy_target(training.learner))
        return training

    def _store(
        self, training: Training, streams: Streams, moves: Moves, count: Count, step: int, is_last: bool
    ) -> tuple[Training, Streams]:
        """Stores what came of a row; where nothing is learned first, the next actions are chosen with it."""
        count.add(self._by_seed(moves.rewards), self._by_seed(moves.terminated | moves.truncated))
        truncated, finals = moves.truncated, moves.finals
        if is_last:  # what is under way is cut off here
            going = ~(moves.terminated | moves.truncated)
            shape = (-1, *[1] * (moves.frames.ndim - 1))
            finals = np.where(going.reshape(shape), moves.frames, moves.frames if finals is None else finals)
            truncated = truncated | going
        ends = np.where(moves.terminated, TERMINATED, np.where(truncated, TRUNCATED, GOES_ON))
        frames = self._by_seed(moves.frames)
        told = self._by_seed(np.stack([moves.rewards, ends], axis=1).astype(np.float32))
        if self.overlaps:
            turn = self._wandering_turn if step < self.agent.warm_up_steps else self._turn
            parameters, now = training.learner.computed_with, np.int32(step)
            key, replay, streams = turn(parameters, training.key, training.replay, streams, now, frames, told)
            training = training._replace(key=key)
        else:
            replay, streams = self._observe(training.replay, streams, frames, told)
        if truncated.any():
            replay = self._add_finals(replay, self._by_seed(finals), self._by_seed(truncated))
        return training._replace(replay=replay), streams

    def evaluate(self, parameters: PyTree[Array], iteration: int, seed: int, steps: int) -> Count:
        """Episodes begin in all environments until `steps` were played, and those that began are finished."""
        world, count = self.world(EVALUATION), Count(self.seeds, self.evaluation_environments)
        frames = world.reset(self._seeds(seed, iteration, EVALUATION))
        stacks = self._begin(frames).stacks
        keys = evaluation_keys(seed, self.seeds, iteration)
        active = np.ones((self.seeds, self.evaluation_environments), bool)
        lengths = np.zeros_like(active, int)
        row = 0
        while active.any():
            world.send(np.asarray(self._play(parameters, keys, np.int32(row), stacks)).reshape(-1))
            moves = world.receive()
            over = self._by_seed(moves.terminated | moves.truncated)
            lengths += 1
            endless = ~over & (lengths >= MOST_EVALUATION_STEPS)
            count.add(self._by_seed(moves.rewards), over | endless, active)
            active &= ~(endless | (over & (count.steps >= steps)[:, None]))
            lengths[over] = 0
            stacks = self._follow(stacks, self._by_seed(moves.frames), over)
            row += 1
        return count

    def _by_seed(self, values: Any) -> Any:
        return values.reshape(self.seeds, -1, *values.shape[1:])

    def _seeds(self, seed: int, iteration: int, phase: int) -> Int[np.ndarray, " SN"]:
        """Of every environment, the same whether seeds train alone or side by side."""
        count = (self.environments, self.evaluation_environments)[phase]
        drawn = [np.random.SeedSequence([seed + s, iteration, phase]).generate_state(count) for s in range(self.seeds)]
        return np.concatenate(drawn).astype(np.int64) % 2**31


def follow(stack: Array, frame: Array, first: Bool[Array, ""]) -> Array:
    """The stack one frame on, the newest last; at the start of an episode it is alone."""
    older = jnp.where(first, jnp.zeros((), stack.dtype), stack[..., frame.shape[-1] :])
    return jnp.concatenate([older, frame.astype(stack.dtype)], axis=-1)
