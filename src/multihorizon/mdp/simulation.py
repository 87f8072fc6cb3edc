"""Estimates values of a hazardous MDP by simulating episodes."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int, Shaped

from multihorizon.discounting.hazard.prior import generator
from multihorizon.errors import InputError, at_least
from multihorizon.mdp.durations import in_whole_ticks
from multihorizon.mdp.model import HazardousMDP, Policy, check_mdp

MOST_STEPS = 1_000_000
MOST_EPISODES = 10_000_000
LARGEST_EXACT = 2**53  # float64 represents all whole numbers up to 2^53 exactly


class Estimate(NamedTuple):
    """A mean return and its standard error.

    Attributes:
        mean: The mean return of the episodes.
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
        The mean of Σ d(t) R(s_t, a_t) over all episodes, with its standard error.

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
    durations = np.ones(mdp.rewards.shape) if mdp.durations is None else mdp.durations
    ticks, unit = _ticks(durations)
    elapsed = np.zeros(episodes, ticks.dtype)
    for _ in range(MOST_STEPS):
        times = _in_units(elapsed, unit)
        returns[alive] += np.asarray(mdp.discount(times)) * mdp.rewards[states, actions]
        lives = rng.random(len(alive)) < survive ** durations[states, actions]
        following = mdp.draw_next(states, actions, rng)
        going = lives & (following >= 0)
        elapsed = (elapsed + ticks[states, actions])[going]
        alive, survive, states = alive[going], survive[going], following[going]
        if len(alive) == 0:
            return Estimate(float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(episodes)))
        actions = choose(policy, states, rng)
    raise InputError(f"episodes have not ended after {MOST_STEPS} steps; give the task an end or a hazard")


def _ticks(durations: Float[np.ndarray, "S A"]) -> tuple[Shaped[np.ndarray, "S A"], int]:
    # Durations become whole numbers of ticks (see `in_whole_ticks`), which `simulate` adds up over each episode. If
    # float64 represents all these sums exactly, ticks are float64. Otherwise, ticks are Python integers, which are
    # slower.
    lengths, each = np.unique(durations.reshape(-1), return_inverse=True)
    ticks, unit = in_whole_ticks(lengths)
    dtype = float if max(unit, MOST_STEPS * max(ticks)) <= LARGEST_EXACT else object
    return np.array(ticks, dtype)[each].reshape(durations.shape), unit


def _in_units(elapsed: Shaped[np.ndarray, " N"], unit: int) -> Float[np.ndarray, " N"]:
    try:
        return (elapsed / unit).astype(float)
    except OverflowError:
        raise InputError("an episode lasts longer than a float can express; use shorter durations") from None


def choose(policy: Policy, states: Int[np.ndarray, " N"], rng: np.random.Generator) -> Int[np.ndarray, " N"]:
    """Draws an action a ~ π(· | s) for each state."""
    if policy.max(axis=1).min() == 1:
        return policy.argmax(axis=1)[states]
    passed = rng.random((len(states), 1)) >= np.cumsum(policy, axis=1)[states]
    return np.minimum(passed.sum(axis=1), policy.shape[1] - 1)
