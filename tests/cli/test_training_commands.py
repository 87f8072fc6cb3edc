import json
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
from edit_json import replace_in

from multihorizon.cli import games, main


def test_agents_are_listed_with_their_differences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["agents"]) == 0
    rows = {line.split()[0]: line for line in capsys.readouterr().out.splitlines() if line.strip()}
    assert "*" not in rows["dqn"]
    assert rows["rainbow"].count("*") == 3  # optimiser, n, priority
    assert rows["multi-rainbow"].count("*") == 1
    assert rows["hyper-rainbow"].count("*") == 2
    assert main(["agents", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert len(listed) == 14
    assert listed["hyper-c51"]["loss"] == {"type": "Categorical", "atoms": 51, "v_max": 10.0}
    assert len(listed["hyper-c51"]["horizons"]["gammas"]) == 10


def test_train_command_writes_a_run(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    settings = "--evaluation-envs 1 --set n_steps=2 --set epsilon.final=0.2"
    line = f"train multi-dqn --env foraging --steps 3000 --training-steps 300 --seeds 2 {settings} --out {tmp_path}/a"
    assert main(line.split()) == 0
    shown = capsys.readouterr()
    assert "MB is replay" in " ".join(shown.out.split())
    assert "3,000 of 3,000 steps" in shown.err
    configuration = json.loads((tmp_path / "a/config.json").read_text())
    assert (configuration["agent"]["n_steps"], configuration["agent"]["epsilon"]["final"]) == (2, 0.2)
    assert (configuration["seed"], configuration["seeds"]) == (0, 2)
    assert configuration["versions"].keys() >= {"jax", "gymnasium", "ale-py"}
    assert configuration["versions"]["device"].endswith("CPU")
    assert configuration["versions"]["device"] in shown.out
    assert len((tmp_path / "a/metrics.jsonl").read_text().splitlines()) == 10
    assert (tmp_path / "a/weights.npz").exists()
    assert main(line.split()) == 2
    assert f"already holds a run, multi-dqn in foraging; extend the run with `multihorizon resume {tmp_path}/a" in (
        capsys.readouterr().err
    )
    assert main(["resume", f"{tmp_path}/a"]) == 2
    assert "is finished" in capsys.readouterr().err
    assert main(["resume", f"{tmp_path}/a", "--steps", "3300"]) == 0
    assert len((tmp_path / "a/metrics.jsonl").read_text().splitlines()) == 11
    capsys.readouterr()
    assert main(["evaluate", f"{tmp_path}/a", "--episodes", "5", "--hazard", "exponential:0.5", "--json"]) == 0
    judged = json.loads(capsys.readouterr().out)
    assert [one["seed"] for one in judged["seeds"]] == [0, 1]
    assert [len(one["returns"]) for one in judged["seeds"]] == [5, 5]
    assert main(["evaluate", f"{tmp_path}/a", "--episodes", "5"]) == 0
    assert "95% interval" in capsys.readouterr().out
    other = tmp_path / "other.npz"
    for content in (b"", (tmp_path / "a/weights.npz").read_bytes()[:500]):
        other.write_bytes(content)
        assert main(["evaluate", f"{tmp_path}/a", "--weights", str(other)]) == 2
        assert "does not hold the weights of this run" in capsys.readouterr().err
    with np.load(tmp_path / "a/weights.npz") as held:
        np.savez(other, **{name: value[..., :-1] for name, value in held.items()})
    assert main(["evaluate", f"{tmp_path}/a", "--weights", str(other)]) == 2
    assert "has shape" in capsys.readouterr().err
    replace_in(tmp_path / "a/config.json", '"environments": 4', '"environments": "4"')
    assert main(["evaluate", f"{tmp_path}/a"]) == 2
    assert "environments must be int, got '4'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("train rainbw --env foraging", "unknown agent 'rainbw' (did you mean 'rainbow'?)"),
        ("train rainbow --env forging", "unknown environment 'forging' (did you mean 'foraging'?)"),
        ("train rainbow --env Seaquest", "unknown environment 'Seaquest' (did you mean 'atari/Seaquest'?)"),
        ("train rainbow", "the following arguments are required: --env"),
        ("train rainbow --env foraging --checkpoint-minutes=--", "--checkpoint-minutes needs a value, got '--'"),
        ("train rainbow --env foraging --set=--", "--set needs a value, got '--'"),
        ("train rainbow --env foraging --steps 10", "--steps must be more than the 2,000 steps of the warm-up"),
        ("train rainbow --env foraging --seeds 0", "--seeds must be a whole number"),
        ("train rainbow --env foraging --evaluation-envs 0", "--evaluation-envs must be a whole number"),
        ("train rainbow --env foraging --set n_step=3", "unknown setting 'n_step' (did you mean 'n_steps'?)"),
        ("train rainbow --env foraging --set n_steps=x", "n_steps must be a whole number, got 'x'"),
        ("train rainbow --env foraging --set replay_capacity=1000.5", "replay_capacity must be a whole number"),
        ("train rainbow --env foraging --set batch=inf", "batch must be a whole number"),
        (
            "train rainbow --env foraging --set optimiser.learning_rate=fast",
            "learning_rate must be a number, got 'fast'",
        ),
        ("train rainbow --env foraging --steps 0", "--steps must be more than the 2,000 steps of the warm-up"),
        ("train rainbow --env foraging --set n_steps", "--set takes NAME=VALUE"),
        ("train rainbow --env foraging --set batch.size=3", "batch has no parts"),
        ("train rainbow --env foraging --set priority=most", "unknown priority 'MOST'"),
        ("train rainbow --env foraging --set horizons=3", "cannot be set on the command line"),
        ("train rainbow --env foraging --set optimiser=3", "optimiser.learning_rate, optimiser.epsilon"),
        ("train rainbow --env foraging --set batch=1e3 --steps 1e3", "--steps must be more than the 2,000 steps"),
        ("train rainbow --env foraging --set replay_capacity=30", "too small for batches of 32"),
        ("train rainbow --env foraging --set compute_dtype=float16", "unknown compute_dtype 'float16'"),
        ("train rainbow --env foraging --set replay_capacity=2000000000", "use fewer horizons, fewer seeds"),
        ("train rainbow --env atari/Sequest", "unknown Atari game 'Sequest' (did you mean 'Seaquest'?)"),
        ("train rainbow --env atari", "unknown Atari game ''"),
        ("train rainbow --env gym/Pendulum-v1", "only discrete actions are supported"),
        ("train rainbow --env gym/CartPoole-v1", "Gymnasium cannot make 'CartPoole-v1'"),
        ("train rainbow --env gym/CartPole-v1 --device gpu", "there is no GPU that JAX can use"),
        ("train rainbow --env gym/CartPole-v1 --device tpu", "unknown device 'tpu'"),
        ("train rainbow --env gym/CartPole-v1 --envs 0", "--envs must be a whole number"),
        ("train rainbow --env gym/CartPole-v1 --envs 5000", "--envs must be at most 1,024, got 5000"),
        ("train rainbow --env gym/CartPole-v1 --seeds 2000 --envs 100", "at most 4,096 can step on the CPU"),
        ("train rainbow --env foraging --evaluation-steps 1e10", "--evaluation-steps must be at most 2,000,000,000"),
        ("train rainbow --env foraging --training-steps 0", "--training-steps"),
        ("train rainbow --env foraging --evaluation-steps -1", "--evaluation-steps"),
        (
            "train rainbow --env foraging --checkpoint-minutes -1",
            "--checkpoint-minutes must be a number of at least 0, got -1",
        ),
        ("train rainbow --env foraging --horizons nowhere.json", "nowhere.json: No such file"),
        ("train rainbow --env foraging --set optimiser.learning_rate=nan", "learning_rate must be a number"),
        ("train rainbow --env foraging --set optimiser.learning_rate=-1", "learning_rate must be a positive number"),
        ("train rainbow --env foraging --set loss.v_max=inf", "v_max must be a number"),
        ("train rainbow --env foraging --set epsilon.final=5", "epsilon.final must lie in [0, 1]"),
        ("train rainbow --env foraging --checkpoint-minutes inf", "--checkpoint-minutes must be finite, got inf"),
        ("train rainbow --env foraging --seed 2147483647 --seeds 2", "the last seed must be at most"),
        ("train multi-dqn --env foraging --set acting=0.5", "there is no head with γ = 0.5"),
        ("train rainbow --env foraging --steps 1.5", "'1.5' is not a whole number"),
        ("train rainbow --env foraging --steps 1e999", "'1e999' is not a whole number"),
        ("train rainbow --env foraging --set replay_capacity=35", "use 36 or more"),
        ("train rainbow --env foraging --set replay_capacity=2100000000", "are free; use fewer"),
        ("train rainbow --env atari/Pongg", "(did you mean 'Pong'?); `multihorizon games` lists all 60"),
        ("resume nowhere", "nowhere does not exist"),
        ("evaluate nowhere", "nowhere does not exist"),
        ("watch .", ". holds neither a policy (policy.json) nor a run (config.json)"),
        ("foraging --seed -1", "--seed must be a whole number"),
    ],
)
def test_invalid_input_gives_one_line_and_status_2(
    line: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert not list(tmp_path.iterdir())  # no leftover file can block the next attempt
    said = capsys.readouterr().err.strip()
    assert words in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("problem", "status", "said"),
    [
        (
            jax.errors.JaxRuntimeError("RESOURCE_EXHAUSTED: Out of memory\n at somewhere"),
            2,
            "the device is out of memory",
        ),
        (MemoryError(), 2, "not enough memory"),
        (OSError(28, "No space left on device", "metrics.jsonl"), 2, "metrics.jsonl: No space left on device"),
        (KeyboardInterrupt("resume continues"), 130, "multihorizon: interrupted: resume continues"),
        (KeyboardInterrupt(), 130, "multihorizon: interrupted"),
    ],
)
def test_memory_errors_and_interrupts_give_one_line(
    problem: BaseException, status: int, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(options: Any) -> None:
        raise problem

    monkeypatch.setattr(games, "run", stopped)
    assert main(["games"]) == status
    told = capsys.readouterr().err.strip()
    assert said in told
    assert "\n" not in told


def test_unexpected_exceptions_are_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(options: Any) -> None:
        raise jax.errors.JaxRuntimeError("INTERNAL: no idea")

    monkeypatch.setattr(games, "run", fails)
    with pytest.raises(jax.errors.JaxRuntimeError):
        main(["games"])


def test_custom_horizons_are_read_from_discount_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(f"discount --k 0.5 --grid minimax --heads 2 --gamma-cap 0.9 --out {tmp_path}/wanted".split()) == 0
    line = (
        f"train hyper-dqn --env foraging --steps 2200 --horizons {tmp_path}/wanted/discount.json --out {tmp_path}/run"
    )
    assert main(line.split()) == 0
    agent = json.loads((tmp_path / "run/config.json").read_text())["agent"]
    assert agent["horizons"]["gammas"] == json.loads((tmp_path / "wanted/discount.json").read_text())["gammas"]
    last = json.loads((tmp_path / "run/metrics.jsonl").read_text().splitlines()[-1])
    assert len(last["losses"][0]) == 2
    (tmp_path / "bad.json").write_text("[1]")
    assert main(f"train hyper-dqn --env foraging --horizons {tmp_path}/bad.json".split()) == 2
    assert "does not hold horizons" in capsys.readouterr().err


def test_games_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["games"]) == 0
    assert len(capsys.readouterr().out.split()) == 60


def test_watch_command_writes_a_video(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    line = f"train hyper-dqn --env foraging --steps 2400 --seeds 2 --out {tmp_path}/run"
    assert main(line.split()) == 0
    for name in ("episode.mp4", "episode.gif"):
        assert main(["watch", f"{tmp_path}/run", "--out", f"{tmp_path}/{name}", "--steps", "12", "--of-seed", "1"]) == 0
        assert (tmp_path / name).stat().st_size > 1_000
    capsys.readouterr()
    assert main(["watch", f"{tmp_path}/run", "--out", f"{tmp_path}/episode.avi"]) == 2
    assert "an .mp4 or a .gif" in capsys.readouterr().err
    assert main(["watch", f"{tmp_path}/run", "--of-seed", "7"]) == 2
    assert "this run has no seed 7; allowed: 0, 1" in capsys.readouterr().err


def test_agents_can_be_trained_in_atari_from_the_command_line(tmp_path: Path) -> None:
    settings = "--set warm_up_steps=240 --set replay_capacity=2000 --set batch=4 --seeds 2 --envs 2"
    steps = "--steps 400 --training-steps 200 --evaluation-steps 0"
    line = f"train multi-rainbow --env atari/Pong {steps} {settings} --checkpoint-minutes 0 --out {tmp_path}/run"
    assert main(line.split()) == 0
    lines = [json.loads(text) for text in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [200, 400]
    assert lines[1]["updates"] == 40
    assert lines[1]["discount"]["100"] == pytest.approx(0.98917**100, rel=1e-3)
