"""Sweeps that are interrupted and resumed have the same results, and repeat no finished run."""

import json
import random
import shutil
import signal
import subprocess
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from disturbed import assert_same, command, lines, words
from edit_json import replace_in
from small_sweep import AGENT, EXPERIMENT

from multihorizon.cli import main
from multihorizon.experiments.experiment import ExperimentRun
from multihorizon.experiments.sweep import Speed, State, Status, plan, train
from multihorizon.runs.configuration import Configuration, difference
from multihorizon.runs.folder import RUN
from multihorizon.training.trainer import Progress


def test_sweep_writes_all_files_of_an_experiment(undisturbed: Path) -> None:
    held = json.loads((undisturbed / "experiment.json").read_text())
    assert {"name", "title", "about", "pairs", "panels", "runs"} <= set(held)
    assert [run["folder"] for run in held["runs"]] == ["foraging-hazard/dqn", "foraging/dqn"]
    for run in held["runs"]:
        folder = undisturbed / run["folder"]
        assert {path.name for path in folder.iterdir()} >= {"config.json", "metrics.jsonl", "weights.npz", "events"}
        wanted = run["wanted"]
        assert wanted["name"] == "exponential, γ = 0.99"
        assert (wanted["times"][0], wanted["times"][-1]) == (1, 1000)
        assert wanted["values"][0] == pytest.approx(0.99)
        assert run["seeds"] == 2


def test_finished_runs_are_not_repeated(undisturbed: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = tmp_path / "small"
    shutil.copytree(undisturbed, out)
    first, second = (out / run.folder for run in EXPERIMENT.runs)
    written = {path: path.stat().st_mtime_ns for path in first.iterdir() if path.is_file()}
    (second / "weights.npz").unlink()  # as if the run had been killed before its first checkpoint
    shutil.rmtree(second / "checkpoints")
    # A run that is killed at its end may leave an old checkpoint.
    (first / "checkpoints/iteration-000009-00000000.npz").touch()
    assert main(words(out, "--json")) == 0
    told = json.loads(capsys.readouterr().out)
    assert [run["state"] for run in told["runs"]] == ["done", "done"]
    assert {path: path.stat().st_mtime_ns for path in first.iterdir() if path.is_file()} == written
    assert_same(undisturbed, out)


def test_killed_sweep_resumes_to_the_same_results(undisturbed: Path, tmp_path: Path) -> None:
    out, rng = tmp_path / "small", random.Random(2)
    for _ in range(2):
        process = subprocess.Popen(command(out), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while not list(out.glob("*/*/config.json")) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.05)
        time.sleep(rng.uniform(0, 4))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    assert main(words(out)) == 0
    assert_same(undisturbed, out)


def test_failed_run_does_not_stop_the_other_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "mine.py").write_text(
        "from dataclasses import replace\n"
        "from multihorizon.experiments.experiment import ExperimentRun\n"
        "from small_sweep import AGENT, EXPERIMENT\n"
        "huge = ExperimentRun(replace(AGENT, name='huge'), 'foraging', settings={'replay_capacity': 2 * 10**9})\n"
        "EXPERIMENT = replace(EXPERIMENT, runs=[huge, EXPERIMENT.runs[1]])\n"
    )
    line = f"sweep {tmp_path}/mine.py --out {tmp_path}/out --checkpoint-minutes 0 --json"
    assert main(line.split()) == 2
    shown = capsys.readouterr()
    assert [run["state"] for run in json.loads(shown.out)["runs"]] == ["failed", "done"]
    assert "1 of 2 runs failed; huge in foraging: this run, with" in shown.err.splitlines()[-1]
    assert (tmp_path / "out/foraging/dqn/weights.npz").exists()


def test_run_that_raises_an_exception_does_not_stop_the_other_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(configuration: Configuration, *_: object) -> None:
        raise RuntimeError(f"no rule for {configuration.environment}\nin two lines")

    monkeypatch.setattr("multihorizon.experiments.sweep.train", broken)
    assert main(words(tmp_path / "out")) == 2
    shown = capsys.readouterr().err
    assert shown.splitlines()[-1].startswith("multihorizon: 2 of 2 runs failed")
    for name in ("foraging/hazard", "foraging"):
        assert f"the run raised RuntimeError: no rule for {name}" in shown


