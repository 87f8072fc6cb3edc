"""Tests that an untrusted run folder cannot run code or change files outside the folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from edit_json import replace_in

import multihorizon as mh
from multihorizon.cli import main
from multihorizon.errors import InputError

CANARY = """
import pathlib
import gymnasium
pathlib.Path("canary-ran").touch()
gymnasium.register("Canary-v0", entry_point="gymnasium.envs.classic_control:CartPoleEnv", max_episode_steps=20)
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("stranger") / "run"
    agent = mh.agent("dqn", warm_up_steps=200, replay_capacity=1_000, batch=8)
    mh.train(agent, "CartPole-v1", steps=400, training_steps=200, evaluation_steps=0, out=folder)
    replace_in(folder / "config.json", '"gym/CartPole-v1"', '"gym/canary:Canary-v0"')
    (folder.parent / "canary.py").write_text(CANARY)
    mh.load_run(folder, env="CartPole-v1").policy().save(folder.parent / "policy")
    return folder


@pytest.mark.parametrize(
    "line", ["evaluate run", "resume run --steps 800", "watch run", "report run", "evaluate policy"]
)
def test_commands_do_not_import_a_module_that_a_folder_names(run: Path, line: str) -> None:
    """The folder of the module is on Python's path."""
    words = [sys.executable, "-m", "multihorizon", *line.split()]
    environment = os.environ | {"PYTHONPATH": f"{run.parent}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(words, cwd=run.parent, env=environment, capture_output=True, text=True, check=False)
    assert not (run.parent / "canary-ran").exists()
    assert "Traceback" not in done.stderr
    if not line.startswith("report"):  # a report needs no environment
        assert done.returncode == 2
        assert "would import the Python module canary" in done.stderr
        assert "--trust" in done.stderr


@pytest.mark.parametrize("name", ["run", "policy"])
def test_the_trust_option_allows_the_import_of_the_module(run: Path, name: str) -> None:
    words = [sys.executable, "-m", "multihorizon", "evaluate", name, "--episodes", "2", "--trust"]
    try:
        done = subprocess.run(words, cwd=run.parent, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert (run.parent / "canary-ran").exists()
    finally:
        (run.parent / "canary-ran").unlink(missing_ok=True)


def test_passing_the_environment_makes_trust_unnecessary(run: Path) -> None:
    with pytest.raises(InputError, match="would import the Python module canary"):
        mh.load_run(run)
    opened = mh.load_run(run, env="CartPole-v1")
    assert len(mh.evaluate(opened.policy(), "CartPole-v1", episodes=2)) == 2
    policy = mh.load(run.parent / "policy")
    with pytest.raises(InputError, match=r"load with trust=True, or pass the environment with env="):
        mh.evaluate(policy, episodes=2)
    assert len(mh.evaluate(policy, "CartPole-v1", episodes=2)) == 2


def test_symlinked_lock_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "precious.txt").write_text("precious")
    (tmp_path / "run").mkdir()
    (tmp_path / "run/.lock").symlink_to(tmp_path / "precious.txt")
    with pytest.raises(InputError, match="symbolic link"):
        mh.train("dqn", "foraging", steps=4_000, out=tmp_path / "run")
    assert (tmp_path / "precious.txt").read_text() == "precious"


@pytest.mark.parametrize("folder", ["../other", "/tmp", "", "a/../../b"])
def test_run_must_lie_inside_the_folder_of_its_experiment(
    folder: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = {"folder": folder, "environment": "foraging", "seeds": 1, "label": "dqn"}
    held = {"name": "x", "title": "x", "about": "", "pairs": [], "panels": [], "runs": [run]}
    (tmp_path / "experiment.json").write_text(json.dumps(held))
    assert main(["report", str(tmp_path)]) == 2
    assert "must lie inside the folder of its experiment" in capsys.readouterr().err
