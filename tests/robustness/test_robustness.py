"""A small part of `benchmarks/robustness.py`."""

import random
from pathlib import Path

import command_lines
import damage
import disturbances
import names
import pytest
import short_run


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("programs")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    return short_run.make_whole(tmp_path_factory.mktemp("whole") / "run", cache)


@pytest.fixture(scope="module")
def unfinished(tmp_path_factory: pytest.TempPathFactory, cache: Path) -> Path:
    return short_run.make_unfinished(tmp_path_factory.mktemp("unfinished") / "run", cache)


def test_random_command_lines_end_without_a_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    monkeypatch.chdir(tmp_path)
    command_lines.prepare(tmp_path)
    for _ in range(8):
        words = command_lines.random_line(rng, tmp_path)
        assert command_lines.failure(words) is None, words


def test_damaged_runs_are_refused_or_resumed_exactly(unfinished: Path, whole: Path, tmp_path: Path) -> None:
    rng = random.Random(0)
    for _ in range(8):
        done, problem = damage.try_damage(unfinished, whole, tmp_path, rng)
        assert problem is None, done


def test_hostile_names_are_not_interpreted(whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(0)
    monkeypatch.chdir(tmp_path)
    for _ in range(3):
        done, problem = names.try_name(whole, tmp_path, rng)
        assert problem is None, done


def test_killed_or_interrupted_run_ends_like_an_undisturbed_run(whole: Path, cache: Path, tmp_path: Path) -> None:
    rng = random.Random(0)
    for disturb in (disturbances.kill_once, disturbances.signal_once):
        folder = tmp_path / disturb.__name__
        for _ in range(2):
            assert disturb(folder, cache, rng, 4.0) is None
        assert disturbances.finish(folder, cache) is None
        assert disturbances.compare(whole, folder) is None
