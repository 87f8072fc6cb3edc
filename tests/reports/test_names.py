"""Names are shortened for reports and files, and different names stay different."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_runs import write_run, write_sweep

from multihorizon.reports.comparison import Comparison, ScoreChange
from multihorizon.reports.data import read_runs
from multihorizon.reports.names import LONGEST_LABEL, make_file_part, number_repeats, show_names
from multihorizon.reports.scores import Statistic
from multihorizon.reports.sections import MAX_SHARED_ENVIRONMENTS, _describe_improvement
from multihorizon.reports.statistics import IntervalEstimate


@given(st.lists(st.text(alphabet="a \u200b\u200c\n(2)�")))
def test_different_names_stay_different(names: list[str]) -> None:
    shown = show_names(names)
    assert set(shown) == set(names)
    assert len(set(shown.values())) == len(shown)


def test_names_that_look_the_same_get_a_number() -> None:
    names = ["dqn\u200b", "dqn\u200c", "dqn�", "a" * 500, "a" * 501]
    assert list(show_names(names[:3]).items()) == [
        ("dqn�", "dqn�"),
        ("dqn\u200b", "dqn� (2)"),
        ("dqn\u200c", "dqn� (3)"),
    ]
    assert max(map(len, show_names(names).values())) == LONGEST_LABEL + len(" (2)")
    assert number_repeats(["a", "a", "a (2)", "a"], "{} ({})") == ["a", "a (3)", "a (2)", "a (4)"]


def test_file_names_are_short() -> None:
    assert make_file_part("hyper-rainbow, γ = 0.9") == "hyper-rainbow--γ---0.9"
    assert len(make_file_part("日" * 200).encode()) <= 80


@pytest.mark.parametrize("sweep", [False, True])
def test_agents_whose_names_look_the_same_are_not_merged(tmp_path: Path, sweep: bool) -> None:
    runs = []
    for number, (agent, environment) in enumerate([("dqn\u200b", "x"), ("dqn\u200c", "x"), ("dqn\u200c", "x\u200b")]):
        write_run(tmp_path / str(number), agent, environment, [[number]])
        run = {"label": agent, "environment": environment, "folder": str(number), "seeds": 1, "wanted": None}
        runs.append(run)
    if sweep:
        write_sweep(tmp_path, runs)
    found = read_runs(tmp_path, pytest.fail).runs
    assert [(run.label, run.environment) for run in found] == [("dqn�", "x"), ("dqn� (2)", "x"), ("dqn� (2)", "x�")]


def test_every_comparison_has_its_own_file() -> None:
    changes = [ScoreChange(f"game-{i}", 1.0, 2.0) for i in range(MAX_SHARED_ENVIRONMENTS + 1)]
    labels = ["a+b", "a*b", "日" * 200]
    comparisons = [Comparison("x" * 200, label, Statistic.BEST, changes, IntervalEstimate(0.5)) for label in labels]
    names = [figure.name for figure in _describe_improvement(comparisons)[0].figures]
    over = f"over-{'x' * 80}"
    assert names[:2] == [f"improvement-a-b-{over}", f"improvement-a-b-{over}-2"]
    assert max(len(name.encode()) for name in names) < 200  # most file systems allow 255 bytes
