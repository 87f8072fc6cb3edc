"""Figures of a report: learning curves, aggregates, performance profiles, probabilities and discounts."""

import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from multihorizon.reports.baselines import DopamineCurves
from multihorizon.reports.comparison import THRESHOLDS, Aggregates, Comparison, Measure, describe_ties
from multihorizon.reports.data import (
    DiscountCurve,
    DiscountGroup,
    RunHistory,
    choose_time_unit,
    merge_seeds,
    parse_game,
)
from multihorizon.reports.figure_style import (
    BLACK,
    BLUE,
    GREY,
    ORANGE,
    LineStyle,
    LineStyles,
    canvas,
    shorten_names,
    styled_plain,
)
from multihorizon.reports.plotting import Axes, Figure, Line2D, MaxNLocator, NullFormatter
from multihorizon.reports.scores import Statistic
from multihorizon.reports.statistics import IntervalEstimate

CURVE_COLUMNS = 5
CAPTION_CHARACTERS = 14  # characters of a caption in each inch of width
DRAWN = -10.0, 10.0  # drawn discounts are clipped to this range
SMALL_GAP = 0.005  # two discounts count as equal if they differ by at most SMALL_GAP


@styled_plain
def draw_curves(runs: list[RunHistory], dopamine: DopamineCurves | None, styles: LineStyles) -> Figure:
    """Draws the learning curves in every environment, with one legend for all.

    Lines are means over seeds, and bands reach from the lowest seed to the highest.
    """
    environments = _list_environments(runs)
    columns = min(CURVE_COLUMNS, len(environments))
    rows = -(-len(environments) // columns)
    width = max(5.5, 3.4 * columns)
    legend_columns, legend_height = _fit_legend(list(styles), width)
    figure, panels = canvas(width, 2.6 * rows + 0.35 + legend_height, columns=columns, rows=rows)
    names = shorten_names(environments)
    for position, (axes, environment) in enumerate(zip(panels, environments, strict=False)):
        _draw_environment(axes, environment, runs, dopamine, styles)
        axes.set_title(names[environment])
        if position % columns:
            axes.set_ylabel("")
    for axes in panels[len(environments) :]:
        axes.set_visible(False)
    lines = {str(line.get_label()): line for axes in panels for line in axes.lines if line.get_label() in styles}
    agents = [agent for agent in styles if agent in lines]
    ncols = min(legend_columns, len(agents))
    figure.legend([lines[a] for a in agents], agents, loc="outside upper center", ncols=ncols)
    return figure


@styled_plain
def draw_curve(environment: str, runs: list[RunHistory], dopamine: DopamineCurves | None, styles: LineStyles) -> Figure:
    """Draws the learning curves in one environment, without a legend."""
    figure, (axes,) = canvas(4.4, 2.9)
    _draw_environment(axes, environment, runs, dopamine, styles)
    axes.set_title(shorten_names(_list_environments(runs))[environment])
    return figure


@styled_plain
def draw_aggregates(found: Aggregates, styles: LineStyles) -> Figure:
    """Draws the aggregates and their intervals, with a row for each `Statistic` and a column for each `Measure`."""
    statistics, agents = found.statistics, found.agents
    height = (0.9 + 0.3 * len(agents)) * len(statistics) + 0.3
    figure, axes = canvas(11, height, columns=len(Measure), rows=len(statistics), sharey=True, sharex="col")
    for row, statistic in enumerate(statistics):
        for column, measure in enumerate(Measure):
            panel = axes[row * len(Measure) + column]
            for entry in found.entries:
                if entry.statistic is statistic:
                    _draw_estimate(panel, entry.measures[measure], agents.index(entry.agent), styles[entry.agent])
            if row == 0:
                better = "lower is better" if measure.lower_is_better else "higher is better"
                panel.set_title(f"{measure.value}\n", pad=2)
                panel.text(0.5, 1.03, better, transform=panel.transAxes, ha="center", fontsize=9, color=GREY)
            if row == len(statistics) - 1:
                unit = "shortfall" if measure is Measure.OPTIMALITY_GAP else "human-normalised score"
                panel.set_xlabel(unit, fontsize=9)
            panel.set_yticks(range(len(agents)), agents)
            panel.set_ylim(len(agents) - 0.4, -0.6)
            panel.margins(x=0.12)
            panel.xaxis.set_major_locator(MaxNLocator(4))
        axes[row * len(Measure)].set_ylabel(statistic.value, fontsize=9)
    _write_warning(figure, found.warning)
    return figure


@styled_plain
def draw_profiles(found: Aggregates, styles: LineStyles) -> Figure:
    """Draws the performance profiles: the share of runs above each human-normalised score."""
    width = 5.6 * len(found.statistics) + 0.4
    legend_columns, legend_height = _fit_legend(found.agents, width)
    figure, panels = canvas(width, 4.0 + legend_height, columns=len(found.statistics), sharey=True)
    reached = max([1.5, *(float(THRESHOLDS[entry.profile > 0].max(initial=0)) for entry in found.entries)])
    lines: dict[str, Line2D] = {}
    for axes, statistic in zip(panels, found.statistics, strict=True):
        for entry in found.entries:
            if entry.statistic is statistic:
                style = styles[entry.agent]
                (line,) = axes.plot(THRESHOLDS, entry.profile, color=style.colour, linestyle=style.dash)
                lines.setdefault(entry.agent, line)
                if entry.profile_low is not None and entry.profile_high is not None:
                    ends = (entry.profile_low, entry.profile_high)
                    axes.fill_between(THRESHOLDS, *ends, color=style.colour, alpha=0.18, linewidth=0)
        axes.set(title=statistic.value, xlabel="human-normalised score τ", xlim=(0, reached), ylim=(0, 1.02))
        axes.axvline(1, color=BLACK, linewidth=0.8, linestyle=":")
    panels[0].set_ylabel("share of runs above τ")
    ncols = min(legend_columns, len(lines))
    figure.legend(list(lines.values()), list(lines), loc="outside upper center", ncols=ncols)
    _write_warning(figure, found.warning)
    return figure


@styled_plain
def draw_probabilities(comparisons: list[Comparison]) -> Figure:
    """Draws the probabilities of improvement and their intervals, with a row for each pair of agents."""
    titles = list(dict.fromkeys(comparison.title for comparison in comparisons))
    labels = {c.title: f"{c.challenger}\nover {c.baseline}" for c in comparisons}
    figure, (axes,) = canvas(5.6, 1.4 + 0.5 * len(titles))
    styles = {Statistic.BEST: LineStyle(BLUE, "-"), Statistic.LAST: LineStyle(ORANGE, "-")}
    statistics = list(dict.fromkeys(comparison.statistic for comparison in comparisons))
    for comparison in comparisons:
        shift = 0.0 if len(statistics) == 1 else -0.14 if comparison.statistic is Statistic.BEST else 0.14
        place = titles.index(comparison.title) + shift
        _draw_estimate(axes, comparison.win_probability, place, styles[comparison.statistic])
    for statistic in statistics:
        axes.plot([], [], "o", color=styles[statistic].colour, label=statistic.value)
    axes.axvline(0.5, color=BLACK, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(titles)), [labels[title] for title in titles], fontsize=9)
    # A little wider than [0, 1], so that dots at the ends are not cut off.
    axes.set(xlim=(-0.02, 1.02), ylim=(len(titles) - 0.5, -0.5), xlabel="probability that the first beats the second")
    figure.legend(fontsize=9, loc="outside upper center", ncols=len(statistics))
    _write_warning(figure, describe_ties(comparisons))
    return figure


