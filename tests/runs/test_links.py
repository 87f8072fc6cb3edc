"""Tests that a run does not follow links out of its folder or read pipes and devices."""

import os
import socket
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scripted import small, trainer_of

import multihorizon as mh
from multihorizon.cli import main
from multihorizon.errors import InputError
from multihorizon.experiments import catalogue
from multihorizon.files import atomically, read_json, write_json
from multihorizon.runs.checkpoint import Checkpoints
from multihorizon.runs.configuration import Configuration, plain
from multihorizon.runs.configure import configured
from multihorizon.runs.folder import tidy
from multihorizon.runs.loggers import Csv, TensorBoard, WandB
from multihorizon.runs.metrics import read_metrics
from multihorizon.runs.records import Records
from multihorizon.runs.weights import load_weights, save_weights
from multihorizon.training.worlds import world

PRECIOUS = "nobody may touch this"


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/precious.txt").write_text(PRECIOUS)
    return tmp_path / "outside"


@pytest.fixture(scope="module")
def configuration() -> Configuration:
    return configured(world("foraging"), mh.agent("dqn"), steps=4_000)


def rewound(folder: Path, configuration: Configuration, lost: bool = True) -> list[str]:
    """Rewinds the records of a run and returns the warnings. With `lost`, damages the metrics first."""
    said: list[str] = []
    if lost:
        (folder / "metrics.jsonl").write_text("damaged\n")
    records = Records(folder, configuration)
    try:
        records.rewind(1, said.append)
    finally:
        records.close()
    return said


@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_copy_of_damaged_metrics_does_not_overwrite_a_linked_file(
    link: object, tmp_path: Path, outside: Path, configuration: Configuration
) -> None:
    assert callable(link)
    (tmp_path / "run").mkdir()
    link(outside / "precious.txt", tmp_path / "run/damaged-metrics.jsonl")
    assert "the original file is kept as damaged-metrics.jsonl" in rewound(tmp_path / "run", configuration)[0]
    assert (tmp_path / "run/damaged-metrics.jsonl").read_text() == "damaged\n"
    assert (outside / "precious.txt").read_text() == PRECIOUS


def test_unfinished_file_that_is_a_link_is_replaced(tmp_path: Path, outside: Path) -> None:
    """An attacker can create one link for every process id."""
    (tmp_path / f".table.unfinished-{os.getpid()}.csv").symlink_to(outside / "precious.txt")
    with atomically(tmp_path / "table.csv") as file:
        file.write_text("new")
    assert (tmp_path / "table.csv").read_text() == "new"
    assert (outside / "precious.txt").read_text() == PRECIOUS


@pytest.mark.parametrize("name", ["events", "metrics.jsonl", ".lock"])
def test_linked_part_of_a_run_is_rejected(
    name: str, tmp_path: Path, outside: Path, configuration: Configuration
) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / name).symlink_to(outside if name == "events" else outside / "precious.txt")
    with pytest.raises(InputError, match=rf"{name} is a symbolic link, which is not followed"):
        rewound(tmp_path / "run", configuration, lost=False)
    assert (outside / "precious.txt").read_text() == PRECIOUS


def test_linked_checkpoints_folder_stays_unchanged(tmp_path: Path, outside: Path, configuration: Configuration) -> None:
    for number in (1, 2):
        (outside / f"iteration-00000{number}-00000000.npz").touch()
    Records(tmp_path / "run", configuration).close()
    (tmp_path / "run/checkpoints").symlink_to(outside)
    with pytest.raises(InputError, match="checkpoints is a symbolic link"):
        tidy(tmp_path / "run")
    with pytest.raises(InputError, match="checkpoints is a symbolic link"):
        mh.load_run(tmp_path / "run").resume()
    assert len(list(outside.iterdir())) == 3


