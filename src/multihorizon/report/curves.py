"""Learning curves, an environment a panel: the mean over seeds, and a band that holds all of them."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from multihorizon.report.baselines import DopamineCurves
from multihorizon.report.looks import Look, Looks, short_names
from multihorizon.report.runs import Recorded, game_of, unit
from multihorizon.report.scores import merged
from multihorizon.report.style import canvas, styled

COLUMNS = 5


@styled
def all_curves(runs: list[Recorded], dopamine: DopamineCurves | None, looks: Looks) -> Figure:
    """Every environment, with one legend for all."""
    environments = _environments(runs)
    columns = min(COLUMNS, len(environments))
    rows = -(-len(environments) // columns)
    width = max(5.5, 3.4 * columns)
    across = max(1, min(4, int(width / (0.6 + 0.085 * max(map(len, looks), default=0)))))  # agents in a line
    lines_of_legend = -(-len(looks) // across)
    figure, panels = canvas(width, 2.6 * rows + 0.35 + 0.25 * lines_of_legend, columns=columns, rows=rows)
    names = short_names(environments)
    for axes, environment in zip(panels, environments, strict=False):
        _draw(axes, environment, runs, dopamine, looks)
        axes.set_title(names[environment])
    for axes in panels[len(environments) :]:
        axes.set_visible(False)
    lines = {str(line.get_label()): line for axes in panels for line in axes.lines if line.get_label() in looks}
    ordered = [agent for agent in looks if agent in lines]
    figure.legend([lines[a] for a in ordered], ordered, loc="outside upper center", ncols=min(across, len(ordered)))
    return figure


@styled
def one_curve(environment: str, runs: list[Recorded], dopamine: DopamineCurves | None, looks: Looks) -> Figure:
    """A panel of its own, for a page that has the legend elsewhere."""
    figure, (axes,) = canvas(4.4, 2.9)
    _draw(axes, environment, runs, dopamine, looks)
    axes.set_title(short_names(_environments(runs))[environment])
    return figure


def _environments(runs: Sequence[Recorded]) -> list[str]:
    return list(dict.fromkeys(run.environment for run in runs if run.begun))


def _draw(axes: Axes, environment: str, runs: list[Recorded], dopamine: DopamineCurves | None, looks: Looks) -> None:
    here = [run for run in runs if run.environment == environment and run.begun]
    end = max(run.frames[-1] for run in here)
    scale, word = (1e6, f"million {unit(environment)}") if end >= 2e6 else (1.0, unit(environment))
    if dopamine:
        for (agent, game), curves in dopamine.curves.items():
            if game == game_of(environment):
                frames = dopamine.frames(curves)
                shown = frames <= max(end, 2 * frames[0])
                _line(axes, frames[shown] / scale, curves[:, shown], agent, looks[agent])
    for label in dict.fromkeys(run.label for run in here):
        frames, scores = merged([run for run in here if run.label == label])
        _line(axes, frames / scale, scores, label, looks[label])
    axes.set(xlabel=word, ylabel="return")
    axes.xaxis.set_major_locator(MaxNLocator(4))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.6g}".replace("-", "−"))
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.9g}".replace("-", "−"))


def _line(
    axes: Axes, frames: Float[np.ndarray, " T"], scores: Float[np.ndarray, "S T"], label: str, look: Look
) -> None:
    known = np.isfinite(scores).any(axis=0)
    x, y = frames[known], scores[:, known]
    mark = "o" if len(x) < 3 else ""
    axes.plot(x, np.nanmean(y, axis=0), color=look.colour, linestyle=look.dash, marker=mark, label=label, linewidth=1.7)
    if len(scores) > 1:
        low, high = np.nanmin(y, axis=0), np.nanmax(y, axis=0)
        axes.fill_between(x, low, high, color=look.colour, alpha=0.18, linewidth=0)
