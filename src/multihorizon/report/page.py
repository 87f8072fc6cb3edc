"""A report as one HTML page that needs nothing else: figures inside it, tables that can be sorted, light and dark."""

import html
from importlib.resources import files

from multihorizon import __version__
from multihorizon.report.contents import Drawn, Report, Section
from multihorizon.report.looks import Look, Looks, as_svg

# An empty picture for the tab: a browser would otherwise ask the server for one.
ICON = '<link rel="icon" href="data:,">'


def page(report: Report, file_names: list[str]) -> str:
    contents = "".join(f'<li><a href="#{s.name}">{html.escape(s.title)}</a></li>' for s in report.sections)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in report.notes)
    links = ", ".join(f'<a href="{html.escape(name)}">{html.escape(name)}</a>' for name in file_names)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{html.escape(report.title)}</title>{ICON}",
            f"<style>{_shipped('page.css')}</style></head><body>",
            f"<header><h1>{html.escape(report.title)}</h1>",
            f"<p>{html.escape(report.about)}</p>" if report.about else "",
            f"<nav aria-label='Contents'><ul>{contents}</ul></nav>",
            f'<aside class="notes"><ul>{notes}</ul></aside>' if notes else "",
            "</header><main>",
            *(_section(section, report.looks) for section in report.sections),
            "</main>",
            f'<footer><h2>Files</h2><p class="files">{links}</p><p>Made by multihorizon {__version__}.</p></footer>',
            f"<script>{_shipped('page.js')}</script></body></html>",
        ]
    )


def _section(section: Section, looks: Looks) -> str:
    return "\n".join(
        [
            f'<section id="{section.name}"><h2>{html.escape(section.title)}</h2>',
            f"<p>{html.escape(section.about)}</p>",
            _legend(looks, section) if section.has_legend else "",
            *(_drawn(figure) for figure in section.figures),
            *(table.html() for table in section.tables),
            "</section>",
        ]
    )


def _drawn(drawn: Drawn) -> str:
    if drawn.parts:
        return f'<div class="parts">{"".join(_figure(part) for part in drawn.parts)}</div>'
    return f'<div class="scroll wide" tabindex="0">{_figure(drawn)}</div>'


def _figure(drawn: Drawn) -> str:
    svg = as_svg(drawn.figure, drawn.name).replace("<svg", f'<svg aria-label="{html.escape(drawn.alt)}"', 1)
    return f'<figure id="figure-{drawn.name}">{svg}</figure>'


def _legend(looks: Looks, section: Section) -> str:
    drawn = {str(line.get_label()) for one in section.figures for axes in one.figure.axes for line in axes.lines}
    items = "".join(f"<li>{_swatch(look)}{html.escape(agent)}</li>" for agent, look in looks.items() if agent in drawn)
    return f'<ul class="legend">{items}</ul>'


def _swatch(look: Look) -> str:
    named = {"-": "", "--": "6 3", "-.": "7 3 2 3", ":": "2 3"}
    dashes = named[look.dash] if isinstance(look.dash, str) else " ".join(str(2 * length) for length in look.dash[1])
    return (
        f'<svg aria-hidden="true" viewBox="0 0 34 10"><line x1="0" y1="5" x2="34" y2="5" stroke="{look.colour}" '
        f'stroke-width="3" stroke-dasharray="{dashes}"/></svg>'
    )


def _shipped(name: str) -> str:
    return (files("multihorizon.report") / "data" / name).read_text(encoding="utf-8")
