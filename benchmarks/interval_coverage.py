"""Simulates how often 95% intervals of the IQM contain the true IQM, for the plain stratified bootstrap and for ours.

    python benchmarks/interval_coverage.py

Games have different means, and every trial draws a few seeds of each. `even` means are spaced evenly from 0 to 3, with
normal or exponential noise of standard deviation 1. `lognormal` means are spread as widely as those of Atari games,
with normal noise whose standard deviation is 3% of the mean. The true IQM trims the same share of runs at each end as
the estimate does.
"""

import numpy as np

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


def main() -> None:
    print("| games | seeds | means | noise | plain bootstrap | ours |\n|---|---|---|---|---|---|")
    for games in (1, 5, 10, 26):
        for seeds in (3, 5, 10):
            for means, noise in (("even", "normal"), ("even", "exponential"), ("lognormal", "normal")):
                plain, ours = coverage(games, seeds, means, noise)
                print(f"| {games} | {seeds} | {means} | {noise} | {plain:.1%} | {ours:.1%} |", flush=True)


if __name__ == "__main__":
    main()
