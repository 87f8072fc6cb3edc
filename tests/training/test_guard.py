"""Diverging training stops early and keeps its last good weights."""

from dataclasses import replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scripted import small, trainer_of

from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import MlpTorso
from multihorizon.agents.optimisers import Adam
from multihorizon.agents.presets import preset
from multihorizon.discounting import single
from multihorizon.envs.timing import Timing
from multihorizon.errors import InputError
from multihorizon.runs.recording import train
from multihorizon.training.device_collector import DeviceEnvironments
from multihorizon.training.guard import LEAST_UPDATES, DivergenceError, Guard, _extremes
from multihorizon.training.state import Episodes, Streams, Tally


class FakeReplay(NamedTuple):
    rewards: Any
    timing: Timing = Timing()
    written: Any = jnp.full((1, 1), 4)


class FakeLearner(NamedTuple):
    parameters: Any


class FakeTraining(NamedTuple):
    """The parts of a training state that a guard reads, for one seed."""

    tally: Tally
    learner: FakeLearner
    replay: FakeReplay
    episodes: Episodes = Episodes.empty(1)
    environments: Any = None


def state(updates: int, loss: float, parameter: float = 1.0, reward: float = 1.0, opening: float = 1.0) -> FakeTraining:
    """Returns the state after `updates` updates of one head with a constant loss."""
    zero, sums = jnp.zeros(1, jnp.int32), jnp.full((1, 1), loss * updates)
    tally = Tally(zero + 500, zero + updates, sums, jnp.zeros((1, 1)), jnp.full((1, 1), opening), zero - 1)
    return FakeTraining(tally, FakeLearner({"w": jnp.full(1, parameter)}), FakeReplay(jnp.full((1, 4), reward)))


def guard(agent: str) -> Guard:
    made = Guard(Learner(preset(agent), 2, (3,), MlpTorso((4,))))
    made.begin(state(0, 0.0))
    return made


def timed_state(updates: int, loss: float, **timing: list[float]) -> FakeTraining:
    """Returns a state with durations or survivals of four rows. The last row is not written yet."""
    rows = Timing(**{name: jnp.array([values]) for name, values in timing.items()})
    return state(updates, loss)._replace(replay=FakeReplay(jnp.ones((1, 4)), rows, jnp.full((1, 1), 3)))


