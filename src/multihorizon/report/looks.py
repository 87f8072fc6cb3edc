"""How agents and environments appear: an agent has one colour and line in all figures of a report."""

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib import rc_context
from matplotlib.figure import Figure

from multihorizon.report.style import CYCLE, DASHES, GREY, SETTINGS

Dash = str | tuple[int, tuple[int, ...]]
IN_THE_PAGE = {"svg.fonttype": "none", "font.size": 11}  # text stays text
# A black line is drawn in whatever colour the page's text has, so that figures suit a dark page too.
THEMED = {"#000000": "currentColor", "#e6e6e6": "var(--grid)"}


@dataclass(frozen=True)
class Look:
    colour: str
    dash: Dash


Looks = dict[str, Look]


def looks(agents: Sequence[str], baselines: Sequence[str], pairs: Sequence[tuple[str, str]] = ()) -> Looks:
    """Others' figures are grey. Where there are more agents than colours, two that are compared share one, and the
    first is dashed; else the colours come round again, dashed."""
    ours = [agent for agent in agents if agent not in baselines]
    lines: tuple[Dash, ...] = ("-", *DASHES)
    found = {a: Look(CYCLE[i % len(CYCLE)], lines[i // len(CYCLE) % len(lines)]) for i, a in enumerate(ours)}
    if len(ours) > len(CYCLE) >= len(pairs) and sorted(a for pair in pairs for a in pair) == sorted(ours):
        drawn = {first: Look(CYCLE[i], "--") for i, (first, _) in enumerate(pairs)}
        drawn |= {second: Look(CYCLE[i], "-") for i, (_, second) in enumerate(pairs)}
        found = {a: drawn[a] for a in ours}
    return found | {a: Look(GREY, lines[i % len(lines)]) for i, a in enumerate(baselines)}


def short_names(environments: Sequence[str]) -> dict[str, str]:
    """Without the family, where several are all of one."""
    families = {environment.partition("/")[0] for environment in environments}
    if len(families) > 1 or len(set(environments)) == 1:
        return {environment: environment for environment in environments}
    return {environment: environment.partition("/")[2] or environment for environment in environments}


def as_svg(figure: Figure, name: str) -> str:
    """For a page: sized by it, in its colours, and with ids that no other figure has."""
    text = io.StringIO()
    with rc_context(SETTINGS | IN_THE_PAGE | {"svg.hashsalt": name}):
        figure.savefig(text, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    svg = text.getvalue()[text.getvalue().index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    svg = re.sub(r'(\bid="|url\(#|href="#)', rf"\g<1>{name}-", svg)
    for colour, themed in THEMED.items():
        svg = svg.replace(colour, themed)
    width = re.search(r'width="([\d.]+)pt"', svg)
    natural = round(float(width.group(1)) * 4 / 3) if width else 600
    svg = re.sub(r'(<svg[^>]*?) width="[\d.]+pt"', r"\1", svg, count=1)
    svg = re.sub(r'(<svg[^>]*?) height="[\d.]+pt"', r"\1", svg, count=1)
    return svg.replace("<svg", f'<svg role="img" style="--natural:{natural}px"', 1).strip()
