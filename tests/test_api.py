import subprocess
import sys
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import multihorizon as mh
from multihorizon.envs.environment import Step

SMALL = {"warm_up_steps": 200, "replay_capacity": 2_000, "batch": 16}
HORIZONS = mh.Horizons(np.array([0.5, 0.9]), np.array([0.4, 0.6]))


class Corridor(gymnasium.Env[Any, Any]):
    """A corridor with a near reward of 1 on the left and a far reward of 9 on the right."""

    observation_space = gymnasium.spaces.Box(0, 1, (7,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self.place, self.steps = 2, 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self.place += 1 if action else -1
        self.steps += 1
        ended = self.place in (0, 6)
        reward = {0: 1.0, 6: 9.0}.get(self.place, 0.0)
        return self._seen(), reward, ended, self.steps >= 30 and not ended, {}

    def _seen(self) -> Any:
        return np.eye(7, dtype=np.float32)[self.place]


class JaxCorridor:
    """A version of `Corridor` that runs on the device."""

    actions, observation_shape, observation_dtype = 2, (7,), "float32"

    def reset(self, key: Any) -> Any:
        del key
        return jnp.int32(2), jax.nn.one_hot(2, 7)

    def step(self, key: Any, state: Any, action: Any) -> Any:
        del key
        place = state + jnp.where(action == 1, 1, -1)
        reward = jnp.where(place == 0, 1.0, jnp.where(place == 6, 9.0, 0.0))
        ended = (place == 0) | (place == 6)
        return place, Step(jax.nn.one_hot(place, 7), reward, ended, jnp.zeros((), bool))


class Wrong(JaxCorridor):
    observation_shape = (5,)


class Linear(eqx.Module):
    layer: eqx.nn.Linear

    def __init__(self, key: Any, shape: tuple[int, ...]) -> None:
        self.layer = eqx.nn.Linear(shape[0], 16, key=key)

    def __call__(self, x: Any) -> Any:
        return jax.nn.relu(self.layer(x))


def small_agent(name: str = "hyper-rainbow", **settings: Any) -> mh.AgentConfig:
    return mh.agent(name, **({"horizons": HORIZONS} | SMALL | settings))


def trained(env: Any, out: Path | None = None, **given: Any) -> mh.Run:
    options: dict[str, Any] = {"steps": 600, "training_steps": 300, "evaluation_steps": 0, "seeds": 2, "num_envs": 2}
    return mh.train(small_agent(), env, out=out, **(options | given))


@pytest.mark.parametrize("make", [Corridor, JaxCorridor])
def test_the_whole_api_supports_user_defined_environments_and_networks(make: Any, tmp_path: Path) -> None:
    env: Any = make if make is Corridor else make()
    heard: list[Any] = []

    def stop(rows: list[dict[str, Any]]) -> bool:
        heard.append(rows)
        return False

    run = trained(env, tmp_path / "run", network=Linear, callback=stop)
    assert len(heard) == 1
    assert [row["seed"] for row in heard[0]] == [0, 1]
    assert not run.finished
    assert len(mh.load_run(tmp_path / "run").metrics) == 2
    with pytest.raises(mh.InputError, match="is user-defined and was not stored; pass it with env="):
        mh.load_run(tmp_path / "run").resume()
    with pytest.raises(mh.InputError, match="Linear is user-defined and was not stored"):
        mh.load_run(tmp_path / "run", env=env).resume()
    run = mh.load_run(tmp_path / "run", env=env, network=Linear).resume()
    assert run.finished
    assert [row["step"] for row in run.metrics] == [300, 300, 600, 600]
    policy = run.policy(seed=1)
    policy.save(tmp_path / "policy")
    again = mh.load(tmp_path / "policy", env=env, network=Linear)
    observations = np.eye(7, dtype=np.float32)
    np.testing.assert_array_equal(policy.q_values(observations), again.q_values(observations))
    returns = mh.evaluate(again, env, episodes=10, seed=3, max_steps=50)
    assert len(returns) == 10
    assert set(returns.values) <= {0.0, 1.0, 9.0}
    under = mh.evaluate(again, env, episodes=200, hazard=mh.hazard.Dirac(0.7), max_steps=50)
    assert under.lengths.mean() < 2.5  # the probability of surviving a step is e^{-0.7} ≈ 0.5
    video = mh.watch(again, env, tmp_path / "episode.gif", max_steps=10)
    assert video.path.stat().st_size > 1_000


def test_a_saved_policy_gives_equal_values_in_another_process(tmp_path: Path) -> None:
    policy = trained("CartPole-v1", seeds=1).policy()
    policy.save(tmp_path / "a folder")
    print_values = "import sys, multihorizon as mh; print(mh.load(sys.argv[1]).q_values([.1, 0, 0, 0]).tolist())"
    told = subprocess.run(
        [sys.executable, "-c", print_values, str(tmp_path / "a folder")], capture_output=True, text=True, check=True
    )
    np.testing.assert_allclose(np.array(eval(told.stdout)), policy.q_values([0.1, 0, 0, 0]), rtol=1e-5)


def test_a_policy_acts_by_the_weighted_sum_of_its_heads() -> None:
    policy = trained("CartPole-v1", seeds=1).policy()
    batch = np.random.default_rng(0).normal(size=(5, 4))
    values = policy.q_values(batch)
    assert values.shape == (5, 2, 2)
    np.testing.assert_allclose(policy.q_values(batch[2]), values[2], rtol=1e-5)
    np.testing.assert_array_equal(policy.act(batch), np.einsum("h,bha->ba", [0.4, 0.6], values).argmax(axis=1))
    assert policy.act(batch[1]) == policy.act(batch)[1]
    random = policy.act(np.zeros((1_000, 4)), epsilon=1.0, rng=np.random.default_rng(0))
    assert 400 < np.sum(random) < 600
    assert policy.discount(3) == pytest.approx(0.4 * 0.5**3 + 0.6 * 0.9**3)
    assert policy.observation_shape == (4,)
    with pytest.raises(mh.InputError, match=r"shape \[4\], or \[B, 4\] for a batch, got \[3\]"):
        policy.act(np.zeros(3))


def test_rewards_are_not_clipped_outside_atari() -> None:
    assert not small_agent().resolved(Corridor).agent.clip_rewards
    assert not small_agent().resolved("minatar/breakout").agent.clip_rewards
    assert small_agent().resolved("atari/Pong").agent.clip_rewards


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("replay_capacity", 1_000_000),  # equals the preset's value
        ("warm_up_steps", 77),
        ("target_period_steps", 78),
        ("epsilon", mh.Epsilon(final=0.3)),
        ("optimiser", mh.Adam(1e-2, 1e-2)),
        ("clip_rewards", True),
        ("batch", 8),
        ("loss", mh.Categorical(21, 5.0)),
        ("compute_dtype", "bfloat16"),
        ("n_steps", 2),
        ("horizons", HORIZONS),
        ("acting", mh.Acting.LARGEST_GAMMA),
        ("priority", mh.Priority.UNIFORM),
        ("bootstrap", mh.Bootstrap.ACTING),
        ("double_q", True),
        ("update_period_steps", 3),
    ],
)
@pytest.mark.parametrize("env", ["CartPole-v1", "foraging", "minatar/breakout", "atari/Pong"])
def test_user_settings_override_defaults(env: str, name: str, value: Any) -> None:
    resolution = mh.agent("rainbow", **{name: value}).resolved(env)
    assert getattr(resolution.agent, name) == value
    assert resolution.origins[name] == "user"