@styled_plain
def draw_discounts(groups: list[DiscountGroup], styles: LineStyles) -> Figure:
    """Draws a panel for each group, with the discount that the agents act by and the wanted discount."""
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    figure, panels = canvas(4.2 * columns + 0.6, 3.3 * rows, columns=columns, rows=rows, sharey=True)
    for axes, (agents, environments, acting, wanted) in zip(panels, groups, strict=False):
        t = find_telling_time(acting, wanted)
        if wanted:
            said = f"wanted: {wanted.name}, d({t:g}) = {_short(_interpolate(wanted, t))}"
            axes.plot(wanted.times, np.clip(wanted.values, *DRAWN), color=GREY, linewidth=6, alpha=0.45, label=said)
            axes.plot(t, np.clip(_interpolate(wanted, t), *DRAWN), "o", color=GREY, markersize=10)
        colour, said = styles[agents[0]].colour, f"agent: d({t:g}) = {_short(_interpolate(acting, t))}"
        axes.plot(acting.times, np.clip(acting.values, *DRAWN), "o-", color=colour, markersize=3, label=said)
        axes.plot(t, np.clip(_interpolate(acting, t), *DRAWN), "o", color=colour, markersize=7)
        title = _wrap_names(agents) + (f"\nin {_wrap_names(environments)}" if environments else "")
        axes.set(title=title, xscale="log", xlabel="steps t")
        axes.set(ylim=(-0.02, 1.35), yticks=[0, 0.25, 0.5, 0.75, 1])
        axes.xaxis.set_major_formatter(lambda t, _: f"{t:,.0f}")
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.legend(fontsize=8, loc="upper right")
    for axes in panels[len(groups) :]:
        axes.set_visible(False)
    panels[0].set_ylabel("d(t)")
    return figure


