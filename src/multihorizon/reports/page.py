"""Writes a report to files: a self-contained HTML page, Markdown, figures as PNG and SVG, tables as CSV."""

import csv
import io
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from multihorizon import __version__
from multihorizon.files import atomically, writable_folder
from multihorizon.reports.escaping import escape_csv, escape_html, escape_markdown
from multihorizon.reports.figure_style import LineStyle, LineStyles, render_svg, save
from multihorizon.reports.sections import PageFigure, ReportContents, Section
from multihorizon.reports.tables import EMPTY, Cell, Table

PAGE = "index.html"
# An empty icon, so that browsers do not request one from the server.
ICON = '<link rel="icon" href="data:,">'
DASH_LENGTHS = {"-": "", "--": "6 3", "-.": "7 3 2 3", ":": "2 3"}


def write_report(report: ReportContents, folder: Path) -> list[Path]:
    """Writes all files of a report to a folder, and returns their paths, with the HTML page first."""
    writable_folder(folder)
    drawn = [figure for section in report.sections for figure in section.figures]
    tables = [table for section in report.sections for table in section.tables] + report.csv_tables
    figures = [save(one.figure, folder / f"{one.name}.{kind}", plain=True) for one in drawn for kind in ("png", "svg")]
    lists = [_write_text(folder / f"{table.name}.csv", render_csv(table)) for table in tables if table.rows]
    text = _write_text(folder / "report.md", render_markdown(report))
    others = [text, *figures, *lists]
    return [_write_text(folder / PAGE, render_html(report, [path.name for path in others])), *others]


def render_html(report: ReportContents, file_names: Sequence[str]) -> str:
    """Renders a report as one HTML page, with links to the other files."""
    contents = "".join(f'<li><a href="#{s.name}">{escape_html(s.title)}</a></li>' for s in report.sections)
    notes = "".join(f"<li>{escape_html(note)}</li>" for note in report.notes)
    links = ", ".join(f'<a href="{escape_html(name)}">{escape_html(name)}</a>' for name in file_names)
    return "\n".join(
        [
            "<!doctype html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{escape_html(report.title)}</title>{ICON}",
            f"<style>{_read_asset('page.css')}</style></head><body>",
            f"<header><h1>{escape_html(report.title)}</h1>",
            f"<p>{escape_html(report.about)}</p>" if report.about else "",
            f'<nav aria-label="Contents"><ul>{contents}</ul></nav>',
            f'<aside class="notes"><ul>{notes}</ul></aside>' if notes else "",
            "</header><main>",
            *(_render_section(section, report.styles) for section in report.sections),
            "</main>",
            f'<footer><h2>Files</h2><p class="files">{links}</p><p>Made by multihorizon {__version__}.</p></footer>',
            f"<script>{_read_asset('page.js')}</script></body></html>",
        ]
    )


def render_markdown(report: ReportContents) -> str:
    """Renders a report as Markdown, with links to its figures."""
    notes = "\n".join(f"- {escape_markdown(note)}" for note in report.notes)
    parts = [f"# {escape_markdown(report.title)}", escape_markdown(report.about), notes]
    for section in report.sections:
        parts += [f"## {escape_markdown(section.title)}", escape_markdown(section.about)]
        parts += [f"![{escape_markdown(one.alt, alternative=True)}]({one.name}.png)" for one in section.figures]
        parts += [render_markdown_table(table).strip() for table in section.tables]
    return "\n\n".join(part for part in parts if part) + "\n"


def render_csv(table: Table) -> str:
    """Renders a table as CSV, with numbers to six significant digits."""
    if table.csv_table:
        return render_csv(table.csv_table)
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([escape_csv(column) for column in table.full_columns])
    for row in table.rows:
        writer.writerow([_render_csv_cell(cell) for cell in row])
    return text.getvalue()


