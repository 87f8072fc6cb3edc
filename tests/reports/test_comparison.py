"""Checks comparisons and aggregates of hand-written scores, of the paper's table and of made-up runs."""

from pathlib import Path

import numpy as np
import pytest
from made_up_runs import learning, write_run

from multihorizon.reports.baselines import human_scores
from multihorizon.reports.comparison import Measure, aggregate, compare
from multihorizon.reports.data import RunCollection, read_runs
from multihorizon.reports.scores import Scores, Statistic, score_paper_table, score_runs
from multihorizon.reports.statistics import IntervalEstimate

BEST, LAST = Statistic.BEST, Statistic.LAST


def read(folder: Path) -> RunCollection:
    return read_runs(folder, pytest.fail)


def test_papers_table_reproduces_the_papers_claims(rng: np.random.Generator) -> None:
    scores = score_paper_table()
    pair = compare(scores, ("Rainbow", "Multi-Rainbow"), BEST, rng)
    assert pair is not None
    assert pair.tally == "39 of 60 with 3 ties"
    assert pair.win_probability.value == pytest.approx((39 + 1.5) / 60)
    assert pair.win_probability.low is None
    found = aggregate(scores, rng, full_length=True)
    assert len(found.environments[BEST]) == 55
    assert found.excluded == [
        f"atari/{game}" for game in ("AirRaid", "Carnival", "ElevatorAction", "JourneyEscape", "Pooyan")
    ]
    iqm = {one.agent: round(one.measures[Measure.IQM].value, 2) for one in found.entries}
    assert (iqm["Rainbow"], iqm["Multi-Rainbow"]) == (1.98, 2.22)
    assert compare(scores, ("Rainbow", "Multi-Rainbow"), LAST, rng) is None


def test_environments_without_human_scores_are_left_out_of_aggregates(tmp_path: Path, rng: np.random.Generator) -> None:
    for game in ("Pong", "AirRaid"):
        write_run(tmp_path / game, "rainbow", f"atari/{game}", [[0.0], [14.6]])
    write_run(tmp_path / "m", "rainbow", "minatar/breakout", [[1.0], [2.0]])
    found = aggregate(score_runs(read(tmp_path)), rng)
    assert found.excluded == ["atari/AirRaid", "minatar/breakout"]
    assert found.environments[BEST] == ["atari/Pong"]
    (best,) = [one for one in found.entries if one.statistic is BEST]
    assert best.measures[Measure.MEAN].value == pytest.approx((20.7 / 35.3 + 1) / 2)


def test_agents_are_aggregated_over_the_games_that_they_share(tmp_path: Path, rng: np.random.Generator) -> None:
    for game in ("Pong", "Qbert"):
        write_run(tmp_path / game, "rainbow", f"atari/{game}", [[1.0], [2.0]])
    write_run(tmp_path / "one", "dqn", "atari/Qbert", [[1.0], [2.0]])
    found = aggregate(score_runs(read(tmp_path)), rng)
    assert found.environments[LAST] == ["atari/Qbert"]
    assert {one.agent for one in found.entries} == {"rainbow", "dqn"}


@pytest.mark.parametrize("games", [3, 6, 19])
def test_intervals_contain_the_estimate_if_scores_differ_between_games(games: int, rng: np.random.Generator) -> None:
    for _ in range(10):
        by = {
            ("a", f"atari/{game}"): player.random + (player.human - player.random) * centre * rng.normal(1, 0.03, 3)
            for (game, player), centre in zip(human_scores().items(), rng.lognormal(0, 1.5, games), strict=False)
        }
        (found,) = aggregate(Scores(["a"], [e for _, e in by], {BEST: by, LAST: {}}), rng).entries
        for estimate in found.measures.values():
            assert estimate.low is not None
            assert estimate.high is not None
            assert estimate.low <= estimate.value <= estimate.high


def test_improvement_is_relative_to_the_baseline(rng: np.random.Generator) -> None:
    held = {"up": (2.0, 3.0), "from below": (-10.0, -5.0), "same": (0.0, 0.0), "from nothing": (0.0, 4.0)}
    by = {(agent, e): np.array([pair[i]]) for i, agent in enumerate(("a", "b")) for e, pair in held.items()}
    pair = compare(Scores(["a", "b"], list(held), {BEST: by, LAST: {}}), ("a", "b"), BEST, rng)
    assert pair is not None
    assert [change.percent for change in pair.changes] == [50.0, 50.0, 0.0, None]
    assert pair.tally == "3 of 4 with 1 tie"


def test_probability_of_improvement_has_an_interval(tmp_path: Path, rng: np.random.Generator) -> None:
    for game in ("Pong", "Qbert", "Alien"):
        write_run(tmp_path / game / "a", "rainbow", f"atari/{game}", learning(rng, 10, 5, 8))
        write_run(tmp_path / game / "b", "multi-rainbow", f"atari/{game}", learning(rng, 11, 5, 8))
    pair = compare(score_runs(read(tmp_path)), ("rainbow", "multi-rainbow"), BEST, rng)
    assert pair is not None
    assert pair.win_probability.low is not None
    assert pair.win_probability.high is not None
    assert 0 <= pair.win_probability.low < pair.win_probability.value < pair.win_probability.high <= 1


@pytest.mark.parametrize(
    ("baseline", "challenger", "tied"),
    [
        ({"A": [5.0, 4.0, 5.0]}, {"A": [5.0, 5.0, 5.0]}, ("new",)),
        ({"A": [5.0, 5.0, 5.0]}, {"A": [5.0, 4.0, 5.0]}, ("old",)),
        ({"A": [5.0, 5.0, 5.0], "B": [1.0, 2.0, 3.0]}, {"A": [5.0, 5.0, 5.0], "B": [2.0, 3.0, 2.0]}, ()),
        ({"A": [5.0, 5.0, 5.0]}, {"A": [5.0, 5.0, 5.0]}, ()),  # without an interval, no agent is listed
    ],
)
def test_comparison_lists_agents_whose_seeds_all_have_the_same_score(
    baseline: dict[str, list[float]],
    challenger: dict[str, list[float]],
    tied: tuple[str, ...],
    rng: np.random.Generator,
) -> None:
    by = {(agent, e): np.array(x) for agent, of in (("old", baseline), ("new", challenger)) for e, x in of.items()}
    pair = compare(Scores(["old", "new"], list(baseline), {BEST: by, LAST: {}}), ("old", "new"), BEST, rng)
    assert pair is not None
    assert pair.tied == tied


def test_aggregates_have_a_warning_if_all_seeds_of_an_agent_tie(rng: np.random.Generator) -> None:
    game = "atari/Pong"
    for last, warned in ((21.0, True), (20.0, False)):
        by = {("a", game): np.array([21.0] * 9 + [last])}
        warning = aggregate(Scores(["a"], [game], {BEST: by, LAST: {}}), rng).warning
        assert ("All seeds of a have the same score" in warning) == warned


def test_win_probability_has_no_interval_if_all_seeds_win(tmp_path: Path, rng: np.random.Generator) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0], [2.0], [3.0]])
    write_run(tmp_path / "b", "multi-rainbow", "foraging", [[4.0], [5.0], [6.0]])
    pair = compare(score_runs(read(tmp_path)), ("rainbow", "multi-rainbow"), BEST, rng)
    assert pair is not None
    assert pair.win_probability == IntervalEstimate(1.0)
