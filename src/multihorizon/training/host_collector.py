"""Collects transitions from environments that step on the CPU while the device learns.

Environments step in groups that take turns. While the device stores one group's step and chooses its next actions, the
other groups step. Updates follow the choice of actions, so the device learns while environments step. With one
environment, updates precede the next action, as in the paper.

The environments' state cannot be saved, so a checkpoint is possible only when all environments begin new episodes.
Every few iterations, all open episodes are therefore truncated, as by a time limit.

Every value that the host sends to the device costs a transfer. The device therefore counts steps and updates itself.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key, PyTree, UInt8

from multihorizon import interrupts
from multihorizon.agents import replay as replays
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import Torso
from multihorizon.agents.replay import CONTINUES, INTERRUPTED, Replay, ReplayShape, end_codes
from multihorizon.envs.timing import Timing, TimingFields
from multihorizon.envs.vector import Moves, VectorEnvironment
from multihorizon.errors import at_least
from multihorizon.kernels.convolution import convolve_for
from multihorizon.training.compiling import call, compiled, updates
from multihorizon.training.host_environments import HostEnvironments, usual_groups
from multihorizon.training.keys import TRAINING
from multihorizon.training.schedule import Schedule, make_pace
from multihorizon.training.state import Core, Episodes, Streams, TrainingState
from multihorizon.training.trainer import Iteration, Reporter


class Group(NamedTuple):
    """The state of a group of environments [m], which is stored on the device."""

    streams: Streams
    actions: Int[Array, " m"]  # next actions
    first: Int[Array, ""]  # index of the group's first environment among all environments
    step: Int[Array, ""]  # number of steps in the run, over all groups, up to this group's latest turn


class OpenEpisodes(NamedTuple):
    """Episodes that the next iteration continues."""

    iteration: int
    groups: list[Group]


class HostCollector:
    """Trains `num_seeds` seeds of an agent in environments on the host.

    Args:
        make: Makes a vector environment with the given number of environments.
        num_envs: The number of environments for each seed.
        groups: A function from the number of environments to the number of groups.
        whole_every: The number of iterations after which all episodes are truncated. By default, the longest episode
            fits into this number of iterations.
    """

    def __init__(
        self,
        agent: AgentConfig,
        make: Callable[[int], VectorEnvironment],
        torso: Torso,
        schedule: Schedule,
        num_seeds: int = 1,
        num_envs: int = 1,
        groups: Callable[[int], int] = usual_groups,
        whole_every: int | None = None,
    ) -> None:
        self.agent = agent
        self.num_seeds, self.num_envs = at_least("the number of seeds", num_seeds, 1), num_envs
        at_least("the number of environments", num_envs, 1)
        self.environments = HostEnvironments(make, num_seeds, num_envs, TRAINING, groups)
        self.pace = make_pace(agent, num_envs, self.environments.group_size)
        rounds = make_pace(agent, num_envs)  # groups must not change the length of an iteration
        self.cycles = rounds.cycles(schedule.training_steps) * (rounds.steps // self.pace.steps)
        self.overlaps = num_envs > 1
        one = make(1)  # used only for its attributes, because making all environments takes a while
        one.close()
        longest = -(-num_envs * one.most_steps // (self.cycles * self.pace.steps))
        self.whole_every = whole_every or max(1, longest)
        frame_shape = tuple(one.frame_shape)
        observation_shape = (*frame_shape[:-1], frame_shape[-1] * one.stack)
        learner = Learner(agent, one.actions, observation_shape, torso, convolve_for(in_loop=num_seeds > 1))
        size = agent.replay_capacity, num_envs, frame_shape, one.frame_dtype, one.stack
        shape = ReplayShape(*size, agent.n_steps, agent.batch, one.timing)
        self.core = Core(learner, shape)
        # On a CPU, each update is a separate call. A single program for several updates would be a loop, in which XLA
        # computes convolutions with only one thread.
        self.learns_at_once = jax.default_backend() != "cpu"
        self.programs = Programs(self.core, self.pace.updates)
        self._open_episodes: OpenEpisodes | None = None

    def init(self, seed: int) -> TrainingState:
        return call(self.programs.init, jnp.arange(seed, seed + self.num_seeds))

    def close(self) -> None:
        self.environments.close()

    def collect(self, state: TrainingState, iteration: Iteration, reporter: Reporter) -> TrainingState:
        turns, num_groups = self.cycles * self.pace.rows, self.environments.groups
        step = iteration.first_cycle * self.pace.steps
        ends = (iteration.number + 1) % self.whole_every == 0 or iteration.is_last
        groups = self._continue_or_reset(state, iteration, step)
        for group in range(num_groups):
            self.environments.send(group, groups[group].actions)
        for turn in range(turns):
            group, is_last = turn % num_groups, turn + num_groups >= turns
            interrupts.check()
            moves = self.environments.receive(group)
            step += self.environments.group_size
            state, groups[group] = self._store(state, groups[group], moves, step, is_last and ends)
            cycle, row = divmod(turn, self.pace.rows)
            cycle += iteration.first_cycle
            if row == self.pace.rows - 1 and cycle >= iteration.learns_from:
                state = self.programs.learn(state, self.pace.updates_before(cycle), self.learns_at_once)
            if not self.overlaps:
                groups[group] = self._choose(state, groups[group], step)
            if not is_last:
                self.environments.send(group, groups[group].actions)
            if reporter.is_due():
                reporter.tell(state, step)
        self._open_episodes = None if ends else OpenEpisodes(iteration.number + 1, groups)
        return state

    def _continue_or_reset(self, state: TrainingState, iteration: Iteration, step: int) -> list[Group]:
        """Returns the groups with their next actions. Continues open episodes, or else starts new episodes."""
        open_episodes, self._open_episodes = self._open_episodes, None  # an interrupt leaves no open episodes
        if open_episodes is not None and open_episodes.iteration == iteration.number:
            return open_episodes.groups
        groups = []
        for group in range(self.environments.groups):
            frames = self.environments.reset(group, iteration.seed, iteration.number)
            first = self.environments.first(group)
            before = step + first + self.environments.group_size - self.num_envs  # `Group.step` at the previous turn
            places, steps = (jnp.full(self.num_seeds, value, jnp.int32) for value in (first, before))
            groups.append(self._choose(state, self.programs.start(frames, places, steps), step))
        return groups

    def _choose(self, state: TrainingState, group: Group, step: int) -> Group:
        """Chooses the next actions, which are random during the warm-up."""
        choose = self.programs.act_randomly if step < self.agent.warm_up_steps else self.programs.act
        return choose(state.learner.computed_with, state.keys.acting, group)

    def _store(
        self, state: TrainingState, group: Group, moves: Moves, step: int, interrupts: bool
    ) -> tuple[TrainingState, Group]:
        """Stores a group's step. With several environments, also chooses the next actions."""
        ends, finals = end_codes(moves.terminated, moves.truncated), moves.finals
        if interrupts:
            continues = ends == CONTINUES
            axes = (*continues.shape, *[1] * (moves.frames.ndim - continues.ndim))
            finals = np.where(continues.reshape(axes), moves.frames, moves.frames if finals is None else finals)
            ends = np.where(continues, INTERRUPTED, ends)
        packed = pack(moves.rewards, ends, moves.timing)
        if self.overlaps:
            turn = self.programs.warm_up_turn if step < self.agent.warm_up_steps else self.programs.turn
            parameters, key = state.learner.computed_with, state.keys.acting
            replay, episodes, group = turn(parameters, key, state.replay, state.episodes, group, moves.frames, packed)
            group.actions.copy_to_host_async()  # starts the transfer before the updates
        else:
            replay, episodes, group = self.programs.observe(state.replay, state.episodes, group, moves.frames, packed)
        cut_off = replays.has_final(ends)
        if cut_off.any():
            replay = self.programs.add_finals(replay, finals, cut_off, group.first)
        return state._replace(replay=replay, episodes=episodes), group


