"""Draws the improvement of challengers over their baselines, with a bar for each environment."""

import math
import textwrap
from typing import Any

from multihorizon.reports.comparison import Comparison, ScoreChange
from multihorizon.reports.figure_style import BLACK, BLUE, RED, canvas, shorten_names, styled_plain
from multihorizon.reports.plotting import Axes, Figure, FixedLocator

LINEAR_PERCENT = 10  # beyond this improvement the axis is logarithmic
MOST_PERCENT = 1e9  # a larger change has no bar
MAX_NUMBERED_BARS = 20  # with more bars there is no room for numbers
TITLE_CHARACTERS_PER_INCH, TICK_CHARACTERS_PER_INCH = 10, 14
TICK_GAP = 2  # characters between tick labels
AXIS_WIDTH = 0.85  # the y-axis of a panel takes this number of inches
MAX_LEVEL_WIDTH = 6.5  # a panel is widened at most to this number of inches, for horizontal tick labels


@styled_plain
def draw_improvement(comparison: Comparison) -> Figure:
    """Draws one comparison as in the paper, with a bar for each environment."""
    width = max(5.5, 1.5 + 0.24 * len(comparison.changes))
    figure, (axes,) = canvas(width, 4.6)
    _draw_bars(axes, _name_environments(comparison), width)
    _scale_bars(axes, [_bar_height(change) for change in comparison.changes])
    title = f"{comparison.title}: better in {comparison.tally}"
    fits = len(title) <= TITLE_CHARACTERS_PER_INCH * width
    axes.set_title(title if fits else f"{_wrap_title(comparison, width)}\nbetter in {comparison.tally}")
    return figure


@styled_plain
def draw_improvement_panels(comparisons: list[Comparison]) -> Figure:
    """Draws several comparisons in panels, two per row, as in the paper's ablation."""
    columns = min(2, len(comparisons))
    rows = -(-len(comparisons) // columns)
    widest = max(len(comparison.changes) for comparison in comparisons)
    level = AXIS_WIDTH + max(_measure_ticks([name for name, _ in _name_environments(one)]) for one in comparisons)
    width = max(4.6, 1.2 + 0.34 * widest, level if level <= MAX_LEVEL_WIDTH else 0)
    figure, axes = canvas(width * columns, 3.9 * rows, columns=columns, rows=rows, sharey=True)
    for panel, comparison in zip(axes, comparisons, strict=False):
        _draw_bars(panel, _name_environments(comparison), width)
        panel.set_title(f"{_wrap_title(comparison, width - 0.4)}\nbetter in {comparison.tally}")
        panel.yaxis.set_tick_params(labelleft=True)
    heights = [_bar_height(change) for comparison in comparisons for change in comparison.changes]
    _scale_bars(axes[0], heights)  # the panels share this axis
    for empty in axes[len(comparisons) :]:
        empty.set_visible(False)
    return figure


@styled_plain
def draw_improvement_by_pair(comparisons: list[Comparison]) -> Figure:
    """Draws several comparisons in a single environment, with a bar for each comparison."""
    named = [(f"{c.challenger}\nover {c.baseline}", change) for c in comparisons for change in c.changes]
    width = min(12.0, max(5.5, AXIS_WIDTH + _measure_ticks([name for name, _ in named])))
    figure, (axes,) = canvas(width, 4.2)
    _draw_bars(axes, named, width)
    _scale_bars(axes, [_bar_height(change) for _, change in named])
    axes.set_title(comparisons[0].changes[0].environment)
    return figure


def _name_environments(comparison: Comparison) -> list[tuple[str, ScoreChange]]:
    names = shorten_names([change.environment for change in comparison.changes])
    return [(names[change.environment], change) for change in comparison.changes]


def _draw_bars(axes: Axes, named: list[tuple[str, ScoreChange]], width: float) -> None:
    """Draws one bar for each name, in order of height, in a panel of `width` inches."""
    known = sorted((one for one in named if _has_bar(one[1])), key=lambda one: _bar_height(one[1]))
    unknown = [one for one in named if not _has_bar(one[1])]
    heights = [_bar_height(change) for _, change in known]
    axes.bar(range(len(known)), heights, color=[BLUE if height >= 0 else RED for height in heights], width=0.72)
    axes.axhline(0, color=BLACK, linewidth=1)
    _annotate_bars(axes, heights, [change for _, change in unknown])
    names = [name for name, _ in (*known, *unknown)]
    upright = _measure_ticks(names) > width - AXIS_WIDTH + 1e-6
    axes.set_xticks(range(len(names)), names, rotation=90 if upright else 0, fontsize=9)
    axes.set_xlim(-0.7, len(names) - 1 + 0.7)
    axes.grid(visible=False, axis="x")
    axes.set_ylabel("improvement (log scale beyond 10%)", fontsize=9)


def _scale_bars(axes: Axes, heights: list[float]) -> None:
    axes.set_yscale("symlog", linthresh=LINEAR_PERCENT, linscale=0.6)
    largest = max([LINEAR_PERCENT, *(abs(height) for height in heights)])
    if largest <= LINEAR_PERCENT:
        sizes = [LINEAR_PERCENT / 2, LINEAR_PERCENT]
    elif largest <= 5 * LINEAR_PERCENT:
        sizes = [LINEAR_PERCENT * step for step in (1, 2, 5, 10)]
    else:
        sizes = [LINEAR_PERCENT * 10**power for power in range(6)]
    ticks = [float(sign * size) for size in sizes for sign in (-1, 1)]
    axes.yaxis.set_major_locator(FixedLocator([0.0, *(tick for tick in ticks if abs(tick) <= largest * 2)]))
    axes.yaxis.set_minor_locator(FixedLocator([]))
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:+,.0f}%".replace("-", "−") if y else "0")
    low, high = min([0.0, *heights]), max([0.0, *heights])
    axes.set_ylim(min(-LINEAR_PERCENT / 2, low * 2.2), max(LINEAR_PERCENT / 2, high * 2.2))


