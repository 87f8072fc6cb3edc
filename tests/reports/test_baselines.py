"""The published results that ship with the package, and Dopamine's curves in both formats."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from made_up_runs import write_run

from multihorizon.reports.baselines import Baseline, Source, human_scores, paper_table, read_dopamine
from multihorizon.reports.data import read_runs
from multihorizon.reports.scores import Statistic, score_runs

NAN = np.nan


def test_shipped_baselines_are_complete() -> None:
    assert len(paper_table()) == 60
    assert len(human_scores()) == 57
    assert paper_table()["Seaquest"]["Multi-Rainbow"] > paper_table()["Seaquest"]["Rainbow"]
    assert human_scores()["Pong"] == (-20.7, 14.6)


def test_the_papers_table_is_read_correctly() -> None:
    path = Path(__file__).parents[2] / "src/multihorizon/reports/assets/paper_table.csv"
    with path.open() as file:
        first = next(csv.DictReader(file))
    assert paper_table()[first["game"]]["DQN"] == float(first["DQN"])


def dopamine_npz(path: Path, curves: np.ndarray) -> Path:
    agents, games = np.array(["C51", "Rainbow"]), np.array(["pong", "unheardof"])
    np.savez(
        path, legacy_scores=np.stack([curves - 1, curves])[:, None].repeat(2, 1), legacy_agents=agents, games=games
    )
    return path


def test_both_formats_of_dopamines_curves_agree(tmp_path: Path) -> None:
    curves = np.array([[1.0, 2.0, 30.0], [3.0, 4.0, NAN]])
    held = read_dopamine(dopamine_npz(tmp_path / "d.npz", curves))
    folder = tmp_path / "data"
    folder.mkdir()
    points = [
        {"Iteration": t, "Value": float(value), "Agent": agent}
        for agent, of in (("C51", curves - 1), ("Rainbow", curves), ("IQN", curves))
        for seed in of
        for t, value in enumerate(seed)
        if np.isfinite(value)
    ]
    (folder / "pong.json").write_text(json.dumps(points))
    again = read_dopamine(folder)
    keys = {(Baseline(Source.DOPAMINE, agent), "Pong") for agent in ("C51", "Rainbow")}
    assert held.curves.keys() == again.curves.keys() == keys
    for key, found in held.curves.items():
        assert np.array_equal(found, again.curves[key], equal_nan=True)
    # Our run has two million frames, so the third million of Dopamine's curve is ignored.
    write_run(tmp_path / "runs/a", "multi-rainbow", "atari/Pong", [[1, 2]])
    scores = score_runs(read_runs(tmp_path / "runs", pytest.fail), held.select(["multi-rainbow"]))
    assert scores.by_seed[Statistic.BEST]["Dopamine's Rainbow", "atari/Pong"].tolist() == [2, 4]
    assert scores.baselines == {
        "Dopamine's Rainbow": Baseline(Source.DOPAMINE, "Rainbow"),
        "paper's Rainbow": Baseline(Source.PAPER, "Rainbow"),
        "paper's Multi-Rainbow": Baseline(Source.PAPER, "Multi-Rainbow"),
    }
    assert scores.agents == ["multi-rainbow", *scores.baselines]