def test_second_sweep_in_a_folder_raises_an_error(undisturbed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from multihorizon.runs.folder import Lock

    lock = Lock(undisturbed)
    try:
        assert main(words(undisturbed)) == 2
    finally:
        lock.close()
    assert "is being trained by another process" in capsys.readouterr().err


def test_number_of_evaluation_environments_may_change(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    shutil.copytree(undisturbed, out)
    path = out / EXPERIMENT.runs[0].folder / "config.json"
    replace_in(path, '"evaluation_environments": 10', '"evaluation_environments": 40')
    assert plan(EXPERIMENT, out, 5.0)[0].configuration.evaluation_environments == 40


def test_run_with_other_settings_is_not_resumed(undisturbed: Path, tmp_path: Path) -> None:
    out = tmp_path / "small"
    shutil.copytree(undisturbed, out)
    path = out / EXPERIMENT.runs[0].folder / "config.json"
    path.write_text(path.read_text().replace('"batch": 32', '"batch": 16'))
    with pytest.raises(ValueError, match="checksum mismatch"):
        plan(EXPERIMENT, out, 5.0)
    replace_in(path, '"batch": 16', '"batch": 16')
    with pytest.raises(ValueError, match=r"with another configuration: agent\.batch is 16, not 32; choose"):
        plan(EXPERIMENT, out, 5.0)
    replace_in(path, '"batch": 16', '"batch": 32')
    assert [one.status().state for one in plan(EXPERIMENT, out, 5.0)] == [State.DONE, State.DONE]


def test_hazard_environments_train_without_hazard(undisturbed: Path) -> None:
    """The two runs differ only in their evaluation."""
    hazardous, plain = (undisturbed / run.folder for run in EXPERIMENT.runs)
    with np.load(hazardous / "weights.npz") as a, np.load(plain / "weights.npz") as b:
        for name in set(a) - {RUN}:
            np.testing.assert_array_equal(a[name], b[name])
    judged, last = lines(hazardous)[-1], lines(plain)[-1]
    assert judged["returns"] == last["returns"]
    assert last["evaluation_returns"] == [None] * 2
    assert 0 < np.mean(judged["evaluation_returns"]) < np.mean(judged["returns"])


def test_runs_may_be_added_but_started_runs_may_not_change(undisturbed: Path) -> None:
    more = ExperimentRun(replace(AGENT, name="more"), "foraging", seeds=1)
    planned = plan(replace(EXPERIMENT, runs=[more, *EXPERIMENT.runs]), undisturbed, 5.0)
    assert [one.finished for one in planned] == [False, True, True]
    with pytest.raises(
        ValueError, match="holds runs that the experiment 'small' no longer lists: foraging/dqn; add these runs to the"
    ):
        plan(replace(EXPERIMENT, runs=[more, EXPERIMENT.runs[0]]), undisturbed, 5.0)
    for given, differs in (({"seeds": 3}, "seeds is 2, not 3"), ({"steps": 9_000}, "steps is 6000, not 9000")):
        with pytest.raises(
            ValueError,
            match=f"holds foraging-hazard/dqn, which was started with other options: {differs}; give the same",
        ):
            plan(EXPERIMENT.scaled(**given), undisturbed, 5.0)


def test_the_first_setting_that_differs_is_named() -> None:
    held = {"type": "A", "loss": {"type": "Huber"}, "gammas": [0.9, 0.99], "n": 1}
    assert difference(held, {**held}) is None
    assert difference(held, held | {"n": 2, "gammas": [0.9, 0.5]}) == "gammas.1 is 0.99, not 0.5"
    assert difference(held, held | {"gammas": [0.9]}) == "gammas has 2 values, not 1"
    assert difference(held, held | {"loss": {"type": "C51", "atoms": 51}}) == "loss.type is Huber, not C51"


def test_speed_excludes_warm_up_and_compilation() -> None:
    speed = Speed()
    pieces = [(100, None, 22.0), (200, None, 75_799.0), (300, 1.0, 26.0), (400, 1.0, 200.0), (500, 1.0, 300.0)]
    told = [speed.after(Progress(step, [], loss, 0.0, rate)) for step, loss, rate in pieces]
    assert told == [None, None, None, 200.0, pytest.approx(240.0)]  # 200 steps in 1/2 + 1/3 of a second
    assert speed.after(Progress(500, [], None, 0.0, 7.0)) == told[-1]


def test_resumed_run_reports_its_previous_returns(undisturbed: Path, tmp_path: Path) -> None:
    for run, is_evaluated in zip(EXPERIMENT.runs, (True, False), strict=True):
        folder = tmp_path / run.folder
        shutil.copytree(undisturbed / run.folder, folder)
        (folder / "weights.npz").unlink()
        shutil.rmtree(folder / "checkpoints")
        earned = lines(folder)[-1]["evaluation_returns"]
        told: list[Status] = []
        train(run.configuration(0.0), folder, told.append, lambda message: None)
        assert {status.evaluated for status in told if status.returns is not None} == {is_evaluated}
        assert not is_evaluated or told[0].returns == pytest.approx(np.mean(earned))
