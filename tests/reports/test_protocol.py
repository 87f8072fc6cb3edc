"""Runs may be compared if their protocols are the same. Agents, networks, seeds and run lengths may differ."""

from pathlib import Path

import numpy as np
import pytest
from made_up_runs import write_run

import multihorizon as mh
from multihorizon.errors import InputError
from multihorizon.experiments.catalogue import CATALOGUE, experiment
from multihorizon.reports.data import RunCollection, read_runs
from multihorizon.reports.protocol import check_protocols, make_labels
from multihorizon.runs.configuration import plain


def read(folder: Path) -> RunCollection:
    return read_runs(folder, pytest.fail)


def test_agents_with_the_same_name_are_labelled_by_their_differences(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1]])
    write_run(tmp_path / "b", "rainbow", "foraging", [[1]], agent__n_steps=5)
    write_run(tmp_path / "c", "dqn", "foraging", [[1]])
    assert read(tmp_path).labels == ["dqn", "rainbow, n_steps=3", "rainbow, n_steps=5"]
    many = list(np.linspace(0.5, 0.99, 10))
    for name, weights in (("d", [0.1] * 10), ("e", [0.2] * 5 + [0.0] * 5)):
        horizons = {"gammas": many, "weights": weights}
        write_run(tmp_path / name, "hyper-dqn", "foraging", [[1]], agent__horizons=horizons)
    assert read(tmp_path).labels[1:3] == ["hyper-dqn, 10 weights to 0.1", "hyper-dqn, 10 weights to 0.2"]


def test_a_label_names_each_difference_once() -> None:
    """Labels omit the fields `base` and `chosen`. They omit the weights if the γ's differ."""
    few = mh.minimax_grid(mh.discount.hyperbolic(0.01), heads=4, gamma_max=0.99)
    agents = [
        mh.agent("dqn"),
        mh.agent("dqn", **{"optimiser.learning_rate": 1e-3}),
        mh.agent("c51"),
        mh.agent("c51", loss=mh.Huber()),
        mh.agent("hyper-dqn"),
        mh.agent("hyper-dqn", horizons=few),
        mh.agent("multi-dqn"),
        mh.agent("multi-dqn", acting="weighted"),
        mh.agent("rainbow", horizons=mh.single(0.9)),
        mh.agent("rainbow"),
    ]
    configured = {str(place): ("foraging", {"agent": plain(agent)}) for place, agent in enumerate(agents)}
    assert sorted(make_labels(configured).values()) == [
        "c51, loss=Categorical, loss.atoms=51, loss.v_max=10.0",
        "c51, loss=Huber",
        "dqn, optimiser.learning_rate=0.00025",
        "dqn, optimiser.learning_rate=0.001",
        "hyper-dqn, 10 heads with γ ≤ 0.98917",
        "hyper-dqn, 4 heads with γ ≤ 0.99",
        "multi-dqn, acting=largest_gamma",
        "multi-dqn, acting=weighted",
        "rainbow, γ = 0.9",
        "rainbow, γ = 0.99",
    ]


FOUR: list[object] = [["a", "b", "c", "d"], [1, 2, 3, "x"], [None] * 4, [[1], [2], [3], [4]], [10**400] * 4, "x", None]


@pytest.mark.parametrize("gammas", FOUR)
def test_invalid_gammas_raise_an_input_error(gammas: object, tmp_path: Path) -> None:
    horizons = {"gammas": gammas, "weights": [1.0]}
    write_run(tmp_path / "a", "dqn", "foraging", [[1]])
    write_run(tmp_path / "b", "dqn", "foraging", [[1]], seed=5, agent__horizons=horizons)
    with pytest.raises(InputError, match=r"b.config.json .*agent.horizons.gammas must be a list of numbers"):
        read(tmp_path)


