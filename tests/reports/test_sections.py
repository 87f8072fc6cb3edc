"""A report has the sections that its runs allow."""

from pathlib import Path

import numpy as np
import pytest
from made_up_runs import learning, write_run, write_sweep

from multihorizon.cli import main
from multihorizon.reports.data import read_runs
from multihorizon.reports.page import write_report
from multihorizon.reports.sections import build_paper_report, build_report


def test_a_report_needs_only_one_seed_of_one_agent(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0]])
    made = build_report(read_runs(tmp_path, pytest.fail))
    write_report(made, tmp_path / "out")
    page = (tmp_path / "out/index.html").read_text()
    assert "Runs with a single seed have no bands and no intervals: rainbow." in page
    assert "no game with a human score was played by all agents" in page
    assert [section.name for section in made.sections] == ["aggregate", "discount", "learning", "scores", "runs"]
    assert not any(axes.collections for drawn in made.sections[2].figures for axes in drawn.figure.axes)


def test_several_pairs_in_one_environment_share_a_figure(tmp_path: Path) -> None:
    runs = []
    for position, agent in enumerate(("near", "far", "both")):
        run = {"label": agent, "environment": "foraging", "folder": agent, "seeds": 2, "wanted": None}
        runs.append(run)
        write_run(tmp_path / agent, agent, "foraging", [[1.0 * position], [2.0 * position]])
    write_sweep(tmp_path, runs, pairs=[["near", "both"], ["far", "both"]])
    made = build_report(read_runs(tmp_path, pytest.fail))
    (drawn,) = made.sections[0].figures
    assert drawn.name == "improvement"
    assert len(drawn.figure.axes[0].patches) == 1  # the other baseline scores 0, so there is no percentage
    assert any("from 0 to 3" in text.get_text() for text in drawn.figure.axes[0].texts)


def test_a_report_shows_all_games_of_the_papers_table(tmp_path: Path) -> None:
    made = build_paper_report()
    (bars,) = made.sections[0].figures
    (axes,) = bars.figure.axes
    heights = [patch.get_height() for patch in axes.patches]
    assert heights == sorted(heights)
    assert len(heights) == 60
    assert sum(height > 0 for height in heights) == 39
    assert axes.get_title() == "Multi-Rainbow over Rainbow: better in 39 of 60 with 3 ties"


@pytest.mark.parametrize("is_tied", [True, False])
def test_reports_warn_about_intervals_if_all_seeds_of_an_agent_tie(
    is_tied: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[4.0], [5.0], [5.0]])
    write_run(tmp_path / "b", "multi-rainbow", "foraging", [[5.0], [5.0], [5.0 if is_tied else 4.0]])
    made = build_report(read_runs(tmp_path, pytest.fail))
    assert main(["report", str(tmp_path)]) == 0
    (section,) = [section for section in made.sections if section.name == "probability"]
    (drawn,) = section.figures
    shown = [
        capsys.readouterr().err,
        *((tmp_path / "report" / name).read_text() for name in ("index.html", "report.md")),
        section.about,
        drawn.alt,
        drawn.figure.get_supxlabel(),
    ]
    for text in shown:
        assert ("All seeds of multi-rainbow have the same score" in " ".join(text.split())) == is_tied


@pytest.mark.parametrize(
    ("games", "seeds", "words"),
    [
        (["Pong"], 3, ["With 3 seeds in one environment", "at most 75% of cases"]),
        (["Pong"], 10, []),
        (["Pong", "Qbert"], 3, []),
    ],
)
def test_reports_warn_about_intervals_from_few_seeds_in_one_environment(
    games: list[str], seeds: int, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    for game in games:
        write_run(tmp_path / game, "rainbow", f"atari/{game}", learning(rng, 10, seeds, 6))
    made = build_report(read_runs(tmp_path, pytest.fail))
    figures = {drawn.name: drawn for section in made.sections for drawn in section.figures}
    assert main(["report", str(tmp_path)]) == 0
    shown = [
        capsys.readouterr().err,
        *((tmp_path / "report" / name).read_text() for name in ("index.html", "report.md")),
        *(drawn.alt for drawn in (figures["aggregates"], figures["profiles"])),
        *(figures[name].figure.get_supxlabel() for name in ("aggregates", "profiles")),
        *(section.about for section in made.sections if section.name in ("aggregate", "profile")),
    ]
    assert len(shown) == 9
    for text in shown:
        said = " ".join(text.split())
        assert all(word in said for word in words)
        assert ("in one environment" in said) == bool(words)
