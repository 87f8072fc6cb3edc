"""Prints this library's statistics beside rliable's, on scores drawn from a fixed seed.

rliable cannot be imported with current versions of pandas and arch, so it needs its own environment:

    python -m venv rliable-env
    rliable-env/bin/pip install rliable 'pandas<3' 'arch<8' jaxtyping
    PYTHONPATH=src rliable-env/bin/python benchmarks/rliable_agreement.py

tests/reports/test_statistics.py contains the printed numbers.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from rliable import library, metrics

from multihorizon.reports import statistics

REPLICATIONS = 20_000
MEASURES: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "median": (metrics.aggregate_median, statistics.median),
    "IQM": (metrics.aggregate_iqm, statistics.iqm),
    "mean": (metrics.aggregate_mean, statistics.mean),
    "optimality gap": (metrics.aggregate_optimality_gap, statistics.optimality_gap),
}


def scores(agent: int) -> np.ndarray:
    """Returns scores [seed game], as rliable expects them."""
    rng = np.random.default_rng(agent)
    return rng.lognormal(rng.normal(0, 1, 10), 0.4, (5, 10)) * (1 + 0.3 * agent)


def show(name: str, point: float, ends: np.ndarray, ours: float, our_ends: np.ndarray) -> None:
    low, high = (float(end) for end in our_ends)
    theirs = f"{point:.6f} [{float(ends[0]):.3f}, {float(ends[1]):.3f}]"
    print(f"{name:28} rliable {theirs}   ours {ours:.6f} [{low:.3f}, {high:.3f}]")


def main() -> None:
    matrix, other = scores(0), scores(1)
    strata, others = list(matrix.T), list(other.T)
    rng = np.random.default_rng(0)
    drawn = statistics.resampled(strata, rng, REPLICATIONS, fewer=0)
    for name, (theirs, ours) in MEASURES.items():
        points, ends = library.get_interval_estimates(
            {"a": matrix},
            lambda x, theirs=theirs: np.array([theirs(x)]),
            reps=REPLICATIONS,
            random_state=np.random.RandomState(0),
        )
        interval = statistics.interval(ours(drawn))
        show(name, points["a"][0], ends["a"][:, 0], float(ours(strata)), interval)
    points, ends = library.get_interval_estimates(
        {"b,a": (other, matrix)},
        lambda x, y: np.array([metrics.probability_of_improvement(x, y)]),
        reps=2_000,
        random_state=np.random.RandomState(0),
    )
    again = statistics.resampled(others, rng, REPLICATIONS, fewer=0)
    interval = statistics.interval(statistics.probability_of_improvement(again, drawn))
    ours_point = float(statistics.probability_of_improvement(others, strata))
    show("probability of improvement", points["b,a"][0], ends["b,a"][:, 0], ours_point, interval)
    thresholds = np.array([0.5, 1.0, 2.0, 4.0])
    theirs = library.create_performance_profile({"a": matrix}, thresholds, reps=2_000)[0]["a"]
    print(f"{'performance profile':28} rliable {theirs}   ours {statistics.profile(strata, thresholds)}")


if __name__ == "__main__":
    main()
