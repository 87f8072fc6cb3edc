"""Tests that an interrupted or killed run ends with the same weights and metrics as an uninterrupted run."""

import errno
import json
import random
import resource
import signal
import struct
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from scripted import TORSO, Long, Scripted, small, trainer_of
from short_run import dead_process

from multihorizon.agents.optimisers import Adam
from multihorizon.agents.presets import PRESETS, preset
from multihorizon.cli import main
from multihorizon.errors import InputError
from multihorizon.runs.checkpoint import Checkpoints
from multihorizon.runs.configuration import Configuration, plain, read_configuration, restored
from multihorizon.runs.configure import configured as configured_for
from multihorizon.runs.configure import made
from multihorizon.runs.metrics import read_metrics
from multihorizon.runs.recording import record
from multihorizon.runs.records import Records
from multihorizon.runs.weights import load_weights
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import Trainer
from multihorizon.training.worlds import world


def nothing(*_: object) -> None:
    pass


def configured(iterations: int = 3, make: type[Scripted] = Scripted, **settings: Any) -> tuple[Trainer, Configuration]:
    agent = small(target_period_steps=80)
    trainer = trainer_of(agent, steps=200, iterations=iterations, evaluation=30, make=make)
    given = {"checkpoint_minutes": 0.0} | settings
    configuration = Configuration(agent, "scripted", TORSO, trainer.schedule, 0, 1, 4, 3, **given)
    return trainer, configuration


class Stopped(Exception):
    pass


def run(folder: Path, stop_after: int | None = None, by: type[BaseException] = Stopped, **settings: Any) -> list[str]:
    """Trains until the end of iteration `stop_after`, and returns the warnings."""
    trainer, configuration = configured(**settings)
    warnings: list[str] = []

    def stop(outcome: Any) -> None:
        if outcome.iteration == stop_after:
            raise by

    records = Records(folder, configuration)
    try:
        record(trainer, configuration, records, nothing, stop, warnings.append)
    except Stopped:
        pass
    finally:
        records.close()
    return warnings


def weights(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "weights.npz", allow_pickle=False) as held:
        return {name: held[name] for name in held}


def lines(folder: Path) -> list[dict[str, Any]]:
    timeless = ("seconds", "steps_per_second")
    return [{k: v for k, v in line.items() if k not in timeless} for line in read_metrics(folder)]


def test_resumed_run_equals_an_uninterrupted_run(tmp_path: Path) -> None:
    run(tmp_path / "whole")
    run(tmp_path / "stopped", stop_after=1)
    assert [path.name[:16] for path in (tmp_path / "stopped/checkpoints").iterdir()] == ["iteration-000001"]
    assert len(lines(tmp_path / "stopped")) == 2  # the checkpoint was written after the first of the two iterations
    with (tmp_path / "stopped/metrics.jsonl").open("ab") as file:
        file.write(b'123\n{}\n\xff\xfe\n{"iteration": 1, "st')  # damaged lines, as after a crash
    run(tmp_path / "stopped")
    whole, stopped = weights(tmp_path / "whole"), weights(tmp_path / "stopped")
    for name, value in whole.items():
        np.testing.assert_array_equal(value, stopped[name])
    assert lines(tmp_path / "whole") == lines(tmp_path / "stopped")
    assert [line["iteration"] for line in lines(tmp_path / "stopped")] == [0, 1, 2]
    assert [path.name[:16] for path in (tmp_path / "stopped/checkpoints").iterdir()] == ["iteration-000003"]
    assert list((tmp_path / "stopped/events").iterdir())
    (tmp_path / "stopped/checkpoints/iteration-000002-0.npz").write_bytes(b"of a run killed at its very end")
    (tmp_path / f"stopped/.weights-latest.unfinished-{dead_process()}.npz").write_bytes(b"of one killed while it wrote")
    with pytest.raises(ValueError, match="is finished"):
        run(tmp_path / "stopped")
    assert [path.name[:16] for path in (tmp_path / "stopped/checkpoints").iterdir()] == ["iteration-000003"]
    assert [path.name for path in (tmp_path / "stopped").glob("*weights*")] == ["weights.npz"]


