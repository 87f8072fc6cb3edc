"""Compares statistics with values computed by hand, with rliable and with simulations."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multihorizon.reports import statistics
from multihorizon.reports.statistics import iqm, mean, median, optimality_gap, probability_of_improvement, profile

Measure = Callable[[list[np.ndarray]], np.ndarray]
TWO_GAMES = [np.array([0.0, 0.2, 0.4, 3.0]), np.array([1.0, 2.0, 2.0, 7.0])]


def test_measures_match_values_computed_by_hand() -> None:
    # Bars mark the middle half of the sorted scores: 0 0.2 | 0.4 1 2 2 | 3 7
    assert iqm(TWO_GAMES) == pytest.approx((0.4 + 1 + 2 + 2) / 4)
    # Means of the games: 0.9 and 3.
    assert median(TWO_GAMES) == pytest.approx(1.95)
    assert mean(TWO_GAMES) == pytest.approx(1.95)
    # Gaps to 1 in the first game: 1, 0.8, 0.6 and 0. In the second game, all gaps are 0.
    assert optimality_gap(TWO_GAMES) == pytest.approx((2.4 / 4 + 0) / 2)
    assert profile(TWO_GAMES, np.array([0.0, 1.0, 2.0, 7.0])).tolist() == [7 / 8, 4 / 8, 2 / 8, 0]


def test_number_of_trimmed_runs_is_rounded_down() -> None:
    # The IQM trims 1 run at each end if there are 5 runs, and 13 runs at each end if there are 55 runs.
    assert iqm([np.array([9.0, 1.0, 2.0, 3.0, -50.0])]) == 2.0
    assert iqm([np.arange(55.0)]) == 27.0
    assert iqm([np.array([4.0])]) == 4.0


def test_trimmed_mean_may_include_part_of_a_run() -> None:
    # A fifth of four runs is 0.8 of a run. At each end, 0.2 of the outermost run remains.
    assert iqm([np.array([0.0, 1.0, 2.0, 10.0])], 0.2) == pytest.approx((0.2 * 0 + 1 + 2 + 0.2 * 10) / 2.4)
    assert statistics.trimmed_share([np.zeros(3), np.zeros(3)]) == 1 / 6


def test_probability_of_improvement_matches_a_value_computed_by_hand() -> None:
    challenger = [np.array([1.0, 3.0]), np.array([5.0])]
    baseline = [np.array([2.0, 3.0]), np.array([4.0, 5.0])]
    # In the first game, score 1 loses twice; score 3 wins once and ties once.
    # In the second game, score 5 wins once and ties once.
    assert probability_of_improvement(challenger, baseline) == pytest.approx((1.5 / 4 + 1.5 / 2) / 2)


def test_bootstrap_of_two_seeds_matches_values_computed_by_hand(rng: np.random.Generator) -> None:
    """The scores are 0 and 1. Resamples of one seed have mean 0 or 1. Resamples of two seeds have mean 0, ½ or 1."""
    strata = [np.array([0.0, 1.0])]
    once = mean(statistics.resampled(strata, rng, 40_000))
    assert set(once.tolist()) == {0.0, 1.0}
    twice = mean(statistics.resampled(strata, rng, 40_000, fewer=0))
    for value, chance in ((0.0, 0.25), (0.5, 0.5), (1.0, 0.25)):
        assert np.mean(twice == value) == pytest.approx(chance, abs=0.01)
    assert statistics.interval(twice).tolist() == [0.0, 1.0]


def test_drawing_two_of_three_seeds_gives_the_variance_of_the_mean(rng: np.random.Generator) -> None:
    scores = np.array([1.0, 4.0, 7.0])  # the scores have variance 9, so their mean has variance 3
    assert np.var(mean(statistics.resampled([scores], rng, 200_000))) == pytest.approx(3.0, rel=0.02)
    assert np.var(mean(statistics.resampled([scores], rng, 200_000, fewer=0))) == pytest.approx(2.0, rel=0.02)


def test_intervals_have_equal_tails() -> None:
    assert statistics.interval(np.arange(0.0, 1001.0)) == pytest.approx((25.0, 975.0))
    # Student's 2.5% quantile is −2.776 with four degrees of freedom, and Φ(−2.776) = 0.00275.
    four = statistics.freedom([np.zeros(3), np.zeros(3)])
    assert statistics.interval(np.arange(0.0, 1001.0), four) == pytest.approx((2.75, 997.25), abs=0.01)


@given(st.lists(st.lists(st.floats(-5, 5), min_size=2, max_size=6), min_size=1, max_size=5), st.integers(0, 2**20))
def test_statistics_of_many_resamples_match_statistics_of_each_resample(games: list[list[float]], seed: int) -> None:
    strata = [np.array(game) for game in games]
    drawn = statistics.resampled(strata, np.random.default_rng(seed), 7)
    for game, again in zip(strata, drawn, strict=True):
        assert set(again.ravel().tolist()) <= set(game.tolist())
        assert again.shape == (7, len(game) - 1)
    measures: list[Measure] = [iqm, mean, median, optimality_gap, lambda s: probability_of_improvement(s, drawn_first)]
    drawn_first = [again[0] for again in drawn]
    for measure in measures:
        together = measure(drawn)
        for r in range(7):
            assert together[r] == pytest.approx(measure([again[r] for again in drawn]))


@given(st.lists(st.lists(st.floats(-5, 5), min_size=1, max_size=6), min_size=1, max_size=5))
def test_measures_have_their_mathematical_properties(games: list[list[float]]) -> None:
    strata = [np.array(game) for game in games]
    everything = np.concatenate(strata)
    for measure in (iqm, mean, median):
        assert everything.min() - 1e-12 <= measure(strata) <= everything.max() + 1e-12
    assert iqm([2 * s + 1 for s in strata]) == pytest.approx(2 * iqm(strata) + 1)
    assert optimality_gap([s + 10 for s in strata]) == 0
    assert probability_of_improvement(strata, strata) == pytest.approx(0.5)
    better = [s + 1 for s in strata]
    assert probability_of_improvement(better, strata) == pytest.approx(1 - probability_of_improvement(strata, better))
    falling = profile(strata, np.linspace(-6, 6, 9))
    assert np.all(np.diff(falling) <= 0)
    assert (falling[0], falling[-1]) == (1, 0)


@pytest.mark.parametrize("seeds", [3, 5, 10])
@pytest.mark.parametrize("skewed", [False, True])
def test_intervals_contain_the_truth_in_95_percent_of_trials(seeds: int, skewed: bool) -> None:
    """With three seeds, intervals of the ordinary bootstrap contain the truth in only 88% of trials."""
    rng = np.random.default_rng(seeds)
    centres = np.linspace(0, 3, 26)

    def played(count: int) -> list[np.ndarray]:
        noise = rng.exponential(1.0, (26, count)) if skewed else rng.normal(0, 1, (26, count))
        return list(centres[:, None] + noise)

    truth = iqm(played(20_000))
    trials = 1_200
    covered = 0
    for _ in range(trials):
        seen = played(seeds)
        low, high = statistics.interval(iqm(statistics.resampled(seen, rng, 400)), statistics.freedom(seen))
        covered += low <= truth <= high
    assert 0.93 <= covered / trials <= 0.97


# Values and ordinary bootstrap intervals that benchmarks/rliable_agreement.py prints with rliable 1.2.0. The bootstrap
# has 20,000 replications, or 2,000 for the probability of improvement.
RLIABLE = {
    "median": (1.199310, 1.050, 1.377),
    "IQM": (1.172927, 1.054, 1.289),
    "mean": (1.516755, 1.329, 1.722),
    "optimality gap": (0.178627, 0.143, 0.214),
    "probability of improvement": (0.636000, 0.572, 0.700),
}


def test_values_and_intervals_agree_with_rliable(rng: np.random.Generator) -> None:
    def scores(agent: int) -> list[np.ndarray]:
        drawn = np.random.default_rng(agent)
        return list((drawn.lognormal(drawn.normal(0, 1, 10), 0.4, (5, 10)) * (1 + 0.3 * agent)).T)

    first, second = scores(0), scores(1)
    measures = {"median": median, "IQM": iqm, "mean": mean, "optimality gap": optimality_gap}
    drawn = statistics.resampled(first, rng, 10_000, fewer=0)
    found = {name: (measure(first), *statistics.interval(measure(drawn))) for name, measure in measures.items()}
    again = statistics.resampled(second, rng, 10_000, fewer=0)
    wins = statistics.interval(probability_of_improvement(again, drawn))
    found["probability of improvement"] = (probability_of_improvement(second, first), *wins)
    for name, (value, low, high) in RLIABLE.items():
        assert found[name][0] == pytest.approx(value, abs=1e-6)
        assert found[name][1:] == pytest.approx((low, high), abs=0.04 * (high - low))
    assert profile(first, np.array([0.5, 1.0, 2.0, 4.0])) == pytest.approx([0.84, 0.58, 0.2, 0.06])


@pytest.mark.parametrize("seeds", [2, 3, 4, 5])
@pytest.mark.parametrize("skewed", [False, True])
def test_coverage_in_one_environment_never_exceeds_its_bound(seeds: int, skewed: bool) -> None:
    """The bound holds even for the interval from the lowest to the highest score."""
    rng, trials = np.random.default_rng(seeds), 4_000
    covered = np.zeros(2)
    for _ in range(trials):
        scores = rng.exponential(1.0, seeds) - 1 if skewed else rng.normal(0, 1, seeds)
        drawn = mean(statistics.resampled([scores], rng, 200))
        for which, (low, high) in enumerate(
            (statistics.interval(drawn, statistics.freedom([scores])), (scores.min(), scores.max()))
        ):
            covered[which] += low <= 0 <= high
    bound = statistics.largest_coverage([seeds])
    assert covered.max() / trials <= bound + 0.02
    if not skewed:
        assert covered[1] / trials == pytest.approx(bound, abs=0.02)


def test_intervals_contain_the_truth_unless_all_seeds_of_an_agent_tie() -> None:
    """The agents reach the largest score with probabilities 0.8 and 0.7, so P(improvement) is 0.55."""
    rng = np.random.default_rng(0)
    covered: dict[bool, list[bool]] = {False: [], True: []}
    for _ in range(600):
        first, second = ([np.where(rng.random(3) < p, 500.0, rng.uniform(0, 500, 3))] for p in (0.8, 0.7))
        drawn = [statistics.resampled(strata, rng, 200) for strata in (first, second)]
        low, high = statistics.interval(probability_of_improvement(*drawn), statistics.freedom(first, second))
        if low < high:
            varies = statistics.varies(first) and statistics.varies(second)
            covered[varies].append(bool(low <= 0.55 <= high))
    assert np.mean(covered[True]) >= 0.95
    assert np.mean(covered[False]) <= 0.75
    assert np.mean(covered[True] + covered[False]) <= 0.85


def test_warning_about_ties_names_the_agents() -> None:
    assert statistics.describe_ties([]) == ""
    assert statistics.describe_ties(["a", "b"]).startswith("All seeds of a and of b have the same score")
    assert not statistics.varies([np.array([1.0, 1.0]), np.array([2.0, 2.0])])
    assert statistics.varies([np.array([1.0, 1.0]), np.array([2.0, 3.0])])


def test_coverage_warning_depends_on_the_number_of_seeds() -> None:
    assert "With 3 seeds in one environment" in statistics.describe_coverage([3])
    assert "at most 75% of cases" in statistics.describe_coverage([3])
    assert "at most 50% of cases" in statistics.describe_coverage([2])
    assert [statistics.describe_coverage(seeds) for seeds in ([6], [10], [3, 3])] == ["", "", ""]
