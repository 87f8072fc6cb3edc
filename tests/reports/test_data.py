"""Intact and damaged run folders are read, and invalid configurations are rejected."""

import json
from pathlib import Path

import pytest
from made_up_runs import hyperbolic, write_run, write_sweep

from multihorizon.errors import InputError
from multihorizon.reports.data import RunCollection, pair_by_name, read_runs
from multihorizon.reports.scores import score_runs


def read(folder: Path) -> RunCollection:
    return read_runs(folder, pytest.fail)


def test_agents_are_compared_with_their_base_agents() -> None:
    labels = ["c51", "hyper-c51", "hyper-dqn", "multi-c51"]
    assert pair_by_name(labels) == [("c51", "multi-c51"), ("c51", "hyper-c51")]


def test_a_sweep_is_read_with_its_description(tmp_path: Path) -> None:
    runs = [
        {"label": label, "environment": "atari/Pong", "folder": f"pong/{label}", "seeds": 2, "wanted": wanted}
        for label, wanted in (("plain", None), ("hyper", hyperbolic()), ("later", None))
    ]
    write_sweep(tmp_path, runs, title="Ours", pairs=[["plain", "hyper"]], panels=[["plain", "later"]])
    for label in ("plain", "hyper"):
        write_run(tmp_path / "pong" / label, "rainbow", "atari/Pong", [[1, 2], [2, 3]])
    experiment = read(tmp_path)
    assert (experiment.title, experiment.labels) == ("Ours", ["plain", "hyper", "later"])
    assert [run.has_scores for run in experiment.runs] == [True, True, False]
    assert experiment.runs[1].wanted_discount is not None
    assert experiment.runs[1].wanted_discount.name == "hyperbolic, k = 0.01"
    assert experiment.runs[0].acting_discount is not None
    assert experiment.runs[0].acting_discount.values[experiment.runs[0].acting_discount.times.index(100)] == 0.99**100
    assert "No scores yet: later in atari/Pong." in score_runs(experiment).notes


def test_damaged_lines_are_skipped_with_a_warning(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", "rainbow", "foraging", [[1, 2, 3]]) / "metrics.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-40])
    said: list[str] = []
    assert read_runs(tmp_path, said.append).runs[0].scores.tolist() == [[1, 2]]
    assert said == [f"{path}: line 3 is damaged and skipped", f"{path}: iteration 3 is missing"]
    said.clear()
    path.write_text(whole.replace('"1": 0.99', '"a": 0.99', 1))
    assert read_runs(tmp_path, said.append).runs[0].scores.tolist() == [[2, 3]]
    assert said == [f"{path}: line 1 is damaged and skipped", f"{path}: iteration 1 is missing"]
    path.write_text(whole.replace('"step"', '"stop"', 1) + '[1]\n{"iteration": 9}\n' + "\0\n")
    said.clear()
    assert read_runs(tmp_path, said.append).runs[0].scores.tolist() == [[2, 3]]
    assert said == [f"{path}: lines 1, 4, 5, 6 are damaged and skipped", f"{path}: iteration 1 is missing"]


def test_scores_are_evaluation_returns_and_an_atari_step_is_four_frames(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", "rainbow", "atari/Pong", [[5.0]])
    assert read(tmp_path).runs[0].scores.tolist() == [[5.0]]  # the training returns were -1
    assert read(tmp_path).runs[0].frames.tolist() == [1_000_000]
    line = json.loads((folder / "metrics.jsonl").read_text())
    (folder / "metrics.jsonl").write_text(json.dumps(line | {"evaluation_returns": [None], "returns": [3.0]}))
    assert read(tmp_path).runs[0].scores.tolist() == [[3.0]]


def test_an_agent_may_act_by_different_discounts_in_different_environments(tmp_path: Path) -> None:
    for environment, gamma in (("foraging", 0.9), ("minatar/breakout", 0.99), ("minatar/asterix", 0.99)):
        folder = tmp_path / environment.replace("/", "-")
        write_run(folder, "rainbow", environment, [[1.0, 2.0]])
        path = folder / "metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        held = [json.dumps(line | {"discount": {str(t): gamma**t for t in (1, 10, 100)}}) for line in lines]
        path.write_text("\n".join(held) + "\n")
    groups = {tuple(g.environments): g.acting.values[-1] for g in read_runs(tmp_path, pytest.fail).group_by_discount()}
    assert groups == {("foraging",): 0.9**100, ("minatar/asterix", "minatar/breakout"): 0.99**100}


def test_a_folder_without_a_configuration_file_is_not_a_run(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0]])
    folder = write_run(tmp_path / "b", "rainbow", "foraging", [[1.0]])
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()
    assert [run.folder for run in read(tmp_path).runs] == ["a"]