@pytest.mark.parametrize(
    ("timing", "problem"),
    [
        ({"duration": [1.0, 0.0, 2.0, 1.0]}, "gave a duration of 0; a duration must be positive and finite"),
        ({"duration": [1.0, 2.0, -3.0, 1.0]}, "gave a duration of -3"),
        ({"duration": [1.0, np.inf, 2.0, 1.0]}, "gave a duration of inf"),
        ({"duration": [1.0, np.nan, 2.0, 1.0]}, "gave a duration of nan"),
        ({"survival": [1.0, 0.0, 0.5, 1.0]}, r"gave a survival of 0; it is a probability and must lie in \(0, 1\]"),
        ({"survival": [1.0, 0.5, 1.25, 1.0]}, "gave a survival of 1.25"),
        ({"survival": [0.5, np.nan, 0.5, 1.0]}, "gave a survival of nan"),
    ],
)
def test_an_invalid_duration_or_survival_stops_training(timing: dict[str, list[float]], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        guard("dqn").check(timed_state(0, 0.0, **timing))


def test_an_invalid_duration_in_a_large_replay_buffer_stops_training() -> None:
    """XLA's minimum of thousands of values skips NaN."""
    rows = np.ones((2, 10_000), np.float32)
    rows[1, 7] = np.nan
    replay = FakeReplay(jnp.ones((2, 10_000)), Timing(duration=jnp.asarray(rows)), jnp.full((2, 1), 9_000))
    with pytest.raises(InputError, match="gave a duration of nan"):
        guard("dqn").check(state(0, 0.0)._replace(replay=replay))


def test_unwritten_rows_are_not_checked() -> None:
    guard("dqn").check(timed_state(0, 0.0, duration=[0.5, 1.0, 7.0, 0.0], survival=[0.5, 1.0, 0.1, 0.0]))


def test_short_steps_allow_larger_losses() -> None:
    """The largest return is 1 / (1 - 0.99) = 100 if steps last 1 time unit, and 995 if steps last 0.1."""
    with pytest.raises(DivergenceError, match="at most 100"):
        guard("dqn").check(timed_state(1_000, 400.0, duration=[1.0, 2.0, 1.0, 0.1]))
    guard("dqn").check(timed_state(1_000, 400.0, duration=[1.0, 0.1, 1.0, 1.0]))


def test_a_categorical_loss_of_38_stops_training_and_keeps_the_last_good_weights() -> None:
    """In one run, divergence began with a loss of 38. An untrained network's loss is log 51 = 3.93."""
    watch = guard("rainbow")
    watch.check(state(1_000, 3.9))
    after = state(2_000, (3.9 + 38.0) / 2, parameter=2.0)  # the mean of the last 1,000 losses is 38
    with pytest.raises(
        DivergenceError, match=r"updates 1,500 to 2,499 is 38 .*untrained network's loss is at most 3.93"
    ) as caught:
        watch.check(after)
    assert "learning rate" not in str(caught.value)
    assert caught.value.parameters["w"][0] == 1.0


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_return_that_is_not_finite_stops_training(value: float) -> None:
    spoilt = jnp.full(1, value)
    problem = rf"reward that is not finite.*: the return of an episode in training is {value:g}, so training stopped"
    with pytest.raises(DivergenceError, match=problem) as caught:
        guard("dqn").check(state(200, 0.1)._replace(episodes=Episodes.empty(1)._replace(returns=spoilt)))
    assert caught.value.parameters["w"][0] == 1.0
    streams = Streams(jnp.zeros(1), jnp.ones(1, bool), spoilt, jnp.zeros(1, jnp.int32))
    with pytest.raises(DivergenceError, match=problem):
        guard("dqn").check(state(200, 0.1)._replace(environments=DeviceEnvironments(None, streams)))


def test_overflowing_sums_stop_training() -> None:
    overflowing = state(2, 0.1)
    overflowing = overflowing._replace(tally=overflowing.tally._replace(values=jnp.full((1, 1), jnp.inf)))
    with pytest.raises(DivergenceError, match="the losses or values up to update 501 overflow"):
        guard("dqn").check(overflowing)


def test_usual_losses_do_not_stop_training() -> None:
    watch = guard("rainbow")
    for updates in range(LEAST_UPDATES, 10 * LEAST_UPDATES, LEAST_UPDATES):
        watch.check(state(updates, 3.93))


def test_the_mean_loss_is_not_checked_if_there_are_few_updates() -> None:
    guard("rainbow").check(state(LEAST_UPDATES - 1, 1e6))


def test_a_huber_loss_is_compared_with_the_largest_possible_return() -> None:
    """With rewards of 1 and γ = 0.99, the largest return is 100."""
    watch = guard("dqn")
    watch.check(state(200, 0.01))
    watch.check(state(400, 100.0))
    with pytest.raises(DivergenceError, match="at most 100"):
        watch.check(state(600, 1_000.0))
    guard("dqn").check(state(200, 1_000.0, reward=10.0))


def test_neither_zero_rewards_nor_an_undiscounted_head_stop_training() -> None:
    """With rewards of 0, a loss may rise far above a tiny first loss."""
    watch = guard("dqn")
    watch.check(state(200, 1e-4, reward=0.0, opening=1e-4))
    watch.check(state(400, 5e-3, reward=0.0, opening=1e-4))
    undiscounted = Guard(Learner(replace(preset("dqn"), horizons=single(1.0)), 2, (3,), MlpTorso((4,))))
    undiscounted.begin(state(0, 0.0))
    undiscounted.check(state(200, 2.0, reward=0.0))


def test_a_reward_outside_the_support_gives_one_warning() -> None:
    watch, heard = guard("rainbow"), []
    watch.warn = heard.append
    for updates in (200, 400):
        watch.check(state(updates, 3.0, reward=900.0))
    (said,) = heard
    assert "a reward with absolute value 900 lies outside the support of the categorical loss, ±10" in said


def test_later_losses_are_compared_with_a_large_initial_loss() -> None:
    """Unscaled observations cause a large initial loss."""
    watch = guard("rainbow")
    watch.check(state(200, 50.0, opening=60.0))
    watch.check(state(400, 45.0, opening=1.0))


def test_divergence_is_detected_while_losses_are_finite() -> None:
    trainer = trainer_of(small("rainbow", optimiser=Adam(100.0, 1e-8)), steps=2_000)
    with pytest.raises(DivergenceError, match="mean loss of updates") as caught:
        train(trainer, 0)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(caught.value.parameters))


def test_a_loss_that_is_not_finite_stops_training() -> None:
    with pytest.raises(DivergenceError, match=r"not finite at update \d+") as caught:
        train(trainer_of(small("dqn", optimiser=Adam(1e30, 1e-8)), steps=2_000), 0)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(caught.value.parameters))


def test_weights_that_are_not_finite_after_the_last_update_stop_training() -> None:
    """The loss of the last update is still finite."""
    trainer = trainer_of(small(), steps=124)
    programs = trainer.collector.programs
    learn = programs.learn_one

    def spoils(training: Any) -> Any:
        training = learn(training)
        spoilt = jax.tree.map(lambda leaf: leaf * jnp.nan, training.learner.parameters)
        return training._replace(learner=training.learner._replace(parameters=spoilt))

    programs.learn_one = spoils
    with pytest.raises(DivergenceError, match="weights are not finite at update 0") as caught:
        train(trainer, 0)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(caught.value.parameters))


def test_nan_in_the_durations_of_one_seed_is_detected() -> None:
    values = jnp.ones((3, 4)).at[1, 2].set(jnp.nan)
    assert np.isnan(_extremes(values, jnp.full((3, 1), 4))).all()
