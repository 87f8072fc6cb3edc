"""Tests the folder of a run."""

from pathlib import Path
from typing import Any

import pytest
from short_run import dead_process

import multihorizon as mh
from multihorizon.errors import InputError
from multihorizon.runs.configure import configured
from multihorizon.runs.folder import checkpoint_paths
from multihorizon.runs.records import Records
from multihorizon.training.worlds import world


def test_run_restarts_after_a_kill_during_the_configuration_write(tmp_path: Path) -> None:
    (tmp_path / ".lock").touch()
    (tmp_path / f".config.unfinished-{dead_process()}.json").write_text('{"agent": ')
    agent = mh.agent("dqn", warm_up_steps=100)
    mh.train(agent, "foraging", steps=200, training_steps=200, evaluation_steps=0, out=tmp_path)
    assert mh.load_run(tmp_path).finished
    assert not list(tmp_path.glob(".*unfinished*"))


AGENT = mh.agent("dqn", warm_up_steps=100, batch=8, replay_capacity=1_000)
SIZES: dict[str, Any] = {"steps": 200, "training_steps": 200, "evaluation_steps": 0}


def begun(folder: Path) -> Path:
    """Returns the folder of a run that was killed before its first iteration."""
    Records(folder, configured(world("foraging"), AGENT, **SIZES)).close()
    return folder


@pytest.mark.parametrize(
    "name", [".lock", "weights.npz", "weights-000010.npz", "metrics.jsonl", "damaged-metrics.jsonl"]
)
def test_resume_raises_an_error_if_a_file_of_the_run_is_a_folder(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (begun(tmp_path) / name).unlink(missing_ok=True)
    (tmp_path / name).mkdir()
    monkeypatch.setattr("multihorizon.training.trainer.Trainer.iterate", lambda *_: pytest.fail("training began"))
    with pytest.raises(InputError, match=rf"{name} .*; move it elsewhere"):
        mh.load_run(tmp_path).resume()


def test_resume_refuses_a_folder_with_the_name_of_an_unfinished_checkpoint(tmp_path: Path) -> None:
    (begun(tmp_path) / "checkpoints/.iteration-000001").mkdir(parents=True)
    with pytest.raises(InputError, match=r"\.iteration-000001 could not be removed .*; move it elsewhere"):
        mh.load_run(tmp_path).resume()


def test_resume_keeps_a_folder_with_the_name_of_an_unfinished_file(tmp_path: Path) -> None:
    odd = begun(tmp_path) / f".config.unfinished-{dead_process()}.json"
    odd.mkdir()
    assert mh.load_run(tmp_path).resume().finished
    assert odd.is_dir()


def test_resume_refuses_a_file_with_the_name_of_the_events_folder(tmp_path: Path) -> None:
    (begun(tmp_path) / "events").touch()
    with pytest.raises(InputError, match=r"events .*; move it elsewhere"):
        mh.load_run(tmp_path).resume()


@pytest.mark.parametrize("name", ["x" * 300, "file/inner"])
def test_folder_that_cannot_exist_gives_an_input_error(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    folder = tmp_path / name
    with pytest.raises(InputError, match=name[:99]):
        mh.load(folder)
    with pytest.raises(InputError, match=name[:99]):
        mh.load_run(folder)
    with pytest.raises(InputError, match=name[:99]):
        mh.train(AGENT, "foraging", out=folder, **SIZES)


def test_checkpoint_paths_are_regular_files_in_descending_order(tmp_path: Path) -> None:
    names = [f"iteration-{number}-00000000.npz" for number in ("000002", "999999", "1000000", "00000x", "٣")]
    for name in names:
        (tmp_path / name).touch()
    (tmp_path / "iteration-2000000-00000000.npz").mkdir()
    (tmp_path / "iteration-3000000-00000000.npz").symlink_to(tmp_path / names[0])
    assert [path.name for path in checkpoint_paths(tmp_path)] == [names[2], names[1], names[0]]
