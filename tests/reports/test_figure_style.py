"""Agents keep their style, names are short where possible, and drawing a figure again gives the same bytes."""

from pathlib import Path

import pytest
from made_up_runs import write_run

from multihorizon.reports.data import read_runs
from multihorizon.reports.figure_style import choose_line_styles, render_svg, save, shorten_names
from multihorizon.reports.figures import draw_curve


def test_shared_family_is_left_out_of_names() -> None:
    assert shorten_names(["atari/Pong", "atari/Qbert"]) == {"atari/Pong": "Pong", "atari/Qbert": "Qbert"}
    assert shorten_names(["foraging/hazard"]) == {"foraging/hazard": "foraging/hazard"}
    assert shorten_names(["atari/Pong", "foraging"]) == {"atari/Pong": "atari/Pong", "foraging": "foraging"}


def test_a_figure_drawn_twice_is_the_same(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])
    runs = read_runs(tmp_path, pytest.fail).runs
    look = choose_line_styles(["rainbow"], [])
    once, again = (render_svg(draw_curve("foraging", runs, None, look), "same") for _ in range(2))
    assert once == again
    assert "currentColor" in once
    assert "#000000" not in once


def test_a_figure_saved_twice_is_the_same(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0, 3.0, 2.0]])
    runs = read_runs(tmp_path, pytest.fail).runs
    for ending in ("svg", "png"):
        once, again = (
            save(
                draw_curve("foraging", runs, None, choose_line_styles(["rainbow"], [])),
                tmp_path / folder / f"curves.{ending}",
            )
            for folder in ("once", "again")
        )
        assert once.read_bytes() == again.read_bytes()


def test_compared_agents_share_a_colour_when_there_are_many() -> None:
    pairs = [(base, f"multi-{base}") for base in "abcd"]
    agents = [agent for pair in pairs for agent in pair]
    look = choose_line_styles(agents, [], pairs)
    assert list(look) == agents
    for base, multi in pairs:
        assert look[base].colour == look[multi].colour
        assert (look[base].dash, look[multi].dash) == ("--", "-")
    assert len({one.colour for one in look.values()}) == 4
    assert len({(one.colour, one.dash) for one in choose_line_styles(agents, [], pairs[:3]).values()}) == 8
    assert len({one.colour for one in choose_line_styles(agents[:4], [], pairs[:2]).values()}) == 4


@pytest.mark.parametrize("count", [1, 4, 6, 20])
def test_lines_that_coincide_are_visible(count: int) -> None:
    """No two of the first six agents share a colour or a dash pattern. No two of all agents share both."""
    styles = list(choose_line_styles([f"agent {i}" for i in range(count)], []).values())
    assert len({(style.colour, style.dash) for style in styles}) == count
    assert len({style.colour for style in styles[:6]}) == min(count, 6)
    assert len({style.dash for style in styles[:6]}) == min(count, 6)
