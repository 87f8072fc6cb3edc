import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_runs import write_run, write_sweep

from multihorizon.cli import main
from multihorizon.reports.data import read_runs


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert main(["report", *arguments]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("multihorizon: ")
    assert shown.err.count("\n") == 1
    return shown.err.removeprefix("multihorizon: ").strip()


def test_report_command_reproduces_the_papers_statistics(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["report", "--paper", "--out", str(tmp_path), "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    (pair,) = result["pairs"]
    assert (pair["better"], pair["ties"], pair["environments"]) == (39, 3, 60)
    iqm = {one["agent"]: round(one["IQM"]["value"], 2) for one in result["aggregates"]}
    assert (iqm["Rainbow"], iqm["Multi-Rainbow"]) == (1.98, 2.22)
    assert len(result["left_out_of_aggregates"]) == 5
    assert all(Path(path).is_file() for path in result["files"])
    assert Path(result["page"]).name == "index.html"


def test_report_command_prints_results_and_warnings(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "atari/Pong", [[1, 2], [2, 3]])
    half = write_run(tmp_path / "b", "multi-rainbow", "atari/Pong", [[4, 5], [5, 6]])
    (half / "metrics.jsonl").write_text((half / "metrics.jsonl").read_text()[:-30])
    assert main(["report", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    assert "multi-rainbow over rainbow" in shown.out
    assert "1 of 1" in shown.out
    assert f"open {tmp_path}/report/index.html" in shown.out
    assert f"multihorizon: {half}/metrics.jsonl: line 2 is damaged and skipped" in shown.err
    assert "compared over the first 1,000,000 frames, which is all that multi-rainbow has" in shown.err
    assert len(read_runs(tmp_path, lambda message: None).runs) == 2  # the report's own folder is not a run


def test_many_agents_in_one_environment_are_printed_as_rows(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for number, agent in enumerate(("dqn", "c51", "rainbow", "multi-dqn", "multi-c51")):
        write_run(tmp_path / agent, agent, "foraging", [[number + 0.25]])
    assert main(["report", str(tmp_path)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["agent", "foraging"] in lines
    assert ["multi-c51", "4.25"] in lines


def test_folders_without_runs_are_rejected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert refused(capsys, str(tmp_path)) == (
        f"{tmp_path} contains no runs; give a folder with runs of multihorizon train, which have config.json and "
        "metrics.jsonl"
    )
    assert "is not a folder" in refused(capsys, str(tmp_path / "nowhere"))
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "metrics.jsonl").write_text("")
    for content in ("{}", "[]", "{", '{"agent": 3}', '{"agent": {"name": "a"}, "environment": "e", "seeds": "x"}'):
        (foreign / "config.json").write_text(content)
        assert str(foreign / "config.json") in refused(capsys, str(tmp_path))
    write_run(foreign, "rainbow", "foraging", [[np.nan, np.nan]])
    assert "has scores yet" in refused(capsys, str(tmp_path))


def test_invalid_experiment_json_is_rejected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    for content in ("{", "[]", "{}", '{"runs": [1]}', '{"runs": [{"label": "a"}]}'):
        (tmp_path / "experiment.json").write_text(content)
        assert str(tmp_path / "experiment.json") in refused(capsys, str(tmp_path))
    write_sweep(tmp_path, [{"label": "a", "environment": "foraging", "folder": "a", "seeds": 1, "wanted": None}])
    assert "has scores yet" in refused(capsys, str(tmp_path))
    write_sweep(tmp_path, [], pairs=[["a", "b", "c"]])
    assert "does not describe a sweep" in refused(capsys, str(tmp_path))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"seeds": float("inf")}, "seeds must be a whole number from 1 to 10,000"),
        ({"label": "a" * 201}, "must have at most 200 characters"),
        ({"wanted": {"name": "w", "times": [10**400], "values": [1]}}, "too large"),
        ({"wanted": {"name": "w", "times": [1, 2], "values": [1]}}, "the same number of finite numbers"),
        ({"wanted": {"name": "w", "times": [], "values": []}}, "the same number of finite numbers"),
        ({"wanted": {"name": "w", "times": [1], "values": [float("nan")]}}, "times must be numbers from 0 to 1e+09"),
        ({"wanted": {"name": "w", "times": [1], "values": [1e308]}}, "and values from -1e+35 to 1e+35"),
    ],
)
def test_invalid_values_in_experiment_json_are_rejected(
    changed: dict[str, Any], message: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_run(tmp_path / "a", "dqn", "foraging", [[1]])
    run = {"label": "dqn", "environment": "foraging", "folder": "a", "seeds": 1, "wanted": None}
    write_sweep(tmp_path, [run | changed])
    assert message in refused(capsys, str(tmp_path))


def test_very_long_names_are_rejected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """Drawing a figure with a very long name would take minutes."""
    write_run(tmp_path / "a", "a" * 100_000, "foraging", [[1]])
    assert "must have at most 200 characters, got 100,000" in refused(capsys, str(tmp_path))


def test_runs_with_different_protocols_are_rejected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_run(tmp_path / "a", "dqn", "foraging", [[1]])
    write_run(tmp_path / "b", "rainbow", "foraging", [[1]], agent__clip_rewards=False)
    said = refused(capsys, str(tmp_path))
    assert "agent.clip_rewards is true in a and false in b" in said
    assert not (tmp_path / "report").exists()


def test_invalid_dopamine_files_are_rejected(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "atari/Pong", [[1]])
    (tmp_path / "empty").mkdir()
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad/pong.json").write_text('[{"Agent": "DQN"}]')
    (tmp_path / "before").mkdir()
    (tmp_path / "before/pong.json").write_text('[{"Agent": "DQN", "Iteration": -1, "Value": 0}]')
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    (tmp_path / "text.npz").write_text("no")
    for name in ("nowhere", "empty", "bad", "before", "other.npz", "text.npz"):
        assert str(tmp_path / name) in refused(capsys, str(tmp_path), "--dopamine", str(tmp_path / name))
    assert "give either a folder of runs, or --paper" in refused(capsys)
    assert "give either a folder of runs, or --paper" in refused(capsys, str(tmp_path), "--paper")
    assert "cannot be combined with --paper" in refused(capsys, "--paper", "--dopamine", "x")


def test_report_does_not_import_jax() -> None:
    script = (
        "import sys, multihorizon.cli.report, multihorizon.reports.page, multihorizon.reports.data\n"
        "assert not {'jax', 'equinox', 'optax', 'ale_py'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_terminal_shows_names_literally(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    write_run(tmp_path / "a", "[/red][bold]a", "foraging", [[1.0]])
    write_run(tmp_path / "b", "multi-[/red][bold]a", "foraging", [[2.0]])
    assert main(["report", str(tmp_path), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["page"]
    assert main(["report", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert "multi-[/red][bold]a over [/red][bold]a" in said
    assert "\\" not in said


def test_control_characters_do_not_reach_the_terminal(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    folder = tmp_path / "\x1b]0;owned\x07\u202e"
    write_run(folder / "a", "\x9b31m:smile:\u202e", "foraging", [[1.0]])
    with (folder / "a/metrics.jsonl").open("a") as file:
        file.write("no\n")
    for words in (["--json"], []):
        assert main(["report", str(folder), *words]) == 0
        shown = capsys.readouterr()
        assert not set("\x1b\x07\x9b\u202e") & set(shown.out + shown.err)
        assert "owned" in shown.out
        if words:
            assert Path(json.loads(shown.out)["page"]).is_file()
    assert ":smile:" in shown.out