def test_environment_provides_settings_that_the_user_omits() -> None:
    resolution = mh.agent("dqn").resolved("foraging")
    assert resolution.origins["optimiser"] == "environment"
    assert resolution.origins["n_steps"] == "preset"
    assert isinstance(resolution.agent.optimiser, mh.Adam)
    part = mh.agent("dqn", **{"optimiser.learning_rate": 3e-4, "epsilon.final": 0.2}).resolved("foraging")
    # The optimiser is the environment's optimiser, with the user's learning rate.
    assert part.agent.optimiser == mh.Adam(3e-4, epsilon=1e-5)
    assert part.agent.epsilon == mh.Epsilon(final=0.2, decay_steps=5_000)
    assert part.origins["optimiser"] == "user"
    assert mh.agent("dqn", **{"optimiser.learning_rate": 3e-4}).resolved("atari/Pong").agent.optimiser == mh.RmsProp(
        3e-4, decay=0.95, epsilon=1e-5, initial_square=1.0
    )
    assert "learning_rate" in str(resolution)


def test_an_optimiser_set_in_the_agent_overrides_the_environments_optimiser() -> None:
    from dataclasses import replace

    agent = replace(mh.agent("rainbow"), optimiser=mh.Adam(1e-2, 1e-2))
    assert agent.resolved("CartPole-v1").agent.optimiser == mh.Adam(1e-2, 1e-2)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: mh.agent("rainbo"), "did you mean 'rainbow'"),
        (lambda: mh.agent("rainbow", n_step=2), "unknown setting 'n_step' \\(did you mean 'n_steps'"),
        (lambda: mh.agent("rainbow", learning_rate=1e-3), "set optimiser.learning_rate"),
        (lambda: mh.agent("rainbow", horizons=mh.discount.hyperbolic(0.1)), "horizons must be Horizons"),
        (lambda: mh.agent("rainbow", optimiser=__import__("optax").adam(1e-3)), "mh.Adam"),
        (lambda: mh.agent("rainbow", acting="weigted"), "did you mean 'weighted'"),
        (lambda: mh.train("rainbow", Corridor()), "pass a function that makes it"),
        (lambda: mh.train("rainbow", gymnasium.make("Pendulum-v1")), "only discrete actions are supported"),
        (lambda: mh.train("rainbow", 3), "is not an environment"),
        (lambda: mh.train("rainbow", "CartPole-v1", network=3), "a network must be an equinox module"),
        (lambda: mh.train("rainbow", "CartPole-v1", network=mh.ConvTorso(((8, 3, 1),), 8)), "takes images"),
        (lambda: mh.train("rainbow", "CartPole-v1", steps=10), "steps must be more than the 1,000 steps"),
        (lambda: mh.train("rainbow", "CartPole-v1", num_envs=0), "num_envs must be a whole number"),
        (lambda: mh.load("nowhere"), "nowhere does not exist"),
        (lambda: mh.load("."), "holds neither a policy"),
        (lambda: mh.train("rainbow", "CartPole-v1", steps="100"), "steps must be a whole number"),
        (lambda: mh.train("rainbow", "CartPole-v1", out="/"), "holds other files, such as"),
        (lambda: mh.train("rainbow", Wrong()), r"the first observation of Wrong has shape \[7\], but must have \[5\]"),
        (lambda: mh.train("rainbow", "CartPole-v1", loggers=mh.loggers.Csv()), "loggers must be a list"),
        (lambda: mh.agent("rainbow", gamma=0.9), "gamma is not a setting; use horizons="),
    ],
)
def test_invalid_arguments_give_one_line_errors(wrong: Any, said: str) -> None:
    with pytest.raises(mh.InputError, match=said) as caught:
        wrong()
    assert "\n" not in str(caught.value)
    assert "--" not in str(caught.value)


