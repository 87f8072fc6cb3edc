"""Tests that loggers receive the metrics of every iteration, even of a resumed run."""

import csv
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import multihorizon as mh
from multihorizon.errors import InputError


def train(out: Path, loggers: list[Any], **given: Any) -> mh.Run:
    agent = mh.agent("dqn", warm_up_steps=200, replay_capacity=1_000, batch=8)
    return mh.train(
        agent, "CartPole-v1", steps=600, training_steps=300, evaluation_steps=0, out=out, loggers=loggers, **given
    )


def rows(folder: Path) -> list[dict[str, str]]:
    with (folder / "metrics.csv").open(newline="") as file:
        return list(csv.DictReader(file))


class Kept:
    """A user-defined logger."""

    def __init__(self) -> None:
        self.heard: list[Any] = []

    def begin(self, folder: Path, settings: Mapping[str, Any], step: int) -> None:
        self.heard.append(("begin", folder.name, settings["agent"]["name"], step))

    def log(self, step: int, values: Mapping[str, float]) -> None:
        self.heard.append((step, sorted(values)[0]))

    def close(self) -> None:
        self.heard.append("close")


def test_csv_of_a_resumed_run_has_one_row_per_iteration(tmp_path: Path) -> None:
    train(tmp_path / "run", [mh.loggers.Csv()], callback=lambda rows: False)
    assert [row["step"] for row in rows(tmp_path / "run")] == ["300"]
    mh.load_run(tmp_path / "run").resume(loggers=[mh.loggers.Csv()])
    found = rows(tmp_path / "run")
    assert [row["step"] for row in found] == ["300", "600"]
    assert float(found[1]["return/training/seed-0"]) > 0
    assert not (tmp_path / "run/events").exists()


def test_user_defined_logger_receives_every_iteration(tmp_path: Path) -> None:
    kept = Kept()
    assert isinstance(kept, mh.loggers.Logger)
    train(tmp_path / "run", [kept])
    assert kept.heard == [
        ("begin", "run", "dqn", 0),
        (300, "length/training/seed-0"),
        (600, "length/training/seed-0"),
        "close",
    ]


def test_wandb_logs_offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="wandb is not installed")
    monkeypatch.setenv("WANDB_SILENT", "true")
    train(tmp_path / "run", [mh.loggers.WandB("test", mode="offline")])
    (written,) = (tmp_path / "run/wandb").glob("offline-run-*/run-*.wandb")
    deadline = time.monotonic() + 60  # another process writes the file
    while b"return/training/seed-0" not in written.read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.1)
    with pytest.raises(InputError, match="did you mean 'offline'"):
        train(tmp_path / "other", [mh.loggers.WandB("test", mode="ofline")])
