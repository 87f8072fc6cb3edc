"""Learning curves become scores, with notes for the reader of a report."""

from pathlib import Path

import numpy as np
import pytest
from made_up_runs import write_run, write_sweep

from multihorizon.errors import InputError
from multihorizon.reports import statistics
from multihorizon.reports.baselines import Baseline, Source, human_scores
from multihorizon.reports.data import RunCollection, read_runs
from multihorizon.reports.scores import Scores, Statistic, describe_sizes, has_human_score, score_runs

NAN = np.nan
BEST, LAST = Statistic.BEST, Statistic.LAST


def read(folder: Path) -> RunCollection:
    return read_runs(folder, pytest.fail)


def test_best_and_last_five_scores_match_values_computed_by_hand(tmp_path: Path) -> None:
    """Two seeds have seven iterations. In the last iteration, the second seed finishes no episode."""
    curves = [[1, 9, 2, 2, 2, 2, 2], [0, 1, 3, 3, 3, 3, NAN]]
    write_run(tmp_path / "a", "rainbow", "minatar/breakout", curves)
    scores = score_runs(read(tmp_path))
    assert scores.by_seed[BEST]["rainbow", "minatar/breakout"].tolist() == [9, 3]
    assert scores.by_seed[LAST]["rainbow", "minatar/breakout"].tolist() == [2, 3]
    assert scores.mean(BEST, "rainbow", "minatar/breakout") == 6


def test_unfinished_runs_are_compared_over_shared_iterations(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "atari/Pong", [[1, 2, 3, 90], [1, 2, 5, 90]])
    write_run(tmp_path / "b", "multi-rainbow", "atari/Pong", [[1, 4, 4]], iterations=4, finished=False)
    experiment = read(tmp_path)
    assert experiment.pairs == [("rainbow", "multi-rainbow")]
    scores = score_runs(experiment)
    assert scores.by_seed[BEST]["rainbow", "atari/Pong"].tolist() == [3, 5]
    assert scores.notes[0] == (
        "atari/Pong: compared over the first 3,000,000 frames, which is all that multi-rainbow has."
    )
    assert "Runs with a single seed have no bands and no intervals: multi-rainbow." in scores.notes


def test_runs_with_few_iterations_do_not_shorten_the_comparison(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1, 2, 3, 9], [1, 2, 5, 9]])
    write_run(tmp_path / "b", "multi-rainbow", "foraging", [[50], [50]], iterations=4, finished=False)
    write_run(tmp_path / "c", "hyper-rainbow", "foraging", [[1, 2], [1, 2]], iterations=4, finished=False)
    scores = score_runs(read(tmp_path))
    assert scores.by_seed[BEST]["rainbow", "foraging"].tolist() == [2, 2]
    assert scores.agents == ["hyper-rainbow", "rainbow"]
    assert scores.notes[:2] == [
        "Not compared yet, because they have less than half of the longest run's steps: multi-rainbow in foraging.",
        "foraging: compared over the first 500,000 steps, which is all that hyper-rainbow has.",
    ]


def test_notes_about_equal_lengths_are_merged(tmp_path: Path) -> None:
    for game in ("Pong", "Qbert", "Alien"):
        write_run(tmp_path / game / "a", "rainbow", f"atari/{game}", [range(8)] * 2)
        write_run(tmp_path / game / "b", "dqn", f"atari/{game}", [range(6 - (game == "Pong"))] * 2)
    assert score_runs(read(tmp_path)).notes[:2] == [
        "atari/Alien, atari/Qbert: compared over the first 6,000,000 frames, which is all that dqn has.",
        "atari/Pong: compared over the first 5,000,000 frames, which is all that dqn has.",
    ]


def test_a_note_names_runs_with_fewer_than_five_iterations(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [range(5)] * 2)
    assert score_runs(read(tmp_path)).notes == []
    write_run(tmp_path / "b", "dqn", "foraging", [range(4)] * 2)
    said = "Runs in foraging have fewer than 5 iterations, so the score of the last 5 covers all iterations."
    assert said in score_runs(read(tmp_path)).notes