def test_enum_settings_accept_names() -> None:
    agent = mh.agent("rainbow", acting="weighted", priority="uniform", horizons=0.9)
    assert agent.acting is mh.Acting.WEIGHTED
    assert agent.horizons == mh.single(0.9)


def test_policy_rejects_another_environment_or_network(tmp_path: Path) -> None:
    policy = trained("CartPole-v1", seeds=1).policy()
    folder = policy.save(tmp_path / "policy")
    with pytest.raises(mh.InputError, match=r"shape \[4\] and 2 actions.*shape \[7\] and 2 actions"):
        mh.load(folder, env=Corridor)
    with pytest.raises(
        mh.InputError, match=r"another network: heads.weight has shape \(208, 128\) there, but \(208, 16\) here"
    ):
        mh.load(folder, network=Linear)
    with pytest.raises(mh.InputError, match=r"observations of shape \[4\] and 2 actions"):
        mh.evaluate(policy, "foraging", episodes=1)


def test_a_run_is_kept_if_its_callback_raises_an_error(tmp_path: Path) -> None:
    def fails(rows: Any) -> None:
        raise KeyError("mine")

    with pytest.raises(mh.InputError, match="the callback raised KeyError: 'mine'; the run so far is in"):
        trained("CartPole-v1", tmp_path / "run", callback=fails)
    run = mh.load_run(tmp_path / "run")
    assert len(run.metrics) == 2
    assert list((tmp_path / "run/checkpoints").glob("iteration-*.npz"))


def test_policy_uses_the_environment_that_the_user_passed(tmp_path: Path) -> None:
    run = trained(Corridor, tmp_path / "run")
    run.policy().save(tmp_path / "policy")
    for policy in (run.policy(), mh.load(tmp_path / "policy", env=Corridor)):
        assert len(mh.evaluate(policy, episodes=2)) == 2
    with pytest.raises(mh.InputError, match="pass it with env="):
        mh.evaluate(mh.load(tmp_path / "policy"), episodes=2)


