"""Simulates episodes of a hazardous MDP, with a hazard drawn for each episode."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from multihorizon.discounting.hazard.prior import generator
from multihorizon.errors import InputError, at_least
from multihorizon.mdp.model import HazardousMDP, Policy, check_mdp

MOST_STEPS = 1_000_000
MOST_EPISODES = 10_000_000


class Estimate(NamedTuple):
    """A mean over episodes and its standard error.

    Attributes:
        mean: The mean return.
        standard_error: The standard error of the mean.
    """

    mean: float
    standard_error: float


def simulate(
    mdp: HazardousMDP, policy: Policy, state: int, action: int, episodes: int, rng: np.random.Generator
) -> Estimate:
    """Estimates Q^{H,d}_π(state, action) by simulation, with a hazard λ ~ H drawn for each episode.

    Args:
        mdp: The MDP.
        policy: The probability of each action in each state [S A].
        state: The first state.
        action: The first action.
        episodes: The number of episodes, at least 2.
        rng: The source of randomness.

    Returns:
        The mean of Σ d(t) R(s_t, a_t) over the episodes, and its standard error.

    Raises:
        InputError: If an argument is invalid, or an episode does not end within a million steps.
    """
    policy = check_mdp(mdp).check_policy(policy)
    mdp.check_place(state, action)
    episodes = at_least("the number of episodes", episodes, 2, MOST_EPISODES)
    rng = generator(rng)
    returns = np.zeros(episodes)
    alive = np.arange(episodes)
    survive = np.exp(-mdp.hazard.sample(rng, episodes))  # e^{-λ}, the probability of surviving a unit of time
    states, actions = np.full(episodes, state), np.full(episodes, action)
    elapsed = np.zeros(episodes)
    for _ in range(MOST_STEPS):
        returns[alive] += np.asarray(mdp.discount(elapsed)) * mdp.rewards[states, actions]
        lasts = np.ones(len(alive)) if mdp.durations is None else mdp.durations[states, actions]
        lives = rng.random(len(alive)) < survive**lasts
        following = mdp.draw_next(states, actions, rng)
        going = lives & (following >= 0)
        alive, survive, states, elapsed = alive[going], survive[going], following[going], (elapsed + lasts)[going]
        if len(alive) == 0:
            return Estimate(float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(episodes)))
        actions = choose(policy, states, rng)
    raise InputError(f"episodes have not ended after {MOST_STEPS} steps; give the task an end or a hazard")


def choose(policy: Policy, states: Int[np.ndarray, " N"], rng: np.random.Generator) -> Int[np.ndarray, " N"]:
    """Draws an action a ~ π(· | s) for each state."""
    if policy.max(axis=1).min() == 1:
        return policy.argmax(axis=1)[states]
    passed = rng.random((len(states), 1)) >= np.cumsum(policy, axis=1)[states]
    return np.minimum(passed.sum(axis=1), policy.shape[1] - 1)