def _annotate_bars(axes: Axes, heights: list[float], unknown: list[ScoreChange]) -> None:
    """Writes the percentage at each bar. For a change without a bar, writes the two scores."""
    place: Any = {"textcoords": "offset points", "ha": "center", "fontsize": 8}
    for x, height in enumerate(heights if len(heights) <= MAX_NUMBERED_BARS else []):
        places = 0 if abs(height) >= 0.95 else 1
        said = f"{height:+,.{places}f}".replace("-", "−") if round(height, places) else "0"
        shift, side = ((0, 3), "bottom") if height >= 0 else ((0, -3), "top")
        axes.annotate(said, (x, height), xytext=shift, va=side, **place)
    for x, change in enumerate(unknown, start=len(heights)):
        said = f"from {change.baseline:,.3g} to {change.challenger:,.3g}".replace("-", "−")
        axes.annotate(said, (x, 0), xytext=(0, 4), rotation=90, va="bottom", **place)


def _has_bar(change: ScoreChange) -> bool:
    """Returns whether the percentage is known and small enough to draw."""
    return change.percent is not None and math.isfinite(change.percent) and abs(change.percent) <= MOST_PERCENT


def _bar_height(change: ScoreChange) -> float:
    return (change.percent or 0.0) if _has_bar(change) else 0.0


def _measure_ticks(labels: list[str]) -> float:
    """Returns the width in inches of tick labels side by side."""
    longest = max(len(line) for label in labels for line in label.split("\n"))
    return (len(labels) + 0.4) * (longest + TICK_GAP) / TICK_CHARACTERS_PER_INCH


def _wrap_title(comparison: Comparison, inches: float) -> str:
    """Returns the title on one line if it fits. Otherwise the baseline starts a new line."""
    width = int(inches * TITLE_CHARACTERS_PER_INCH)
    if len(comparison.title) <= width:
        return comparison.title
    lines = (comparison.challenger, f"over {comparison.baseline}")
    return "\n".join(textwrap.fill(line, width, break_on_hyphens=False) for line in lines)