def _short(value: float) -> str:
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.3g}"


def find_telling_time(acting: DiscountCurve, wanted: DiscountCurve | None) -> float:
    """Returns the time at which the discounts differ most, or 100 if they are equal or `wanted` is None."""
    if wanted is None:
        return 100.0
    gaps = np.abs(np.array(acting.values) - np.interp(acting.times, wanted.times, wanted.values))
    furthest = int(gaps.argmax())
    return acting.times[furthest] if gaps[furthest] > SMALL_GAP else 100.0


def _write_warning(figure: Figure, warning: str) -> None:
    if warning:
        figure.supxlabel(textwrap.fill(warning, int(figure.get_figwidth() * CAPTION_CHARACTERS)), fontsize=9)


def _list_environments(runs: Sequence[RunHistory]) -> list[str]:
    return list(dict.fromkeys(run.environment for run in runs if run.has_scores))


def _fit_legend(labels: list[str], width: float) -> tuple[int, float]:
    """Returns the number of legend columns that fit a figure, and the legend's height in inches."""
    columns = max(1, min(4, int(width / (0.6 + 0.085 * max(map(len, labels), default=0)))))
    rows = -(-len(labels) // columns)
    return -(-len(labels) // max(1, rows)), 0.25 * rows


def _draw_environment(
    axes: Axes, environment: str, runs: list[RunHistory], dopamine: DopamineCurves | None, styles: LineStyles
) -> None:
    here = [run for run in runs if run.environment == environment and run.has_scores]
    end = max(run.frames[-1] for run in here)
    unit = choose_time_unit(environment)
    scale, unit = (1e6, f"million {unit}") if end >= 2e6 else (1.0, unit)
    if dopamine:
        for (baseline, game), curves in dopamine.curves.items():
            if game == parse_game(environment):
                frames = dopamine.frames(curves)
                shown = frames <= max(end, 2 * frames[0])
                _draw_line(axes, frames[shown] / scale, curves[:, shown], baseline.label, styles[baseline.label])
    for label in dict.fromkeys(run.label for run in here):
        frames, scores = merge_seeds([run for run in here if run.label == label])
        _draw_line(axes, frames / scale, scores, label, styles[label])
    axes.set(xlabel=unit, ylabel="return")
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.6g}".replace("-", "−"))
    axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.9g}".replace("-", "−"))


def _draw_line(
    axes: Axes, frames: Float[np.ndarray, " T"], scores: Float[np.ndarray, "S T"], label: str, style: LineStyle
) -> None:
    known = np.isfinite(scores).any(axis=0)
    x, y = frames[known], scores[:, known]
    line: Any = {"color": style.colour, "linestyle": style.dash, "marker": "o" if len(x) < 3 else ""}
    axes.plot(x, np.nanmean(y, axis=0), label=label, linewidth=1.7, **line)
    if len(scores) > 1:
        low, high = np.nanmin(y, axis=0), np.nanmax(y, axis=0)
        axes.fill_between(x, low, high, color=style.colour, alpha=0.13, linewidth=0)


def _draw_estimate(axes: Axes, estimate: IntervalEstimate, place: float, style: LineStyle) -> None:
    if estimate.low is not None and estimate.high is not None:
        line: Any = {"color": style.colour, "linewidth": 7, "alpha": 0.35, "solid_capstyle": "butt"}
        axes.plot([estimate.low, estimate.high], [place, place], **line)
    axes.plot(estimate.value, place, "o", color=style.colour, markersize=6)


def _interpolate(discount: DiscountCurve, t: float) -> float:
    return float(np.interp(t, discount.times, discount.values))


def _wrap_names(names: list[str], width: int = 34) -> str:
    lines = [""]
    for name in names:
        if lines[-1] and len(lines[-1]) + len(name) > width:
            lines.append("")
        lines[-1] += name + ("" if name == names[-1] else ", ")
    return "\n".join(lines)
