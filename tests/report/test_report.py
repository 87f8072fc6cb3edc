"""A whole report: its figures, tables and page, the last in a real browser where there is one."""

import csv
import io
import json
import re
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from browser import CHROMIUM, Browser
from made_up_runs import hyperbolic, learning, write_run, write_sweep

from multihorizon.report.bars import panels
from multihorizon.report.baselines import read_dopamine
from multihorizon.report.comparison import Change, Pair
from multihorizon.report.contents import Report, paper_report, report
from multihorizon.report.curves import one_curve
from multihorizon.report.intervals import telling_time
from multihorizon.report.looks import as_svg, looks, short_names
from multihorizon.report.runs import Discounted, read_experiment
from multihorizon.report.scores import Statistic
from multihorizon.report.statistics import Estimate
from multihorizon.report.style import save
from multihorizon.report.tables import EMPTY, Cell, Table, number
from multihorizon.report.writing import write_report

GAMES = ("Pong", "Qbert", "AirRaid", "Alien")
AGENTS = ("c51", "multi-c51", "rainbow", "multi-rainbow", "hyper-rainbow")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Five agents in four games, three seeds each; one is half-way and one has not begun."""
    folder, rng = tmp_path_factory.mktemp("sweep"), np.random.default_rng(0)
    runs = []
    for game in GAMES:
        for position, agent in enumerate(AGENTS):
            place = f"{game}/{agent}"
            wanted = hyperbolic() if agent.startswith("hyper") else None
            run = {"label": agent, "environment": f"atari/{game}", "folder": place, "seeds": 3, "wanted": wanted}
            runs.append(run)
            if place != "Alien/hyper-rainbow":
                done = 4 if place == "Pong/multi-c51" else 8
                curves = learning(rng, 100 + 10 * position, 3, 8)[:, :done]
                gamma = 0.98917 if "-" in agent else 0.99
                write_run(folder / place, agent, f"atari/{game}", curves, iterations=8, finished=done == 8, gamma=gamma)
    panels = [["c51", "multi-c51"], ["rainbow", "multi-rainbow"]]
    write_sweep(folder, runs, pairs=[["rainbow", "hyper-rainbow"], *panels], panels=panels)
    curves = np.tile(np.linspace(0, 90, 8), (1, len(GAMES), 5, 1))
    games = np.array([game.lower() for game in GAMES])
    np.savez(folder / "d.npz", legacy_scores=curves, legacy_agents=np.array(["Rainbow"]), games=games)
    experiment = read_experiment(folder, pytest.fail)
    return report(experiment, read_dopamine(folder / "d.npz"))


@pytest.fixture(scope="module")
def written(made: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    write_report(made, folder)
    return folder


def test_all_that_was_asked_for_is_there(written: Path) -> None:
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


def test_the_page_says_what_is_left_out(written: Path, made: Report) -> None:
    page = (written / "index.html").read_text()
    for said in (
        "Left out for want of a human score: atari/AirRaid.",
        "atari/Pong: compared over the first 4,000,000 frames, as far as multi-c51 has come.",
        "No scores yet: hyper-rainbow in atari/Alien.",
        "asked for: hyperbolic, k = 0.01",
        "Over 2 games that all agents have played",
    ):
        assert said in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "https://" not in page
    assert len(re.findall(r'\bid="([^"]+)"', page)) == len(set(re.findall(r'\bid="([^"]+)"', page)))


def test_every_figure_is_labelled_and_the_callers_settings_are_left_alone(made: Report) -> None:
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


def test_panels_have_room_for_every_bar() -> None:
    """The panels share their axis: the first has the tall bars, and the last must not undo its limits."""

    def pair(name: str, *percents: float) -> Pair:
        changes = [Change(f"atari/{i}", 100.0, 100.0 + percent) for i, percent in enumerate(percents)]
        return Pair("base", name, Statistic.BEST, changes, Estimate(0.5))

    figure = panels([pair("a", 2_000.0, 30.0), pair("b", -95.0, 12.0), pair("c", 3.0, -1.0)])
    for axes in figure.axes[:3]:
        low, high = axes.get_ylim()
        assert all(low < patch.get_height() < high for patch in axes.patches)
        ticks = axes.get_yticks()
        assert (min(ticks), max(ticks)) == (-1000, 1000)
    assert sum(len(axes.patches) for axes in figure.axes) == 6


def test_bands_hold_all_seeds(made: Report) -> None:
    (curves,) = [drawn for section in made.sections for drawn in section.figures if drawn.name == "curves"]
    assert len(curves.parts) == len(GAMES)
    for axes in curves.figure.axes:
        assert len(axes.collections) == len(axes.lines) >= 4  # a band for each line


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_lists_say_what_each_row_is_about(written: Path) -> None:
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
        assert {row["environment"] for row in rows_of(written / f"{name}.csv")} == {f"atari/{game}" for game in GAMES}


def test_curves_are_listed_by_steps_and_by_frames_where_there_are_any(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0]])
    write_run(tmp_path / "b", "rainbow", "atari/Pong", [[1.0]])
    write_report(report(read_experiment(tmp_path, pytest.fail)), tmp_path / "out")
    rows = rows_of(tmp_path / "out/learning-curves.csv")
    assert [(row["environment"], row["steps"], row["frames"]) for row in rows] == [
        ("foraging", "250000", ""),
        ("atari/Pong", "250000", "1000000"),
    ]


def test_a_family_is_left_out_of_names_where_several_share_it() -> None:
    assert short_names(["atari/Pong", "atari/Qbert"]) == {"atari/Pong": "Pong", "atari/Qbert": "Qbert"}
    assert short_names(["foraging/hazard"]) == {"foraging/hazard": "foraging/hazard"}
    assert short_names(["atari/Pong", "foraging"]) == {"atari/Pong": "atari/Pong", "foraging": "foraging"}


def test_the_best_of_each_row_is_bold(made: Report) -> None:
    (table,) = [table for section in made.sections for table in section.tables if table.name == "scores"]
    compared = [i for i, name in enumerate(table.full_columns) if i and not name.startswith("paper's")]
    for statistic in ("best", "last 5"):
        places = [i for i in compared if table.columns[i] == statistic]
        for row in table.rows:
            values = {i: row[i].value for i in places if isinstance(row[i].value, float)}
            assert [i for i in places if row[i].bold] == [max(values, key=lambda i: values[i])]


def test_a_figure_drawn_twice_is_the_same(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])
    runs = read_experiment(tmp_path, pytest.fail).runs
    look = looks(["rainbow"], [])
    once, again = (as_svg(one_curve("foraging", runs, None, look), "same") for _ in range(2))
    assert once == again
    assert "currentColor" in once
    assert "#000000" not in once


def test_a_figure_saved_twice_is_the_same(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0, 3.0, 2.0]])
    runs = read_experiment(tmp_path, pytest.fail).runs
    for ending in ("svg", "png"):
        once, again = (
            save(one_curve("foraging", runs, None, looks(["rainbow"], [])), tmp_path / folder / f"curves.{ending}")
            for folder in ("once", "again")
        )
        assert once.read_bytes() == again.read_bytes()


def test_with_many_agents_those_that_are_compared_share_a_colour() -> None:
    pairs = [(base, f"multi-{base}") for base in "abcd"]
    agents = [agent for pair in pairs for agent in pair]
    look = looks(agents, [], pairs)
    assert list(look) == agents
    for base, multi in pairs:
        assert look[base].colour == look[multi].colour
        assert (look[base].dash, look[multi].dash) == ("--", "-")
    assert len({one.colour for one in look.values()}) == 4
    assert len({(one.colour, one.dash) for one in looks(agents, [], pairs[:3]).values()}) == 8
    assert len({one.colour for one in looks(agents[:4], [], pairs[:2]).values()}) == 4


def test_an_agent_that_acted_by_two_discounts_has_both(tmp_path: Path) -> None:
    for environment, gamma in (("foraging", 0.9), ("minatar/breakout", 0.99), ("minatar/asterix", 0.99)):
        folder = tmp_path / environment.replace("/", "-")
        write_run(folder, "rainbow", environment, [[1.0, 2.0]])
        path = folder / "metrics.jsonl"
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        held = [json.dumps(line | {"discount": {str(t): gamma**t for t in (1, 10, 100)}}) for line in lines]
        path.write_text("\n".join(held) + "\n")
    groups = {tuple(g.environments): g.acted_by.values[-1] for g in read_experiment(tmp_path, pytest.fail).acting()}
    assert groups == {("foraging",): 0.9**100, ("minatar/asterix", "minatar/breakout"): 0.99**100}


def test_one_seed_of_one_agent_is_enough(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0]])
    made = report(read_experiment(tmp_path, pytest.fail))
    write_report(made, tmp_path / "out")
    page = (tmp_path / "out/index.html").read_text()
    assert "With a single seed there are no bands and no intervals: rainbow." in page
    assert "No environment that all agents have played has a human score" in page
    assert [section.name for section in made.sections] == ["aggregate", "discount", "learning", "scores", "runs"]
    assert not any(axes.collections for drawn in made.sections[2].figures for axes in drawn.figure.axes)


def test_several_pairs_in_one_environment_share_a_figure(tmp_path: Path) -> None:
    runs = []
    for position, agent in enumerate(("near", "far", "both")):
        run = {"label": agent, "environment": "foraging", "folder": agent, "seeds": 2, "wanted": None}
        runs.append(run)
        write_run(tmp_path / agent, agent, "foraging", [[1.0 * position], [2.0 * position]])
    write_sweep(tmp_path, runs, pairs=[["near", "both"], ["far", "both"]])
    made = report(read_experiment(tmp_path, pytest.fail))
    (drawn,) = made.sections[0].figures
    assert drawn.name == "improvement"
    assert len(drawn.figure.axes[0].patches) == 1  # the other baseline earns 0
    assert any("from 0 to 3" in text.get_text() for text in drawn.figure.axes[0].texts)


def test_a_table_in_three_ways() -> None:
    rows = [[Cell("a|b"), number(-1234.5678), EMPTY], [Cell("<c>"), number(0.5, bold=True), number(20_000.4)]]
    table = Table("t", ["game", "x", "y"], rows, [("one", 1), ("two", 1)])
    assert list(csv.reader(io.StringIO(table.csv()))) == [
        ["game", "one, x", "two, y"],
        ["a|b", "-1234.57", ""],
        ["<c>", "0.5", "20000.4"],
    ]
    assert table.markdown().splitlines() == [
        "| game | one, x | two, y |",
        "|---|---:|---:|",
        "| a\\|b | −1,234.6 | – |",
        "| <c> | **0.50** | 20,000 |",
    ]
    assert '<th scope="row"><span>&lt;c&gt;</span></th><td data-value="0.5"><b>0.50</b></td>' in table.html()


@pytest.mark.skipif(CHROMIUM is None, reason="there is no Chromium")
@pytest.mark.parametrize(("width", "height", "dark"), [(1280, 900, False), (390, 844, True)])
def test_the_page_in_a_browser(written: Path, width: int, height: int, dark: bool) -> None:
    with Browser(width, height, dark) as browser:
        browser.open(written / "index.html")
        assert browser.run("document.documentElement.scrollWidth") <= width  # only tables and wide figures scroll
        clipped = "[...document.querySelectorAll('tbody th')].filter(h => h.scrollWidth > h.clientWidth).length"
        assert browser.run(clipped) == 0
        drawn = "document.querySelector('#figure-probability-of-improvement svg')"
        assert browser.run(f"{drawn}.getBoundingClientRect().right") <= width  # all of it in sight
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
        assert sorted_by(0) == sorted(GAMES)
        hyper = 1 + 2 * AGENTS.index("hyper-rainbow")
        assert sorted_by(hyper)[-1] == sorted_by(hyper)[-1] == "–"  # what is missing stays last
        assert browser.errors == []
        assert browser.requests == [(written / "index.html").resolve().as_uri()]


def test_the_papers_table_is_a_report_too(tmp_path: Path) -> None:
    made = paper_report()
    (bars,) = made.sections[0].figures
    (axes,) = bars.figure.axes
    heights = [patch.get_height() for patch in axes.patches]
    assert heights == sorted(heights)
    assert len(heights) == 60
    assert sum(height > 0 for height in heights) == 39
    assert axes.get_title() == "Multi-Rainbow over Rainbow: better in 39 of 60 with 3 ties"


def test_discounts_are_named_where_they_differ_most() -> None:
    times = (1.0, 10.0, 100.0, 1000.0)
    acted = Discounted("acted by", times, (0.98, 0.84, 0.27, 0.0))
    wanted = Discounted("wanted", (1.0, 9.0, 11.0, 100.0, 1000.0), (0.99, 0.92, 0.9, 0.5, 0.09))
    assert telling_time(acted, wanted) == 100
    assert telling_time(acted, Discounted("near", times, (0.98, 0.94, 0.27, 0.0))) == 10
    assert telling_time(acted, acted) == telling_time(acted, None) == 100
