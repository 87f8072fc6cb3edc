"""Trains the short runs that other tests disturb, and compares their results."""

import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from multihorizon.runs.metrics import read_metrics

TRAIN = (
    "train dqn --env foraging --steps 3000 --training-steps 300 --evaluation-steps 0 --checkpoint-minutes 0 "
    "--set warm_up_steps=300 --set replay_capacity=1000"
)
TIMES = ("seconds", "steps_per_second")
MESSAGES = 4_000  # number of characters shown from the end of a message


def environment(cache: Path) -> dict[str, str]:
    settings = {"JAX_PLATFORMS": "cpu", "JAX_COMPILATION_CACHE_DIR": str(cache)}
    return {**os.environ, **settings, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "PYTHONUTF8": "1"}


def program(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "multihorizon", *words]


def train_words(folder: Path) -> list[str]:
    return [*TRAIN.split(), "--out", str(folder)]


def continue_words(folder: Path) -> list[str]:
    """Returns the command that resumes the run in a folder, or starts a run if the folder has none."""
    return ["resume", str(folder)] if (folder / "config.json").exists() else train_words(folder)


def make_whole(folder: Path, cache: Path) -> Path:
    done = subprocess.run(
        program(train_words(folder)), env=environment(cache), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return folder


def make_unfinished(folder: Path, cache: Path) -> Path:
    """Trains a run, kills it when it has two checkpoints, and returns its folder."""
    process = subprocess.Popen(program(train_words(folder)), env=environment(cache), stderr=subprocess.DEVNULL)
    while process.poll() is None and len(list(folder.glob("checkpoints/iteration-*"))) < 2:
        time.sleep(0.005)
    process.kill()
    process.wait()
    if (folder / "weights.npz").exists():
        raise RuntimeError(f"the run in {folder} finished before it could be killed")
    return folder


def difference(whole: Path, other: Path) -> str | None:
    """Returns the difference between two finished runs; None if their weights and metrics are equal."""
    if not (other / "weights.npz").is_file():
        return "it has no weights"
    a, b = _weights(whole), _weights(other)
    if set(a) != set(b) or any(not np.array_equal(a[name], b[name]) for name in a):
        return "its weights differ"
    if _lines(whole) != _lines(other):
        return "its metrics differ"
    return None


def _weights(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "weights.npz", allow_pickle=False) as held:
        return {name: held[name] for name in held}


def _lines(folder: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in line.items() if k not in TIMES} for line in read_metrics(folder)]


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in folder.rglob("*") if path.is_file()}


def unfinished_files(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.name.startswith(".") and path.name != ".lock"]


def dead_process() -> int:
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        process.wait()
    return process.pid
