"""What is read from folders of runs, how it becomes scores, and what the paper's own table says by the same way."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from made_up_runs import hyperbolic, learning, write_run, write_sweep

from multihorizon.errors import InputError
from multihorizon.report import statistics
from multihorizon.report.baselines import human_scores, paper_table, read_dopamine
from multihorizon.report.comparison import aggregate, compare
from multihorizon.report.runs import Experiment, read_experiment
from multihorizon.report.scores import Scores, Statistic, has_human_score, paper_scores, score

NAN = np.nan
BEST, LAST = Statistic.BEST, Statistic.LAST


def quiet(message: str) -> None:
    raise AssertionError(message)


def read(folder: Path) -> Experiment:
    return read_experiment(folder, quiet)


def test_the_papers_table_gives_the_papers_claims(rng: np.random.Generator) -> None:
    scores = paper_scores()
    pair = compare(scores, ("Rainbow", "Multi-Rainbow"), BEST, rng)
    assert pair is not None
    assert pair.counted == "39 of 60 with 3 ties"
    assert pair.wins.value == pytest.approx((39 + 1.5) / 60)
    assert pair.wins.low is None
    found = aggregate(scores, rng, whole=True)
    assert len(found.environments[BEST]) == 55
    assert found.left_out == [
        f"atari/{game}" for game in ("AirRaid", "Carnival", "ElevatorAction", "JourneyEscape", "Pooyan")
    ]
    iqm = {one.agent: round(one.measures["IQM"].value, 2) for one in found.of}
    assert (iqm["Rainbow"], iqm["Multi-Rainbow"]) == (1.98, 2.22)
    assert compare(scores, ("Rainbow", "Multi-Rainbow"), LAST, rng) is None


def test_what_ships_is_whole() -> None:
    assert len(paper_table()) == 60
    assert len(human_scores()) == 57
    assert paper_table()["Seaquest"]["Multi-Rainbow"] > paper_table()["Seaquest"]["Rainbow"]
    assert human_scores()["Pong"] == (-20.7, 14.6)


def test_both_statistics_by_hand(tmp_path: Path) -> None:
    """Two seeds, seven iterations; one had no episode in the last."""
    curves = [[1, 9, 2, 2, 2, 2, 2], [0, 1, 3, 3, 3, 3, NAN]]
    write_run(tmp_path / "a", "rainbow", "minatar/breakout", curves)
    scores = score(read(tmp_path))
    assert scores.by_seed[BEST]["rainbow", "minatar/breakout"].tolist() == [9, 3]
    assert scores.by_seed[LAST]["rainbow", "minatar/breakout"].tolist() == [2, 3]
    assert scores.mean(BEST, "rainbow", "minatar/breakout") == 6


def test_evaluation_counts_where_there_is_one_and_frames_are_four_a_step(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", "rainbow", "atari/Pong", [[5.0]])
    assert read(tmp_path).runs[0].scores.tolist() == [[5.0]]  # the returns of training were -1
    assert read(tmp_path).runs[0].frames.tolist() == [1_000_000]
    line = json.loads((folder / "metrics.jsonl").read_text())
    (folder / "metrics.jsonl").write_text(json.dumps(line | {"evaluation_returns": [None], "returns": [3.0]}))
    assert read(tmp_path).runs[0].scores.tolist() == [[3.0]]


def test_half_finished_runs_are_compared_as_far_as_all_have_come(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "atari/Pong", [[1, 2, 3, 90], [1, 2, 5, 90]])
    write_run(tmp_path / "b", "multi-rainbow", "atari/Pong", [[1, 4, 4]], iterations=4, finished=False)
    experiment = read(tmp_path)
    assert experiment.pairs == [("rainbow", "multi-rainbow")]
    scores = score(experiment)
    assert scores.by_seed[BEST]["rainbow", "atari/Pong"].tolist() == [3, 5]
    assert scores.notes[0] == (
        "atari/Pong: compared over the first 3,000,000 frames, as far as multi-rainbow has come."
    )
    assert "With a single seed there are no bands and no intervals: multi-rainbow." in scores.notes


def test_a_sweep_says_what_is_what(tmp_path: Path) -> None:
    runs = [
        {"label": label, "environment": "atari/Pong", "folder": f"pong/{label}", "seeds": 2, "wanted": wanted}
        for label, wanted in (("plain", None), ("hyper", hyperbolic()), ("later", None))
    ]
    write_sweep(tmp_path, runs, title="Ours", pairs=[["plain", "hyper"]], panels=[["plain", "later"]])
    for label in ("plain", "hyper"):
        write_run(tmp_path / "pong" / label, "rainbow", "atari/Pong", [[1, 2], [2, 3]])
    experiment = read(tmp_path)
    assert (experiment.title, experiment.labels) == ("Ours", ["plain", "hyper", "later"])
    assert [run.begun for run in experiment.runs] == [True, True, False]
    assert experiment.runs[1].wanted is not None
    assert experiment.runs[1].wanted.name == "hyperbolic, k = 0.01"
    assert experiment.runs[0].acted_by is not None
    assert experiment.runs[0].acted_by.values[experiment.runs[0].acted_by.times.index(100)] == 0.99**100
    assert "No scores yet: later in atari/Pong." in score(experiment).notes


def test_seeds_in_several_folders_are_one_agent(tmp_path: Path) -> None:
    write_run(tmp_path / "first", "rainbow", "foraging", [[1, 2]])
    write_run(tmp_path / "deep/second", "rainbow", "foraging", [[5, 6], [7, 8]], seed=1)
    scores = score(read(tmp_path))
    assert sorted(scores.by_seed[BEST]["rainbow", "foraging"]) == [2, 6, 8]
    write_run(tmp_path / "third", "rainbow", "foraging", [[1, 2]], seed=2)
    with pytest.raises(InputError, match=r"deep/second and third are the same run: rainbow in foraging with seed 2"):
        read(tmp_path)


def test_agents_of_one_name_are_told_apart_by_what_differs(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1]])
    write_run(tmp_path / "b", "rainbow", "foraging", [[1]], agent__n_steps=5)
    write_run(tmp_path / "c", "dqn", "foraging", [[1]])
    assert read(tmp_path).labels == ["dqn", "rainbow, n_steps=3", "rainbow, n_steps=5"]
    many = list(np.linspace(0.5, 0.99, 10))
    for name, weights in (("d", [0.1] * 10), ("e", [0.2] * 5 + [0.0] * 5)):
        horizons = {"gammas": many, "weights": weights}
        write_run(tmp_path / name, "hyper-dqn", "foraging", [[1]], agent__horizons=horizons)
    assert read(tmp_path).labels[1:3] == ["hyper-dqn, 10 weights to 0.1", "hyper-dqn, 10 weights to 0.2"]


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
def test_different_protocols_are_refused(tmp_path: Path, setting: str, value: object, said: str) -> None:
    write_run(tmp_path / "a", "dqn", "atari/Pong", [[1]])
    write_run(tmp_path / "b", "rainbow", "atari/Pong", [[1]], **{setting: value})
    with pytest.raises(InputError) as refused:
        read(tmp_path)
    assert str(refused.value) == (f"runs of atari/Pong differ in protocol: {said}; report them from separate folders")


def test_what_is_compared_may_differ(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "atari/Pong", [[1, 2]])
    write_run(tmp_path / "b", "dqn", "atari/Pong", [[1]], agent__n_steps=1, schedule__iterations=7, seed=3)
    write_run(tmp_path / "c", "dqn", "atari/Qbert", [[1]], schedule__training_steps=10)
    assert len(read(tmp_path).runs) == 3


def test_training_returns_need_the_same_exploration(tmp_path: Path) -> None:
    for name, final in (("a", 0.01), ("b", 0.1)):
        write_run(tmp_path / name, f"agent-{name}", "foraging", [[1]], agent__epsilon__final=final)
    read(tmp_path)
    for name, final in (("a", 0.01), ("b", 0.1)):
        settings = {"agent__epsilon__final": final, "schedule__evaluation_steps": 0}
        write_run(tmp_path / name, f"agent-{name}", "foraging", [[1]], **settings)
    with pytest.raises(InputError, match=r"agent.epsilon.final is 0.01 in a and 0.1 in b"):
        read(tmp_path)


def test_a_line_cut_short_is_left_out_with_a_warning(tmp_path: Path) -> None:
    path = write_run(tmp_path / "a", "rainbow", "foraging", [[1, 2, 3]]) / "metrics.jsonl"
    whole = path.read_text()
    path.write_text(whole[:-40])
    said: list[str] = []
    assert read_experiment(tmp_path, said.append).runs[0].scores.tolist() == [[1, 2]]
    assert said == [f"{path}: line 3 is not whole, and left out"]
    path.write_text(whole.replace('"step"', '"stop"', 1) + '[1]\n{"iteration": 9}\n' + "\0\n")
    said.clear()
    assert read_experiment(tmp_path, said.append).runs[0].scores.tolist() == [[2, 3]]
    assert said == [f"{path}: lines 1, 4, 5, 6 are not whole, and left out"]


def test_environments_without_human_scores_are_left_out_of_aggregates(tmp_path: Path, rng: np.random.Generator) -> None:
    for game in ("Pong", "AirRaid"):
        write_run(tmp_path / game, "rainbow", f"atari/{game}", [[0.0], [14.6]])
    write_run(tmp_path / "m", "rainbow", "minatar/breakout", [[1.0], [2.0]])
    found = aggregate(score(read(tmp_path)), rng)
    assert found.left_out == ["atari/AirRaid", "minatar/breakout"]
    assert found.environments[BEST] == ["atari/Pong"]
    (best,) = [one for one in found.of if one.statistic is BEST]
    assert best.measures["mean"].value == pytest.approx((20.7 / 35.3 + 1) / 2)


def test_agents_are_aggregated_over_the_games_that_all_have_played(tmp_path: Path, rng: np.random.Generator) -> None:
    for game in ("Pong", "Qbert"):
        write_run(tmp_path / game, "rainbow", f"atari/{game}", [[1.0], [2.0]])
    write_run(tmp_path / "one", "dqn", "atari/Qbert", [[1.0], [2.0]])
    found = aggregate(score(read(tmp_path)), rng)
    assert found.environments[LAST] == ["atari/Qbert"]
    assert {one.agent for one in found.of} == {"rainbow", "dqn"}


def test_improvement_is_of_the_size_of_the_baseline(rng: np.random.Generator) -> None:
    held = {"up": (2.0, 3.0), "from below": (-10.0, -5.0), "same": (0.0, 0.0), "from nothing": (0.0, 4.0)}
    by = {(agent, e): np.array([pair[i]]) for i, agent in enumerate(("a", "b")) for e, pair in held.items()}
    pair = compare(Scores(["a", "b"], list(held), {BEST: by, LAST: {}}), ("a", "b"), BEST, rng)
    assert pair is not None
    assert [change.percent for change in pair.changes] == [50.0, 50.0, 0.0, None]
    assert pair.counted == "3 of 4 with 1 tie"


def test_probability_of_improvement_has_an_interval(tmp_path: Path, rng: np.random.Generator) -> None:
    for game in ("Pong", "Qbert", "Alien"):
        write_run(tmp_path / game / "a", "rainbow", f"atari/{game}", learning(rng, 10, 5, 8))
        write_run(tmp_path / game / "b", "multi-rainbow", f"atari/{game}", learning(rng, 11, 5, 8))
    pair = compare(score(read(tmp_path)), ("rainbow", "multi-rainbow"), BEST, rng)
    assert pair is not None
    assert pair.wins.low is not None
    assert pair.wins.high is not None
    assert 0 <= pair.wins.low < pair.wins.value < pair.wins.high <= 1


def dopamine_npz(path: Path, curves: np.ndarray) -> Path:
    agents, games = np.array(["C51", "Rainbow"]), np.array(["pong", "unheardof"])
    np.savez(
        path, legacy_scores=np.stack([curves - 1, curves])[:, None].repeat(2, 1), legacy_agents=agents, games=games
    )
    return path


def test_dopamines_curves_from_both_forms_are_the_same(tmp_path: Path) -> None:
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
    assert held.curves.keys() == again.curves.keys() == {("Dopamine's C51", "Pong"), ("Dopamine's Rainbow", "Pong")}
    for key, found in held.curves.items():
        assert np.array_equal(found, again.curves[key], equal_nan=True)
    # Ours has two million frames, so Dopamine's third counts for nothing.
    write_run(tmp_path / "runs/a", "multi-rainbow", "atari/Pong", [[1, 2]])
    scores = score(read(tmp_path / "runs"), held.beside(["multi-rainbow"]))
    assert scores.by_seed[BEST]["Dopamine's Rainbow", "atari/Pong"].tolist() == [2, 4]
    assert scores.baselines == ["Dopamine's Rainbow", "paper's Rainbow", "paper's Multi-Rainbow"]


def test_normalised_scores_are_zero_for_random_and_one_for_human_play() -> None:
    players = human_scores().items()
    by = {("r", f"atari/{g}"): np.array([p.random]) for g, p in players}
    by |= {("h", f"atari/{g}"): np.array([p.human]) for g, p in players}
    held = Scores(["r", "h"], [f"atari/{g}" for g, _ in players], {BEST: by, LAST: {}})
    assert all(has_human_score(environment) for environment in held.environments)
    assert statistics.mean(held.normalised(BEST, "r", held.environments)) == 0
    assert statistics.mean(held.normalised(BEST, "h", held.environments)) == 1


def test_the_shipped_table_is_read_as_it_is_written() -> None:
    path = Path(__file__).parents[2] / "src/multihorizon/report/data/paper_table.csv"
    with path.open() as file:
        first = next(csv.DictReader(file))
    assert paper_table()[first["game"]]["DQN"] == float(first["DQN"])