def pack(
    rewards: Float[np.ndarray, "S m"], ends: Int[np.ndarray, "S m"], timing: Timing = Timing()
) -> Float[np.ndarray, "S m k"]:
    """Joins the results of a step into one array, because each array needs a separate transfer."""
    return np.stack([rewards, ends, *jax.tree.leaves(timing)], axis=-1).astype(np.float32)


def unpack(
    packed: Float[Array, "m k"], timing: TimingFields = TimingFields()
) -> tuple[Float[Array, " m"], UInt8[Array, " m"], Timing]:
    """Splits an array that `pack` made."""
    columns = iter(range(2, packed.shape[1]))
    return packed[:, 0], packed[:, 1].astype(jnp.uint8), timing.fill(lambda: packed[:, next(columns)])


class Programs:
    """The device's programs. Each program is a pure function of one seed, compiled for all seeds."""

    def __init__(self, core: Core, updates_per_cycle: int) -> None:
        self._core, self._updates_per_cycle = core, updates_per_cycle
        self.init = compiled(jax.vmap(core.init))
        self.start = compiled(jax.vmap(self._start_one))
        self.act, self.act_randomly = (
            compiled(jax.vmap(partial(self._act_one, random=random)), donate_argnums=2) for random in (False, True)
        )
        self.observe = compiled(jax.vmap(self._observe_one), donate_argnums=(0, 1, 2))
        self.turn, self.warm_up_turn = (
            compiled(jax.vmap(partial(self._turn_one, random=random)), donate_argnums=(2, 3, 4))
            for random in (False, True)
        )
        self.add_finals = compiled(jax.vmap(partial(replays.add_finals, core.shape)), donate_argnums=0)
        self.learn_one = compiled(jax.vmap(core.learn), only_updates=True, donate_argnums=0)
        self.learn_all = compiled(jax.vmap(self._learn_all), only_updates=True, donate_argnums=0)
        self.copy = compiled(partial(jax.tree.map, jnp.copy))

    def _start_one(self, frames: Array, first: Int[Array, ""], step: Int[Array, ""]) -> Group:
        return Group(self._core.start(frames), jnp.zeros(frames.shape[0], jnp.int32), first, step)

    def _act_one(self, parameters: PyTree[Array], key: Key[Array, ""], group: Group, random: bool) -> Group:
        if random:
            key = jax.random.fold_in(key, group.step)
            actions = jax.random.randint(key, group.actions.shape, 0, self._core.learner.actions)
        else:
            actions = self._core.act(parameters, key, group.streams, group.step)
        return group._replace(actions=actions)

    def _observe_one(
        self, replay: Replay, episodes: Episodes, group: Group, frames: Array, packed: Float[Array, "m k"]
    ) -> tuple[Replay, Episodes, Group]:
        rewards, ends, timing = unpack(packed, self._core.shape.timing)
        replay, episodes, streams = self._core.observe(
            replay, episodes, group.streams, group.actions, rewards, ends, frames, group.first, timing
        )
        return replay, episodes, group._replace(streams=streams, step=group.step + self._core.shape.streams)

    def _turn_one(
        self,
        parameters: PyTree[Array],
        key: Key[Array, ""],
        replay: Replay,
        episodes: Episodes,
        group: Group,
        frames: Array,
        packed: Float[Array, "m k"],
        random: bool,
    ) -> tuple[Replay, Episodes, Group]:
        replay, episodes, group = self._observe_one(replay, episodes, group, frames, packed)
        return replay, episodes, self._act_one(parameters, key, group, random)

    def learn(self, state: TrainingState, first: int, at_once: bool) -> TrainingState:
        """Makes the updates of a cycle, and copies the target network when a copy is due.

        `first` is the number of earlier updates. With `at_once`, one program makes all updates, unless a copy of the
        target is due between two updates.
        """
        count, copies_target_after = self._updates_per_cycle, self._core.learner.copies_target_after
        in_one = at_once and not any(map(copies_target_after, range(first + 1, first + count)))
        learn, together = (self.learn_all, count) if in_one else (self.learn_one, 1)
        for made in range(first + together, first + count + 1, together):
            state = learn(state)
            if copies_target_after(made):
                target = self.copy(state.learner.computed_with)
                state = state._replace(learner=state.learner._replace(target=target))
        return state

    def _learn_all(self, state: TrainingState) -> TrainingState:
        """Makes all updates of a cycle.

        The state stays at the same place in memory, so the CUDA graph of the updates is reused in every cycle.
        """
        return updates(lambda state, _: (self._core.learn(state), None), state, jnp.arange(self._updates_per_cycle))[0]
