"""Training on the device: seeds, streams, pace, records and what stops it."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents.presets import Adam, Agent, preset
from multihorizon.agents.replay import FINAL, TERMINATED, TRUNCATED
from multihorizon.envs.foraging import Foraging
from multihorizon.training import memory
from multihorizon.training.evaluation import play_episodes
from multihorizon.training.loop import Trainer
from multihorizon.training.records import Records, load_weights, plain
from multihorizon.training.run import chunks, train
from multihorizon.training.worlds import world

FIELD = Foraging("1S...9", most_steps=12)


def small(name: str, **settings: object) -> Agent:
    agent = replace(world("foraging").adapt(preset(name)), replay_capacity=2_000, warm_up_steps=200)
    return replace(agent, **settings)


def trainer_of(agent: Agent, seeds: int = 1, environments: int = 4) -> Trainer:
    return Trainer(agent, FIELD.environment(), world("foraging").torso, seeds, environments)


def after(trainer: Trainer, seed: int, steps: int) -> object:
    for state, _ in chunks(trainer, seed, steps, steps):
        training = state
    return training


def test_seeds_side_by_side_equal_single_runs() -> None:
    agent = small("hyper-rainbow")
    together = after(trainer_of(agent, seeds=3), 5, 1_000)  # 200 updates
    for s in range(3):
        alone = after(trainer_of(agent), 5 + s, 1_000)
        for a, b in zip(
            jax.tree.leaves(together.learner.parameters), jax.tree.leaves(alone.learner.parameters), strict=True
        ):
            np.testing.assert_allclose(a[s], b[0], atol=2e-4)
        np.testing.assert_array_equal(together.replay.actions[s, :400], alone.replay.actions[0, :400])


def test_each_seed_is_its_own_from_the_first_step() -> None:
    training = trainer_of(small("rainbow"), seeds=3).init(0)
    weights = np.asarray(training.learner.parameters.heads.weight)
    keys = np.asarray(jax.random.key_data(training.key))
    for a, b in ((0, 1), (0, 2), (1, 2)):
        assert not np.allclose(weights[a], weights[b])
        assert not np.array_equal(keys[a], keys[b])


def test_streams_store_episodes_whole() -> None:
    """What the loop wrote, read as a list: every episode is T steps and a final row, and never leaks into the next."""
    trainer = trainer_of(small("dqn", warm_up_steps=1_600), environments=3)
    training, _ = trainer.run(trainer.init(0), 0, trainer.warm_up_cycles())
    replay = jax.tree.map(lambda x: np.asarray(x[0]), training.replay)
    rows = int(replay.written)
    kinds = set()
    for n in range(3):
        at = np.arange(min(rows, trainer.shape.rows)) * 3 + n
        ends, ages, rewards = replay.ends[at], replay.ages[at], replay.rewards[at]
        places = replay.frames[at].reshape(len(at), -1).argmax(axis=1)
        assert ages[0] == 0
        for t in range(1, len(at)):
            assert (ages[t] == 0) == (ends[t - 1] == FINAL)  # a new episode begins after a final row, and only there
            assert (ends[t] == FINAL) == (ends[t - 1] in (TERMINATED, TRUNCATED))
            if ages[t] == 0:
                assert places[t] == 1  # the start
            if ends[t] == TERMINATED:
                assert rewards[t] in (1.0, 9.0)
            if ends[t] == TRUNCATED:
                assert ages[t] == 11
        kinds |= set(ends.tolist())
        assert not np.any(rewards[ends == FINAL])
    assert {TERMINATED, TRUNCATED, FINAL} <= kinds


@pytest.mark.parametrize("environments", [1, 2, 4, 6, 8])
def test_one_update_for_every_four_steps_whatever_the_environments(environments: int) -> None:
    trainer = trainer_of(small("dqn", warm_up_steps=240), environments=environments)
    training = trainer.init(0)
    training, report = trainer.run(training, 0, trainer.warm_up_cycles())
    assert report.metrics.losses.shape[1] == 0
    training, report = trainer.run(training, trainer.warm_up_cycles(), 24)
    assert report.metrics.losses.shape[1] * 4 == 24 * trainer.steps_per_cycle
    assert int(training.replay.written[0]) * environments == (trainer.warm_up_cycles() + 24) * trainer.steps_per_cycle


def test_rewards_are_clipped_in_training_alone() -> None:
    trainer = trainer_of(small("dqn", clip_rewards=True, warm_up_steps=800))
    training, report = trainer.run(trainer.init(0), 0, trainer.warm_up_cycles())
    assert float(training.replay.rewards.max()) == 1.0
    assert float(report.episodes.returns[0] / report.episodes.ended[0]) > 1.2


def test_a_run_records_itself(tmp_path: Path) -> None:
    agent = small("hyper-dqn")
    trainer = trainer_of(agent, seeds=2)
    records = Records(tmp_path / "run", {"agent": agent})
    seen = []
    trained = train(trainer, 0, 600, 100, records, seen.append)
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [chunk.step for chunk in seen] == [200, 300, 400, 500, 600]
    assert len(lines[-1]["returns"]) == 2
    assert len(lines[-1]["losses"][0]) == 10
    configuration = json.loads((tmp_path / "run/config.json").read_text())
    assert configuration["agent"]["horizons"]["gammas"] == agent.horizons.gammas.tolist()
    assert configuration["agent"]["acting"] == "WEIGHTED"
    assert "jax" in configuration["versions"]
    loaded = load_weights(tmp_path / "run/weights.npz", trained.learner.parameters)
    for a, b in zip(jax.tree.leaves(loaded), jax.tree.leaves(trained.learner.parameters), strict=True):
        np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="holds a run already"):
        Records(tmp_path / "run", {})


def test_a_loss_that_is_not_finite_stops_training_and_keeps_the_last_good_weights(tmp_path: Path) -> None:
    agent = small("dqn", optimiser=Adam(1e30, 1e-8))
    records = Records(tmp_path / "run", {"agent": agent})
    with pytest.raises(
        ValueError, match=r"not finite at update \d+, .*last good weights are in .*weights-last-good.npz"
    ):
        train(trainer_of(agent), 0, 2_000, 100, records)
    with np.load(tmp_path / "run/weights-last-good.npz", allow_pickle=False) as held:
        assert all(np.all(np.isfinite(held[name])) for name in held)


def test_episodes_are_played_with_frozen_weights() -> None:
    trainer = trainer_of(small("dqn"))
    parameters = jax.tree.map(lambda x: x[0], trainer.init(3).learner.parameters)
    played = play_episodes(trainer.learner, trainer.environment, parameters, jax.random.key(0), 50, 100, 1.0)
    assert bool(jnp.all(played.over))
    assert set(np.asarray(played.returns).tolist()) <= {0.0, 1.0, 9.0}
    assert int(played.lengths.max()) <= 12


def test_memory_is_said_and_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of(small("multi-rainbow"))
    replay, whole = memory.needed_bytes(trainer)
    assert replay == trainer.shape.bytes
    assert whole > replay
    assert "of it replay" in memory.check(trainer)
    monkeypatch.setattr(memory, "available_bytes", lambda: 1_000)
    with pytest.raises(ValueError, match="use fewer horizons"):
        memory.check(trainer)


def test_configurations_are_plain() -> None:
    text = json.dumps(plain(preset("multi-rainbow")), allow_nan=False)
    assert '"type": "Categorical"' in text


def test_bad_input_is_said_in_words() -> None:
    with pytest.raises(ValueError, match="warm_up_steps must fill a batch"):
        trainer_of(small("dqn", warm_up_steps=10))
    with pytest.raises(ValueError, match="the number of seeds"):
        trainer_of(small("dqn"), seeds=0)
    with pytest.raises(ValueError, match="the number of steps"):
        next(chunks(trainer_of(small("dqn")), 0, 100, 10))
    with pytest.raises(ValueError, match="too small for batches"):
        trainer_of(small("dqn", replay_capacity=20))
    with pytest.raises(ValueError, match="unknown environment 'minatar/brakout'"):
        world("minatar/brakout")