def test_interrupt_reports_where_to_resume(tmp_path: Path) -> None:
    for minutes in (0.0, 10.0):  # the interrupt writes a checkpoint in both cases
        folder = tmp_path / f"a run {minutes:g}"
        with pytest.raises(KeyboardInterrupt, match=r"resume '.*/a run \d+' continues after iteration 2$"):
            run(folder, stop_after=1, by=KeyboardInterrupt, checkpoint_minutes=minutes)
        assert run(folder, checkpoint_minutes=minutes) == ["resuming after iteration 2 of 3"]


@pytest.mark.parametrize("make", [Scripted, Long])
def test_interrupt_within_an_iteration_loses_only_that_iteration(tmp_path: Path, make: Any) -> None:
    """If there is no checkpoint yet, the interrupt saves the last complete iteration, without the replay buffer."""
    trainer, configuration = configured(make=make, checkpoint_minutes=10.0)
    iterate, done = trainer.iterate, []

    def interrupted(training: Any, iteration: int, *given: Any) -> Any:
        if iteration == 1 and not done:
            done.append(iteration)
            jax.block_until_ready(iterate(training, iteration, *given))  # overwrites the given state
            raise KeyboardInterrupt
        return iterate(training, iteration, *given)

    trainer.iterate = interrupted  # type: ignore[method-assign]
    records = Records(tmp_path, configuration)
    with pytest.raises(KeyboardInterrupt, match="continues after iteration 1"):
        record(trainer, configuration, records, nothing, nothing, nothing)
    records.close()
    assert run(tmp_path, make=make, checkpoint_minutes=10.0) == ["resuming after iteration 1 of 3"]
    assert [line["iteration"] for line in lines(tmp_path)] == [0, 1, 2]


def test_interrupt_keeps_the_checkpoint_that_holds_the_replay_buffer(tmp_path: Path) -> None:
    """A newer checkpoint without the replay buffer would change the resumed run."""
    run(tmp_path / "whole")
    trainer, configuration = configured()
    iterate = trainer.iterate

    def interrupted(training: Any, iteration: int, *given: Any) -> Any:
        if iteration == 2:
            jax.block_until_ready(iterate(training, iteration, *given))
            raise KeyboardInterrupt
        return iterate(training, iteration, *given)

    trainer.iterate = interrupted  # type: ignore[method-assign]
    records = Records(tmp_path / "stopped", configuration)
    with pytest.raises(KeyboardInterrupt, match="continues after iteration 2"):
        record(trainer, configuration, records, nothing, nothing, nothing)
    records.close()
    run(tmp_path / "stopped")
    for name, value in weights(tmp_path / "whole").items():
        np.testing.assert_array_equal(value, weights(tmp_path / "stopped")[name])


def test_resume_restores_a_deleted_file_of_final_weights(tmp_path: Path) -> None:
    run(tmp_path)
    kept = weights(tmp_path)
    (tmp_path / "weights.npz").unlink()
    run(tmp_path)
    for name, value in weights(tmp_path).items():
        np.testing.assert_array_equal(value, kept[name])


def test_checkpoint_without_read_permission_is_not_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "kept", stop_after=1, by=KeyboardInterrupt)

    def refuse(path: Path, most_bytes: int) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("multihorizon.runs.checkpoint.file_checksum", refuse)
    with pytest.raises(ValueError, match=r"cannot be read \(Permission denied\)"):
        run(tmp_path / "kept")
    assert {path.name[:9] for path in (tmp_path / "kept/checkpoints").iterdir()} == {"iteration"}


