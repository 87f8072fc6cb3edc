"""Agents follow their consistency rule in training, in evaluation and as policies."""

import itertools
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import equinox as eqx
import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import multihorizon as mh
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import MLP
from multihorizon.envs.dilemmas import CHORE, CROSSROADS, DILEMMAS, OVER, TEMPTATION, Dilemma
from multihorizon.envs.gymnasium_vector import Gymnasium
from multihorizon.experiments.consistency import HORIZONS, agent_for, error_on_path, exact, learn, same_way
from multihorizon.runs.configuration import plain, restored
from multihorizon.runs.policy import Policy
from multihorizon.runs.watching import record_episode
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.evaluation import DeviceEvaluator
from multihorizon.training.host_collector import HostCollector
from multihorizon.training.host_evaluation import HostEvaluator
from multihorizon.training.schedule import Schedule
from multihorizon.training.state import Core, Streams
from multihorizon.training.trainer import Iteration
from multihorizon.training.worlds import world

NAIVE, PRECOMMITTED, SOPHISTICATED = mh.Consistency
ITERATION = Iteration(number=0, seed=0, first_cycle=0, learns_from=0, last_step=400, is_last=True)


class DilemmaGym(gymnasium.Env[Any, Any]):
    """A dilemma that steps on the host."""

    def __init__(self, dilemma: Dilemma) -> None:
        self.dilemma, self.places = dilemma, len(dilemma.moves)
        self.observation_space = gymnasium.spaces.Box(0, 1, (self.places,), np.float32)
        self.action_space = gymnasium.spaces.Discrete(len(dilemma.choices))

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.place, self.steps = 0, 0
        return self._observation(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward, following = self.dilemma.move(self.place, int(action))
        over = following == OVER
        self.place, self.steps = self.place if over else following, self.steps + 1
        return self._observation(), float(reward), over, not over and self.steps == self.dilemma.most_steps, {}

    def _observation(self) -> Any:
        return np.eye(self.places, dtype=np.float32)[self.place]


def identity(key: Any, shape: Any) -> eqx.Module:
    return eqx.nn.Identity()


def exact_policy(dilemma: Dilemma, rule: mh.Consistency) -> Policy:
    """Returns a policy with the exact head values of a consistency rule."""
    values = exact(dilemma, rule).values
    heads, states, actions = values.shape
    agent = agent_for(rule)
    empty = Learner(agent, actions, (states,), identity).init(jax.random.key(0)).parameters
    zeros = jax.tree.map(jnp.zeros_like, empty)
    table = jnp.asarray(values.transpose(0, 2, 1).reshape(heads * actions, states), jnp.float32)
    parameters = zeros | {"heads.weight": zeros["heads.weight"].at[: heads * actions].set(table)}
    return Policy(agent, f"dilemma/{dilemma.name}", actions, (states,), "bool", identity, parameters)


@pytest.mark.parametrize("rule", list(mh.Consistency))
@pytest.mark.parametrize("name", ["temptation", "crossroads"])
def test_all_evaluators_agree_with_the_exact_solution(name: str, rule: mh.Consistency) -> None:
    dilemma = DILEMMAS[name]
    truth, policy = exact(dilemma, rule), exact_policy(dilemma, rule)

    def make() -> DilemmaGym:
        return DilemmaGym(dilemma)

    for env in (None, make):  # on the device, and on the host
        found = mh.evaluate(policy, env, episodes=3, epsilon=0.0)
        np.testing.assert_allclose(found.values, truth.undiscounted, rtol=1e-6)
        assert found.lengths.tolist() == [len(truth.path)] * 3
    learner = Learner(
        agent_for(rule).with_settings(**{"epsilon.evaluation": 0.0}),
        policy.num_actions,
        policy.observation_shape,
        identity,
    )
    parameters = jax.tree.map(lambda leaf: leaf[None], policy.parameters)
    evaluators: list[Any] = [
        DeviceEvaluator(learner, dilemma.environment(), 2),
        HostEvaluator(learner, lambda count: Gymnasium(make, count), 1, 2),
    ]
    for evaluator in evaluators:
        episodes = evaluator.evaluate(parameters, jax.random.split(jax.random.key(0), 1), ITERATION, 70, lambda _: None)
        evaluator.close()
        assert float(episodes.returns[0] / episodes.ended[0]) == pytest.approx(truth.undiscounted, rel=1e-6)
        assert int(episodes.lengths[0]) == int(episodes.ended[0]) * len(truth.path)
        assert int(episodes.ended[0]) >= 2


def test_a_precommitted_policy_acts_by_the_elapsed_time() -> None:
    precommitted, naive = (exact_policy(TEMPTATION, rule) for rule in (PRECOMMITTED, NAIVE))
    tempted = np.eye(len(TEMPTATION.moves))[4]
    assert [precommitted.act(tempted, elapsed=t) for t in (0, 4)] == [0, 1]
    assert [naive.act(tempted, elapsed=t) for t in (0, 4)] == [0, 0]
    batch = np.stack([tempted] * 3)
    np.testing.assert_array_equal(precommitted.act(batch, elapsed=[0, 4, 100]), [0, 1, 1])
    np.testing.assert_array_equal(precommitted.act(batch, elapsed=4), [1, 1, 1])
    np.testing.assert_array_equal(naive.act(batch), [0, 0, 0])
    for forgets in (lambda: precommitted.act(batch), lambda: precommitted.expected_rewards(tempted)):
        with pytest.raises(mh.InputError, match=r"needs the number of steps since .*: act\(obs, elapsed=t\)"):
            forgets()


def test_a_trained_policy_can_change_between_naive_and_precommitted() -> None:
    """Naive and precommitted agents have equal head values, but sophisticated agents have different head values."""
    policies = {rule: exact_policy(TEMPTATION, rule) for rule in mh.Consistency}
    for rule, other in ((NAIVE, PRECOMMITTED), (PRECOMMITTED, NAIVE)):
        changed = policies[rule].with_consistency(other.name.lower())
        assert changed.agent.consistency is other
        assert policies[rule].agent.consistency is rule
        for policy in (changed, changed.with_discount(changed.discount, t_max=50)):
            assert mh.evaluate(policy, episodes=1, epsilon=0.0).mean == pytest.approx(
                mh.evaluate(policies[other], episodes=1, epsilon=0.0).mean
            )
    assert "by a precommitted plan" in repr(policies[NAIVE].with_consistency(PRECOMMITTED))
    for rule, other in itertools.permutations(mh.Consistency, 2):
        if SOPHISTICATED in (rule, other):
            with pytest.raises(mh.InputError, match=f"a {rule.name.lower()} agent cannot become {other.name.lower()}"):
                policies[rule].with_consistency(other)
        assert policies[rule].with_consistency(rule).agent == policies[rule].agent
    with pytest.raises(mh.InputError, match="unknown consistency 'prudent'; allowed: naive, precommitted"):
        policies[NAIVE].with_consistency("prudent")
    frank = policies[NAIVE].agent.with_settings(bootstrap="acting")
    with pytest.raises(mh.InputError, match="needs bootstrap=own"):
        replace(policies[NAIVE], agent=frank).with_consistency(PRECOMMITTED)


@pytest.mark.parametrize(("elapsed", "words"), [(-1, "0 or more"), (np.nan, "0 or more"), ([1, 2], r"got \[2\]")])
def test_invalid_elapsed_time_is_rejected(elapsed: Any, words: str) -> None:
    policy = exact_policy(TEMPTATION, PRECOMMITTED)
    with pytest.raises(mh.InputError, match=words):
        policy.act(np.zeros((3, len(TEMPTATION.moves))), elapsed=elapsed)


@pytest.mark.parametrize("rule", list(mh.Consistency))
def test_saving_keeps_the_consistency_rule(rule: mh.Consistency, tmp_path: Path) -> None:
    policy = exact_policy(TEMPTATION, rule)
    loaded = mh.load(policy.save(tmp_path / "policy"), network=identity)
    assert loaded.agent.consistency is rule
    assert loaded.agent.bootstrap is policy.agent.bootstrap
    assert mh.evaluate(loaded, episodes=1, epsilon=0.0).mean == pytest.approx(exact(TEMPTATION, rule).undiscounted)


def test_stored_configurations_without_a_consistency_rule_are_naive() -> None:
    stored = plain(mh.agent("hyper-dqn", bootstrap="acting"))
    del stored["consistency"]
    assert restored(stored).consistency is NAIVE
    assert restored(stored).bootstrap is mh.Bootstrap.ACTING


def test_a_recorded_episode_contains_the_weights_at_each_step() -> None:
    episode = record_episode(exact_policy(TEMPTATION, PRECOMMITTED), world("dilemma/temptation"), 0, 60)
    ratios = episode.acting_weights / HORIZONS.weights
    expected = (HORIZONS.gammas / HORIZONS.gammas.max()) ** np.arange(9)[:, None]
    np.testing.assert_allclose(ratios, expected, rtol=1e-9)
    assert episode.rewards.sum() == 3


def test_precommitted_agents_act_by_the_elapsed_time_in_training() -> None:
    policy = exact_policy(TEMPTATION, PRECOMMITTED)
    agent = world("dilemma/temptation").adapt(agent_for(PRECOMMITTED)).with_settings(epsilon=mh.Epsilon(0.0, 1))
    schedule = Schedule(1, 100, 0)
    collectors: list[Any] = [
        DeviceCollector(agent, TEMPTATION.environment(), identity, schedule),
        HostCollector(agent, lambda count: Gymnasium(lambda: DilemmaGym(TEMPTATION), count), identity, schedule),
    ]
    for collector in collectors:
        core: Core = collector.core
        tempted = jnp.asarray(np.stack([np.eye(len(TEMPTATION.moves))[4]] * 2))
        streams = Streams(tempted, jnp.zeros(2, bool), jnp.zeros(2), jnp.asarray([0, 4]))
        actions = core.act(policy.parameters, jax.random.key(0), streams, jnp.asarray(10**6))
        assert actions.tolist() == [0, 1]
        collector.close()


@pytest.mark.parametrize(
    ("dilemma", "rule", "steps"),
    [
        (TEMPTATION, NAIVE, 12_000),
        (TEMPTATION, PRECOMMITTED, 12_000),
        (TEMPTATION, SOPHISTICATED, 12_000),
        (CHORE, NAIVE, 8_000),
        (CROSSROADS, SOPHISTICATED, 14_000),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_agents_learn_the_values_and_choices_of_their_rule(dilemma: Dilemma, rule: mh.Consistency, steps: int) -> None:
    truth = exact(dilemma, rule)
    (found,) = learn(dilemma, agent_for(rule), seeds=1, steps=steps)
    assert same_way(found, truth)
    assert found.earned == pytest.approx(truth.earned)
    assert found.believed == pytest.approx(truth.believed, abs=0.03)
    assert error_on_path(found, truth) < 0.05


def test_earnings_differ_between_rules_in_every_dilemma_except_the_control() -> None:
    kinds: dict[str, Callable[[], int]] = {
        name: lambda d=dilemma: len({exact(d, rule).earned for rule in mh.Consistency})
        for name, dilemma in DILEMMAS.items()
    }
    assert {name: count() for name, count in kinds.items()} == {
        "temptation": 3,
        "chore": 3,
        "crossroads": 3,
        "control": 1,
    }
    assert MLP is world("dilemma/control").torso


def test_precommitted_agents_are_not_trained_in_environments_with_durations() -> None:
    agent = mh.agent("hyper-dqn", consistency=mh.Consistency.PRECOMMITTED)
    with pytest.raises(mh.InputError, match="this environment reports durations"):
        mh.train(agent, "shortcut", steps=3_000)


class Slow(DilemmaGym):
    """Temptation with steps that last two units of time."""

    metadata = {"timing": ("duration",)}  # noqa: RUF012 - as in Gymnasium

    def step(self, action: Any) -> Any:
        observation, reward, terminated, truncated, _ = super().step(action)
        return observation, reward, terminated, truncated, {"duration": 2.0}


def test_precommitted_agents_are_not_evaluated_in_environments_with_durations() -> None:
    def make() -> Slow:
        return Slow(TEMPTATION)

    environment: Any = TEMPTATION.environment()
    slow = replace(environment, mdp=replace(environment.mdp, durations=np.full(environment.mdp.rewards.shape, 2.0)))
    policies = {rule: exact_policy(TEMPTATION, rule) for rule in mh.Consistency}
    for env in (make, slow):
        assert mh.evaluate(policies[NAIVE], env, episodes=1, epsilon=0.0).lengths.tolist() == [
            len(exact(TEMPTATION, NAIVE).path)
        ]
        with pytest.raises(
            mh.InputError, match=r"a precommitted agent needs steps.*this environment reports durations"
        ):
            mh.evaluate(policies[PRECOMMITTED], env, episodes=1)
    learner = Learner(agent_for(PRECOMMITTED), 2, (len(TEMPTATION.moves),), identity)
    parameters = jax.tree.map(lambda leaf: leaf[None], policies[PRECOMMITTED].parameters)
    with pytest.raises(mh.InputError, match="this environment reports durations"):
        DeviceEvaluator(learner, slow, 2)
    host = HostEvaluator(learner, lambda count: Gymnasium(make, count), 1, 2)
    with pytest.raises(mh.InputError, match="this environment reports durations"):
        host.evaluate(parameters, jax.random.split(jax.random.key(0), 1), ITERATION, 70, lambda _: None)
    host.close()
