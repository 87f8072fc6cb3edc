"""Training in environments that step on the CPU while the device learns. Nothing here knows of Atari.

Environments step in groups that take turns: what came of one group's steps is stored and its next actions are chosen
while the others step. Where the CPU has to learn as well, all step at once. The updates that a turn has earned are
handed to the device after its actions are chosen, and made while the environments step. With one environment they come
before the next action, as in the paper. The environments' state cannot be saved, so that every few iterations all begin
new episodes, and those under way are cut off there, as by a time limit.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, Key, PyTree

from multihorizon.agents import replay as replays
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import Torso
from multihorizon.agents.replay import GOES_ON, TERMINATED, TRUNCATED, ReplayShape
from multihorizon.envs.vector import Moves, VectorEnvironment
from multihorizon.errors import InputError, at_least
from multihorizon.kernels.convolution import convolve_for
from multihorizon.training.compiling import call, compiled
from multihorizon.training.count import Count
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
from multihorizon.training.turns import Programs, Streams, Training

SECONDS_BETWEEN_REPORTS = 1.0
TRAINING, EVALUATION = range(2)  # phases of an iteration, each with seeds of its own
GROUP = 40  # environments: so many steps are worth a turn of the host
MOST_GROUPS = 4


def usual_groups(environments: int) -> int:
    """Two, or more where each is still worth a turn, all of one size; beside a CPU that learns, one."""
    most = 1 if jax.default_backend() == "cpu" else min(MOST_GROUPS, max(2, environments // GROUP))
    return max(groups for groups in range(1, most + 1) if environments % groups == 0)


def _of_one_size(environments: int, groups: Callable[[int], int]) -> int:
    count = at_least("the number of groups", groups(environments), 1)
    if environments % count:
        raise InputError(f"{environments} environments cannot step in {count} groups of one size")
    return count


class Running(NamedTuple):
    """What is under way between two iterations."""

    iteration: int  # that goes on with it
    streams: list[Streams]  # by group
    counted: Count


class HostTrainer:
    """Trains `seeds` runs of an agent side by side, each with its own network, environments, replay and keys.
    `make` makes a vector environment of so many; `groups` says in how many groups a number of them steps."""

    def __init__(
        self,
        agent: AgentConfig,
        make: Callable[[int], VectorEnvironment],
        torso: Torso,
        schedule: Schedule,
        seeds: int = 1,
        environments: int = 1,
        evaluation_environments: int = 10,
        groups: Callable[[int], int] = usual_groups,
        whole_every: int | None = None,
    ) -> None:
        self.agent, self.schedule, self.make = agent, schedule, make
        self.seeds = at_least("the number of seeds", seeds, 1)
        self.environments = environments
        self.groups = _of_one_size(environments, groups)
        self.at_once = environments // self.groups
        self.pace = pace_of(agent, environments, self.at_once)
        rounds = pace_of(agent, environments)  # of all of them: an iteration is as long whatever the groups
        self.cycles = rounds.cycles(schedule.training_steps) * (rounds.steps // self.pace.steps)
        self.overlaps = environments > 1
        self.evaluation_environments = at_least("the number of evaluation environments", evaluation_environments, 1)
        self.evaluation_groups = _of_one_size(evaluation_environments, groups)
        self.evaluation_at_once = evaluation_environments // self.evaluation_groups
        self._worlds: dict[tuple[int, int], VectorEnvironment] = {}
        self._running: Running | None = None
        world = make(1)  # to look at: all of them take their time, and may be too many
        world.close()
        self.frame_shape = tuple(world.frame_shape)
        # Unless told otherwise, an environment has time for its longest episode before it has to begin a new one.
        longest = -(-environments * world.most_steps // (self.cycles * self.pace.steps))
        self.whole_every = whole_every or max(1, longest)
        observed = (*self.frame_shape[:-1], self.frame_shape[-1] * world.stack)
        convolve = convolve_for(in_loop=seeds > 1)
        self.learner = Learner(agent, world.actions, observed, torso, convolve)
        self.guard = Guard(self.learner)
        self.learns_at_once = jax.default_backend() != "cpu"  # in a loop XLA's convolutions have no threads there
        self.shape = ReplayShape(
            agent.replay_capacity,
            environments,
            self.frame_shape,
            world.frame_dtype,
            world.stack,
            agent.n_steps,
            agent.batch,
        )
        self._init = compiled(jax.vmap(self._init_one))
        self.programs = Programs(agent, self.learner, self.shape, self.pace.updates)

    def world(self, phase: int, group: int = 0) -> VectorEnvironment:
        """The environments of all seeds, made when they are first needed."""
        if (phase, group) not in self._worlds:
            count = (self.at_once, self.evaluation_at_once)[phase]
            self._worlds[phase, group] = self.make(self.seeds * count)
        return self._worlds[phase, group]

    def close(self) -> None:
        for world in self._worlds.values():
            world.close()
        self._worlds.clear()

    def init(self, seed: int) -> Training:
        keys = jax.vmap(jax.random.key)(jnp.arange(seed, seed + self.seeds))
        return call(self._init, keys)

    def _init_one(self, key: Key[Array, ""]) -> Training:
        network_key, key = jax.random.split(key)
        tally = Tally.none(len(self.agent.horizons))
        return Training(replays.init(self.shape), self.learner.init(network_key), key, tally)

    # An iteration, on the host.

    def iterate(self, training: Training, iteration: int, seed: int, report: Report) -> tuple[Training, Outcome]:
        begun = time.perf_counter()
        training, count = self._train(training, iteration, seed, report)
        trained = time.perf_counter() - begun
        steps = self.schedule.evaluation_steps
        evaluated = self.evaluate(training.learner.parameters, iteration, seed, steps, report) if steps else None
        whole = time.perf_counter() - begun
        return training, outcome_of(self, iteration, training.tally, count, evaluated, trained, whole)

    def _train(self, training: Training, iteration: int, seed: int, report: Report) -> tuple[Training, Count]:
        worlds = [self.world(TRAINING, group) for group in range(self.groups)]
        first, turns = iteration * self.cycles, self.cycles * self.pace.rows
        learns_from = self.pace.learns_from(first, held_steps(training.replay))
        training = training._replace(tally=self._nothing(self.pace.updates_before(learns_from)))
        step = first * self.pace.steps
        ends = (iteration + 1) % self.whole_every == 0 or iteration + 1 == self.schedule.iterations
        training, streams, count = self._under_way(training, iteration, seed, step)
        for group in range(self.groups):
            self._send(group, streams[group])
        self.guard.begin(training)
        reported, reported_turn = time.perf_counter(), 0
        for turn in range(turns):
            group, is_last = turn % self.groups, turn + self.groups >= turns
            cuts = is_last and ends
            moves = worlds[group].receive()
            step += self.at_once
            training, streams[group] = self._store(training, streams[group], moves, count, step, group, cuts)
            cycle, place = divmod(turn, self.pace.rows)
            if place == self.pace.rows - 1 and first + cycle >= learns_from:
                training = self._update(training, first + cycle)
            if not self.overlaps:
                training, streams[group] = self._choose(training, streams[group], step)
            if not is_last:
                self._send(group, streams[group])
            now = time.perf_counter()
            if now - reported > SECONDS_BETWEEN_REPORTS:
                self.guard.check(training)
                speed = (turn + 1 - reported_turn) * self.at_once * self.seeds / (now - reported)
                epsilon = float(self.agent.epsilon.at(step, self.agent.warm_up_steps))
                report(Progress(step, ratios(count.returns, count.ended), mean_loss(training.tally), epsilon, speed))
                reported, reported_turn = now, turn + 1
        self.guard.check(training)
        self._running = None if ends else Running(iteration + 1, streams, count)
        return training, count

    def _under_way(
        self, training: Training, iteration: int, seed: int, step: int
    ) -> tuple[Training, list[Streams], Count]:
        """The episodes that an iteration goes on with, and the actions that come next in them."""
        running, self._running = self._running, None  # an iteration that is interrupted leaves none to continue
        if iteration % self.whole_every and running is not None and running.iteration == iteration:
            running.counted.forget()
            return training, running.streams, running.counted
        seeds, streams = self._by_seed(self._seeds(seed, iteration, TRAINING)), []
        for group in range(self.groups):
            frames = self.world(TRAINING, group).reset(seeds[:, self._of(group)].reshape(-1))
            training, chosen = self._choose(training, self._begin(frames, group, step), step)
            streams.append(chosen)
        return training, streams, Count(self.seeds, self.environments)

    def _of(self, group: int, phase: int = TRAINING) -> slice:
        size = (self.at_once, self.evaluation_at_once)[phase]
        return slice(group * size, (group + 1) * size)

    def _nothing(self, first_update: int) -> Tally:
        return jax.vmap(lambda _: Tally.none(len(self.agent.horizons), first_update))(jnp.arange(self.seeds))

    def _begin(self, frames: Any, group: int, step: int) -> Streams:
        frames = self._by_seed(frames)
        first = jnp.ones(frames.shape[:2], bool)
        stacks = self.programs.follow(self._blank(frames), frames, first)
        actions, place = jnp.zeros(frames.shape[:2], jnp.int32), jnp.int32(self._of(group).start)
        before = jnp.int32(step + (group + 1) * self.at_once - self.environments)  # its turns are a round apart
        return Streams(stacks, actions, first, place, before)

    def _blank(self, frames: Any) -> Array:
        """Stacks for these frames, before the first of them."""
        return jnp.zeros((*frames.shape[:-1], self.frame_shape[-1] * self.shape.stack), frames.dtype)

    def _choose(self, training: Training, streams: Streams, step: int) -> tuple[Training, Streams]:
        """Before the first update every action is random, and the network is left in peace."""
        choose = self.programs.act_randomly if step < self.agent.warm_up_steps else self.programs.act
        key, streams = choose(training.learner.computed_with, training.key, streams)
        return training._replace(key=key), streams

    def _send(self, group: int, streams: Streams) -> None:
        """Waits for a group's actions, and so for the updates before them, but not for those handed over after them."""
        self.world(TRAINING, group).send(np.asarray(streams.actions).reshape(-1))

    def _update(self, training: Training, cycle: int) -> Training:
        """The updates that a cycle has earned, as one program unless the target is to be copied between two of them."""
        count, period = self.pace.updates, self.learner.target_period_updates
        first = self.pace.updates_before(cycle)
        in_one = self.learns_at_once and first % period + count <= period
        learn, together = (self.programs.learn_all, count) if in_one else (self.programs.learn_one, 1)
        for update in range(first, first + count, together):
            training = learn(training)
            if (update + together) % period == 0:
                training = training._replace(learner=self.programs.copy_target(training.learner))
        return training

    def _store(
        self, training: Training, streams: Streams, moves: Moves, count: Count, step: int, group: int, cuts: bool
    ) -> tuple[Training, Streams]:
        """Stores what came of a turn; where nothing is learned first, the next actions are chosen with it."""
        over = self._by_seed(moves.terminated | moves.truncated)
        count.add(self._by_seed(moves.rewards), over, first=self._of(group).start)
        truncated, finals = moves.truncated, moves.finals
        if cuts:  # what is under way
            going = ~(moves.terminated | moves.truncated)
            shape = (-1, *[1] * (moves.frames.ndim - 1))
            finals = np.where(going.reshape(shape), moves.frames, moves.frames if finals is None else finals)
            truncated = truncated | going
        ends = np.where(moves.terminated, TERMINATED, np.where(truncated, TRUNCATED, GOES_ON))
        frames = self._by_seed(moves.frames)
        told = self._by_seed(np.stack([moves.rewards, ends], axis=1).astype(np.float32))
        if self.overlaps:
            turn = self.programs.warm_up_turn if step < self.agent.warm_up_steps else self.programs.turn
            parameters = training.learner.computed_with
            key, replay, streams = turn(parameters, training.key, training.replay, streams, frames, told)
            streams.actions.copy_to_host_async()  # as soon as they are chosen, while updates are handed over
            training = training._replace(key=key)
        else:
            replay, streams = self.programs.observe(training.replay, streams, frames, told)
        if truncated.any():
            replay = self.programs.add_finals(replay, self._by_seed(finals), self._by_seed(truncated), streams.place)
        return training._replace(replay=replay), streams

    def evaluate(
        self,
        parameters: PyTree[Array],
        iteration: int,
        seed: int,
        steps: int,
        report: Report = lambda progress: None,
    ) -> Count:
        """Episodes begin in all environments until `steps` were played, and those that began are finished."""
        groups, count = self.evaluation_groups, Count(self.seeds, self.evaluation_environments)
        keys = evaluation_keys(seed, self.seeds, iteration)
        seeds = self._by_seed(self._seeds(seed, iteration, EVALUATION))
        active = np.ones((self.seeds, self.evaluation_environments), bool)
        lengths = np.zeros_like(active, int)
        trained = (iteration + 1) * self.cycles * self.pace.steps
        stacks: list[Any] = []

        def go_on(turn: int, group: int, frames: Any, begins: Any) -> None:
            play = self.programs.play
            stacks[group], actions = play(parameters, keys, np.int32(turn), stacks[group], frames, begins)
            self.world(EVALUATION, group).send(np.asarray(actions).reshape(-1))

        for group in range(groups):
            which = self._of(group, EVALUATION)
            frames = self._by_seed(self.world(EVALUATION, group).reset(seeds[:, which].reshape(-1)))
            stacks.append(self._blank(frames))
            go_on(group, group, frames, active[:, which])
        reported, played, turn = time.perf_counter(), 0, groups
        while active.any():
            group = turn % groups
            which = self._of(group, EVALUATION)
            if active[:, which].any():
                moves = self.world(EVALUATION, group).receive()
                over = self._by_seed(moves.terminated | moves.truncated)
                lengths[:, which] += 1
                endless = ~over & (lengths[:, which] >= MOST_EVALUATION_STEPS)
                count.add(self._by_seed(moves.rewards), over | endless, active[:, which], first=which.start)
                active[:, which] &= ~(endless | (over & (count.steps >= steps)[:, None]))
                lengths[:, which][over] = 0
                if active[:, which].any():
                    go_on(turn, group, self._by_seed(moves.frames), over)
            turn += 1
            now, all_played = time.perf_counter(), int(count.steps.sum())
            if now - reported > SECONDS_BETWEEN_REPORTS:
                speed = (all_played - played) / (now - reported)
                returns, epsilon = ratios(count.returns, count.ended), self.agent.epsilon.evaluation
                report(Progress(trained, returns, None, epsilon, speed, (all_played, int(count.ended.sum()))))
                reported, played = now, all_played
        return count

    def _by_seed(self, values: Any) -> Any:
        return values.reshape(self.seeds, -1, *values.shape[1:])

    def _seeds(self, seed: int, iteration: int, phase: int) -> Int[np.ndarray, " SN"]:
        """Of every environment, the same whether seeds train alone or side by side."""
        count = (self.environments, self.evaluation_environments)[phase]
        drawn = [np.random.SeedSequence([seed + s, iteration, phase]).generate_state(count) for s in range(self.seeds)]
        return np.concatenate(drawn).astype(np.int64) % 2**31
