"""Evaluation with frozen weights in environments that step on the host."""

import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key, PyTree

from multihorizon import interrupts
from multihorizon.agents.acting import require_unit_steps
from multihorizon.agents.learner import Learner
from multihorizon.envs.vector import VectorEnvironment
from multihorizon.errors import at_least
from multihorizon.training import trainer as trainers
from multihorizon.training.compiling import compiled
from multihorizon.training.evaluation import MOST_STEPS, Evaluation
from multihorizon.training.host_environments import HostEnvironments, usual_groups
from multihorizon.training.keys import EVALUATION
from multihorizon.training.state import Episodes, act_all, follow_all, stack_of
from multihorizon.training.trainer import Iteration, Progress, Report, mean_returns


class _Group(NamedTuple):
    """The state of a group of environments [m] between two steps."""

    observations: Array  # [m ...]
    evaluation: Evaluation
    actions: Int[Array, " m"]


class HostEvaluator:
    """Evaluates several seeds in environments on the host.

    Args:
        make: Makes a vector environment with the given number of environments.
        num_envs: The number of environments of each seed.
        groups: A function from the number of environments to the number of groups.
        most_steps: The length at which an episode is cut off. The return so far is then the return of the episode.
    """

    def __init__(
        self,
        learner: Learner,
        make: Callable[[int], VectorEnvironment],
        num_seeds: int = 1,
        num_envs: int = 10,
        groups: Callable[[int], int] = usual_groups,
        most_steps: int = MOST_STEPS,
    ) -> None:
        self._learner, self._num_seeds, self._most_steps = learner, num_seeds, most_steps
        at_least("the number of evaluation environments", num_envs, 1)
        self.environments = HostEnvironments(make, num_seeds, num_envs, EVALUATION, groups)
        self._start = compiled(jax.vmap(self._start_one, (0, 0, None, 0)))
        self._turn = compiled(jax.vmap(self._turn_one, (0, 0, None, 0, 0, 0, 0, 0, None)), donate_argnums=(3, 4))

    def evaluate(
        self, parameters: PyTree[Array], keys: Key[Array, " S"], iteration: Iteration, steps: int, report: Report
    ) -> Episodes:
        require_unit_steps(self._learner.agent.consistency, self.environments.group(0).timing)
        keys = jax.vmap(jax.random.fold_in, (0, None))(keys, iteration.number)
        groups: list[_Group] = []
        for group in range(self.environments.groups):
            frames = self.environments.reset(group, iteration.seed, iteration.number)
            groups.append(self._start(parameters, keys, np.int32(group), frames))
            self.environments.send(group, groups[group].actions)
        played = jnp.zeros(self._num_seeds, jnp.int32)
        playing, turn = set(range(len(groups))), len(groups)
        reported, reported_steps = time.perf_counter(), 0
        while playing:
            group = turn % len(groups)
            interrupts.check()
            if group in playing:
                moves = self.environments.receive(group)
                over = moves.terminated | moves.truncated
                groups[group], played = self._turn(
                    parameters, keys, np.int32(turn), groups[group], played, moves.frames, moves.rewards, over, steps
                )
                if np.asarray(groups[group].evaluation.active).any():
                    self.environments.send(group, groups[group].actions)
                else:
                    playing.remove(group)
            turn += 1
            now = time.perf_counter()
            if now - reported > trainers.SECONDS_BETWEEN_REPORTS:
                episodes, all_played = _sum(groups), int(np.asarray(played).sum())
                speed = (all_played - reported_steps) / (now - reported)
                done = (all_played, int(np.asarray(episodes.ended).sum()))
                step, epsilon = iteration.last_step, self._learner.agent.epsilon.evaluation
                report(Progress(step, mean_returns(episodes), None, epsilon, speed, done))
                reported, reported_steps = now, all_played
        return _sum(groups)

    def close(self) -> None:
        self.environments.close()

    def _start_one(self, parameters: PyTree[Array], key: Key[Array, ""], turn: Int[Array, ""], frames: Array) -> _Group:
        observations = stack_of(frames, self._learner.observation_shape)
        evaluation = Evaluation.begin(frames.shape[0])
        return _Group(observations, evaluation, self._act(parameters, key, turn, observations, evaluation))

    def _turn_one(
        self,
        parameters: PyTree[Array],
        key: Key[Array, ""],
        turn: Int[Array, ""],
        group: _Group,
        played: Int[Array, ""],
        frames: Array,
        rewards: Float[Array, " m"],
        over: Bool[Array, " m"],
        steps: Int[Array, ""],
    ) -> tuple[_Group, Int[Array, ""]]:
        evaluation, played = group.evaluation.add(rewards, over, played, steps, self._most_steps)
        observations = follow_all(group.observations, frames, over)
        return _Group(observations, evaluation, self._act(parameters, key, turn, observations, evaluation)), played

    def _act(
        self,
        parameters: PyTree[Array],
        key: Key[Array, ""],
        turn: Int[Array, ""],
        observations: Array,
        evaluation: Evaluation,
    ) -> Array:
        epsilon, key = jnp.asarray(self._learner.agent.epsilon.evaluation), jax.random.fold_in(key, turn)
        return act_all(self._learner, parameters, key, observations, epsilon, evaluation.elapsed)


def _sum(groups: list[_Group]) -> Episodes:
    sums = [group.evaluation.episodes.sum() for group in groups]
    return Episodes(*(np.sum([np.asarray(part) for part in parts], axis=0) for parts in zip(*sums, strict=True)))
