"""Tabular Q-learning for several discount factors at once, from one stream of experience."""

from collections.abc import Iterator

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from multihorizon.discounting.hazard.prior import generator
from multihorizon.discounting.horizons import discount_factors
from multihorizon.errors import InputError, at_least
from multihorizon.mdp.model import HazardousMDP, check_mdp

RATE_POWER = 0.8  # the learning rate 1 / visits^0.8 guarantees fast convergence (Even-Dar & Mansour, 2003)
MOST_STEPS = 100_000
MOST_EPISODES = 10_000_000


def q_learning(
    mdp: HazardousMDP, gammas: ArrayLike, start: int, episodes: int, rng: np.random.Generator
) -> Float[np.ndarray, "S A H"]:
    """Learns Q for several discount factors by Watkins' Q-learning, while acting uniformly at random.

    The hazard and the discount of the MDP are not used. Each head bootstraps from its own greedy action. Every
    episode is replayed backwards (Lin, 1992), so that a final reward reaches the first state within one episode.

    Args:
        mdp: The MDP.
        gammas: The discount factors [H], in [0, 1].
        start: The first state of every episode.
        episodes: The number of episodes, at least 1.
        rng: The source of randomness.

    Returns:
        The learned action values [S A H].

    Raises:
        InputError: If an argument is invalid, or an episode does not end within 100,000 steps.
    """
    gammas = discount_factors(gammas)
    check_mdp(mdp).check_place(start)
    episodes, rng = at_least("the number of episodes", episodes, 1, MOST_EPISODES), generator(rng)
    values = np.zeros((mdp.states, mdp.actions, len(gammas)))
    visits = np.zeros((mdp.states, mdp.actions))
    for episode in _episodes(mdp, start, episodes, rng):
        for state, action, following in reversed(episode):
            visits[state, action] += 1
            rate = visits[state, action] ** -RATE_POWER
            ahead = values[following].max(axis=0) if following >= 0 else 0.0
            lasts = 1.0 if mdp.durations is None else mdp.durations[state, action]
            target = mdp.rewards[state, action] + gammas**lasts * ahead  # r + γ^{dt} max_a' Q_γ(s', a')  [H]
            values[state, action] += rate * (target - values[state, action])
    return values


def _episodes(
    mdp: HazardousMDP, start: int, episodes: int, rng: np.random.Generator
) -> Iterator[list[tuple[int, int, int]]]:
    """Yields each episode as a list of (state, action, next state), with -1 at the end."""
    states = np.full(episodes, start)
    walked = []
    while np.any(states >= 0):
        actions = rng.integers(mdp.actions, size=episodes)
        going = states >= 0
        following = np.full(episodes, -1)
        following[going] = mdp.draw_next(states[going], actions[going], rng)
        walked.append(np.stack([states, actions, following]))
        states = following
        if len(walked) > MOST_STEPS:
            raise InputError(f"an episode has not ended after {MOST_STEPS} steps; q_learning needs a task that ends")
    steps = np.stack(walked, axis=-1)  # [3, episodes, T]
    for episode in range(episodes):
        alive = steps[0, episode] >= 0
        yield list(zip(*steps[:, episode, alive].tolist(), strict=True))
