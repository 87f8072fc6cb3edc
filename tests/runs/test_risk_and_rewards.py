"""Tests return distributions, measures of risk and expected rewards of trained policies."""

from pathlib import Path

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from compiler_options import optimised_programs

import multihorizon as mh

SURE, GAMBLE = 0, 1
DELAY = 4  # the number of steps from the first step to the reward


class Gamble:
    """The first action chooses a sure reward of 1, or a gamble: 3 or -0.5 with equal probability (mean 1.25)."""

    actions = 2
    observation_shape = (2 * DELAY + 1,)
    observation_dtype = "float32"

    def observe(self, state: jax.Array) -> jax.Array:
        return jax.nn.one_hot(state, 2 * DELAY + 1)

    def reset(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.int32(0), self.observe(jnp.int32(0))

    def step(self, key: jax.Array, state: jax.Array, action: jax.Array) -> tuple[jax.Array, mh.envs.Step]:
        following = jnp.where(state == 0, 1 + DELAY * action, state + 1)  # states up to DELAY lead to the sure reward
        is_over = (state > 0) & (state % DELAY == 0)
        prize = jnp.where(state <= DELAY, 1.0, jnp.where(jax.random.bernoulli(key), 3.0, -0.5))
        reward = jnp.where(is_over, prize, 0.0)
        state = jnp.where(is_over, state, following)
        return state, mh.envs.Step(self.observe(state), reward, is_over, jnp.bool_(False))


class HostGamble(gymnasium.Env):
    """`Gamble` as a Gymnasium environment."""

    observation_space = gymnasium.spaces.Box(0, 1, (2 * DELAY + 1,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: object = None) -> tuple[np.ndarray, dict[str, object]]:
        super().reset(seed=seed)
        self.state = 0
        return self.observe(), {}

    def observe(self) -> np.ndarray:
        return np.eye(2 * DELAY + 1, dtype=np.float32)[self.state]

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict[str, object]]:
        if self.state > 0 and self.state % DELAY == 0:
            prize = 1.0 if self.state <= DELAY else float(self.np_random.choice([3.0, -0.5]))
            return self.observe(), prize, True, False, {}
        self.state = 1 + DELAY * int(action) if self.state == 0 else self.state + 1
        return self.observe(), 0.0, False, False, {}


START = np.eye(2 * DELAY + 1)[0]
HORIZONS = mh.Horizons(np.array([0.5, 0.8, 0.95]), np.array([0.2, 0.3, 0.5]))


@pytest.fixture(scope="module")
def policy() -> mh.Policy:
    agent = mh.agent(
        "hyper-c51",
        horizons=HORIZONS,
        loss=mh.Categorical(atoms=41, v_max=4.0),
        optimiser=mh.Adam(1e-3, epsilon=1e-5),
        warm_up_steps=500,
        target_period_steps=100,
        update_period_steps=2,
        epsilon=mh.Epsilon(final=0.5),
        clip_rewards=False,
    )
    with optimised_programs():
        run = mh.train(agent, Gamble(), steps=8_000, evaluation_steps=0, watcher=mh.NoProgress())
    return run.policy()


def test_measure_of_risk_decides_whether_the_agent_gambles(policy: mh.Policy) -> None:
    assert policy.act(START) == GAMBLE
    assert policy.with_risk(mh.CVaR(1.0)).act(START) == GAMBLE
    assert policy.with_risk(mh.CVaR(0.25)).act(START) == SURE
    assert policy.with_risk(mh.Quantile(0.25)).act(START) == SURE
    assert policy.with_risk(mh.Quantile(0.9)).act(START) == GAMBLE
    assert policy.with_risk(mh.CVaR(0.25)).with_risk(None).act(START) == GAMBLE


@pytest.mark.parametrize("env", [Gamble(), HostGamble], ids=["device", "host"])
def test_evaluation_uses_the_measure_of_risk(policy: mh.Policy, env: object) -> None:
    returns = mh.evaluate(policy.with_risk(mh.CVaR(0.25)), env, 60, epsilon=0.0)
    np.testing.assert_array_equal(returns.values, 1.0)
    gambled = mh.evaluate(policy, env, 60, epsilon=0.0).values
    assert set(gambled.tolist()) == {3.0, -0.5}


def test_saved_policy_keeps_its_measure_of_risk(policy: mh.Policy, tmp_path: Path) -> None:
    careful = policy.with_risk(mh.CVaR(0.25))
    loaded = mh.load(careful.save(tmp_path / "careful"))
    assert loaded.risk == mh.CVaR(0.25)
    assert "by CVaR(level=0.25)" in repr(loaded)
    assert mh.watch(loaded, Gamble(), tmp_path / "a.gif").earned == 1.0
    assert mh.load(policy.save(tmp_path / "plain")).risk is None


def test_return_distribution_matches_q_values_and_the_gamble(policy: mh.Policy) -> None:
    batch = np.eye(2 * DELAY + 1)
    probabilities = policy.return_distribution(batch)
    assert probabilities.shape == (2 * DELAY + 1, 3, 2, 41)
    assert policy.return_distribution(START).shape == (3, 2, 41)
    np.testing.assert_allclose(policy.atoms, np.linspace(-4, 4, 41), atol=1e-6)
    np.testing.assert_allclose(probabilities.sum(axis=-1), 1, atol=1e-5)
    np.testing.assert_allclose(probabilities @ policy.atoms, policy.q_values(batch), atol=1e-5)
    # In the last state the gamble pays at once, so γ has no effect. Returns of 3 and -0.5 are equally likely.
    before = policy.return_distribution(batch[-1])[:, SURE]
    for prize in (3.0, -0.5):
        at = np.abs(policy.atoms - prize) < 0.21
        np.testing.assert_allclose(before[:, at].sum(axis=-1), 0.5, atol=0.12)


def test_agents_that_learn_means_have_no_distribution() -> None:
    agent = mh.agent("hyper-dqn", horizons=HORIZONS, warm_up_steps=100, replay_capacity=500)
    policy = mh.train(agent, Gamble(), steps=200, evaluation_steps=0, watcher=mh.NoProgress()).policy()
    words = "hyper-dqn learns only the mean of the return, not its distribution; use an agent with a Categorical loss"
    for call in (
        lambda: policy.return_distribution(START),
        lambda: policy.atoms,
        lambda: policy.with_risk(mh.CVaR(0.5)),
    ):
        with pytest.raises(mh.InputError, match=words):
            call()


def test_risk_with_negative_weights_is_rejected(policy: mh.Policy) -> None:
    careful = policy.with_risk(mh.CVaR(0.5))
    with pytest.raises(mh.InputError, match="negative weight"):
        careful.with_discount(mh.discount.deadline(3), t_max=8, method=mh.FitMethod.SIGNED_MINIMAX, tolerance=0.5)


def test_expected_reward_comes_at_the_right_time(policy: mh.Policy) -> None:
    """The reward comes DELAY steps after the first step, and its mean is 1.25."""
    timeline = policy.expected_rewards(START, t_max=30)
    mean_time = timeline.rewards @ ((timeline.starts + timeline.ends - 1) / 2) / timeline.rewards.sum()
    assert mean_time == pytest.approx(DELAY, rel=0.35)
    assert timeline.rewards.sum() == pytest.approx(1.25, rel=0.2)
    batch = policy.expected_rewards(np.eye(2 * DELAY + 1), t_max=30)
    np.testing.assert_allclose(batch.rewards[0], timeline.rewards, rtol=1e-4, atol=1e-5)
    nearer = policy.expected_rewards(np.eye(2 * DELAY + 1)[-1], t_max=30)
    assert nearer.rewards[0] == pytest.approx(1.25, rel=0.2)


def test_policy_reports_the_error_of_its_new_discount(policy: mh.Policy) -> None:
    assert policy.reweighting is None
    changed = policy.with_discount(mh.hazard.Exponential(0.3), t_max=10)
    assert changed.reweighting is not None
    assert changed.reweighting.horizons == changed.horizons
    assert changed.reweighting.max_error == pytest.approx(
        changed.horizons.fit(mh.discount.hyperbolic(0.3), 10).max_error
    )
    assert policy.reweighting is None
