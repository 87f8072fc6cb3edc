"""Tests the files of a report. A browser opens the page if Chromium is installed."""

import csv
import io
import re
from pathlib import Path

import pytest
from browser import CHROMIUM, Browser
from made_up_runs import REPORT_AGENTS, REPORT_GAMES, write_run

from multihorizon.reports.data import read_runs
from multihorizon.reports.page import render_csv, render_html_table, render_markdown_table, write_report
from multihorizon.reports.sections import ReportContents, build_report
from multihorizon.reports.tables import EMPTY, Cell, Table, format_number


@pytest.fixture(scope="module")
def written(made: ReportContents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(made, folder)
    return folder


def test_report_contains_all_files(written: Path) -> None:
    names = {path.name for path in written.iterdir()}
    figures = ("curves", "improvement-hyper-rainbow-over-rainbow", "ablation", "aggregates", "profiles", "discounts")
    for figure in (*figures, "probability-of-improvement"):
        assert {f"{figure}.png", f"{figure}.svg"} <= names
        assert (written / f"{figure}.png").read_bytes().startswith(b"\x89PNG")
    tables = ("scores", "aggregates", "scores-by-seed", "improvements", "learning-curves", "aggregate-intervals")
    assert {f"{table}.csv" for table in tables} <= names
    assert {"index.html", "report.md"} <= names
    text = (written / "report.md").read_text()
    for target in re.findall(r"\]\(([^)]+)\)", text):
        assert (written / target).is_file()


def test_page_states_what_is_excluded(written: Path, made: ReportContents) -> None:
    page = (written / "index.html").read_text()
    for said in (
        "Excluded for lack of a human score: atari/AirRaid.",
        "atari/Pong: compared over the first 4,000,000 frames, which is all that multi-c51 has.",
        "No scores yet: hyper-rainbow in atari/Alien.",
        "wanted: hyperbolic, k = 0.01",
        "The aggregates cover 2 games that all agents have played",
    ):
        assert said in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert len(re.findall(r'\bid="([^"]+)"', page)) == len(set(re.findall(r'\bid="([^"]+)"', page)))


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_every_csv_row_names_its_agents_or_environment(written: Path) -> None:
    pairs = rows_of(written / "probability-of-improvement.csv")
    columns = ["agent", "baseline", "statistic", "probability", "low", "high", "better", "ties", "environments"]
    assert list(pairs[0]) == columns
    assert [(row["agent"], row["baseline"]) for row in pairs[::2]] == [
        ("hyper-rainbow", "rainbow"),
        ("multi-c51", "c51"),
        ("multi-rainbow", "rainbow"),
    ]
    assert all(float(row["low"]) < float(row["probability"]) < float(row["high"]) for row in pairs)
    assert {row["environments"] for row in pairs} == {"3", "4"}
    discounts = rows_of(written / "discounts.csv")
    assert [row["agents"] for row in discounts] == ["c51, rainbow", "multi-c51, multi-rainbow", "hyper-rainbow"]
    for name in ("scores", "scores-by-seed", "improvements", "learning-curves"):
        assert {row["environment"] for row in rows_of(written / f"{name}.csv")} == {
            f"atari/{game}" for game in REPORT_GAMES
        }


def test_curves_are_listed_by_steps_and_frames(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0]])
    write_run(tmp_path / "b", "rainbow", "atari/Pong", [[1.0]])
    write_report(build_report(read_runs(tmp_path, pytest.fail)), tmp_path / "out")
    rows = rows_of(tmp_path / "out/learning-curves.csv")
    assert [(row["environment"], row["steps"], row["frames"]) for row in rows] == [
        ("foraging", "250000", ""),
        ("atari/Pong", "250000", "1000000"),
    ]


def test_a_table_is_rendered_as_csv_markdown_and_html() -> None:
    rows = [
        [Cell("a|b"), format_number(-1234.5678), EMPTY],
        [Cell("<c>"), format_number(0.5, bold=True), format_number(20_000.4)],
    ]
    table = Table("t", ["game", "x", "y"], rows, [("one", 1), ("two", 1)])
    assert list(csv.reader(io.StringIO(render_csv(table)))) == [
        ["game", "one, x", "two, y"],
        ["a|b", "-1234.57", ""],
        ["<c>", "0.5", "20000.4"],
    ]
    assert render_markdown_table(table).splitlines() == [
        "| game | one, x | two, y |",
        "|---|---:|---:|",
        "| a&#124;b | −1,234.6 | – |",
        "| &lt;c&gt; | **0.50** | 20,000 |",
    ]
    assert '<th scope="row"><span>&lt;c&gt;</span></th><td data-value="0.5"><b>0.50</b></td>' in render_html_table(
        table
    )


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.parametrize(("width", "height", "dark"), [(1280, 900, False), (390, 844, True)])
def test_the_page_works_in_a_browser(written: Path, width: int, height: int, dark: bool) -> None:
    with Browser(width, height, dark) as browser:
        browser.open(written / "index.html")
        assert browser.run("document.documentElement.scrollWidth") <= width  # the page itself does not scroll sideways
        clipped = "[...document.querySelectorAll('tbody th')].filter(h => h.scrollWidth > h.clientWidth).length"
        assert browser.run(clipped) == 0
        drawn = "document.querySelector('#figure-probability-of-improvement svg')"
        assert browser.run(f"{drawn}.getBoundingClientRect().right") <= width  # the whole figure is visible
        sizes = browser.run(
            "[...document.querySelectorAll('figure svg')].map(s => [s.getBBox().width, s.clientWidth, s.clientHeight])"
        )
        assert len(sizes) == 10
        assert all(drawn > 0 and across > 250 and down > 80 for drawn, across, down in sizes)
        paper, ink = browser.run(
            "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]"
        )
        assert (int(re.findall(r"\d+", paper)[0]) < int(re.findall(r"\d+", ink)[0])) is dark

        def sorted_by(column: int) -> list[str]:
            heads = f"document.querySelectorAll('#table-scores thead tr:last-child th')[{column}]"
            browser.run(f"{heads}.querySelector('button').click()")
            assert browser.run(f"{heads}.getAttribute('aria-sort')") in ("ascending", "descending")
            cells = f"[...document.querySelectorAll('#table-scores tbody tr')].map(r => r.cells[{column}].textContent)"
            return list(browser.run(cells))

        falling = [float(text.replace(",", "")) for text in sorted_by(1)]
        assert falling == sorted(falling, reverse=True)
        assert [float(text.replace(",", "")) for text in sorted_by(1)] == falling[::-1]
        assert sorted_by(0) == sorted(REPORT_GAMES)
        hyper = 1 + 2 * REPORT_AGENTS.index("hyper-rainbow")
        assert sorted_by(hyper)[-1] == sorted_by(hyper)[-1] == "–"  # missing values stay last
        assert browser.errors == []
        assert browser.requests == [(written / "index.html").resolve().as_uri()]