def test_tensorboard_events_of_a_resumed_run_restart_at_the_repeated_iteration(tmp_path: Path) -> None:
    """The run stops after its second iteration. The resumed run repeats this iteration."""
    from tensorboardX.proto.event_pb2 import Event, SessionLog

    run(tmp_path, stop_after=1)
    time.sleep(1.1)  # file names contain the time in seconds
    run(tmp_path)
    read = []
    for path in sorted((tmp_path / "events").iterdir()):
        content, at, events = path.read_bytes(), 0, []
        while at < len(content):  # a record: length, checksum of the length, data, checksum of the data
            (length,) = struct.unpack_from("<Q", content, at)
            events.append(Event.FromString(content[at + 12 : at + 12 + length]))
            at += length + 16
        read.append(events)
    for events, steps in zip(read, ([200, 400], [400, 600]), strict=True):
        version, start, *told = events
        assert version.file_version == "brain.Event:2"
        assert (start.session_log.status, start.step) == (SessionLog.START, steps[0])
        tags = {(value.tag, event.step) for event in told for value in event.summary.value}
        assert {step for tag, step in tags if tag == "return/training/seed-0"} == set(steps)
        assert ("loss/gamma-0.99000/seed-0", steps[1]) in tags


def test_checkpoints_wait_until_all_episodes_have_ended(tmp_path: Path) -> None:
    """Episodes of this environment may be longer than an iteration."""
    run(tmp_path / "whole", iterations=6, make=Long)
    for stop_after in (3, 5):
        folder = tmp_path / f"stopped-{stop_after}"
        run(folder, stop_after, iterations=6, make=Long)
        found = [path.name[:16] for path in (folder / "checkpoints").iterdir()]
        assert found == ([] if stop_after < 5 else ["iteration-000005"])
        run(folder, iterations=6, make=Long)
        assert lines(tmp_path / "whole") == lines(folder)
        whole, stopped = weights(tmp_path / "whole"), weights(folder)
        for name, value in whole.items():
            np.testing.assert_array_equal(value, stopped[name])


@pytest.mark.parametrize(("minutes", "expected"), [(10.0, 5), (0.0, 1)])
def test_the_time_between_checkpoints_decides_how_often_episodes_are_cut_off(minutes: float, expected: int) -> None:
    """CartPole's longest episode has 500 steps. In an iteration, each of the 4 environments takes 100 steps.

    The longest episode therefore lasts 5 iterations. With the default checkpoint_minutes=10, episodes are cut off after
    every fifth iteration. With checkpoint_minutes=0, they are cut off after every iteration.
    """
    chosen = world("gym/CartPole-v1")
    configuration = configured_for(
        chosen, chosen.adapt(preset("dqn")), steps=4_000, training_steps=400, checkpoint_minutes=minutes
    )
    with made(configuration) as trainer:
        assert trainer.whole_every == expected


def test_run_resumed_without_its_replay_buffer_refills_the_buffer(tmp_path: Path) -> None:
    run(tmp_path / "lean", stop_after=1, checkpoint_replay=False)
    (saved,) = (tmp_path / "lean/checkpoints").iterdir()
    run(tmp_path / "full", stop_after=1)
    (full,) = (tmp_path / "full/checkpoints").iterdir()
    assert saved.stat().st_size < 0.8 * full.stat().st_size
    run(tmp_path / "lean", checkpoint_replay=False)
    told = lines(tmp_path / "lean")
    assert [line["updates"] for line in told] == [20, 20, 50]  # the resumed run repeats the warm-up


def test_full_disk_stops_training_and_keeps_the_last_checkpoint(tmp_path: Path) -> None:
    run(tmp_path / "run", stop_after=1)
    trainer, configuration = configured()
    before = {path.name: path.read_bytes() for path in (tmp_path / "run/checkpoints").iterdir()}
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    records = Records(tmp_path / "run", configuration)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8_000, limits[1]))
    try:
        with pytest.raises(ValueError, match=r"could not be written \(File too large\).*resume the run in"):
            Checkpoints(tmp_path / "run/checkpoints", trainer.shape, True, {}).save(trainer.init(0), 2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        records.close()
    assert {path.name: path.read_bytes() for path in (tmp_path / "run/checkpoints").iterdir()} == before


def test_full_disk_between_checkpoints_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "weights-latest.npz")

    monkeypatch.setattr(Records, "weights", full)
    said = r"weights-latest.npz could not be written \(No space left on device\).*free some space and run: multihorizon"
    with pytest.raises(InputError, match=said):
        run(tmp_path / "run")


