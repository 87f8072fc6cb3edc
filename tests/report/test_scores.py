"""How runs become scores, what is said of them, and what the paper's own table says by the same way."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from made_up_runs import learning, write_run

from multihorizon.errors import InputError
from multihorizon.report import statistics
from multihorizon.report.baselines import human_scores, paper_table, read_dopamine
from multihorizon.report.comparison import aggregate, compare
from multihorizon.report.runs import Described, read_experiment
from multihorizon.report.scores import Scores, Statistic, has_human_score, paper_scores, score

NAN = np.nan
BEST, LAST = Statistic.BEST, Statistic.LAST


def quiet(message: str) -> None:
    raise AssertionError(message)


def read(folder: Path) -> Described:
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


def test_a_run_that_has_only_begun_cuts_nobody_short(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1, 2, 3, 9], [1, 2, 5, 9]])
    write_run(tmp_path / "b", "multi-rainbow", "foraging", [[50], [50]], iterations=4, finished=False)
    write_run(tmp_path / "c", "hyper-rainbow", "foraging", [[1, 2], [1, 2]], iterations=4, finished=False)
    scores = score(read(tmp_path))
    assert scores.by_seed[BEST]["rainbow", "foraging"].tolist() == [2, 2]
    assert scores.agents == ["hyper-rainbow", "rainbow"]
    assert scores.notes[:2] == [
        "Not compared yet, with less than half of the longest run's iterations: multi-rainbow in foraging.",
        "foraging: compared over the first 500,000 steps, as far as hyper-rainbow has come.",
    ]


def test_notes_of_one_length_are_one(tmp_path: Path) -> None:
    for game in ("Pong", "Qbert", "Alien"):
        write_run(tmp_path / game / "a", "rainbow", f"atari/{game}", [range(8)] * 2)
        write_run(tmp_path / game / "b", "dqn", f"atari/{game}", [range(6 - (game == "Pong"))] * 2)
    assert score(read(tmp_path)).notes[:2] == [
        "atari/Alien, atari/Qbert: compared over the first 6,000,000 frames, as far as dqn has come.",
        "atari/Pong: compared over the first 5,000,000 frames, as far as dqn has come.",
    ]


def test_it_is_said_where_there_are_no_five_iterations(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [range(5)] * 2)
    assert score(read(tmp_path)).notes == []
    write_run(tmp_path / "b", "dqn", "foraging", [range(4)] * 2)
    said = "Runs have fewer than 5 iterations, and all of them count as the last 5: foraging."
    assert said in score(read(tmp_path)).notes


def test_seeds_in_several_folders_are_one_agent(tmp_path: Path) -> None:
    write_run(tmp_path / "first", "rainbow", "foraging", [[1, 2]])
    write_run(tmp_path / "deep/second", "rainbow", "foraging", [[5, 6], [7, 8]], seed=1)
    scores = score(read(tmp_path))
    assert sorted(scores.by_seed[BEST]["rainbow", "foraging"]) == [2, 6, 8]
    write_run(tmp_path / "third", "rainbow", "foraging", [[1, 2]], seed=2)
    with pytest.raises(InputError, match=r"deep/second and third are the same run: rainbow in foraging with seed 2"):
        read(tmp_path)


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


@pytest.mark.parametrize("games", [3, 6, 19])
def test_intervals_hold_their_own_estimate_where_games_are_far_apart(games: int, rng: np.random.Generator) -> None:
    for _ in range(10):
        by = {
            ("a", f"atari/{game}"): player.random + (player.human - player.random) * centre * rng.normal(1, 0.03, 3)
            for (game, player), centre in zip(human_scores().items(), rng.lognormal(0, 1.5, games), strict=False)
        }
        (found,) = aggregate(Scores(["a"], [e for _, e in by], {BEST: by, LAST: {}}), rng).of
        for estimate in found.measures.values():
            assert estimate.low is not None
            assert estimate.high is not None
            assert estimate.low <= estimate.value <= estimate.high


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


def test_a_certain_win_has_no_interval(tmp_path: Path, rng: np.random.Generator) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0], [2.0], [3.0]])
    write_run(tmp_path / "b", "multi-rainbow", "foraging", [[4.0], [5.0], [6.0]])
    pair = compare(score(read(tmp_path)), ("rainbow", "multi-rainbow"), BEST, rng)
    assert pair is not None
    assert pair.wins == statistics.Estimate(1.0)


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
