"""The style of all figures, and of each agent in them.

The colours suit colour-blind readers (Okabe & Ito). An agent has the same colour and line in all figures of a report.
"""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from multihorizon.files import atomically

Parameters = ParamSpec("Parameters")
Dash = str | tuple[int, tuple[int, ...]]
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
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)  # similar colours, such as orange and red, are far apart
DASHES: tuple[Dash, ...] = ("--", "-.", ":", (0, (7, 1)), (0, (3, 1, 1, 1)))
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
PLAIN_TEXT = {"text.parse_math": False}  # agents may have a $ in their names
PAGE_SETTINGS = {"svg.fonttype": "none", "font.size": 11}  # text stays text, not outlines
# A black line gets the page's text colour, so that figures suit a dark page too.
PAGE_COLOURS = {"#000000": "currentColor", "#e6e6e6": "var(--grid)"}


@dataclass(frozen=True)
class LineStyle:
    """The colour and dashes of one agent's lines."""

    colour: str
    dash: Dash


LineStyles = dict[str, LineStyle]  # by agent


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Decorates a drawing function so that it uses our style and leaves the caller's settings unchanged."""
    return _with_settings(draw, SETTINGS)


def styled_plain(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Decorates a drawing function as `styled` does, and shows all text literally, without math mode."""
    return _with_settings(draw, SETTINGS | PLAIN_TEXT)


def canvas(width: float, height: float, columns: int = 1, rows: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """Makes a figure and its panels, row by row. Sizes are in inches; `options` are those of `Figure.subplots`."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def save(figure: Figure, path: Path, plain: bool = False) -> Path:
    """Writes a figure as PNG or SVG, depending on the suffix of the path. The same figure gives the same bytes.

    Args:
        figure: The figure to write.
        path: The file to write.
        plain: Whether to show tick labels literally. Matplotlib creates them only when it saves the figure, so
            `styled_plain` does not affect them.
    """
    undated: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
    settings = SETTINGS | {"svg.hashsalt": path.name} | (PLAIN_TEXT if plain else {})
    with rc_context(settings), atomically(path) as file, any_script():
        figure.savefig(file, **undated)
    return path


@contextmanager
def any_script() -> Iterator[None]:
    """Suppresses the warnings for characters that the font lacks, which are drawn as boxes."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        yield


def choose_line_styles(
    agents: Sequence[str], baselines: Sequence[str], pairs: Sequence[tuple[str, str]] = ()
) -> LineStyles:
    """Chooses a line style for each agent.

    Baselines are grey. Every agent has its own colour and its own dashes, so that lines which coincide are all visible.
    If there are more agents than colours, the two agents of a pair share a colour and the first is dashed; if the pairs
    do not cover all agents, the colours repeat with other dashes.
    """
    ours = [agent for agent in agents if agent not in baselines]
    lines: tuple[Dash, ...] = ("-", *DASHES)
    found = {a: LineStyle(CYCLE[i % len(CYCLE)], lines[(i + i // len(CYCLE)) % len(lines)]) for i, a in enumerate(ours)}
    if len(ours) > len(CYCLE) >= len(pairs) and sorted(a for pair in pairs for a in pair) == sorted(ours):
        paired = {first: LineStyle(CYCLE[i], "--") for i, (first, _) in enumerate(pairs)}
        paired |= {second: LineStyle(CYCLE[i], "-") for i, (_, second) in enumerate(pairs)}
        found = {a: paired[a] for a in ours}
    return found | {a: LineStyle(GREY, lines[i % len(lines)]) for i, a in enumerate(baselines)}


def shorten_names(environments: Sequence[str]) -> dict[str, str]:
    """Returns names without the family if there are several environments, all of one family; otherwise full names."""
    families = {environment.partition("/")[0] for environment in environments}
    if len(families) > 1 or len(set(environments)) == 1:
        return {environment: environment for environment in environments}
    return {environment: environment.partition("/")[2] or environment for environment in environments}


def render_svg(figure: Figure, name: str) -> str:
    """Renders a figure for a page: the page sets its size and colours, and `name` makes its ids unique."""
    text = io.StringIO()
    with rc_context(SETTINGS | PAGE_SETTINGS | PLAIN_TEXT | {"svg.hashsalt": name}), any_script():
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()[text.getvalue().index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    for colour, themed in PAGE_COLOURS.items():
        svg = svg.replace(colour, themed)
    width = re.search(r'width="([\d.]+)pt"', svg)
    natural = round(float(width.group(1)) * 4 / 3) if width else 600
    svg = re.sub(r'(<svg[^>]*?) width="[\d.]+pt"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[\d.]+pt"', r"\1", svg, count=1)
    return svg.replace("<svg", f'<svg role="img" style="--natural:{natural}px"', 1).strip()


def _with_settings(draw: Callable[Parameters, Figure], settings: Any) -> Callable[Parameters, Figure]:
    @wraps(draw)
    def draw_styled(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with rc_context(settings):
            return draw(*args, **kwargs)

    return draw_styled
