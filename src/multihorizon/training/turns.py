"""What the device does in a turn of environments on the host: pure functions of one seed, compiled for all of them.

What the host has to hand over goes through a thread that it waits for, be it a single number. So the device keeps count
of steps and updates by itself, and is told of nothing but what the environments did.
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from multihorizon.agents import replay as replays
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner, LearnerState
from multihorizon.agents.replay import GOES_ON, Replay, ReplayShape, Rows
from multihorizon.training.compiling import compiled, updates
from multihorizon.training.iterations import Tally
from multihorizon.training.streams import follow


class Training(NamedTuple):
    """The whole state of one seed between two iterations."""

    replay: Replay
    learner: LearnerState
    key: Key[Array, ""]
    tally: Tally


class Streams(NamedTuple):
    """What the device knows of the environments [m] of a group between two of its steps."""

    stacks: Array  # the last frames along the last axis, blank before an episode's start
    actions: Int[Array, " m"]
    first: Bool[Array, " m"]
    place: Int[Array, ""]  # of the first of them among all environments
    step: Int[Array, ""]  # of the run, after their last turn


EACH = Streams(0, 0, 0, None, None)  # type: ignore[arg-type]  # what every seed has of its own


class Programs:
    """The parts of a turn, each a program of its own."""

    def __init__(self, agent: AgentConfig, learner: Learner, shape: ReplayShape, updates_a_cycle: int) -> None:
        self.agent, self.learner, self.shape, self.updates_a_cycle = agent, learner, shape, updates_a_cycle
        self.act, self.act_randomly = (
            compiled(
                jax.vmap(partial(self._act_one, random=random), (0, 0, EACH), (0, EACH)),
                donate_argnums=(1, 2),
            )
            for random in (False, True)
        )
        self.observe = compiled(jax.vmap(self._observe_one, (0, EACH, 0, 0), (0, EACH)), donate_argnums=(0, 1))
        self.turn, self.warm_up_turn = (
            compiled(
                jax.vmap(partial(self._turn_one, random=random), (0, 0, 0, EACH, 0, 0), (0, 0, EACH)),
                donate_argnums=(1, 2, 3),
            )
            for random in (False, True)
        )
        self.add_finals = compiled(jax.vmap(partial(replays.add_finals, self.shape), (0, 0, 0, None)), donate_argnums=0)
        self.learn_one = compiled(jax.vmap(self._learn_one), donate_argnums=0)
        self.learn_all = compiled(jax.vmap(self._learn_all), donate_argnums=0)
        self.copy_target = compiled(jax.vmap(self.learner.copy_target), donate_argnums=0)
        self.play = compiled(jax.vmap(self._play_one, (0, 0, None, 0, 0, 0)), donate_argnums=3)
        self.follow = compiled(jax.vmap(jax.vmap(follow)))

    def _act_one(
        self, parameters: PyTree[Array], key: Key[Array, ""], streams: Streams, random: bool
    ) -> tuple[Key[Array, ""], Streams]:
        key, act_key = jax.random.split(key)
        if random:
            actions = jax.random.randint(act_key, streams.actions.shape, 0, self.learner.actions)
        else:
            epsilon = self.agent.epsilon.at(streams.step, self.agent.warm_up_steps)
            actions = self._chosen(parameters, act_key, streams.stacks, epsilon)
        return key, streams._replace(actions=actions)

    def _chosen(
        self, parameters: PyTree[Array], key: Key[Array, ""], stacks: Array, epsilon: Float[Array, ""]
    ) -> Int[Array, " N"]:
        keys = jax.random.split(key, stacks.shape[0])
        return jax.vmap(partial(self.learner.act, parameters), (0, 0, None))(keys, stacks, epsilon)

    def _observe_one(
        self, replay: Replay, streams: Streams, frames: Array, told: Float[Array, "m 2"]
    ) -> tuple[Replay, Streams]:
        """Stores a step, whose action was chosen before: its frames, and the rewards and ends that came of it."""
        rewards, ends = told[:, 0], told[:, 1].astype(jnp.uint8)
        if self.agent.clip_rewards:
            rewards = jnp.clip(rewards, -1, 1)
        latest = streams.stacks[..., -self.shape.frame_shape[-1] :]
        rows = Rows(latest, streams.actions, rewards, ends, streams.first)
        replay = replays.add(self.shape, replay, rows, streams.place)
        begins = ends != GOES_ON
        stacks = jax.vmap(follow)(streams.stacks, frames, begins)
        return replay, streams._replace(stacks=stacks, first=begins, step=streams.step + self.shape.streams)

    def _turn_one(
        self,
        parameters: PyTree[Array],
        key: Key[Array, ""],
        replay: Replay,
        streams: Streams,
        frames: Array,
        told: Float[Array, "m 2"],
        random: bool,
    ) -> tuple[Key[Array, ""], Replay, Streams]:
        """Stores a step and chooses the next action, where nothing is learned in between."""
        replay, streams = self._observe_one(replay, streams, frames, told)
        key, streams = self._act_one(parameters, key, streams, random)
        return key, replay, streams

    def _learn_one(self, training: Training) -> Training:
        return self._learn(training, _learning_key(training.key, training.tally.next_update))[0]

    def _learn_all(self, training: Training) -> Training:
        """All the updates that a cycle earns. The state is all that they touch, and it stays where it is: a CUDA graph
        of them need not be made anew for every cycle, which would take the host as long as to launch it."""
        numbers = training.tally.next_update + jnp.arange(self.updates_a_cycle)
        return updates(self._learn, training, jax.vmap(partial(_learning_key, training.key))(numbers))[0]

    def _learn(self, training: Training, key: Key[Array, ""]) -> tuple[Training, None]:
        learner, replay, metrics = self.learner.learn(self.shape, training.learner, training.replay, key)
        return Training(replay, learner, training.key, training.tally.add(metrics)), None

    def _play_one(
        self,
        parameters: PyTree[Array],
        key: Key[Array, ""],
        turn: Int[Array, ""],
        stacks: Array,
        frames: Array,
        begins: Bool[Array, " N"],
    ) -> tuple[Array, Int[Array, " N"]]:
        """In evaluation: the next stacks, and what to do then."""
        stacks = jax.vmap(follow)(stacks, frames, begins)
        epsilon = jnp.asarray(self.agent.epsilon.evaluation)
        return stacks, self._chosen(parameters, jax.random.fold_in(key, turn), stacks, epsilon)


def _learning_key(key: Key[Array, ""], update: Int[Array, ""]) -> Key[Array, ""]:
    """Apart from those that acting splits off, which are the first two."""
    return jax.random.fold_in(key, update + 2)
