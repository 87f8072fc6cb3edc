"""Tests the lines of metrics.jsonl."""

import json
from pathlib import Path
from typing import Any

import pytest

import multihorizon as mh
from multihorizon.runs.metrics import format_line, parse_line, rows_of, scalars_of

LINE: dict[str, Any] = {
    "iteration": 0,
    "step": 100,
    "episodes": [2, 0],
    "returns": [5.0, None],
    "lengths": [7.5, None],
    "evaluation_episodes": [1, 1],
    "evaluation_returns": [6.0, 8.0],
    "evaluation_lengths": [9.0, 4.0],
    "updates": 0,
    "losses": [],
    "values": [],
    "steps_per_second": 10.0,
    "seconds": 10.0,
}
LENGTHS = ("lengths", "evaluation_lengths")


def test_rows_and_logged_values_contain_episode_lengths() -> None:
    read = parse_line(format_line(LINE), num_seeds=2)
    assert [(row["length"], row["evaluation_length"]) for row in rows_of(read, 3)] == [(7.5, 9.0), (None, 4.0)]
    named = scalars_of(read, 3, [0.99])
    assert {name: value for name, value in named.items() if name.startswith("length")} == {
        "length/training/seed-3": 7.5,
        "length/evaluation/seed-3": 9.0,
        "length/evaluation/seed-4": 4.0,
    }


def test_a_line_without_episode_lengths_is_accepted() -> None:
    old = {name: value for name, value in LINE.items() if name not in LENGTHS}
    assert {row["length"] for row in rows_of(parse_line(json.dumps(old)), 0)} == {None}


@pytest.mark.parametrize("name", LENGTHS)
@pytest.mark.parametrize("wrong", [[1.0], 3, ["x", 1.0], None])
def test_invalid_episode_lengths_are_rejected(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=name):
        parse_line(json.dumps(LINE | {name: wrong}), num_seeds=2)


def test_returns_equal_episode_lengths_if_every_reward_is_one(tmp_path: Path) -> None:
    agent = mh.agent("dqn", warm_up_steps=200, replay_capacity=1_000, batch=8)
    run = mh.train(agent, "CartPole-v1", steps=300, training_steps=300, evaluation_steps=100, out=tmp_path / "run")
    (row,) = run.metrics
    assert row["return"] == row["length"] > 1
    assert row["evaluation_return"] == row["evaluation_length"] > 1
