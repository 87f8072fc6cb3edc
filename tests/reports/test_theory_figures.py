"""Every theoretical figure can be drawn, is labelled, and does not change the caller's settings."""

from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure

from multihorizon.discounting import discount, gauss_grid, minimax_grid, paper_grid
from multihorizon.experiments import pathworld as experiment
from multihorizon.reports import theory_figures
from multihorizon.reports.figure_style import save


@pytest.fixture(scope="module")
def outcomes() -> list[experiment.PathworldResult]:
    return [
        experiment.PathworldResult(
            e,
            true=np.linspace(1, 2, 15),
            simulated=np.linspace(1, 2, 15),
            closed={a: np.linspace(0, 1, 15) for a in e.agents},
            learned={a: np.linspace(0, 1, 15) for a in e.agents},
        )
        for e in experiment.experiments()
    ]


def _figures(outcomes: list[experiment.PathworldResult]) -> list[Figure]:
    wanted = discount.hyperbolic(0.01)
    grids = {
        "paper": paper_grid(wanted, 10),
        "gauss": gauss_grid(wanted, 3),
        "minimax": minimax_grid(wanted, 3, t_max=300),
    }
    return [
        theory_figures.draw_pathworld(outcomes[0]),
        *map(theory_figures.draw_path_values, outcomes),
        theory_figures.draw_gamma_max(outcomes[-1].experiment),
        theory_figures.draw_hyperbolic_against_exponential(),
        theory_figures.draw_priors_and_discounts(),
        theory_figures.draw_gamma_integral(),
        theory_figures.draw_integral_forms(),
        theory_figures.draw_fit(wanted, grids, 300),
    ]


def test_figures_are_drawn_and_labelled(outcomes: list[experiment.PathworldResult], tmp_path: Path) -> None:
    before = {**matplotlib.rcParams, "backend": None}
    for number, figure in enumerate(_figures(outcomes)):
        for axes in figure.axes:
            assert axes.get_title() or axes.get_xlabel()
            assert axes.lines
        written = save(figure, tmp_path / "new" / f"{number}.png")
        assert written.read_bytes().startswith(b"\x89PNG")
    assert sorted(p.suffix for p in (tmp_path / "new").iterdir()) == [".png"] * 11
    assert {**matplotlib.rcParams, "backend": None} == before


def test_every_agent_is_in_the_legend(outcomes: list[experiment.PathworldResult]) -> None:
    (axes,) = theory_figures.draw_path_values(outcomes[0]).axes
    legend = axes.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert {"true value under hazard", "hyperbolic, from 100 heads", "γ = 0.975", "γ = 0.75"} <= set(labels)
