"""A report as files: one page, figures as PNG and SVG, tables as CSV, and all of it in Markdown."""

from pathlib import Path

from multihorizon.files import atomically, writable_folder
from multihorizon.report.contents import Report
from multihorizon.report.page import page
from multihorizon.report.style import save

PAGE = "index.html"


def write_report(report: Report, folder: Path) -> list[Path]:
    """The page comes first."""
    writable_folder(folder)
    drawn = [figure for section in report.sections for figure in section.figures]
    tables = [table for section in report.sections for table in section.tables] + report.data
    figures = [save(one.figure, folder / f"{one.name}.{kind}") for one in drawn for kind in ("png", "svg")]
    lists = [_write(folder / f"{table.name}.csv", table.csv()) for table in tables if table.rows]
    text = _write(folder / "report.md", markdown(report))
    others = [text, *figures, *lists]
    return [_write(folder / PAGE, page(report, [path.name for path in others])), *others]


def markdown(report: Report) -> str:
    parts = [f"# {report.title}", report.about, "\n".join(f"- {note}" for note in report.notes)]
    for section in report.sections:
        parts += [f"## {section.title}", section.about]
        parts += [f"![{one.alt}]({one.name}.png)" for one in section.figures]
        parts += [table.markdown().strip() for table in section.tables]
    return "\n\n".join(part for part in parts if part) + "\n"


def _write(path: Path, text: str) -> Path:
    with atomically(path) as file:
        file.write_text(text, encoding="utf-8")
    return path
