"""Draws the learning curves of Atari runs, with the range of Dopamine's Rainbow seeds in the background.

    python benchmarks/atari_curves.py results/atari

Reads the runs in the given folder, and writes `curves.png` there.
"""

import argparse
import csv
from pathlib import Path

import in_one_line  # noqa: F401
from matplotlib.figure import Figure

from multihorizon.envs.atari import FRAMES_PER_STEP
from multihorizon.errors import InputError
from multihorizon.files import read_json
from multihorizon.reports.figure_style import BLUE, GREY, ORANGE, canvas, save, styled
from multihorizon.runs.folder import CONFIGURATION
from multihorizon.runs.metrics import read_metrics

PAPERS_EPSILON = 1.5e-4
# Label, colour and line style, by agent and by whether Adam has the paper's ε.
STYLES = {
    ("rainbow", True): ("Rainbow", ORANGE, "-"),
    ("rainbow", False): ("Rainbow, ε/10", ORANGE, "--"),
    ("multi-rainbow", True): ("Multi-Rainbow", BLUE, "-"),
    ("multi-rainbow", False): ("Multi-Rainbow, ε/10", BLUE, "--"),
}
DOPAMINE = "Dopamine's Rainbow, five seeds"
Range = tuple[list[float], list[float], list[float]]  # frames in millions, lowest return, highest return


def read_range(path: Path) -> dict[str, Range]:
    found: dict[str, Range] = {}
    with path.open() as file:
        for row in csv.DictReader(file):
            columns = found.setdefault(row["game"], ([], [], []))
            for column, name in zip(columns, ("million frames", "lowest seed", "highest seed"), strict=True):
                column.append(float(row[name]))
    return found


@styled
def draw(folders: list[Path], dopamine: dict[str, Range]) -> Figure:
    runs = [(read_json(folder / CONFIGURATION), read_metrics(folder)) for folder in folders]
    games = sorted({str(configuration["environment"]).removeprefix("atari/") for configuration, _ in runs})
    figure, panels = canvas(9, 4, columns=len(games))
    for game, axes in zip(games, panels, strict=True):
        axes.fill_between(*dopamine[game], color=GREY, alpha=0.35, lw=0, label=DOPAMINE)
        for configuration, metrics in runs:
            if configuration["environment"] != f"atari/{game}":
                continue
            agent = configuration["agent"]
            label, colour, line = STYLES[agent["name"], agent["optimiser"]["epsilon"] == PAPERS_EPSILON]
            frames = [one["step"] * FRAMES_PER_STEP / 1e6 for one in metrics]
            axes.plot(frames, [one["returns"][0] for one in metrics], color=colour, ls=line, label=label)
        axes.set(title=game, xlabel="million frames", ylabel="mean training return")
    named = {label: line for axes in panels for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    labels = [label for label in (DOPAMINE, *(label for label, _, _ in STYLES.values())) if label in named]
    figure.legend([named[label] for label in labels], labels, loc="outside upper center", ncols=3)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="folder that contains the run folders")
    parser.add_argument("--dopamine", type=Path, default=Path("results/atari/dopamine-rainbow.csv"))
    options = parser.parse_args()
    folders = sorted(path.parent for path in options.folder.glob(f"*/{CONFIGURATION}"))
    if not folders:
        raise InputError(f"{options.folder} contains no runs")
    print(save(draw(folders, read_range(options.dopamine)), options.folder / "curves.png"))


if __name__ == "__main__":
    main()