def test_seeds_in_several_folders_are_merged(tmp_path: Path) -> None:
    write_run(tmp_path / "first", "rainbow", "foraging", [[1, 2]])
    write_run(tmp_path / "deep/second", "rainbow", "foraging", [[5, 6], [7, 8]], seed=1)
    scores = score_runs(read(tmp_path))
    assert sorted(scores.by_seed[BEST]["rainbow", "foraging"]) == [2, 6, 8]
    write_run(tmp_path / "third", "rainbow", "foraging", [[1, 2]], seed=2)
    with pytest.raises(InputError, match=r"deep/second and third are the same run: rainbow in foraging with seed 2"):
        read(tmp_path)


def test_normalised_scores_are_zero_for_random_and_one_for_human_play() -> None:
    players = human_scores().items()
    by = {("r", f"atari/{g}"): np.array([p.random]) for g, p in players}
    by |= {("h", f"atari/{g}"): np.array([p.human]) for g, p in players}
    held = Scores(["r", "h"], [f"atari/{g}" for g, _ in players], {BEST: by, LAST: {}})
    assert all(has_human_score(environment) for environment in held.environments)
    assert statistics.mean(held.normalise(BEST, "r", held.environments)) == 0
    assert statistics.mean(held.normalise(BEST, "h", held.environments)) == 1


def test_sizes_of_runs_are_described(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1, 2]])
    assert describe_sizes(read(tmp_path).runs) == "Size of the runs: foraging, 1 seed, 500,000 steps."
    write_run(tmp_path / "b", "rainbow", "foraging", [[1, 2]], seed=1)
    for game, seeds in (("Pong", 3), ("Qbert", 2)):
        write_run(tmp_path / game, "rainbow", f"atari/{game}", np.ones((seeds, seeds)))
    assert describe_sizes(read(tmp_path).runs) == (
        "Size of the runs: 2 environments of atari, 2 to 3 seeds, 2,000,000 to 3,000,000 frames; "
        "foraging, 2 seeds, 500,000 steps."
    )


def test_an_agent_may_have_the_name_of_an_agent_in_the_papers_table(tmp_path: Path) -> None:
    """Two trained agents are named "paper's best" and "paper's Rainbow". The published Rainbow scores are left out."""
    labels = ("paper's best", "paper's Rainbow")
    runs = [{"label": a, "environment": "atari/Pong", "folder": a, "seeds": 1, "wanted": None} for a in labels]
    write_sweep(tmp_path, runs)
    for label in labels:
        write_run(tmp_path / label, "rainbow", "atari/Pong", [[1.0, 2.0]])
    scores = score_runs(read(tmp_path))
    assert scores.baselines == {"paper's Multi-Rainbow": Baseline(Source.PAPER, "Multi-Rainbow")}
    assert scores.find_comparable(full_length=False) == list(labels)
    assert scores.find_comparable(full_length=True) == [*labels, "paper's Multi-Rainbow"]
    assert scores.by_seed[BEST]["paper's Rainbow", "atari/Pong"].tolist() == [2.0]


def test_note_on_single_seeds_counts_the_seeds_of_all_runs(tmp_path: Path) -> None:
    """In foraging, rainbow has two runs with one seed each, and dqn has one seed."""
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0]])
    write_run(tmp_path / "b", "rainbow", "foraging", [[2.0]], seed=1)
    write_run(tmp_path / "c", "dqn", "foraging", [[1.0]])
    write_run(tmp_path / "d", "dqn", "pathworld", [[1.0], [2.0]])
    write_run(tmp_path / "e", "c51", "pathworld", [[1.0]])
    notes = score_runs(read(tmp_path)).notes
    assert "Runs with a single seed have no bands and no intervals: c51, dqn in foraging." in notes
