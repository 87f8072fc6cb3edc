"""Figures of made-up runs are labelled and do not change the caller's settings."""

import time

import matplotlib
from made_up_runs import REPORT_GAMES

from multihorizon.reports.data import DiscountCurve
from multihorizon.reports.figures import find_telling_time
from multihorizon.reports.sections import ReportContents


def test_figures_are_labelled_and_keep_the_callers_settings(made: ReportContents) -> None:
    before = {**matplotlib.rcParams, "backend": None}
    for section in made.sections:
        for drawn in section.figures:
            for axes in drawn.figure.axes:
                if axes.get_visible():
                    assert axes.get_title() or axes.get_xlabel() or axes.get_ylabel() or axes.lines
    assert {**matplotlib.rcParams, "backend": None} == before
    (bars,) = [drawn for section in made.sections for drawn in section.figures if drawn.name == "ablation"]
    assert [axes.get_title().split("\n")[0] for axes in bars.figure.axes] == [
        "multi-c51 over c51",
        "multi-rainbow over rainbow",
    ]
    assert sum(len(axes.patches) for axes in bars.figure.axes) == 8


def test_every_learning_curve_has_a_band(made: ReportContents) -> None:
    (curves,) = [drawn for section in made.sections for drawn in section.figures if drawn.name == "curves"]
    assert len(curves.parts) == len(REPORT_GAMES)
    for axes in curves.figure.axes:
        assert len(axes.collections) == len(axes.lines) >= 4  # a band for each line


def test_discounts_are_annotated_where_they_differ_most() -> None:
    times = (1.0, 10.0, 100.0, 1000.0)
    acted = DiscountCurve("agent", times, (0.98, 0.84, 0.27, 0.0))
    wanted = DiscountCurve("wanted", (1.0, 9.0, 11.0, 100.0, 1000.0), (0.99, 0.92, 0.9, 0.5, 0.09))
    assert find_telling_time(acted, wanted) == 100
    assert find_telling_time(acted, DiscountCurve("near", times, (0.98, 0.94, 0.27, 0.0))) == 10
    assert find_telling_time(acted, acted) == find_telling_time(acted, None) == 100


def test_discounts_with_many_times_are_compared_quickly() -> None:
    times = tuple(float(t) for t in range(1, 200_001))
    acting = DiscountCurve("agent", times, tuple(0.99**t for t in times))
    wanted = DiscountCurve("wanted", times, tuple(1 / (1 + 0.01 * t) for t in times))
    start = time.monotonic()
    assert find_telling_time(acting, wanted) == 250
    assert find_telling_time(acting, None) == find_telling_time(acting, acting) == 100
    assert time.monotonic() - start < 1
