"""Agents keep their style, names are short if possible, and figures are reproducible."""

import re
from pathlib import Path
from xml.etree import ElementTree

import matplotlib
import pytest
from made_up_runs import write_run

from multihorizon.reports.data import read_runs
from multihorizon.reports.escaping import replace_controls
from multihorizon.reports.figure_style import canvas, choose_line_styles, render_svg, save, shorten_names, styled_plain
from multihorizon.reports.figures import draw_curve
from multihorizon.reports.plotting import Figure


def test_names_of_environments_omit_the_family_if_it_is_the_same_for_all() -> None:
    assert shorten_names(["atari/Pong", "atari/Qbert"]) == {"atari/Pong": "Pong", "atari/Qbert": "Qbert"}
    assert shorten_names(["foraging/hazard"]) == {"foraging/hazard": "foraging/hazard"}
    assert shorten_names(["atari/Pong", "foraging"]) == {"atari/Pong": "atari/Pong", "foraging": "foraging"}


def test_drawing_a_figure_twice_gives_the_same_svg(tmp_path: Path) -> None:
    write_run(tmp_path / "a", "rainbow", "foraging", [[1.0, 3.0, 2.0], [1.0, 2.0, 3.0]])
    runs = read_runs(tmp_path, pytest.fail).runs
    look = choose_line_styles(["rainbow"], [])
    once, again = (render_svg(draw_curve("foraging", runs, None, look), "same") for _ in range(2))
    assert once == again
    assert "currentColor" in once
    assert "#000000" not in once


@styled_plain
def draw_text(text: str) -> Figure:
    figure, (axes,) = canvas(4, 3)
    axes.plot([0, 1], label="a line", color="#000000")
    axes.set_title(text)
    return figure


@pytest.mark.parametrize("name", ["#000000", 'id="q url(#z', 'href="#z', "<metadata>", "#e6e6e6 & $x$ --> </text>"])
def test_svg_shows_names_literally(name: str) -> None:
    root = ElementTree.fromstring(render_svg(draw_text(name), "one"))
    texts = {"".join(element.itertext()) for element in root.iter("{http://www.w3.org/2000/svg}text")}
    assert name in texts
    ids = {element.get("id") for element in root.iter()} - {None}
    values = [value for element in root.iter() for key, value in element.items() if key != "aria-label"]
    targets = {target for value in values for target in re.findall(r"^#(.+)|url\(#(.+?)\)", value)}
    assert all(one and one.startswith("one-") for one in ids)
    assert targets
    assert {a or b for a, b in targets} <= ids
    assert any("currentColor" in value for value in values)


def test_matplotlib_settings_of_the_user_do_not_change_figures(tmp_path: Path) -> None:
    once = save(draw_text("x"), tmp_path / "once/a.svg", plain=True).read_bytes()
    with matplotlib.rc_context({"lines.markersize": 30, "lines.marker": "o", "text.usetex": True}):
        again = save(draw_text("x"), tmp_path / "again/a.svg", plain=True).read_bytes()
    assert once == again


def test_saving_a_figure_twice_gives_the_same_bytes(tmp_path: Path) -> None:
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


def test_paired_agents_share_a_colour_if_there_are_many_agents() -> None:
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
def test_agents_have_different_line_styles(count: int) -> None:
    """The first six agents differ in both colour and dashes. All agents differ in at least one of the two."""
    styles = list(choose_line_styles([f"agent {i}" for i in range(count)], []).values())
    assert len({(style.colour, style.dash) for style in styles}) == count
    assert len({style.colour for style in styles[:6]}) == min(count, 6)
    assert len({style.dash for style in styles[:6]}) == min(count, 6)


def test_names_with_characters_that_xml_forbids_can_be_drawn() -> None:
    figure, (axes,) = canvas(2, 2)
    axes.set_title(replace_controls("dqn\ufffe\uffff"))
    assert "<svg" in render_svg(figure, "names")
