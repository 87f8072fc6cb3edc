"""Our runs in Atari drawn over Dopamine's published Rainbow curves.

    python benchmarks/atari_curves.py results/atari --dopamine dopamine_baselines.npz

Each folder in it is a run: its config.json and metrics.jsonl. Training returns, by million frames.
"""

import argparse
from pathlib import Path

import numpy as np

from multihorizon.report.style import BLUE, GREY, ORANGE, canvas, save, styled
from multihorizon.training.records import read_configuration, read_metrics

COLOURS = {"rainbow": ORANGE, "multi-rainbow": BLUE}
MARKS = {"rainbow": "s", "multi-rainbow": "o"}


def curve(folder: Path) -> tuple[np.ndarray, np.ndarray]:
    """Million frames, and mean return of the training episodes that ended in each iteration, over seeds."""
    lines = [line for line in read_metrics(folder) if any(r is not None for r in line["returns"])]
    returns = [np.mean([r for r in line["returns"] if r is not None]) for line in lines]
    return np.array([4e-6 * line["step"] for line in lines]), np.array(returns)


@styled
def draw(runs: dict[str, dict[str, Path]], dopamine: Path):  # type: ignore[no-untyped-def]
    held = np.load(dopamine, allow_pickle=False)
    rainbow, games = list(held["legacy_agents"]).index("Rainbow"), list(held["games"])
    figure, axes = canvas(5.2 * len(runs), 4, columns=len(runs))
    for panel, (game, agents) in zip(axes, runs.items(), strict=True):
        scores = held["legacy_scores"][rainbow, games.index(game.lower())]  # [seed iteration]
        longest = max(curve(folder)[0][-1] for folder in agents.values())
        shown = max(2, int(np.ceil(longest)))
        frames = np.arange(1, shown + 1)
        low, high = scores[:, :shown].min(axis=0), scores[:, :shown].max(axis=0)
        panel.fill_between(frames, low, high, color=GREY, alpha=0.35, lw=0, label="Dopamine's Rainbow, five seeds")
        for agent, folder in agents.items():
            panel.plot(*curve(folder), color=COLOURS[agent], marker=MARKS[agent], ms=4, label=f"{agent}, ours")
        panel.set_title(game)
        panel.set_xlabel("million frames")
    axes[0].set_ylabel("return in training")
    axes[0].legend(loc="upper left")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--dopamine", type=Path, required=True)
    options = parser.parse_args()
    runs: dict[str, dict[str, Path]] = {}
    for config in sorted(options.folder.glob("*/config.json")):
        configuration = read_configuration(config.parent)
        game = configuration.environment.removeprefix("atari/")
        runs.setdefault(game, {})[configuration.agent.name] = config.parent
    print(save(draw(runs, options.dopamine), options.folder / "curves.png"))


if __name__ == "__main__":
    main()