def test_hard_linked_lock_is_rejected_unless_it_is_empty(
    tmp_path: Path, outside: Path, configuration: Configuration
) -> None:
    (tmp_path / "run").mkdir()
    os.link(outside / "precious.txt", tmp_path / "run/.lock")
    with pytest.raises(InputError, match="is a hard link to another file"):
        Records(tmp_path / "run", configuration)
    (tmp_path / "run/.lock").unlink()
    rewound(tmp_path / "run", configuration)
    os.link(tmp_path / "run/.lock", tmp_path / "copy")  # as if the folder had been copied with hard links
    assert rewound(tmp_path / "run", configuration)


def test_report_is_not_written_through_a_link(
    tmp_path: Path, outside: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mh.train(mh.agent("dqn", warm_up_steps=200), "foraging", steps=400, training_steps=400, out=tmp_path / "run")
    (tmp_path / "run/report").symlink_to(outside)
    assert main(["report", str(tmp_path / "run")]) == 2
    assert "report is a symbolic link" in capsys.readouterr().err
    assert [path.name for path in outside.iterdir()] == ["precious.txt"]


def test_linked_run_of_a_sweep_is_rejected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "elsewhere").mkdir()
    experiment = catalogue.experiment("hazard")
    write_json(tmp_path / "sweep/experiment.json", experiment.description())
    environment = experiment.runs[0].folder.split("/")[0]
    (tmp_path / "sweep" / environment).symlink_to(tmp_path / "elsewhere")
    assert main(["sweep", "hazard", "--out", str(tmp_path / "sweep")]) == 2
    assert f"{environment} is a symbolic link" in capsys.readouterr().err
    assert not list((tmp_path / "elsewhere").iterdir())


def test_pipes_are_not_read(tmp_path: Path) -> None:
    """Opening a pipe would block."""
    trainer = trainer_of(small(), steps=200)
    kept = Checkpoints(tmp_path / "checkpoints", trainer.shape, with_replay=True, identity={})
    kept.folder.mkdir()
    kept.save(trainer.init(0), 1)
    os.mkfifo(kept.folder / "iteration-000002-00000000.npz")
    said: list[str] = []
    assert kept.restore(lambda: trainer.init(0), said.append)[1] == 1
    assert "iteration-000002-00000000.npz is damaged (it is not a file)" in said[0]
    weights = {"heads": np.ones(3, np.float32)}
    for name in ("weights.npz", "experiment.json"):
        os.mkfifo(tmp_path / name)
    with pytest.raises(InputError, match="it is not a file"):
        load_weights(tmp_path / "weights.npz", weights)
    with pytest.raises(InputError, match="it is not a file"):
        read_json(tmp_path / "experiment.json")
    (tmp_path / "weights.npz").unlink()
    assert load_weights(save_weights(tmp_path / "weights.npz", weights), weights)


def test_link_in_the_events_folder_is_rejected(tmp_path: Path, outside: Path, configuration: Configuration) -> None:
    (tmp_path / "run/events").mkdir(parents=True)
    (tmp_path / "run/events/events.out.tfevents.1").symlink_to(outside / "precious.txt")
    with pytest.raises(InputError, match=r"tfevents\.1 is a symbolic link"):
        rewound(tmp_path / "run", configuration, lost=False)


def test_tensorboard_does_not_follow_links_with_guessed_names(tmp_path: Path, outside: Path) -> None:
    """By default, the name of an events file contains only the time in seconds and the host."""
    logger = TensorBoard()
    logger.begin(tmp_path, {}, 0)
    (tmp_path / "events").mkdir()
    for second in range(int(time.time()), int(time.time()) + 60):
        name = f"events.out.tfevents.{second}.{socket.gethostname()}"
        (tmp_path / "events" / name).symlink_to(outside / "precious.txt")
    logger.log(1, {"loss": 1.0})
    logger.close()
    assert (outside / "precious.txt").read_text() == PRECIOUS
    assert sum(not path.is_symlink() for path in (tmp_path / "events").iterdir()) == 1


