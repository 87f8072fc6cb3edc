"""Simulates how often 95% intervals contain the true value. Compares the usual stratified bootstrap with ours.

    python benchmarks/interval_coverage.py

The first table is for the IQM over games. Each trial draws a few runs (seeds) of each game.

- In the rows `even`, the means of the games are evenly spaced from 0 to 3. The noise is normal or exponential with
  standard deviation 1.
- In the rows `lognormal`, the means are spread as widely as the scores of Atari games. The noise is normal, with a
  standard deviation of 3% of the mean.

The true value is the IQM of 40,000 runs of each game. An IQM leaves out a quarter of the scores at each end. A trial
has few scores, so it leaves out a rounded number of them. The true value leaves out the same rounded fraction.

The second and the third table are for our interval of the probability of improvement in one game. A trial has no
interval if all resamples give the same result. Trials without an interval do not count.

- In the second table, the noise is normal.
- In the third table, scores can tie: a seed reaches the largest possible score with a given probability, and otherwise
  has a uniformly random lower score. Reports show a warning if all seeds of an agent have the same score. The last two
  columns show the coverage in trials with this warning and in trials without this warning.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtr

from multihorizon.reports import statistics

TRIALS, REPLICATIONS = 2_000, 500


def coverage(games: int, seeds: int, means: str, noise: str) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    apart = means == "lognormal"
    centres = rng.lognormal(0, 1.5, (games, 1)) if apart else np.linspace(0, 3, games)[:, None]
    size = 0.03 * centres if apart else 1.0

    def played(count: int) -> list[np.ndarray]:
        drawn = rng.exponential(1.0, (games, count)) if noise == "exponential" else rng.normal(0, 1, (games, count))
        return list(centres + size * drawn)

    share = statistics.trimmed_share(played(seeds))
    truth = statistics.iqm(played(40_000), share)
    held = np.zeros(2)
    for _ in range(TRIALS):
        seen = played(seeds)
        plain = statistics.interval(statistics.iqm(statistics.resampled(seen, rng, REPLICATIONS, fewer=0)))
        drawn = statistics.resampled(seen, rng, REPLICATIONS)
        ours = statistics.interval(statistics.iqm(drawn, share), statistics.freedom(seen))
        held += [low <= truth <= high for low, high in (plain, ours)]
    return held[0] / TRIALS, held[1] / TRIALS


def win_intervals(seeds: int, play: Callable[[np.random.Generator, int], list[np.ndarray]], truth: float) -> np.ndarray:
    """Returns three booleans per trial: an interval exists, it contains `truth`, all seeds of an agent tie."""
    rng = np.random.default_rng(0)
    found = []
    for _ in range(TRIALS):
        pair = [[scores] for scores in play(rng, seeds)]
        drawn = [statistics.resampled(strata, rng, REPLICATIONS) for strata in pair]
        low, high = statistics.interval(statistics.probability_of_improvement(*drawn), statistics.freedom(*pair))
        found.append((low < high, low <= truth <= high, not all(map(statistics.varies, pair))))
    return np.array(found)


def normal_wins(seeds: int, gap: float) -> tuple[float, float]:
    """Returns the coverage, and the fraction of trials with an interval."""
    shown, held, _ = win_intervals(
        seeds, lambda rng, n: [rng.normal(mean, 1, n) for mean in (gap, 0.0)], float(ndtr(gap / np.sqrt(2)))
    ).T
    return float(held[shown].mean()), float(shown.mean())


def tied_wins(seeds: int, reach: tuple[float, float]) -> tuple[float, float, float, float]:
    """Returns the coverage, the fraction of trials with an interval, and the coverage with and without a warning."""

    def play(rng: np.random.Generator, count: int) -> list[np.ndarray]:
        return [np.where(rng.random(count) < one, 1.0, rng.uniform(0, 1, count)) for one in reach]

    ours, theirs = reach
    truth = 0.5 * ours * theirs + ours * (1 - theirs) + 0.5 * (1 - ours) * (1 - theirs)
    shown, held, tied = win_intervals(seeds, play, truth).T
    with_warning, without = (float(held[part].mean()) for part in (shown & tied, shown & ~tied))
    return float(held[shown].mean()), float(shown.mean()), with_warning, without


def main() -> None:
    print("| games | seeds | means | noise | plain bootstrap | ours |\n|---|---|---|---|---|---|")
    for games in (1, 5, 10, 26):
        for seeds in (3, 5, 10):
            for means, noise in (("even", "normal"), ("even", "exponential"), ("lognormal", "normal")):
                plain, ours = coverage(games, seeds, means, noise)
                print(f"| {games} | {seeds} | {means} | {noise} | {plain:.1%} | {ours:.1%} |", flush=True)
    print("\n| seeds | means differ by | coverage of P(improvement) | trials with an interval |\n|---|---|---|---|")
    for seeds in (2, 3, 5, 10):
        for gap in (0.0, 0.5, 1.0):
            covered, shown = normal_wins(seeds, gap)
            print(f"| {seeds} | {gap} | {covered:.1%} | {shown:.1%} |", flush=True)
    print(
        "\n| seeds | reach the largest score | coverage of P(improvement) | trials with an interval | with a warning "
        "| without |\n|---|---|---|---|---|---|"
    )
    for seeds in (2, 3, 5, 10):
        for reach in ((0.8, 0.7), (0.9, 0.8), (0.97, 0.95)):
            numbers = " | ".join(f"{number:.1%}" for number in tied_wins(seeds, reach))
            print(f"| {seeds} | {reach[0]:.0%}, {reach[1]:.0%} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()
