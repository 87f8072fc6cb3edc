"""Evaluation with frozen weights, in environments on the device.

New episodes start until all environments together have played a given number of steps. Open episodes are then finished.
An episode that reaches `most_steps` is cut off: its environment stops, and the return so far is the episode's return.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from multihorizon.agents.acting import require_unit_steps
from multihorizon.agents.learner import Learner
from multihorizon.envs.environment import Environment, timing_fields
from multihorizon.errors import at_least
from multihorizon.training.compiling import compiled
from multihorizon.training.device_collector import step_and_reset
from multihorizon.training.schedule import MOST_EVALUATION_STEPS
from multihorizon.training.state import Episodes, act_all
from multihorizon.training.trainer import Iteration, Report

MOST_STEPS = 27_000


class Evaluation(NamedTuple):
    """The state of an evaluation in environments [N]."""

    active: Bool[Array, " N"]
    returns: Float[Array, " N"]  # returns of the current episodes so far
    lengths: Int[Array, " N"]
    episodes: Episodes  # [N]

    @property
    def elapsed(self) -> Int[Array, " N"]:
        """The time since the start of each current episode."""
        return self.lengths

    @staticmethod
    def begin(num_envs: int) -> "Evaluation":
        episodes = Episodes.empty(num_envs)
        return Evaluation(jnp.ones(num_envs, bool), episodes.returns, episodes.lengths, episodes)

    def add(
        self,
        rewards: Float[Array, " N"],
        over: Bool[Array, " N"],
        played: Int[Array, ""],
        steps: Int[Array, ""] | int,
        most_steps: int,
    ) -> "tuple[Evaluation, Int[Array, '']]":
        """Adds one step of every environment, and returns the number of steps so far (capped below 2³¹).

        `over` marks episodes that ended. New episodes start only during the first `steps` steps of all environments
        together. An episode is cut off after `most_steps` steps of its own.
        """
        played = jnp.minimum(played, MOST_EVALUATION_STEPS) + self.active.sum()
        returns, lengths = self.returns + rewards, self.lengths + 1
        is_cut = ~over & (lengths >= most_steps)
        episodes = self.episodes.add(self.active & (over | is_cut), returns, lengths)
        active = self.active & ~(is_cut | (over & (played >= steps)))
        return Evaluation(active, jnp.where(over, 0.0, returns), jnp.where(over, 0, lengths), episodes), played


class _Playing(NamedTuple):
    states: Any
    observations: Array
    evaluation: Evaluation
    played: Int[Array, ""]
    turn: Int[Array, ""]


def play_episodes(
    learner: Learner,
    environment: Environment,
    parameters: PyTree[Array],
    key: Key[Array, ""],
    num_envs: int,
    most_steps: int,
    epsilon: float,
    steps: int | Int[Array, ""] = 0,
) -> Episodes:
    """Plays episodes in environments [N] on the device. With `steps` = 0, each environment plays one episode.

    The function is pure, so it supports jit and vmap.
    """
    reset_key, act_key, step_key = jax.random.split(key, 3)
    states, observations = jax.vmap(environment.reset)(jax.random.split(reset_key, num_envs))
    none = jnp.zeros((), jnp.int32)

    def step(now: _Playing) -> _Playing:
        act_key_, step_key_ = (jax.random.fold_in(key, now.turn) for key in (act_key, step_key))
        elapsed = now.evaluation.elapsed
        actions = act_all(learner, parameters, act_key_, now.observations, jnp.asarray(epsilon), elapsed)
        keys = jax.random.split(step_key_, num_envs)
        states, result, observations = jax.vmap(partial(step_and_reset, environment))(keys, now.states, actions)
        over = result.terminated | result.truncated
        evaluation, played = now.evaluation.add(result.reward, over, now.played, steps, most_steps)
        return _Playing(states, observations, evaluation, played, now.turn + 1)

    playing = _Playing(states, observations, Evaluation.begin(num_envs), none, none)
    return jax.lax.while_loop(lambda now: jnp.any(now.evaluation.active), step, playing).evaluation.episodes


class DeviceEvaluator:
    """Evaluates several seeds in environments on the device."""

    def __init__(self, learner: Learner, environment: Environment, num_envs: int = 10) -> None:
        require_unit_steps(learner.agent.consistency, timing_fields(environment))
        self._learner, self._environment = learner, environment
        self._num_envs = at_least("the number of evaluation environments", num_envs, 1)
        self._evaluate = compiled(jax.vmap(self._evaluate_one, (0, 0, None, None)))

    def evaluate(
        self, parameters: PyTree[Array], keys: Key[Array, " S"], iteration: Iteration, steps: int, report: Report
    ) -> Episodes:
        return self._evaluate(parameters, keys, jnp.asarray(iteration.number), jnp.asarray(steps))

    def _evaluate_one(
        self, parameters: PyTree[Array], key: Key[Array, ""], iteration: Int[Array, ""], steps: Int[Array, ""]
    ) -> Episodes:
        key = jax.random.fold_in(key, iteration)
        epsilon = self._learner.agent.epsilon.evaluation
        return play_episodes(
            self._learner, self._environment, parameters, key, self._num_envs, MOST_STEPS, epsilon, steps
        ).sum()

    def close(self) -> None:
        """Does nothing, because environments on the device hold no resources."""
