"""Prints tables of returns under hazard, for several discounts that an agent acts by.

    python benchmarks/hazard_table.py results/hazard-games/asterix results/hazard-games/breakout

The returns come from the files that hazard_in_games.py writes. In each game, all columns belong to the same networks,
one per seed. Only the weights of the heads differ:

- "Fixed γ" acts by the same head under all priors. Under each prior, the relative return of a head is the return of
  this head, divided by the return of the best head. The fixed head is the head whose mean relative return over the
  priors is largest.
- "Best γ" acts by the head with the largest return under the prior.
- "k = 0.1" acts by the hyperbolic discount 1 / (1 + 0.1 t) under all priors.
- "Own discount" acts by the discount of the prior.

For each seed, the fixed head and the best head are chosen from the returns of the other seeds. The column "Return,
fixed γ" contains returns. The next three columns contain ratios: a return divided by the return with the fixed γ.
Intervals are percentile bootstraps over seeds.
"""

import argparse
import json
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import numpy as np

from multihorizon.errors import InputError
from multihorizon.experiments.evidence import PRIORS

RESAMPLES = 10_000
MIDDLE = "exponential-0.1"


def fixed_head(returns: np.ndarray) -> int:
    """Returns the index of the head with the largest mean relative return over the priors.

    Args:
        returns: Returns by seed, prior and head [S P G].
    """
    means = returns.mean(axis=0)
    return int((means / means.max(axis=1, keepdims=True)).mean(axis=0).argmax())


def without_each_seed(returns: np.ndarray) -> list[np.ndarray]:
    return [np.delete(returns, seed, axis=0) for seed in range(len(returns))]


def ratio(above: np.ndarray, below: np.ndarray) -> tuple[float, float, float]:
    """Returns the ratio of two means over seeds, and its 95% interval. A resample draws the same seeds for both."""
    drawn = np.random.default_rng(0).integers(len(above), size=(RESAMPLES, len(above)))
    low, high = np.percentile(above[drawn].mean(axis=1) / below[drawn].mean(axis=1), [2.5, 97.5])
    return float(above.mean() / below.mean()), float(low), float(high)


def rows(found: Any) -> list[list[str]]:
    """Returns the rows of the table of one game."""
    gammas = list(found["heads"])
    heads = np.array([[found["heads"][gamma][prior] for gamma in gammas] for prior in PRIORS])  # [P G S]
    heads = heads.transpose(2, 0, 1)
    seeds = np.arange(len(heads))
    fixed = [fixed_head(others) for others in without_each_seed(heads)]
    made = []
    for p, prior in enumerate(PRIORS):
        below = heads[seeds, p, fixed]
        best = [int(others[:, p].mean(axis=0).argmax()) for others in without_each_seed(heads)]
        acting = {
            "best": heads[seeds, p, best],
            "middle": np.array(found[MIDDLE]["returns"][prior]),
            "own": np.array(found[prior]["returns"][prior]),
        }
        ratios = ["{:.3f} ({:.3f} to {:.3f})".format(*ratio(above, below)) for above in acting.values()]
        differs = sum(found[prior]["disagreement"]) / len(heads)
        made.append([prior, f"{below.mean():.3f}", *ratios, f"{differs:.0%}"])
    names = {gammas[head] for head in fixed}
    print(f"{len(heads)} seeds; fixed γ: {', '.join(sorted(names))}")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, nargs="+", metavar="RUN", help="folders of runs of 'any-rainbow'")
    for folder in parser.parse_args().runs:
        found = json.loads((folder / "hazard.json").read_text())
        if "heads" not in found:
            raise InputError(f"{folder}/hazard.json has no heads; run hazard_in_games.py for a run of any-rainbow")
        print(f"\n{folder}: ", end="")
        table = rows(found)
        print("| Prior | Return, fixed γ | Best γ | k = 0.1 | Own discount | States with another action |")
        print("|---|---|---|---|---|---|")
        for row in table:
            print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
