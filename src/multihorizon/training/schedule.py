"""The schedule of a run: its iterations, and the pattern of steps and updates in an iteration."""

import math
from dataclasses import dataclass
from typing import Any

from multihorizon.agents.acting import MOST_STEPS
from multihorizon.agents.config import AgentConfig
from multihorizon.errors import InputError, at_least, store

MOST_EVALUATION_STEPS = 2_000_000_000  # below 2³¹, to leave room for steps that finish episodes


@dataclass(frozen=True)
class Schedule:
    """Training iterations, each followed by an evaluation with frozen weights. The defaults are the paper's."""

    iterations: int = 200
    training_steps: int = 250_000  # per iteration and seed
    evaluation_steps: int = 125_000  # after these steps, open episodes are finished; 0 means no evaluation

    def __post_init__(self) -> None:
        store(
            self,
            iterations=at_least("iterations", self.iterations, 1),
            training_steps=at_least("training_steps", self.training_steps, 1),
            evaluation_steps=at_least("evaluation_steps", self.evaluation_steps, 0, MOST_EVALUATION_STEPS),
        )

    @property
    def steps(self) -> int:
        """Training steps of the whole run, for each seed."""
        return self.iterations * self.training_steps


@dataclass(frozen=True)
class Pace:
    """The cycle of steps and updates: `rows` rows of steps, followed by `updates` updates.

    In each row, every environment of one group takes one step. A cycle has `steps` steps in total.
    """

    rows: int
    updates: int
    steps: int
    warm_up: int  # number of cycles without updates

    def cycles(self, steps: int) -> int:
        """Returns the smallest number of cycles with at least `steps` steps."""
        return -(-steps // self.steps)

    def learns_from(self, first: int, held_steps: int) -> int:
        """Returns the index of the first cycle with updates, counted from cycle `first`, which begins next.

        `held_steps` is the number of steps in the replay buffer. If a run is resumed from a checkpoint without the
        replay buffer, the buffer is refilled before the next update.
        """
        missing = min(first, self.warm_up) - held_steps // self.steps
        return max(self.warm_up, first + max(0, missing))

    def updates_before(self, cycle: Any) -> Any:
        """Returns the number of updates before a cycle, if every cycle since the warm-up had updates."""
        return (cycle - self.warm_up) * self.updates


def make_pace(agent: AgentConfig, num_envs: int, at_once: int | None = None) -> Pace:
    """Returns the pace for `num_envs` environments. A group has `at_once` environments; by default, all of them."""
    at_least("the number of environments", num_envs, 1)
    at_once = num_envs if at_once is None else at_once
    least = agent.batch + agent.n_steps * num_envs
    if agent.warm_up_steps < least:
        raise InputError(
            f"warm_up_steps must be at least {least}, to fill a batch with n-step returns, got {agent.warm_up_steps}; "
            "use fewer environments or a longer warm-up"
        )
    period = agent.update_period_steps
    common = math.gcd(period, at_once)
    steps = period // common * at_once
    if steps > MOST_STEPS:
        raise InputError(
            f"update_period_steps={period:,} and {at_once:,} environments need cycles of {steps:,} steps, but at most "
            f"{MOST_STEPS:,} are possible; choose an update_period_steps that shares a larger divisor with {at_once:,}"
        )
    return Pace(period // common, at_once // common, steps, -(-agent.warm_up_steps // steps))


def total_steps(agent: AgentConfig, schedule: Schedule, num_envs: int) -> int:
    """Returns the number of steps of each seed in a run. Each iteration is rounded up to whole cycles.

    Raises:
        InputError: If there are more steps than the device can count.
    """
    pace = make_pace(agent, num_envs)
    steps = schedule.iterations * pace.cycles(schedule.training_steps) * pace.steps
    return at_least("the number of training steps, rounded up to whole iterations,", steps, 1, MOST_STEPS)
