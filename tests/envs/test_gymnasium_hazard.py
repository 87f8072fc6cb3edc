import gymnasium
import numpy as np

from multihorizon.discounting.hazard import Exponential, Uniform
from multihorizon.envs.gymnasium_hazard import GymnasiumHazard


class Endless(gymnasium.Env):
    """An endless environment with a reward of 1 at each step."""

    observation_space = gymnasium.spaces.Discrete(1)
    action_space = gymnasium.spaces.Discrete(1)

    def reset(self, *, seed: int | None = None, options: dict | None = None) -> tuple[int, dict]:
        super().reset(seed=seed)
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict]:
        return 0, 1.0, False, False, {}


def test_survival_of_episodes_matches_the_prior() -> None:
    prior = Exponential(0.3)
    env = GymnasiumHazard(Endless(), prior)
    alive = np.zeros(15)
    episodes = 6_000
    for episode in range(episodes):
        env.reset(seed=episode)
        for t in range(15):
            _, reward, terminated, truncated, _ = env.step(0)
            assert reward == 1.0
            assert not truncated
            if terminated:
                break
            alive[t] += 1
    expected = np.asarray(prior.survival(np.arange(1, 16)))
    error = np.sqrt(expected * (1 - expected) / episodes)
    assert np.all(np.abs(alive / episodes - expected) < 4.5 * error)


def test_equal_seeds_give_episodes_of_equal_length() -> None:
    def length(seed: int) -> int:
        env = GymnasiumHazard(Endless(), Exponential(0.3))
        env.reset(seed=seed)
        steps = 1
        while not env.step(0)[2]:
            steps += 1
        return steps

    assert [length(s) for s in range(20)] == [length(s) for s in range(20)]
    assert len({length(s) for s in range(20)}) > 3


def test_hazard_is_independent_of_the_first_observation() -> None:
    world = GymnasiumHazard(gymnasium.make("CartPole-v1"), Uniform(1.0))
    seen, hidden = [], []
    for seed in range(300):
        observation, _ = world.reset(seed=seed)
        seen.append(observation[0])
        hidden.append(world._survive)
    assert abs(np.corrcoef(seen, hidden)[0, 1]) < 0.2


def test_unseeded_wrappers_draw_different_hazards() -> None:
    def hidden(seed: int | None = None) -> float:
        env = GymnasiumHazard(Endless(), Uniform(1.0), seed)
        env.reset()
        return env._survive

    assert len({hidden() for _ in range(10)}) == 10
    assert hidden(3) == hidden(3) != hidden(4)