def test_run_without_a_checkpoint_restarts_with_a_warning(tmp_path: Path) -> None:
    run(tmp_path / "run", stop_after=0, checkpoint_minutes=1000.0)
    assert len(read_metrics(tmp_path / "run")) == 1
    (said,) = run(tmp_path / "run", checkpoint_minutes=1000.0)
    assert "has no checkpoint yet, so training starts from the beginning" in said
    assert len(read_metrics(tmp_path / "run")) == 3


def test_configuration_round_trips_through_json() -> None:
    for agent in PRESETS.values():
        one = Configuration(
            replace(agent, acting=0.99) if agent.name == "dqn" else agent, "x", TORSO, Schedule(), 3, 2, 8
        )
        text = json.dumps(plain(one), allow_nan=False)
        assert plain(restored(json.loads(text))) == plain(one)


def test_folder_accepts_only_one_process_and_one_configuration(tmp_path: Path) -> None:
    _, configuration = configured()
    records = Records(tmp_path, configuration)
    with pytest.raises(ValueError, match="is being trained by another process"):
        Records(tmp_path, configuration)
    records.close()
    with pytest.raises(ValueError, match="another configuration"):
        Records(tmp_path, replace(configuration, seed=1))
    assert plain(read_configuration(tmp_path)) == plain(configuration)
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match="cannot be read"):
        read_configuration(tmp_path)
    with pytest.raises(ValueError, match="does not exist"):
        read_configuration(tmp_path / "elsewhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="is not a run"):
        read_configuration(tmp_path / "empty")


def test_the_last_good_weights_are_kept_if_the_loss_is_not_finite(tmp_path: Path) -> None:
    agent = small("dqn", optimiser=Adam(1e30, 1e-8))
    trainer = trainer_of(agent, steps=2_000)
    configuration = Configuration(agent, "scripted", TORSO, trainer.schedule, 0, 1, 4)
    records = Records(tmp_path, configuration)
    with pytest.raises(
        ValueError, match=r"not finite at update \d+, .*last good weights are in .*weights-last-good.npz"
    ):
        record(trainer, configuration, records, nothing, nothing, nothing)
    kept = load_weights(tmp_path / "weights-last-good.npz", trainer.init(0).learner.parameters)
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(kept))
    records.close()


LINE = "train dqn --env gym/CartPole-v1 --steps 4000 --training-steps 800 --evaluation-steps 0 --checkpoint-minutes 0"


def test_run_killed_at_random_times_equals_an_uninterrupted_run(tmp_path: Path) -> None:
    """The test sends SIGKILL twice, and `benchmarks/kill.py` at least twenty times."""
    assert main([*LINE.split(), "--out", str(tmp_path / "whole")]) == 0
    command = [sys.executable, "-m", "multihorizon"]
    words = [*LINE.split(), "--out", str(tmp_path / "killed")]
    rng = random.Random(1)
    for _ in range(2):
        process = subprocess.Popen([*command, *words], stderr=subprocess.PIPE, stdout=subprocess.PIPE)
        time.sleep(rng.uniform(2, 6))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        if (tmp_path / "killed/config.json").exists():
            words = ["resume", str(tmp_path / "killed")]
    if not (tmp_path / "killed/weights.npz").exists():
        finished = subprocess.run([*command, *words], capture_output=True, text=True, check=False)
        assert finished.returncode == 0, finished.stderr
    whole, killed = weights(tmp_path / "whole"), weights(tmp_path / "killed")
    for name, value in whole.items():
        np.testing.assert_array_equal(value, killed[name])
    assert lines(tmp_path / "whole") == lines(tmp_path / "killed")
