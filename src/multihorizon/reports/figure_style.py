"""The style of all figures and of each agent's lines.

The colours suit colour-blind readers (Okabe & Ito). An agent keeps its colour and dashes in all figures of a report.
"""

import io
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec
from xml.etree import ElementTree

from multihorizon.files import atomically
from multihorizon.reports.plotting import Axes, Figure, rc_context, rcParamsDefault

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
CYCLE = (BLUE, ORANGE, GREEN, PURPLE, RED, SKY)  # similar colours, such as orange and red, are far apart in this order
DASHES: tuple[Dash, ...] = ("--", "-.", ":", (0, (7, 1)), (0, (3, 1, 1, 1)))
# Matplotlib's defaults come first, so that figures do not depend on the user's settings.
SETTINGS: Any = {name: rcParamsDefault[name] for name in rcParamsDefault if name != "backend"} | {
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
    "text.parse_math": False,  # agents may have a $ in their names
}
MATHEMATICS = {"text.parse_math": True}
SVG, XLINK = "http://www.w3.org/2000/svg", "http://www.w3.org/1999/xlink"
PAGE_SETTINGS = {"svg.fonttype": "none", "font.size": 11}  # "none" stores characters instead of outlines
# Fixed colours become colours of the page, which change in dark mode.
PAGE_COLOURS = {"#000000": "currentColor", "#e6e6e6": "var(--grid)"}


@dataclass(frozen=True)
class LineStyle:
    """The colour and dashes of one agent's lines."""

    colour: str
    dash: Dash


LineStyles = dict[str, LineStyle]  # by agent


def styled(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Decorates a drawing function to use our style. Text between $ signs is drawn as mathematics."""
    return _with_settings(draw, SETTINGS | MATHEMATICS)


def styled_plain(draw: Callable[Parameters, Figure]) -> Callable[Parameters, Figure]:
    """Decorates a drawing function like `styled`, but draws all text literally. Use it for text from run folders."""
    return _with_settings(draw, SETTINGS)


def canvas(width: float, height: float, columns: int = 1, rows: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """Makes a figure (sizes in inches) and its panels, row by row. `options` go to `Figure.subplots`."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, list(figure.subplots(rows, columns, squeeze=False, **options).flat)


def save(figure: Figure, path: Path, plain: bool = False) -> Path:
    """Writes a figure as PNG or SVG, by the suffix of the path. The same figure gives the same bytes.

    `plain` draws tick labels literally. Matplotlib creates tick labels while it saves, too late for `styled_plain`.
    """
    undated: dict[str, Any] = {"metadata": {"Date": None}} if path.suffix == ".svg" else {}
    settings = SETTINGS | {"svg.hashsalt": path.name} | ({} if plain else MATHEMATICS)
    with rc_context(settings), atomically(path) as file, any_name():
        figure.savefig(file, **undated)
    return path


@contextmanager
def any_name() -> Iterator[None]:
    """Suppresses Matplotlib's warnings about missing characters and very wide names."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        warnings.filterwarnings("ignore", message="constrained_layout not applied")
        yield


def choose_line_styles(
    agents: Sequence[str], baselines: Sequence[str], pairs: Sequence[tuple[str, str]] = ()
) -> LineStyles:
    """Chooses a line style for each agent.

    Baselines are grey, with different dashes. Of the agents that are not baselines, the first six differ in both colour
    and dashes. From the seventh agent on, the colours repeat with other dashes.

    There is one exception: more than six agents that form at most six pairs. Then each pair has one colour, and its
    first agent is dashed.
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
    """Returns names without the family, such as "atari/", if several environments share it. Otherwise, full names."""
    families = {environment.partition("/")[0] for environment in environments}
    if len(families) > 1 or len(set(environments)) == 1:
        return {environment: environment for environment in environments}
    return {environment: environment.partition("/")[2] or environment for environment in environments}


def render_svg(figure: Figure, name: str) -> str:
    """Renders a figure as SVG. The page sets the size and the colours, and `name` makes the ids of elements unique."""
    text = io.StringIO()
    with rc_context(SETTINGS | PAGE_SETTINGS | {"svg.hashsalt": name}), any_name():
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    root = ElementTree.fromstring(text.getvalue())
    for metadata in root.findall(f"{{{SVG}}}metadata"):
        root.remove(metadata)
    natural = round(float(root.attrib.pop("width").removesuffix("pt")) * 4 / 3)
    del root.attrib["height"]
    for element in root.iter():
        for attribute, value in element.items():
            element.set(attribute, _adapt_to_page(attribute, value, name))
    root.attrib |= {"role": "img", "style": f"--natural:{natural}px"}
    ElementTree.register_namespace("", SVG)
    ElementTree.register_namespace("xlink", XLINK)
    return ElementTree.tostring(root, encoding="unicode").strip()


def _adapt_to_page(attribute: str, value: str, name: str) -> str:
    if attribute == "id":
        return f"{name}-{value}"
    if attribute == f"{{{XLINK}}}href":
        return value.replace("#", f"#{name}-", 1) if value.startswith("#") else value
    for colour, themed in PAGE_COLOURS.items():
        value = value.replace(colour, themed)
    return value.replace("url(#", f"url(#{name}-")


def _with_settings(draw: Callable[Parameters, Figure], settings: Any) -> Callable[Parameters, Figure]:
    @wraps(draw)
    def draw_styled(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Figure:
        with rc_context(settings):
            return draw(*args, **kwargs)

    return draw_styled