@pytest.mark.parametrize("name", ["seed", "seeds", "environment", "schedule", "schedule.iterations", "agent.name"])
@pytest.mark.parametrize("value", [None, True, -1, 2**64, 1e308, [], {}, [[]], {"type": "Adam"}])
def test_an_invalid_setting_raises_an_input_error(name: str, value: object, tmp_path: Path) -> None:
    path = write_run(tmp_path / "one", "rainbow", "atari/Pong", [[1, 2], [2, 3]]) / "config.json"
    content = json.loads(path.read_text())
    *outer, last = name.split(".")
    (content[outer[0]] if outer else content)[last] = value
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match="is not the configuration of a run"):
        read(tmp_path)


@pytest.mark.parametrize("discount", [{"-5": 1e300, "0": -1e300}, {"1e299": 1, "1e-300": 0}, {"1": 1e36}])
def test_a_discount_that_cannot_be_plotted_raises_an_input_error(discount: object, tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", "dqn", "foraging", [[1.0]]) / "metrics.jsonl"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"discount": discount}))
    with pytest.raises(InputError, match=r"metrics.jsonl has a discount that cannot be plotted: times must be"):
        read(tmp_path)


@pytest.mark.parametrize("again", ["a", "./a", "b/a"])
def test_a_folder_that_is_listed_twice_raises_an_input_error(again: str, tmp_path: Path) -> None:
    first = {"label": "dqn", "environment": "foraging", "folder": again.replace("./", ""), "seeds": 1, "wanted": None}
    write_sweep(tmp_path, [first, first | {"folder": again}])
    with pytest.raises(InputError, match=r"lists the folder .*a twice"):
        read(tmp_path)


@pytest.mark.parametrize("change", [{"environment": "e" * 201}, {"environment": 3}, {"seeds": 10**18}, {"seeds": 0}])
def test_invalid_planned_runs_are_rejected(change: dict[str, object], tmp_path: Path) -> None:
    write_run(tmp_path / "a", "dqn", "foraging", [[1.0]])
    run = {"label": "dqn", "environment": "foraging", "folder": "a", "seeds": 1, "wanted": None}
    write_sweep(tmp_path, [run, run | {"folder": "b"} | change])
    with pytest.raises(InputError, match=r"a name must|seeds must be a whole number from 1 to 10,000"):
        read(tmp_path)


def test_warnings_have_no_control_characters(tmp_path: Path) -> None:
    path = write_run(tmp_path / "\x1b]0;owned\x07", "dqn", "foraging", [[1.0, 2.0]]) / "metrics.jsonl"
    path.write_text(path.read_text() + "no\n")
    said: list[str] = []
    read_runs(tmp_path, said.append)
    assert len(said) == 1
    assert "�]0;owned�/metrics.jsonl: line 3 is damaged" in said[0]


def test_a_name_with_an_unpaired_surrogate_raises_an_input_error(tmp_path: Path) -> None:
    path = write_run(tmp_path / "one", "rainbow", "atari/Pong", [[1, 2], [2, 3]]) / "config.json"
    path.write_text(path.read_text().replace("rainbow", "\\ud800"))
    with pytest.raises(InputError, match=r"cannot be read: .* surrogates not allowed"):
        read(tmp_path)
