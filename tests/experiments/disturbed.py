"""Compares the files of two sweeps."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
from small_sweep import EXPERIMENT

from multihorizon.runs.metrics import read_metrics

FILE = Path(__file__).with_name("small_sweep.py")
TIMES = ("seconds", "steps_per_second")


def words(out: Path, *more: str) -> list[str]:
    return ["sweep", str(FILE), "--out", str(out), "--checkpoint-minutes", "0", *more]


def command(out: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "multihorizon", *words(out, *more)]


def lines(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in TIMES} for line in read_metrics(folder)]


def assert_same(whole: Path, disturbed: Path) -> None:
    """Asserts that the weights are bitwise equal, and that the metrics are equal except for times."""
    for run in EXPERIMENT.runs:
        with np.load(whole / run.folder / "weights.npz") as a, np.load(disturbed / run.folder / "weights.npz") as b:
            assert set(a) == set(b)
            for name in a:
                np.testing.assert_array_equal(a[name], b[name])
        told = lines(whole / run.folder)
        assert len(told) == 20
        assert told == lines(disturbed / run.folder)
        assert [path.name[:16] for path in (disturbed / run.folder / "checkpoints").iterdir()] == ["iteration-000020"]