def test_a_finished_run_can_be_extended(tmp_path: Path) -> None:
    run = trained("CartPole-v1", tmp_path / "run")
    assert run.finished
    longer = mh.load_run(tmp_path / "run").resume(steps=1_200)
    assert longer.finished
    assert [row["step"] for row in longer.metrics if row["seed"] == 0] == [300, 600, 900, 1_200]
    with pytest.raises(mh.InputError, match="steps must be at least 1,200, the run's present total"):
        longer.resume(steps=900)
    with pytest.raises(mh.InputError, match="n_steps cannot be changed"):
        longer.resume(n_steps=3)


def test_a_rejected_change_leaves_the_run_unchanged(tmp_path: Path) -> None:
    run = trained("CartPole-v1", tmp_path / "run")
    before = (tmp_path / "run/config.json").read_text()
    for changes in ({"num_evaluation_envs": 0}, {"checkpoint_minutes": "a"}, {"checkpoint_minutes": -1.0}):
        with pytest.raises(mh.InputError, match="must be"):
            run.resume(steps=900, **changes)
        assert run.finished
        assert (tmp_path / "run/config.json").read_text() == before
    assert run.resume(steps=900, checkpoint_replay=False).finished


@pytest.mark.parametrize("env", ["FrozenLake-v1", "CartPole-v1"])
def test_no_transition_joins_two_episodes_after_a_resume(env: str, tmp_path: Path) -> None:
    """If a transition does not end its episode, the next transition in the buffer must belong to the same episode."""
    from multihorizon.agents.replay import CONTINUES
    from multihorizon.files import read_json
    from multihorizon.runs.checkpoint import Checkpoints
    from multihorizon.runs.configure import made
    from multihorizon.runs.folder import fixed_settings

    run = trained(env, tmp_path / "run", callback=lambda rows: rows[0]["iteration"] < 1, steps=900)
    settings = fixed_settings(read_json(run.folder / "config.json"))
    with made(run.configuration) as trainer:
        kept = Checkpoints(run.folder / "checkpoints", trainer.shape, True, settings)
        state, done = kept.restore(lambda: trainer.init(0), lambda message: None)
        assert done == 2
        state, _ = trainer.iterate(state, done, 0, lambda progress: None)
        rows, streams = trainer.shape.rows, trainer.shape.streams
    for seed in range(2):
        ends, ages = (np.asarray(x[seed]).reshape(rows, streams) for x in (state.replay.ends, state.replay.ages))
        written = np.asarray(state.replay.written[seed])
        for n in range(streams):
            goes_on = np.flatnonzero(ends[: written[n] - 1, n] == CONTINUES)
            assert np.all(ages[goes_on + 1, n] > 0)


def test_all_rows_of_metrics_have_the_same_columns() -> None:
    rows = trained("CartPole-v1").metrics
    assert {tuple(row) for row in rows} == {tuple(rows[0])}
    assert len(rows[-1]["losses_by_horizon"]) == 2


def test_interval_of_returns_is_a_t_interval() -> None:
    returns = mh.Returns(np.arange(10.0), np.full(10, 7))
    low, high = returns.interval
    assert (low, high) == pytest.approx((2.334, 6.666), abs=1e-3)  # 4.5 ± 2.262 · 3.0277 / √10
    assert "mean 4.5" in repr(returns)


def test_agents_are_evaluated_in_the_environment_for_evaluation(tmp_path: Path) -> None:
    class Paid(JaxCorridor):
        def step(self, key: Any, state: Any, action: Any) -> Any:
            state, step = super().step(key, state, action)
            return state, step._replace(reward=step.reward + 100.0)

    rows = trained(JaxCorridor(), eval_env=Paid(), evaluation_steps=50).metrics
    assert min(row["evaluation_return"] for row in rows) >= 100
    assert max(row["return"] for row in rows) <= 9
    with pytest.raises(mh.InputError, match="eval_env must have 2 actions"):
        trained(JaxCorridor(), eval_env="foraging")


def test_import_is_fast_and_does_not_load_jax() -> None:
    check = "import sys, time; t = time.perf_counter(); import multihorizon; d = time.perf_counter() - t; "
    told = subprocess.run(
        [sys.executable, "-c", check + "print(d < 0.2, 'jax' in sys.modules, 'matplotlib' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert told.stdout.split() == ["True", "False", "False"]


def test_every_public_name_can_be_imported() -> None:
    for name in mh.__all__:
        assert getattr(mh, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'trian'"):
        _ = mh.trian  # type: ignore[attr-defined]
