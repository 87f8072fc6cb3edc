"""The state of training, and the functions that both collectors share.

The functions choose actions, store steps and make updates. They are written for one seed; vmap adds more seeds.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree, UInt8

from multihorizon.agents import replay as replays
from multihorizon.agents.acting import require_unit_steps
from multihorizon.agents.learner import Learner, LearnerState, UpdateMetrics
from multihorizon.agents.replay import CONTINUES, INTERRUPTED, Replay, ReplayShape, Rows
from multihorizon.envs.timing import Timing
from multihorizon.training.keys import Keys, make_keys


class Tally(NamedTuple):
    """Sums over the updates of one iteration."""

    first: Int[Array, ""]  # how many updates the run made before this iteration
    updates: Int[Array, ""]
    losses: Float[Array, " H"]
    values: Float[Array, " H"]
    opening: Float[Array, " H"]  # losses of the first update
    bad: Int[Array, ""]  # how many updates the run made before the first loss that is not finite; -1 if all are finite

    @staticmethod
    def empty(num_heads: int, first_update: Int[Array, ""] | int = 0) -> "Tally":
        none, zeros = jnp.zeros((), jnp.int32), jnp.zeros(num_heads)
        return Tally(none + first_update, none, zeros, zeros, zeros, none - 1)

    @property
    def next_update(self) -> Int[Array, ""]:
        return self.first + self.updates

    def add(self, metrics: UpdateMetrics) -> "Tally":
        fails = ~jnp.all(jnp.isfinite(metrics.losses)) & (self.bad < 0)
        bad = jnp.where(fails, self.next_update, self.bad)
        opening = jnp.where(self.updates == 0, metrics.losses, self.opening)
        losses, values = self.losses + metrics.losses, self.values + metrics.values
        return Tally(self.first, self.updates + 1, losses, values, opening, bad)


class Episodes(NamedTuple):
    """Sums over episodes that ended. Returns are neither discounted nor clipped."""

    ended: Int[Array, "..."]
    returns: Float[Array, "..."]
    lengths: Int[Array, "..."]

    @staticmethod
    def empty(*shape: int) -> "Episodes":
        return Episodes(jnp.zeros(shape, jnp.int32), jnp.zeros(shape), jnp.zeros(shape, jnp.int32))

    def add(self, ended: Bool[Array, "..."], returns: Float[Array, "..."], lengths: Int[Array, "..."]) -> "Episodes":
        return Episodes(
            self.ended + ended,
            self.returns + jnp.where(ended, returns, 0.0),
            self.lengths + jnp.where(ended, lengths, 0),
        )

    def sum(self) -> "Episodes":
        """Returns the sums over the last axis."""
        return Episodes(*(value.sum(axis=-1) for value in self))


class Streams(NamedTuple):
    """The state of environments [m] between two steps."""

    observations: Array  # [m ...] stacks of the latest frames; frames before the start of the episode are blank
    first: Bool[Array, " m"]  # whether the latest frame is the first of its episode
    returns: Float[Array, " m"]  # returns of the current episodes so far
    lengths: Int[Array, " m"]

    @property
    def elapsed(self) -> Int[Array, " m"]:
        """The time since the start of each current episode. The weights of a precommitted agent depend on this time."""
        return self.lengths


class TrainingState(NamedTuple):
    """The complete state of training.

    `environments` is None if environments step on the host. `tally` and `episodes` cover one iteration and are not part
    of a checkpoint.
    """

    environments: Any
    replay: Replay
    learner: LearnerState
    keys: Keys
    tally: Tally
    episodes: Episodes


class Core:
    """The functions of an agent on the training state of one seed."""

    def __init__(self, learner: Learner, shape: ReplayShape) -> None:
        self.agent, self.learner, self.shape = learner.agent, learner, shape
        require_unit_steps(self.agent.consistency, shape.timing)

    def init(self, seed: Int[Array, ""]) -> TrainingState:
        keys = make_keys(seed)
        learner = self.learner.init(keys.network)
        return TrainingState(None, replays.init(self.shape), learner, keys, self.empty_tally(), Episodes.empty())

    def empty_tally(self, first_update: Int[Array, ""] | int = 0) -> Tally:
        return Tally.empty(len(self.agent.horizons), first_update)

    def start(self, frames: Array) -> Streams:
        """Returns streams at the start of episodes, given the first frames [m ...]."""
        zeros = jnp.zeros(frames.shape[0])
        observations = stack_of(frames, self.learner.observation_shape)
        return Streams(observations, jnp.ones(zeros.shape, bool), zeros, zeros.astype(jnp.int32))

    def act(self, parameters: PyTree[Array], key: Key[Array, ""], streams: Streams, step: Int[Array, ""]) -> Array:
        """Returns ε-greedy actions [m] at a step of the run."""
        epsilon = self.agent.epsilon.at(step, self.agent.warm_up_steps)
        key = jax.random.fold_in(key, step)
        return act_all(self.learner, parameters, key, streams.observations, epsilon, streams.elapsed)

    def observe(
        self,
        replay: Replay,
        episodes: Episodes,
        streams: Streams,
        actions: Int[Array, " m"],
        rewards: Float[Array, " m"],
        ends: UInt8[Array, " m"],
        frames: Array,
        first_stream: Int[Array, ""] | int = 0,
        timing: Timing = Timing(),
    ) -> tuple[Replay, Episodes, Streams]:
        """Stores one step of several streams, and counts the episodes that ended.

        `ends` are the end codes of `agents.replay`. If an episode ended, `frames` contains the first frame of the next
        episode. `first_stream` is the index of the first given stream in the replay buffer.
        """
        latest = streams.observations[..., -self.shape.frame_shape[-1] :]
        stored = jnp.clip(rewards, -1, 1) if self.agent.clip_rewards else rewards
        rows = Rows(latest, actions, stored, ends, streams.first, timing)
        replay = replays.add(self.shape, replay, rows, first_stream)
        begins = ends != CONTINUES
        returns, lengths = streams.returns + rewards, streams.lengths + 1
        ended = Episodes.empty(*ends.shape).add(begins & (ends != INTERRUPTED), returns, lengths).sum()
        following = Streams(
            follow_all(streams.observations, frames, begins),
            begins,
            jnp.where(begins, 0.0, returns),
            jnp.where(begins, 0, lengths),
        )
        return replay, jax.tree.map(jnp.add, episodes, ended), following

    def learn(self, state: TrainingState) -> TrainingState:
        """Makes one update. The collector copies the target network."""
        key = jax.random.fold_in(state.keys.learning, state.tally.next_update)
        learner, replay, metrics = self.learner.learn(self.shape, state.learner, state.replay, key)
        return state._replace(learner=learner, replay=replay, tally=state.tally.add(metrics))


def act_all(
    learner: Learner,
    parameters: PyTree[Array],
    key: Key[Array, ""],
    observations: Array,
    epsilon: Float[Array, ""],
    elapsed: Array,
) -> Int[Array, " m"]:
    """Returns ε-greedy actions for observations [m ...]. `elapsed` [m] are the times since the episodes started."""
    keys = jax.random.split(key, observations.shape[0])
    return jax.vmap(partial(learner.act, parameters), (0, 0, None, 0))(keys, observations, epsilon, elapsed)


def follow(stack: Array, frame: Array, first: Bool[Array, ""]) -> Array:
    """Appends a frame to a stack. At the start of an episode, the older frames are blank."""
    older = jnp.where(first, jnp.zeros((), stack.dtype), stack[..., frame.shape[-1] :])
    return jnp.concatenate([older, frame.astype(stack.dtype)], axis=-1)


follow_all = jax.vmap(follow)


def stack_of(frames: Array, observation_shape: tuple[int, ...]) -> Array:
    """Returns the observations [m ...] at the start of episodes, given the first frames [m ...]."""
    blank = jnp.zeros((frames.shape[0], *observation_shape), frames.dtype)
    return follow_all(blank, frames, jnp.ones(frames.shape[0], bool))
