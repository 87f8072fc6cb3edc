"""Evaluates a policy with frozen weights over whole episodes, with or without hazard."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int
from scipy import stats

from multihorizon import interrupts
from multihorizon.agents.acting import require_unit_steps
from multihorizon.discounting.hazard import Prior
from multihorizon.envs.environment import timing_fields
from multihorizon.envs.vector import VectorEnvironment
from multihorizon.errors import InputError, at_least, between, shown
from multihorizon.runs.policy import Policy, check_policy
from multihorizon.training.evaluation import MOST_STEPS, play_episodes
from multihorizon.training.schedule import MOST_EVALUATION_STEPS
from multihorizon.training.state import follow
from multihorizon.training.worlds import World

MOST_AT_ONCE = 32  # the largest number of parallel environments on the host
HAZARD = 0x68617A  # part of the random seed for hazard and actions

Told = Callable[[int, int], None]
"""Receives the number of finished episodes and the number of steps."""


@dataclass(frozen=True, eq=False)
class Returns:
    """Undiscounted returns and lengths of E episodes.

    Attributes:
        values: The return of each episode [E].
        lengths: The number of steps of each episode [E].
    """

    values: Float[np.ndarray, " E"]
    lengths: Int[np.ndarray, " E"]

    @property
    def mean(self) -> float:
        """Mean return over episodes."""
        return float(self.values.mean())

    @property
    def std(self) -> float:
        """Standard deviation of the return over episodes; 0 for one episode."""
        return float(self.values.std(ddof=1)) if len(self.values) > 1 else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """95% confidence interval of the mean over episodes (Student's t); unbounded for one episode.

        The interval describes one trained policy, and does not include the variation between training seeds.
        """
        count = len(self.values)
        if count < 2:
            return (-np.inf, np.inf)
        half = float(stats.t.ppf(0.975, count - 1)) * self.std / np.sqrt(count)
        return (self.mean - half, self.mean + half)

    def __len__(self) -> int:
        return len(self.values)

    def __repr__(self) -> str:
        if len(self) == 1:
            return f"Returns(1 episode: {self.mean:.4g}, length {self.lengths.mean():.4g})"
        low, high = self.interval
        return (
            f"Returns({len(self)} episodes: mean {self.mean:.4g}, 95% interval {low:.4g} to {high:.4g}, "
            f"std {self.std:.4g}, mean length {self.lengths.mean():.4g})"
        )


def evaluate(
    policy: Policy,
    env: Any = None,
    episodes: int = 100,
    *,
    hazard: Prior | None = None,
    epsilon: float | None = None,
    seed: int = 0,
    max_steps: int = MOST_STEPS,
    told: Told = lambda ended, steps: None,
) -> Returns:
    """Plays whole episodes with a policy and collects their returns.

    Args:
        policy: A trained policy.
        env: The environment, as for `multihorizon.train`; by default, the training environment. A loaded policy needs
            `env` if it was trained in a user-defined environment.
        episodes: How many episodes to play.
        hazard: A prior over the hazard λ. Each episode draws its own λ, which the agent does not observe. A step of
            duration dt (1 by default) ends the episode with probability 1 - e^{-λ dt}. The return includes the reward
            of that step.
        epsilon: Probability of a random action; by default the agent's ε for evaluation (0.001).
        seed: The random seed of the episodes.
        max_steps: The number of steps after which an episode is cut off. The return then contains the rewards so far.
        told: Called after each step with the number of finished episodes and the number of steps. For environments on
            the device, `told` is never called.

    Returns:
        The undiscounted returns and lengths of the episodes, with the mean return and its confidence interval.

    Raises:
        InputError: The environment has other observations or actions than the policy, or an argument is out of range.
    """
    check_policy(policy)
    episodes = at_least("episodes", episodes, 1, 1_000_000)
    seed = at_least("seed", seed, 0, 2**31 - 1)
    max_steps = at_least("max_steps", max_steps, 1, MOST_EVALUATION_STEPS)
    if hazard is not None and not isinstance(hazard, Prior):
        raise InputError(f"hazard must be a prior, such as mh.hazard.Exponential(0.01), got {shown(hazard)}")
    chosen = policy.world(env)
    epsilon = policy.agent.epsilon.evaluation if epsilon is None else between("epsilon", epsilon, 0, 1)
    if not callable(told):
        raise InputError(f"told must be a function of two numbers, episodes and steps, got {shown(told)}")
    if chosen.on_device:
        return _on_device(policy, chosen, episodes, hazard, epsilon, seed, max_steps)
    return _on_host(policy, chosen, episodes, hazard, epsilon, seed, max_steps, told)


def _on_device(
    policy: Policy, chosen: World, episodes: int, hazard: Prior | None, epsilon: float, seed: int, max_steps: int
) -> Returns:
    environment = chosen.make_for_evaluation(hazard)
    require_unit_steps(policy.agent.consistency, timing_fields(environment))
    play = jax.jit(
        partial(
            play_episodes,
            policy._programs.learner,
            environment,
            num_envs=episodes,
            most_steps=max_steps,
            epsilon=epsilon,
        )
    )
    played = play(parameters=policy.parameters, key=jax.random.key(seed))
    return Returns(np.asarray(played.returns, float), np.asarray(played.lengths))


def _on_host(
    policy: Policy,
    chosen: World,
    episodes: int,
    hazard: Prior | None,
    epsilon: float,
    seed: int,
    max_steps: int,
    told: Told,
) -> Returns:
    """Plays a fixed number of episodes in each environment. Otherwise short episodes would be overrepresented.

    Hazard and `max_steps` may end an episode early. Later rewards are then ignored until the environment resets itself.
    If the rewards of all environments are ignored, all environments are reset.
    """
    assert chosen.on_host is not None
    at_once = min(episodes, MOST_AT_ONCE)
    quota = np.full(at_once, episodes // at_once) + (np.arange(at_once) < episodes % at_once)
    rng = np.random.default_rng([seed, HAZARD])
    seeds = np.random.default_rng(seed)
    environments: VectorEnvironment = chosen.on_host(at_once)
    advance = jax.jit(jax.vmap(follow))
    returns, lengths = np.zeros(at_once), np.zeros(at_once, int)
    survive, playing = np.ones(at_once), np.zeros(at_once, bool)
    stacks: Any = None
    found: list[tuple[float, int]] = []
    steps = 0

    def begin(which: Any) -> None:
        count = int(np.sum(which))
        playing[which], returns[which], lengths[which] = quota[which] > 0, 0.0, 0
        survive[which] = 2.0 if hazard is None else np.exp(-np.asarray(hazard.sample(rng, count)))

    try:
        require_unit_steps(policy.agent.consistency, environments.timing)
        while np.any(quota > 0):
            if not np.any(playing):
                frames = environments.reset(seeds.integers(2**31 - 1, size=at_once))
                blank = jnp.zeros((*frames.shape[:-1], frames.shape[-1] * environments.stack), frames.dtype)
                stacks = advance(blank, frames, jnp.ones(at_once, bool))
                begin(np.ones(at_once, bool))
            interrupts.check()
            environments.send(np.asarray(policy.act(np.asarray(stacks), epsilon, rng, lengths)))
            moves = environments.receive()
            returns += np.where(playing, moves.rewards, 0)
            lengths += playing
            steps += int(playing.sum())
            over = moves.terminated | moves.truncated
            lasts = moves.timing.duration
            survived = rng.random(at_once) < (survive if lasts is None else survive**lasts)
            ends = playing & (over | ~survived | (lengths >= max_steps))
            found += [(float(returns[index]), int(lengths[index])) for index in np.flatnonzero(ends)]
            quota -= ends
            playing &= ~ends
            begin(over)
            stacks = advance(stacks, moves.frames, jnp.asarray(over))
            told(len(found), steps)
    finally:
        environments.close()
    values, counts = zip(*found, strict=True)
    return Returns(np.array(values), np.array(counts))
