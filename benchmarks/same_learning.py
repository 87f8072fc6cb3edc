"""Compares the learning curves of two runs with many seeds, such as one with kernels and one without.

    multihorizon train multi-rainbow --env minatar/breakout --seeds 10 --steps 300000 --training-steps 15000 \
        --evaluation-steps 5000 --envs 8 --set compute_dtype=bfloat16 --out results/speed/learning/fast
    MULTIHORIZON_KERNELS=off multihorizon train multi-rainbow ... --set compute_dtype=float32 \
        --out results/speed/learning/plain
    python benchmarks/same_learning.py results/speed/learning/fast results/speed/learning/plain \
        --out results/speed/learning

A seed's score is its mean evaluation return over all iterations, or over the last five. The table has Welch's
confidence interval for the difference between the means, and the p-value of the Mann–Whitney test.
"""

import argparse
from pathlib import Path

import in_one_line  # noqa: F401
import numpy as np
from jaxtyping import Float
from matplotlib.figure import Figure
from scipy import stats

from multihorizon.errors import InputError
from multihorizon.files import read_json, write_json
from multihorizon.reports.figure_style import BLUE, ORANGE, canvas, save, styled
from multihorizon.runs.folder import CONFIGURATION
from multihorizon.runs.metrics import read_metrics

LEVEL = 0.95


def curves(folder: Path) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, "S T"]]:
    lines = read_metrics(folder)
    if not lines or None in lines[0]["evaluation_returns"]:
        raise InputError(f"{folder} has no run with evaluations")
    return np.array([line["step"] for line in lines]), np.array([line["evaluation_returns"] for line in lines], float).T


@styled
def drawn(folders: list[Path]) -> Figure:
    figure, (axes,) = canvas(6.5, 3.8)
    for folder, colour, dash in zip(folders, (BLUE, ORANGE), ("-", "--"), strict=True):
        steps, returns = curves(folder)
        axes.plot(steps, returns.mean(axis=0), color=colour, linestyle=dash, label=folder.name)
        axes.fill_between(steps, returns.min(axis=0), returns.max(axis=0), color=colour, alpha=0.18, linewidth=0)
    environment = read_json(folders[0] / CONFIGURATION)["environment"]
    axes.set(xlabel="steps", ylabel="evaluation return", title=f"{environment}: mean and range of the seeds")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.legend(loc="upper left")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fast", type=Path)
    parser.add_argument("plain", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    folders = [options.fast, options.plain]
    fast, plain = (curves(folder)[1] for folder in folders)
    found = {}
    print("| mean return of | fast | plain | difference | 95% interval | Mann–Whitney p |")
    print("|---|---|---|---|---|---|")
    for name, iterations in (("all iterations", slice(None)), ("the last five", slice(-5, None))):
        a, b = fast[:, iterations].mean(axis=1), plain[:, iterations].mean(axis=1)
        between = stats.ttest_ind(a, b, equal_var=False).confidence_interval(LEVEL)
        p = float(stats.mannwhitneyu(a, b).pvalue)
        found[name] = {
            "fast": a.tolist(),
            "plain": b.tolist(),
            "difference": float(a.mean() - b.mean()),
            "interval": [float(between.low), float(between.high)],
            "p": p,
        }
        print(
            f"| {name} | {a.mean():.2f} | {b.mean():.2f} | {a.mean() - b.mean():+.2f} | "
            f"{between.low:+.2f} to {between.high:+.2f} | {p:.2f} |"
        )
    write_json(options.out / "learning.json", found)
    print(save(drawn(folders), options.out / "learning.png"))


if __name__ == "__main__":
    main()
