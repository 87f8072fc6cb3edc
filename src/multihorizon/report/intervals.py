"""Statistics over all environments with their intervals: aggregates, performance profiles, probabilities of
improvement; and the discounts that agents acted by."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from multihorizon.report.comparison import MEASURES, THRESHOLDS, Aggregates, Pair
from multihorizon.report.looks import Look, Looks
from multihorizon.report.runs import Acting, Discounted
from multihorizon.report.scores import Statistic
from multihorizon.report.statistics import Estimate
from multihorizon.report.style import BLACK, BLUE, GREY, ORANGE, canvas, styled

SMALL_GAP = 0.005  # between discounts


@styled
def aggregates(found: Aggregates, looks: Looks) -> Figure:
    """A row for each statistic, a column for each measure."""
    statistics = [s for s in Statistic if any(one.statistic is s for one in found.of)]
    agents = list(dict.fromkeys(one.agent for one in found.of))
    height = (0.9 + 0.3 * len(agents)) * len(statistics) + 0.3
    figure, axes = canvas(11, height, columns=len(MEASURES), rows=len(statistics), sharey=True, sharex="col")
    for row, statistic in enumerate(statistics):
        for column, measure in enumerate(MEASURES):
            panel = axes[row * len(MEASURES) + column]
            for one in found.of:
                if one.statistic is statistic:
                    _estimate(panel, one.measures[measure], agents.index(one.agent), looks[one.agent])
            if row == 0:
                better = "lower is better" if measure == "optimality gap" else "higher is better"
                panel.set_title(f"{measure}\n", pad=2)
                panel.text(0.5, 1.03, better, transform=panel.transAxes, ha="center", fontsize=9, color=GREY)
            if row == len(statistics) - 1:
                panel.set_xlabel("human-normalised score" if measure != "optimality gap" else "shortfall", fontsize=9)
            panel.set_yticks(range(len(agents)), agents)
            panel.set_ylim(len(agents) - 0.4, -0.6)
            panel.margins(x=0.12)
            panel.xaxis.set_major_locator(MaxNLocator(4))
        axes[row * len(MEASURES)].set_ylabel(statistic.value, fontsize=9)
    return figure


@styled
def profiles(found: Aggregates, looks: Looks) -> Figure:
    statistics = [s for s in Statistic if any(one.statistic is s for one in found.of)]
    figure, panels = canvas(5.6 * len(statistics) + 0.4, 4.2, columns=len(statistics), sharey=True)
    reached = max([1.5, *(float(THRESHOLDS[one.profile > 0].max(initial=0)) for one in found.of)])
    for axes, statistic in zip(panels, statistics, strict=True):
        for one in found.of:
            if one.statistic is statistic:
                look = looks[one.agent]
                axes.plot(THRESHOLDS, one.profile, color=look.colour, linestyle=look.dash, label=one.agent)
                if one.profile_low is not None and one.profile_high is not None:
                    ends = (one.profile_low, one.profile_high)
                    axes.fill_between(THRESHOLDS, *ends, color=look.colour, alpha=0.18, linewidth=0)
        axes.set(title=statistic.value, xlabel="human-normalised score τ", xlim=(0, reached), ylim=(0, 1.02))
        axes.axvline(1, color=BLACK, linewidth=0.8, linestyle=":")
    panels[0].set_ylabel("share of runs above τ")
    panels[-1].legend(fontsize=9)
    return figure


@styled
def probabilities(pairs: list[Pair]) -> Figure:
    """One row a pair of agents."""
    names = list(dict.fromkeys(_vs(pair) for pair in pairs))
    figure, (axes,) = canvas(5.6, 1.4 + 0.5 * len(names))
    looks = {Statistic.BEST: Look(BLUE, "-"), Statistic.LAST: Look(ORANGE, "-")}
    statistics = list(dict.fromkeys(pair.statistic for pair in pairs))
    for pair in pairs:
        shift = 0.0 if len(statistics) == 1 else -0.14 if pair.statistic is Statistic.BEST else 0.14
        _estimate(axes, pair.wins, names.index(_vs(pair)) + shift, looks[pair.statistic])
    for statistic in statistics:
        axes.plot([], [], "o", color=looks[statistic].colour, label=statistic.value)
    axes.axvline(0.5, color=BLACK, linewidth=1, linestyle="--")
    axes.set_yticks(range(len(names)), [name.replace(" over ", "\nover ") for name in names], fontsize=9)
    # A little wider than what is possible, so that a dot at the end is whole.
    axes.set(xlim=(-0.02, 1.02), ylim=(len(names) - 0.5, -0.5), xlabel="probability that the first beats the second")
    figure.legend(fontsize=9, loc="outside upper center", ncols=len(statistics))
    return figure


@styled
def discounts(groups: list[Acting], looks: Looks) -> Figure:
    """Agents that act by the same discount share a panel: what they acted by, over what was asked for."""
    columns = min(3, len(groups))
    rows = -(-len(groups) // columns)
    figure, panels = canvas(4.2 * columns + 0.6, 3.3 * rows, columns=columns, rows=rows, sharey=True)
    for axes, (agents, environments, acted_by, wanted) in zip(panels, groups, strict=False):
        t = telling_time(acted_by, wanted)
        if wanted:
            said = f"asked for: {wanted.name}, d({t:g}) = {_at(wanted, t):.2f}"
            axes.plot(wanted.times, wanted.values, color=GREY, linewidth=6, alpha=0.45, label=said)
            axes.plot(t, _at(wanted, t), "o", color=GREY, markersize=10)
        colour, said = looks[agents[0]].colour, f"acted by: d({t:g}) = {_at(acted_by, t):.2f}"
        axes.plot(acted_by.times, acted_by.values, "o-", color=colour, markersize=3, label=said)
        axes.plot(t, _at(acted_by, t), "o", color=colour, markersize=7)
        title = _wrapped(agents) + (f"\nin {_wrapped(environments)}" if environments else "")
        axes.set(title=title, xscale="log", xlabel="steps t")
        axes.set(ylim=(-0.02, 1.35), yticks=[0, 0.25, 0.5, 0.75, 1])
        axes.xaxis.set_major_formatter(lambda t, _: f"{t:,.0f}")
        axes.legend(fontsize=8, loc="upper right")
    for axes in panels[len(groups) :]:
        axes.set_visible(False)
    panels[0].set_ylabel("d(t)")
    return figure


def telling_time(acted_by: Discounted, wanted: Discounted | None) -> float:
    """Where the two differ most; 100 where they do not, or nothing was wanted."""
    gaps = {t: abs(_at(acted_by, t) - _at(wanted, t)) if wanted else 0.0 for t in acted_by.times}
    furthest = max(gaps, key=lambda t: gaps[t])
    return furthest if gaps[furthest] > SMALL_GAP else 100.0


def _at(discount: Discounted, t: float) -> float:
    return float(np.interp(t, discount.times, discount.values))


def _wrapped(agents: list[str], width: int = 34) -> str:
    lines = [""]
    for agent in agents:
        if lines[-1] and len(lines[-1]) + len(agent) > width:
            lines.append("")
        lines[-1] += agent + ("" if agent == agents[-1] else ", ")
    return "\n".join(lines)


def _vs(pair: Pair) -> str:
    return f"{pair.challenger} over {pair.baseline}"


def _estimate(axes: Axes, estimate: Estimate, place: float, look: Look) -> None:
    if estimate.low is not None and estimate.high is not None:
        axes.plot(
            [estimate.low, estimate.high],
            [place, place],
            color=look.colour,
            linewidth=7,
            alpha=0.35,
            solid_capstyle="butt",
        )
    axes.plot(estimate.value, place, "o", color=look.colour, markersize=6)