def render_markdown_table(table: Table) -> str:
    """Renders a table as Markdown."""

    def render_row(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    rows = [render_row([_render_markdown_cell(cell) for cell in row]) for row in table.rows]
    ruler = "|".join(["", "---", *("---:" for _ in table.columns[1:]), ""])
    head = render_row([escape_markdown(column) for column in table.full_columns])
    return "\n".join([head, ruler, *rows]) + "\n"


def render_html_table(table: Table) -> str:
    """Renders a table as HTML, with sort buttons."""
    over = "".join(f'<th colspan="{span}" scope="colgroup">{escape_html(name)}</th>' for name, span in table.groups)
    head = "".join(
        f'<th scope="col" aria-sort="none"><button type="button">{escape_html(column)}</button></th>'
        for column in table.columns
    )
    groups = f'<tr class="groups"><td></td>{over}</tr>' if over else ""
    rows = ["".join(_render_html_cell(cell, i == 0) for i, cell in enumerate(row)) for row in table.rows]
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    return (
        f'<div class="scroll" tabindex="0"><table class="sortable" id="table-{table.name}">'
        f"<thead>{groups}<tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _render_section(section: Section, styles: LineStyles) -> str:
    return "\n".join(
        [
            f'<section id="{section.name}"><h2>{escape_html(section.title)}</h2>',
            f"<p>{escape_html(section.about)}</p>",
            _render_legend(styles, section) if section.has_legend else "",
            *(_render_figures(figure) for figure in section.figures),
            *(render_html_table(table) for table in section.tables),
            "</section>",
        ]
    )


def _render_figures(drawn: PageFigure) -> str:
    if drawn.parts:
        return f'<div class="parts">{"".join(_render_figure(part) for part in drawn.parts)}</div>'
    return f'<div class="scroll wide" tabindex="0">{_render_figure(drawn)}</div>'


def _render_figure(drawn: PageFigure) -> str:
    svg = render_svg(drawn.figure, drawn.name).replace("<svg", f'<svg aria-label="{escape_html(drawn.alt)}"', 1)
    return f'<figure id="figure-{drawn.name}">{svg}</figure>'


def _render_legend(styles: LineStyles, section: Section) -> str:
    drawn = {str(line.get_label()) for one in section.figures for axes in one.figure.axes for line in axes.lines}
    shown = {agent: style for agent, style in styles.items() if agent in drawn}
    items = "".join(f"<li>{_render_swatch(style)}{escape_html(agent)}</li>" for agent, style in shown.items())
    return f'<ul class="legend">{items}</ul>'


def _render_swatch(style: LineStyle) -> str:
    dash = style.dash
    dashes = DASH_LENGTHS[dash] if isinstance(dash, str) else " ".join(str(2 * length) for length in dash[1])
    return (
        f'<svg aria-hidden="true" viewBox="0 0 34 10"><line x1="0" y1="5" x2="34" y2="5" stroke="{style.colour}" '
        f'stroke-width="3" stroke-dasharray="{dashes}"/></svg>'
    )


def _render_csv_cell(cell: Cell) -> str:
    if isinstance(cell.value, float):
        return f"{cell.value:.6g}"
    if cell is EMPTY:
        return ""
    return escape_csv(cell.text if cell.value is None else cell.value)


def _render_markdown_cell(cell: Cell) -> str:
    text = escape_markdown(cell.text)
    return f"**{text}**" if cell.bold else text


def _render_html_cell(cell: Cell, is_label: bool) -> str:
    key = "" if cell.value is None else f' data-value="{escape_html(str(cell.value))}"'
    if is_label:
        return f'<th scope="row"{key}><span>{escape_html(cell.text)}</span></th>'
    return f"<td{key}>{f'<b>{escape_html(cell.text)}</b>' if cell.bold else escape_html(cell.text)}</td>"


def _read_asset(name: str) -> str:
    return (files("multihorizon.reports") / "assets" / name).read_text(encoding="utf-8")


def _write_text(path: Path, text: str) -> Path:
    with atomically(path) as file:
        file.write_text(text, encoding="utf-8")
    return path