@pytest.mark.parametrize("name", ["wandb", ".wandb", "wandb/run-1", ".wandb/run-1"])
def test_wandb_does_not_write_through_a_link(
    name: str, tmp_path: Path, outside: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The library wandb writes to `.wandb` if that folder exists."""
    started: list[dict[str, Any]] = []
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(init=lambda **given: started.append(given)))
    (tmp_path / name).parent.mkdir(exist_ok=True)
    if name == "wandb/run-1":
        (tmp_path / "wandb/latest-run").symlink_to("run-0")  # wandb itself makes this link
        WandB("test").begin(tmp_path, {}, 0)
        assert len(started) == 1
    (tmp_path / name).symlink_to(outside)
    with pytest.raises(InputError, match=f"{name} is a symbolic link"):
        WandB("test").begin(tmp_path, {}, 0)
    assert len(started) == (name == "wandb/run-1")


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        ("stop,steps_per_second\n1,2\n", "its columns do not match this run"),
        ("step,=1+1\n1,2\n", "its columns do not match this run"),
        ("step,return/training/seed-7\n1,2\n", "its columns do not match this run"),
        ("step,step\n1,2\n", "its columns do not match this run"),
        ("step,steps_per_second\n1,=1+1\n", "a cell is not a number"),
        ("step,steps_per_second\n1.5,1\n", "a cell is not a number"),
        ("step,steps_per_second\n,1\n", "a cell is not a number"),
        ("step,steps_per_second\n\n1\n1,nan\n", "a number is not finite"),
        ("step,steps_per_second\n1,2,3\n", "a row is too long"),
        ("step\n\0\n", "a cell is not a number"),
        (os.mkfifo, "it is not a file"),
        (Path.mkdir, "it is not a file"),
        (lambda path: path.symlink_to("/dev/zero"), "it is a symbolic link"),
    ],
)
def test_damaged_csv_is_reported(table: Any, problem: str, tmp_path: Path, configuration: Configuration) -> None:
    path = tmp_path / "metrics.csv"
    path.write_text(table) if isinstance(table, str) else table(path)
    with pytest.raises(InputError, match=rf"metrics\.csv is damaged \({problem}.*; move it elsewhere"):
        Csv().begin(tmp_path, plain(configuration), 5)


def test_csv_table_keeps_every_column_of_its_run(tmp_path: Path, configuration: Configuration) -> None:
    (tmp_path / "metrics.csv").write_text("step,return/training/seed-0,steps_per_second\n3,,2.5\n6,1.25,2\n")
    logger = Csv()
    logger.begin(tmp_path, plain(configuration), 5)
    (gamma,) = configuration.agent.horizons.gammas
    logger.log(6, {f"loss/gamma-{gamma:.5f}/seed-0": 0.5, "steps_per_second": 4.0})
    logger.begin(tmp_path, plain(configuration), 9)
    assert [row["step"] for row in logger._rows] == [3, 6]
    assert logger._rows[0] == {"step": 3, "steps_per_second": 2.5}


def check_is_not_followed(path: Path, read: Callable[[], object]) -> None:
    """Replaces a file by a link to it, and checks that reading the link fails."""
    read()
    path.rename(path.parent.parent / path.name)
    path.symlink_to(path.parent.parent / path.name)
    with pytest.raises(InputError, match=rf"{path.name} .*it is a symbolic link, which is not followed"):
        read()


def test_linked_files_are_not_read(tmp_path: Path, configuration: Configuration) -> None:
    run = tmp_path / "run"
    Records(run, configuration).close()
    weights = {"heads": np.ones(3, np.float32)}
    save_weights(run / "weights.npz", weights)
    (run / "metrics.jsonl").write_text("")
    check_is_not_followed(run / "metrics.jsonl", lambda: read_metrics(run))
    check_is_not_followed(run / "weights.npz", lambda: load_weights(run / "weights.npz", weights))
    check_is_not_followed(run / "config.json", lambda: mh.load_run(run))


def test_file_replaced_by_a_link_or_a_pipe_during_opening_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = write_json(tmp_path / "held.json", {}).lstat()
    (tmp_path / "link.json").symlink_to("held.json")
    os.mkfifo(tmp_path / "pipe.json")
    monkeypatch.setattr(Path, "lstat", lambda path: held)
    for name in ("link.json", "pipe.json"):
        with pytest.raises(InputError, match=f"{name} cannot be read"):
            read_json(tmp_path / name)
