"""Tests training in environments on the host."""

from collections import Counter
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scripted import ACTIONS, Long, Scripted, after, host_collector, small, trainer_of

from multihorizon.agents.optimisers import Adam
from multihorizon.agents.replay import CONTINUES, FINAL, INTERRUPTED, TERMINATED, TRUNCATED
from multihorizon.training import host_environments
from multihorizon.training import trainer as trainers
from multihorizon.training.compiling import IN_ONE_GRAPH
from multihorizon.training.host_environments import usual_groups
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import Progress


@pytest.mark.parametrize(("environments", "iterations"), [(1, 1), (3, 1), (4, 1), (4, 2), (8, 1)])
def test_the_replay_buffer_stores_the_frames_of_each_episode_in_order(environments: int, iterations: int) -> None:
    """Every 360 steps, open episodes are truncated and new episodes begin."""
    make = Scripted if iterations == 1 else Long
    most = {"most_steps": 360 // environments}
    make = type("Timed", (make,), most)
    trainer = trainer_of(small(replay_capacity=3_000), environments, 360 // iterations, 2 * iterations, make=make)
    assert trainer.whole_every == iterations
    training, _ = after(trainer, iterations=2 * iterations)
    replay = jax.tree.map(lambda x: np.asarray(x[0]), training.replay)
    cut_off = 0
    for n in range(environments):
        at = np.arange(int(replay.written[n])) * environments + n
        frames, ends, ages = replay.frames[at], replay.ends[at], replay.ages[at]
        assert frames[0, 2] == 0
        for t in range(1, len(at)):
            (seed, episode, time, _), now = frames[t - 1], frames[t]
            if ends[t - 1] in (CONTINUES, TRUNCATED, INTERRUPTED):
                assert now.tolist() == [seed, episode, time + 1, 1]
                assert (ends[t] == FINAL) == (ends[t - 1] != CONTINUES)
            else:
                assert now[2] == 0
                assert ages[t] == 0
                if now[0] == seed:
                    assert now[1] == episode + 1
                else:  # a new iteration
                    assert now[1] == 0
                    cut_off += 1
            assert ages[t] == now[2]
            if ends[t] == TERMINATED:
                assert now[1] % 2 == 0
        steps = np.sum(ends != FINAL)
        assert steps == 2 * 360 // environments
    assert cut_off == environments


def test_groups_do_not_change_the_length_of_an_iteration() -> None:
    for groups in (1, 2, 3, 4):
        collector = host_collector(small(), 12, steps=5, iterations=3, groups=lambda _, n=groups: n)
        trainer = trainers.Trainer(collector, Schedule(3, 5, 0))
        after(trainer, iterations=3)
        assert trainer.iteration_steps == 12
        assert [len(collector.environments.group(group).received) for group in range(groups)] == [3] * groups
    with pytest.raises(ValueError, match="5 environments cannot step in 2 groups"):
        host_collector(small(), 5, groups=lambda _: 2)


def test_an_iteration_after_an_interrupt_starts_new_episodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The state of the environments before the interrupted iteration cannot be restored."""
    monkeypatch.setattr(trainers, "SECONDS_BETWEEN_REPORTS", 0.0)
    trainer = trainer_of(small(), environments=8, steps=80, iterations=4, make=Long)
    training, _ = after(trainer)
    assert trainer.whole_every > 2
    kept = jax.tree.map(jnp.copy, training)
    with pytest.raises(KeyboardInterrupt):
        trainer.iterate(training, 1, 0, interrupt)
    resets = []
    groups = trainer.collector.environments.groups
    for group in range(groups):
        environments = trainer.collector.environments.group(group)
        monkeypatch.setattr(
            environments, "reset", lambda seeds, real=environments.reset: resets.append(1) or real(seeds)
        )
    trainer.iterate(kept, 1, 0, lambda progress: None)
    assert len(resets) == groups


def interrupt(progress: Progress) -> None:
    raise KeyboardInterrupt


def test_the_default_number_of_groups_depends_on_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    assert usual_groups(160) == 1  # on a CPU
    monkeypatch.setattr(host_environments.jax, "default_backend", lambda: "gpu")
    usual = {environments: usual_groups(environments) for environments in (1, 2, 7, 40, 80, 120, 122, 123, 160, 5_000)}
    assert usual == {1: 1, 2: 2, 7: 1, 40: 2, 80: 2, 120: 3, 122: 2, 123: 3, 160: 4, 5_000: 4}


def test_an_episode_belongs_to_the_iteration_in_which_it_ends() -> None:
    agent = small(clip_rewards=False, warm_up_steps=3_000, replay_capacity=3_000)  # never learns
    returns, episodes = [], []
    for iterations in (1, 3):
        trainer = trainer_of(agent, 4, 720 // iterations, iterations, make=Long)
        assert trainer.whole_every == (2, 5)[iterations == 3]
        training = trainer.init(0)
        told = []
        for iteration in range(iterations):
            training, outcome = trainer.iterate(training, iteration, 0, lambda progress: None)
            told.append(outcome)
        episodes.append(sum(one.episodes[0] for one in told))
        returns.append(sum(one.episodes[0] * (one.returns[0] or 0) for one in told))
    assert episodes[0] == episodes[1]
    assert returns[0] == pytest.approx(returns[1])


def test_rewards_are_stored_with_their_actions() -> None:
    trainer = trainer_of(small(clip_rewards=False), environments=6, steps=360)
    training, _ = after(trainer)
    replay = jax.tree.map(lambda x: np.asarray(x[0]), training.replay)
    sent = np.concatenate([trainer.collector.environments.group(group).received for group in range(2)], axis=1)  # [T N]
    for n in range(6):
        at = np.arange(int(replay.written[n])) * 6 + n
        steps = replay.ends[at] != FINAL
        np.testing.assert_array_equal(replay.actions[at][steps], sent[:, n])
        assert np.abs(replay.rewards[at][steps] - sent[:, n]).max() < 0.6  # the reward is the action plus noise


@pytest.mark.parametrize("environments", [1, 3, 8])
def test_there_is_one_update_per_four_steps_for_any_number_of_environments(environments: int) -> None:
    trainer = trainer_of(small(warm_up_steps=120), environments, steps=360)
    training, outcome = after(trainer, iterations=2)
    assert outcome.step == 720
    assert outcome.updates == 360 // 4
    assert int(training.learner.optimiser[0].count[0]) == (720 - 120) // 4


def test_the_target_network_is_updated_once_per_period() -> None:
    agent = small(target_period_steps=80)
    trainer = trainer_of(agent, environments=4, steps=120 + 80)
    training, _ = after(trainer)
    for a, b in zip(
        jax.tree.leaves(training.learner.parameters), jax.tree.leaves(training.learner.target), strict=True
    ):
        np.testing.assert_array_equal(a, b)
    training, _ = after(trainer_of(agent, environments=4, steps=120 + 84))
    assert not np.array_equal(training.learner.parameters["heads.weight"], training.learner.target["heads.weight"])


def test_updates_in_one_program_equal_updates_in_separate_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cycle has nine updates, and the loop over the updates is unrolled by four.

    The target network is copied after every 20 updates, so some copies fall within a cycle.
    """
    monkeypatch.setitem(IN_ONE_GRAPH, "cpu", 4)
    ends = []
    for at_once in (False, True):
        agent = small("multi-rainbow", target_period_steps=80, warm_up_steps=288, replay_capacity=3_000)
        trainer = trainer_of(agent, environments=72, steps=1_440)
        collector = trainer.collector
        collector.learns_at_once = at_once
        calls = Counter[str]()
        for name in ("learn_one", "learn_all", "copy"):

            def counted(*given: Any, name: str = name, of: Any = getattr(collector.programs, name)) -> Any:
                calls[name] += 1  # noqa: B023 - called before the next trainer is made
                return of(*given)

            monkeypatch.setattr(collector.programs, name, counted)
        training, _ = after(trainer)
        made = (1_440 - 288) // 4
        assert calls["learn_one"] + collector.pace.updates * calls["learn_all"] == made
        assert calls["copy"] == made // 20
        assert (min(calls["learn_one"], calls["learn_all"]) > 0) == at_once
        ends.append(training)
    for a, b in zip(*map(jax.tree.leaves, ((end.learner, end.tally) for end in ends)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    np.testing.assert_array_equal(ends[0].replay.actions, ends[1].replay.actions)


def test_the_device_and_the_host_count_the_same_steps_and_updates() -> None:
    """In the last iteration, a lost replay buffer is refilled.

    During the refill, the update number advances although no updates are made.
    """
    trainer = trainer_of(small(warm_up_steps=120), environments=16, steps=192, iterations=9, make=Long)
    training = trainer.init(0)
    collector = trainer.collector
    assert collector.environments.groups == 4
    assert trainer.iteration_steps == 192
    assert trainer.whole_every > 3
    for iteration in range(4):
        if iteration == 3:
            training = training._replace(replay=trainer.init(0).replay)
        training, _ = trainer.iterate(training, iteration, 0, lambda progress: None)
        assert collector._open_episodes is not None
        last = (iteration + 1) * 192
        assert [int(one.step[0]) for one in collector._open_episodes.groups] == [last - 12, last - 8, last - 4, last]
        assert [int(one.first[0]) for one in collector._open_episodes.groups] == [0, 4, 8, 12]
        assert int(training.tally.first[0] + training.tally.updates[0]) == (last - 120) // 4
    assert int(training.tally.updates[0]) == (192 - 120) // 4


def test_exploration_decays_with_the_steps_of_all_environments() -> None:
    """The greedy action is always 2, so the fraction of other actions follows ε.

    After the first 400 steps, ε falls from 1 to 0 within 1,000 steps.
    """
    agent = small(warm_up_steps=400, optimiser=Adam(1e-12, epsilon=1.0))
    agent = replace(agent, epsilon=replace(agent.epsilon, final=0.0, decay_steps=1_000), replay_capacity=2_000)
    for environments in (1, 8):
        trainer = trainer_of(agent, environments, steps=2_000)
        training = trainer.init(0)
        bias = training.learner.parameters["heads.bias"].at[:, 2].set(1e3)
        training = training._replace(
            learner=training.learner._replace(parameters=training.learner.parameters | {"heads.bias": bias})
        )
        trainer.iterate(training, 0, 0, lambda progress: None)
        environments_ = trainer.collector.environments
        received = [environments_.group(group).received for group in range(environments_.groups)]
        sent = np.concatenate(received, axis=1)
        others = np.cumsum((sent != 2).sum(axis=1))
        steps = environments * np.arange(1, len(sent) + 1)
        random = ACTIONS / (ACTIONS - 1) * others  # a random action may also be 2
        for step, expected in ((400, 400), (900, 775), (1_400, 900), (1_900, 900)):
            assert random[np.searchsorted(steps, step)] == pytest.approx(expected, rel=0.08)


def test_one_environment_has_the_papers_order_of_events(monkeypatch: pytest.MonkeyPatch) -> None:
    """With one environment, the update comes before the next action.

    With several environments, the next actions come before the update, so environments step while the device learns.
    """
    for environments, expected in ((1, "store learn act"), (4, "store learn store")):
        trainer = trainer_of(small(), environments, steps=200)
        events: list[str] = []
        collector = trainer.collector
        for of, name, event in (
            (collector, "_store", "store"),
            (collector.programs, "learn", "learn"),
            (collector, "_choose", "act"),
        ):
            original = getattr(of, name)

            def told(
                *given: Any, event: str = event, original: Any = original, seen: list[str] = events, **named: Any
            ) -> Any:
                seen.append(event)
                return original(*given, **named)

            monkeypatch.setattr(of, name, told)
        after(trainer)
        at = events.index("learn")
        assert " ".join(events[at - 1 : at + 2]) == expected
        assert events.count("learn") * trainer.collector.pace.updates == 20


def test_parallel_seeds_give_the_same_results_as_single_runs() -> None:
    agent = small("hyper-rainbow")
    together, told = after(trainer_of(agent, seeds=3, steps=600, evaluation=40, evaluation_environments=4), seed=5)
    single = trainer_of(agent, steps=600, evaluation=40, evaluation_environments=4)
    for s in range(3):
        alone, alone_told = after(single, seed=5 + s)
        for a, b in zip(
            jax.tree.leaves(together.learner.parameters), jax.tree.leaves(alone.learner.parameters), strict=True
        ):
            np.testing.assert_allclose(a[s], b[0], atol=2e-4)
        np.testing.assert_array_equal(together.replay.frames[s], alone.replay.frames[0])
        np.testing.assert_array_equal(together.replay.actions[s, :400], alone.replay.actions[0, :400])
        assert told.episodes[s] == alone_told.episodes[0]
        assert told.evaluation_episodes[s] == alone_told.evaluation_episodes[0]
