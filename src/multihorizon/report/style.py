"""One look for all figures: colours that the colour-blind can tell apart (Okabe & Ito), little ink."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from multihorizon.files import atomically

Given = ParamSpec("Given")
BLACK, BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY = (
    "#000000",
    "#0072B2",
    "#E69F00",
    "#009E73",
    "#D55E00",
    "#CC79A7",
    "#56B4E9",
    "#999999",
)
CYCLE = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)))
SETTINGS: Any = {
    "font.size": 11,
    "axes.titlesize": 12,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.8,
    "axes.axisbelow": True,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "figure.dpi": 150,
    "savefig.bbox": "tight",
}


def styled(draw: Callable[Given, Figure]) -> Callable[Given, Figure]:
    """Draws in our look without changing the caller's."""

    @wraps(draw)
    def drawn(*args: Given.args, **kwargs: Given.kwargs) -> Figure:
        with rc_context(SETTINGS):
            return draw(*args, **kwargs)

    return drawn


def canvas(width: float, height: float, columns: int = 1, rows: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def save(figure: Figure, path: Path) -> Path:
    """The same figure gives the same bytes."""
    dated: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
    with rc_context(SETTINGS | {"svg.hashsalt": path.name}), atomically(path) as file:
        figure.savefig(file, **dated)
    return path
