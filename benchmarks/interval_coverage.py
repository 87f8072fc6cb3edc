"""How often a 95% interval of the IQM holds the truth: the plain stratified bootstrap, and ours.

    python benchmarks/interval_coverage.py

Games have different means; every trial sees a few seeds of each, with normal or exponential noise.
"""

import numpy as np

from multihorizon.report import statistics

TRIALS, REPLICATIONS = 2_000, 500


def coverage(games: int, seeds: int, skewed: bool) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    centres = np.linspace(0, 3, games)[:, None]

    def played(count: int) -> list[np.ndarray]:
        noise = rng.exponential(1.0, (games, count)) if skewed else rng.normal(0, 1, (games, count))
        return list(centres + noise)

    truth = statistics.iqm(played(40_000))
    held = np.zeros(2)
    for _ in range(TRIALS):
        seen = played(seeds)
        plain = statistics.interval(statistics.iqm(statistics.resampled(seen, rng, REPLICATIONS, fewer=0)))
        drawn = statistics.resampled(seen, rng, REPLICATIONS)
        ours = statistics.interval(statistics.iqm(drawn), statistics.freedom(seen))
        held += [low <= truth <= high for low, high in (plain, ours)]
    return held[0] / TRIALS, held[1] / TRIALS


def main() -> None:
    print("| games | seeds | noise | plain bootstrap | ours |\n|---|---|---|---|---|")
    for games in (5, 10, 26):
        for seeds in (3, 5, 10):
            for skewed in (False, True):
                plain, ours = coverage(games, seeds, skewed)
                noise = "exponential" if skewed else "normal"
                print(f"| {games} | {seeds} | {noise} | {plain:.1%} | {ours:.1%} |", flush=True)


if __name__ == "__main__":
    main()
