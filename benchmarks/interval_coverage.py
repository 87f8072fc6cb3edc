"""Simulates how often 95% intervals contain the true value, for the plain stratified bootstrap and for ours.

    python benchmarks/interval_coverage.py

Games have different means, and every trial draws a few seeds of each game. In the rows `even`, the means are evenly
spaced from 0 to 3, and the noise is normal or exponential with standard deviation 1. In the rows `lognormal`, the means
are spread as widely as those of Atari games, and the noise is normal with a standard deviation of 3% of the mean. The
true IQM trims the same share of runs at each end as the estimate does.

The second table is for our interval of the probability of improvement in one game with normal noise. If every seed
of one agent beats every seed of the other, there is no interval. The coverage counts only the trials that have one.
"""

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


def win_coverage(seeds: int, gap: float) -> tuple[float, float]:
    """Returns the coverage of the intervals that are shown, and the share of trials that show one."""
    rng = np.random.default_rng(0)
    truth = ndtr(gap / np.sqrt(2))
    shown = held = 0
    for _ in range(TRIALS):
        pair = [[rng.normal(mean, 1, seeds)] for mean in (gap, 0.0)]
        drawn = [statistics.resampled(strata, rng, REPLICATIONS) for strata in pair]
        low, high = statistics.interval(statistics.probability_of_improvement(*drawn), statistics.freedom(*pair))
        shown += low < high
        held += low < high and low <= truth <= high
    return held / shown, shown / TRIALS


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
            covered, shown = win_coverage(seeds, gap)
            print(f"| {seeds} | {gap} | {covered:.1%} | {shown:.1%} |", flush=True)


if __name__ == "__main__":
    main()
