"""Bars, labels and titles of improvement figures fit their panels."""

from itertools import pairwise

from matplotlib.backends.backend_agg import FigureCanvasAgg

from multihorizon.reports.comparison import Comparison, ScoreChange
from multihorizon.reports.improvement_figures import (
    draw_improvement,
    draw_improvement_by_pair,
    draw_improvement_panels,
)
from multihorizon.reports.scores import Statistic
from multihorizon.reports.statistics import IntervalEstimate


def test_panels_have_room_for_every_bar() -> None:
    """The panels share their y-axis. The last panel has short bars and must not reset the limits."""

    def pair(name: str, *percents: float) -> Comparison:
        changes = [ScoreChange(f"atari/{i}", 100.0, 100.0 + percent) for i, percent in enumerate(percents)]
        return Comparison("base", name, Statistic.BEST, changes, IntervalEstimate(0.5))

    figure = draw_improvement_panels([pair("a", 2_000.0, 30.0), pair("b", -95.0, 12.0), pair("c", 3.0, -1.0)])
    for axes in figure.axes[:3]:
        low, high = axes.get_ylim()
        assert all(low < patch.get_height() < high for patch in axes.patches)
        ticks = axes.get_yticks()
        assert (min(ticks), max(ticks)) == (-1000, 1000)
    assert sum(len(axes.patches) for axes in figure.axes) == 6


def test_long_titles_do_not_overlap() -> None:
    names = ("multi-rainbow, optimiser.epsilon=0.00015", "rainbow, optimiser.epsilon=0.00015")
    changes = [ScoreChange(f"atari/{game}", 1.0, 2.0) for game in ("Pong", "Qbert")]
    comparison = Comparison(names[1], names[0], Statistic.BEST, changes, IntervalEstimate(1.0))
    figure = draw_improvement_panels([comparison, comparison])
    FigureCanvasAgg(figure).draw()
    left, right = (axes.title.get_window_extent() for axes in figure.axes)
    assert left.x1 < right.x0
    assert figure.axes[0].get_title() == f"{names[0]}\nover {names[1]}\nbetter in 2 of 2"


def test_extreme_changes_have_no_bar() -> None:
    ends = [(1e-300, 1e300), (1e300, -1e300), (0.0, 1.0), (5e-324, -1e300), (1.0, 1.5)]
    changes = [ScoreChange(f"game-{i}", *pair) for i, pair in enumerate(ends)]
    figure = draw_improvement(Comparison("a", "b", Statistic.BEST, changes, IntervalEstimate(0.5)))
    FigureCanvasAgg(figure).draw()
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == ["−200", "+50", "from 1e−300 to 1e+300", "from 0 to 1", "from 4.94e−324 to −1e+300"]


def test_tick_labels_of_a_single_environment_are_horizontal() -> None:
    pairs = [("rainbow", "hyper-rainbow-matched"), ("hyper-rainbow-too-afraid", "hyper-rainbow-matched")]
    change = [ScoreChange("foraging", 1.0, 1.2)]
    comparisons = [Comparison(a, b, Statistic.BEST, change, IntervalEstimate(1.0)) for a, b in pairs]
    (axes,) = draw_improvement_by_pair(comparisons).axes
    assert {label.get_rotation() for label in axes.get_xticklabels()} == {0.0}


def test_tick_labels_do_not_touch() -> None:
    games = ("minatar/breakout", "foraging/hazard", "minatar/asterix")
    changes = [ScoreChange(name, 1.0, 1.0 + 0.1 * i) for i, name in enumerate(games)]
    comparison = Comparison("dqn", "hyper-dqn", Statistic.BEST, changes, IntervalEstimate(0.5))
    figure = draw_improvement_panels([comparison, comparison])
    FigureCanvasAgg(figure).draw()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    for left, right in pairwise(boxes):
        assert left.x1 + 5 < right.x0  # pixels


def test_small_changes_are_not_rounded_to_zero() -> None:
    percents = (0.0, -0.2, 0.3, 1.2, -19.0)
    changes = [ScoreChange(f"game-{i}", 100.0, 100.0 + percent) for i, percent in enumerate(percents)]
    (axes,) = draw_improvement(Comparison("a", "b", Statistic.BEST, changes, IntervalEstimate(0.5))).axes
    assert [text.get_text() for text in axes.texts] == ["−19", "−0.2", "0", "+0.3", "+1"]
    assert sorted(axes.get_yticks())[:3] == [-20, -10, 0]