@pytest.mark.parametrize("setting", ["zzz", "horizons__zzz", "n_steps", "z" * 5_000])
@pytest.mark.parametrize("value", [*FOUR, [], "y" * 1_000, "x " * 60_000, 10**400, float("inf"), {"y": {"z": 1}}])
def test_labels_and_errors_are_short_for_any_settings(setting: str, value: object, tmp_path: Path) -> None:
    write_run(tmp_path / "a", "dqn", "foraging", [[1]])
    write_run(tmp_path / "b", "dqn", "foraging", [[1]], seed=5, **{f"agent__{setting}": value})
    try:
        said, most = read(tmp_path).labels, 200
    except InputError as problem:
        said, most = [str(problem)], 500
    assert max(map(len, said)) <= most


def test_deeply_nested_settings_raise_an_input_error(tmp_path: Path) -> None:
    nested: object = 1
    for _ in range(500):
        nested = {"a": nested}
    write_run(tmp_path / "a", "dqn", "foraging", [[1]], own=nested)
    with pytest.raises(InputError, match="nested at most 10 levels deep"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("schedule__training_steps", 125_000, "schedule.training_steps is 250,000 in a and 125,000 in b"),
        ("schedule__evaluation_steps", 1_000, "schedule.evaluation_steps is 125,000 in a and 1,000 in b"),
        ("agent__clip_rewards", False, "agent.clip_rewards is true in a and false in b"),
        ("agent__epsilon__evaluation", 0.05, "agent.epsilon.evaluation is 0.001 in a and 0.05 in b"),
        ("environments", 1, "environments is 40 in a and 1 in b"),
        ("sticky", 0.25, "sticky is not set in a and 0.25 in b"),
    ],
)
def test_different_protocols_are_rejected(tmp_path: Path, setting: str, value: object, said: str) -> None:
    write_run(tmp_path / "a", "dqn", "atari/Pong", [[1]])
    write_run(tmp_path / "b", "rainbow", "atari/Pong", [[1]], **{setting: value})
    with pytest.raises(InputError) as refused:
        read(tmp_path)
    assert str(refused.value) == (f"runs of atari/Pong differ in protocol: {said}; report them from separate folders")


def test_runs_may_differ_in_agents_seeds_and_lengths(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "atari/Pong", [[1, 2]])
    write_run(tmp_path / "b", "dqn", "atari/Pong", [[1] * 7], agent__n_steps=1, seed=3)
    write_run(tmp_path / "c", "dqn", "foraging", [[1]], schedule__training_steps=10)
    write_run(tmp_path / "d", "dqn", "atari/Qbert", [[1]], environments=1)
    assert len(read(tmp_path).runs) == 4


def test_games_of_one_family_must_share_a_protocol(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "dqn", "atari/Pong", [[1]])
    write_run(tmp_path / "b", "dqn", "atari/Qbert", [[1]], schedule__training_steps=1_000)
    with pytest.raises(InputError) as refused:
        read(tmp_path)
    assert str(refused.value) == (
        "runs of atari differ in protocol: schedule.training_steps is 250,000 in a and 1,000 in b; "
        "report them from separate folders"
    )


@pytest.mark.parametrize("name", CATALOGUE)
def test_runs_of_each_catalogue_experiment_share_a_protocol(name: str) -> None:
    runs = experiment(name).runs
    check_protocols({run.folder: (run.environment, plain(run.configuration())) for run in runs})


def test_runs_without_evaluation_must_share_their_exploration(tmp_path: Path) -> None:
    for name, final in (("a", 0.01), ("b", 0.1)):
        write_run(tmp_path / name, f"agent-{name}", "foraging", [[1]], agent__epsilon__final=final)
    read(tmp_path)
    for name, final in (("a", 0.01), ("b", 0.1)):
        settings = {"agent__epsilon__final": final, "schedule__evaluation_steps": 0}
        write_run(tmp_path / name, f"agent-{name}", "foraging", [[1]], **settings)
    with pytest.raises(InputError, match=r"agent.epsilon.final is 0.01 in a and 0.1 in b"):
        read(tmp_path)
