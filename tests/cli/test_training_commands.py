"""The commands that train, as a person and as a machine use them."""

import json
from pathlib import Path

import pytest

from multihorizon.cli import main


def test_agents_are_listed_with_what_differs(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "*" not in rows["dqn"]
    assert rows["rainbow"].count("*") == 3  # optimiser, n, priority
    assert rows["multi-rainbow"].count("*") == 1
    assert rows["hyper-rainbow"].count("*") == 2
    assert main(["agents", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 13
    assert listed["hyper-c51"]["loss"] == {"type": "Categorical", "atoms": 51, "v_max": 10.0}
    assert len(listed["hyper-c51"]["horizons"]["gammas"]) == 10


def test_train_leaves_a_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = "--set n_steps=2 --set epsilon.final=0.2"
    line = f"train multi-dqn --env foraging --steps 3000 --training-steps 300 --seeds 2 {settings} --out {tmp_path}/a"
    assert main(line.split()) == 0
    shown = capsys.readouterr()
    assert "MB of it replay" in " ".join(shown.out.split())
    assert "3,000 of 3,000 steps" in shown.err
    configuration = json.loads((tmp_path / "a/config.json").read_text())
    assert (configuration["agent"]["n_steps"], configuration["agent"]["epsilon"]["final"]) == (2, 0.2)
    assert (configuration["seed"], configuration["seeds"]) == (0, 2)
    assert len((tmp_path / "a/metrics.jsonl").read_text().splitlines()) == 10
    assert (tmp_path / "a/weights.npz").exists()
    assert main(line.split()) == 2
    assert "holds a run already" in capsys.readouterr().err
    assert main(["resume", f"{tmp_path}/a"]) == 2
    assert "is finished" in capsys.readouterr().err
    assert main(["evaluate", f"{tmp_path}/a", "--steps", "100", "--json"]) == 0
    judged = json.loads(capsys.readouterr().out)
    assert len(judged["returns"]) == 2
    assert min(judged["episodes"]) >= 10


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train rainbw --env foraging", "unknown agent 'rainbw' (did you mean 'rainbow'?)"),
        ("train rainbow --env forging", "unknown environment 'forging' (did you mean 'foraging'?)"),
        ("train rainbow", "the following arguments are required: --env"),
        ("train rainbow --env foraging --steps 10", "the number of steps must be a whole number of at least"),
        ("train rainbow --env foraging --seeds 0", "the number of seeds"),
        ("train rainbow --env foraging --set n_step=3", "unknown setting 'n_step' (did you mean 'n_steps'?)"),
        ("train rainbow --env foraging --set n_steps=x", "n_steps must be a whole number, got 'x'"),
        ("train rainbow --env foraging --set replay_capacity=1000.5", "replay_capacity must be a whole number"),
        ("train rainbow --env foraging --set batch=inf", "batch must be a whole number"),
        (
            "train rainbow --env foraging --set optimiser.learning_rate=fast",
            "learning_rate must be a number, got 'fast'",
        ),
        ("train rainbow --env foraging --steps 0", "the number of steps must be a whole number of at least"),
        ("train rainbow --env foraging --set n_steps", "--set takes NAME=VALUE"),
        ("train rainbow --env foraging --set batch.size=3", "batch has no settings of its own"),
        ("train rainbow --env foraging --set priority=most", "unknown priority 'MOST'"),
        ("train rainbow --env foraging --set horizons=3", "cannot be set on the command line"),
        ("train rainbow --env foraging --set replay_capacity=30", "too small for batches of 32"),
        ("train rainbow --env foraging --set compute_dtype=float16", "unknown compute_dtype 'float16'"),
        ("train rainbow --env foraging --set replay_capacity=1000000000000", "use fewer horizons, fewer seeds"),
        ("foraging --seed -1", "--seed must be a whole number"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    line: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert not list(tmp_path.iterdir())  # nothing is left behind that would be in the way of the next try
    said = capsys.readouterr().err.strip()
    assert words in said
    assert "\n" not in said
