"""Tests that damaged metrics are reported and read in little memory and time."""

import json
import tracemalloc
from pathlib import Path

import pytest

from multihorizon.errors import InputError
from multihorizon.runs import metrics
from multihorizon.runs.metrics import format_line, read_metrics

LINE = {
    "iteration": 0,
    "step": 100,
    "updates": 10,
    "steps_per_second": 5.0,
    "seconds": 1.0,
    "episodes": [1],
    "returns": [1.0],
    "evaluation_episodes": [0],
    "evaluation_returns": [None],
    "losses": [],
    "values": [],
}


def write(folder: Path, *iterations: int) -> Path:
    path = folder / "metrics.jsonl"
    path.write_text("".join(format_line(LINE | {"iteration": one}) + "\n" for one in iterations))
    return path


def test_missing_iterations_are_reported(tmp_path: Path) -> None:
    path, said = write(tmp_path, 1, 3, 4), list[str]()
    assert [line["iteration"] for line in read_metrics(tmp_path, said.append, iterations=7)] == [1, 3, 4]
    assert said == [f"{path}: iterations 1, 3, 6, 7 are missing"]


def test_huge_iteration_number_takes_little_memory(tmp_path: Path) -> None:
    path, said = write(tmp_path, 0, 10**18), list[str]()
    tracemalloc.start()
    try:
        assert len(read_metrics(tmp_path, said.append)) == 2
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()
    assert said == [f"{path}: iterations 2, 3, 4, 5, 6 and 999,999,999,999,999,994 more are missing"]


def test_huge_file_is_refused(tmp_path: Path) -> None:
    with write(tmp_path, 0).open("rb+") as file:
        file.truncate(metrics.MOST_BYTES + 1)  # a sparse file
    with pytest.raises(InputError, match="larger than 1,024 MiB; restore or remove the file"):
        read_metrics(tmp_path)


def test_file_with_too_many_damaged_lines_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, 0)
    path.write_text(path.read_text() + "junk\n" * 100)
    assert len(read_metrics(tmp_path)) == 1
    path.write_text(path.read_text() + "junk\n" * metrics.MOST_DAMAGED)
    with pytest.raises(InputError, match="more than 10,000 damaged lines"):
        read_metrics(tmp_path)


def test_overlong_line_counts_as_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "MOST_LINE", 1_000)
    path = write(tmp_path, 0)
    path.write_text(json.dumps({"iteration": [0] * 1_000}) + "\n" + path.read_text())
    said: list[str] = []
    assert len(read_metrics(tmp_path, said.append)) == 1
    assert "are damaged and skipped" in said[0]


@pytest.mark.parametrize(
    "changes",
    [
        {"discount": {str(time): 0.5 for time in range(20_000)}},
        {"discount": {"1." + "1" * 276_000: 0.5}},
        {"discount": {"nan": 0.5}},
        {"discount": {"1": 10**400}},
        {"run": "x" * 276_000},
        {"run": None},
        {"run": 5},
    ],
)
def test_line_with_an_invalid_field_counts_as_damaged(changes: dict[str, object], tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text(json.dumps(LINE | changes) + "\n" + json.dumps(LINE) + "\n")
    said: list[str] = []
    assert len(read_metrics(tmp_path, said.append)) == 1
    assert "line 1 is damaged and skipped" in said[0]


@pytest.mark.parametrize("written", ["1e999", "-1e999", "NaN", "Infinity", "9" * 4_000, "9" * 276_000])
def test_line_with_a_number_that_is_not_finite_is_skipped(written: str, tmp_path: Path) -> None:
    for place in ('"seconds": 1.0', '"returns": [1.0]', '"step": 100'):
        name, _, value = place.partition(": ")
        line = json.dumps(LINE).replace(place, f"{name}: {value.replace('100', '1.0').replace('1.0', written)}")
        (tmp_path / "metrics.jsonl").write_text(line + "\n")
        assert read_metrics(tmp_path) == []
