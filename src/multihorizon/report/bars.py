"""What a challenger gains over its baseline, a bar for each environment, as the paper draws it."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from multihorizon.report.comparison import Change, Pair
from multihorizon.report.looks import short_names
from multihorizon.report.style import BLACK, BLUE, RED, canvas, styled

LINEAR_TO = 10  # per cent; beyond it the axis is logarithmic
FEW = 20  # bars that have room for their numbers


@styled
def improvement(pair: Pair) -> Figure:
    figure, (axes,) = canvas(max(5.5, 1.5 + 0.24 * len(pair.changes)), 4.6)
    _draw(axes, _by_environment(pair))
    _scale(axes, [_percent(change) for change in pair.changes])
    axes.set_title(f"{pair.challenger} over {pair.baseline}: better in {pair.counted}")
    return figure


@styled
def panels(pairs: list[Pair]) -> Figure:
    """A panel for each pair, two in a row, as the paper's ablation has them."""
    columns = min(2, len(pairs))
    rows = -(-len(pairs) // columns)
    widest = max(len(pair.changes) for pair in pairs)
    width = max(4.6, 1.2 + 0.34 * widest) * columns
    figure, axes = canvas(width, 3.9 * rows, columns=columns, rows=rows, sharey=True)
    for one, pair in zip(axes, pairs, strict=False):
        _draw(one, _by_environment(pair))
        one.set_title(f"{pair.challenger} over {pair.baseline}\nbetter in {pair.counted}")
        one.yaxis.set_tick_params(labelleft=True)
    _scale(axes[0], [_percent(change) for pair in pairs for change in pair.changes])  # for all: they share it
    for empty in axes[len(pairs) :]:
        empty.set_visible(False)
    return figure


@styled
def by_pair(pairs: list[Pair]) -> Figure:
    """Where there is but one environment: a bar for each pair."""
    figure, (axes,) = canvas(max(5.5, 1.5 + 0.9 * len(pairs)), 4.2)
    named = [(f"{pair.challenger}\nover {pair.baseline}", change) for pair in pairs for change in pair.changes]
    _draw(axes, named)
    _scale(axes, [_percent(change) for _, change in named])
    axes.set_title(pairs[0].changes[0].environment)
    return figure


def _by_environment(pair: Pair) -> list[tuple[str, Change]]:
    names = short_names([change.environment for change in pair.changes])
    return [(names[change.environment], change) for change in pair.changes]


def _draw(axes: Axes, named: list[tuple[str, Change]]) -> None:
    known = sorted((one for one in named if one[1].percent is not None), key=lambda one: _percent(one[1]))
    unknown = [one for one in named if one[1].percent is None]  # from a baseline of 0
    heights = [_percent(change) for _, change in known]
    axes.bar(range(len(known)), heights, color=[BLUE if height >= 0 else RED for height in heights], width=0.72)
    axes.axhline(0, color=BLACK, linewidth=1)
    _say(axes, heights, [change for _, change in unknown])
    names = [name for name, _ in (*known, *unknown)]
    upright = len(names) > 1 and sum(map(len, names)) > 60
    axes.set_xticks(range(len(names)), names, rotation=90 if upright else 0, fontsize=9)
    axes.set_xlim(-0.7, len(names) - 0.3)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("improvement (log scale beyond 10%)", fontsize=9)


def _scale(axes: Axes, heights: list[float]) -> None:
    """Limits and ticks that bars of these heights fit in."""
    axes.set_yscale("symlog", linthresh=LINEAR_TO, linscale=0.6)
    largest = max([LINEAR_TO, *(abs(height) for height in heights)])
    sizes = [LINEAR_TO * 10**power for power in range(6)] if largest > LINEAR_TO else [LINEAR_TO / 2, LINEAR_TO]
    ticks = [float(sign * size) for size in sizes for sign in (-1, 1)]
    axes.yaxis.set_major_locator(FixedLocator([0.0, *(tick for tick in ticks if abs(tick) <= largest * 2)]))
    axes.yaxis.set_minor_locator(FixedLocator([]))
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:+,.0f}%".replace("-", "−") if y else "0")
    low, high = min([0.0, *heights]), max([0.0, *heights])
    axes.set_ylim(min(-LINEAR_TO / 2, low * 2.2), max(LINEAR_TO / 2, high * 2.2))


def _say(axes: Axes, heights: list[float], unknown: list[Change]) -> None:
    """Numbers on the bars, and words where there can be none."""
    place: Any = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
    for x, height in enumerate(heights if len(heights) <= FEW else []):
        said = f"{height:+,.0f}".replace("-", "−") if round(height) else "0"
        shift, side = ((0, 3), "bottom") if height >= 0 else ((0, -3), "top")
        axes.annotate(said, (x, height), xytext=shift, va=side, **place)
    for x, change in enumerate(unknown, start=len(heights)):
        said = f"from 0 to {change.challenger:,.3g}".replace("-", "−")
        axes.annotate(said, (x, 0), xytext=(0, 4), rotation=90, va="bottom", **place)


def _percent(change: Change) -> float:
    return change.percent or 0.0
