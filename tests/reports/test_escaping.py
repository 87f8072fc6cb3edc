"""Names from run folders cannot become markup, formulas or control sequences in any file of a report."""

import csv
import html
import json
import re
import unicodedata
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up_runs import write_run, write_sweep
from markdown_it import MarkdownIt

from multihorizon.reports.data import read_runs
from multihorizon.reports.escaping import (
    escape_csv,
    escape_html,
    escape_json,
    escape_markdown,
    replace_controls,
)
from multihorizon.reports.page import write_report
from multihorizon.reports.sections import build_report

EVIL = (
    "<script>alert(1)</script>",
    "a|b\n# head",
    "=HYPERLINK(1)",
    "bell\x07 \x1b[31mred\x00",
    "[x](javascript:y) `c` $\\frac$ 5",
    "\u202eright to left",
)


def test_control_characters_are_replaced() -> None:
    assert replace_controls("a\tb\r\nc  d") == "a b c d"
    assert replace_controls("\x1b[31m\x00\x7f\u202e") == "�[31m���"
    assert replace_controls("space_invaders, γ = 0.99 – ½") == "space_invaders, γ = 0.99 – ½"


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("<b>&'\"", "&lt;b&gt;&amp;'&quot;"),
        ("a|b", "a&#124;b"),
        ("[x](y)", "&#91;x&#93;(y)"),
        ("space_invaders, γ=0.9", "space&#95;invaders, γ=0.9"),
        ("hyper-dqn: 1.5 (2 to 3)", "hyper-dqn: 1.5 (2 to 3)"),
        ("@org", "&#64;<!-- -->org"),
    ],
)
def test_special_characters_of_markdown_are_escaped(text: str, escaped: str) -> None:
    assert escape_markdown(text) == escaped


ACTIVE = [
    *("_em_", "__b__", "**b**", "~~s~~", "- list", "+ list", "* list", "1. list", "2) list", "> quote", "# head"),
    *("`code`", "[x](y)", "![x](y)", "<b>", "<https://x.example>", "a\\*b", "&amp;", "|a|", "---", "===", "$$x$$"),
    *("www.x.example", "http://x.example", "me@x.example", "@org", "#1", ":smile:", "[^1]", "{{x}}"),
]


@pytest.mark.parametrize("text", ACTIVE)
@pytest.mark.parametrize("place", ["{}", "a {}", "| a |\n|---|\n| {} |", "## {}", "- {}"])
def test_markdown_shows_names_as_text(text: str, place: str) -> None:
    """A Markdown parser finds only text and empty comments. GitHub finds no links and no emojis in the text."""
    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"])
    plain, written = (parser.parse(place.format(word)) for word in ("x", escape_markdown(text)))
    assert [token.type for token in plain] == [token.type for token in written]
    parts = [part for token in written if token.type == "inline" for part in token.children or []]
    assert {part.type for part in parts} <= {"text", "text_special", "html_inline"}
    assert {part.content for part in parts if part.type == "html_inline"} <= {"<!-- -->"}
    shown = html.unescape(escape_markdown(text)).split("<!-- -->")
    assert "".join(shown) == text
    assert not any(re.search(r"www\.|://|[@#]\w|:\w+:", part) for part in shown)


def test_escaped_alternative_text_has_no_comments() -> None:
    assert escape_markdown("me@x.example", alternative=True) == "me&#64;x.example"


@given(st.text())
@pytest.mark.parametrize("escape", [escape_html, escape_markdown])
def test_an_html_parser_reads_escaped_text_unchanged(escape: Callable[[str], str], text: str) -> None:
    escaped = escape(text)
    assert not set(escaped.replace("<!-- -->", "")) & set('<>"\n\r\x00\x1b')
    shown: list[str] = []

    class Reader(HTMLParser):
        def handle_data(self, data: str) -> None:
            shown.append(data)

        def handle_starttag(self, tag: str, attrs: object) -> None:
            pytest.fail(tag)

    reader = Reader(convert_charrefs=True)
    reader.feed(escaped)
    reader.close()
    assert "".join(shown) == replace_controls(text)


@given(st.text())
def test_json_has_no_control_characters(text: str) -> None:
    """JSON itself allows some control characters, such as U+009B and U+202E."""
    for value in (text, f"{text}\x9b\u202e\U000e0001"):
        written = escape_json(json.dumps({value: [value]}, indent=2, ensure_ascii=False))
        assert json.loads(written) == {value: [value]}
        assert all(c == "\n" or unicodedata.category(c) not in ("Cc", "Cf", "Cs") for c in written)


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_csv_cells_that_look_like_formulas_are_quoted(start: str) -> None:
    assert escape_csv(f"{start}1+1") == f"'{start}1+1"
    assert escape_csv(f"\t{start}1+1") == f"'{start}1+1"
    assert escape_csv(f"a{start}1") == f"a{start}1"


@pytest.fixture(scope="module")
def evil_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report whose title, agents and environments have names with markup, formulas and control characters."""
    folder = tmp_path_factory.mktemp("evil")
    runs = []
    for number, label in enumerate(EVIL):
        for environment in ("foraging", "<i>world</i>|=1"):
            place = f"{number}-{len(environment)}"
            runs.append({"label": label, "environment": environment, "folder": place, "seeds": 2, "wanted": None})
            write_run(folder / place, label, environment, [[-1.0 * number, -2.0], [1.0, -3.0]])
    wanted = {"name": EVIL[0], "times": [1, 10], "values": [0.9, 0.5]}
    runs[0]["wanted"] = wanted
    write_sweep(folder, runs, title=EVIL[0], about=EVIL[1], pairs=[[EVIL[0], EVIL[1]], [EVIL[0], EVIL[4]]])
    write_report(build_report(read_runs(folder, pytest.fail)), folder / "report")
    return folder / "report"


def test_no_name_becomes_markup_in_a_report(evil_report: Path) -> None:
    page, markdown = (evil_report / name for name in ("index.html", "report.md"))
    assert page.read_text().count("<script") == 1  # the script that sorts tables
    for text in (page.read_text(), markdown.read_text()):
        assert "<i>" not in text
        assert "alert(1)" in text
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f\u202e]", text)
    assert "<script" not in markdown.read_text()
    assert "](javascript" not in markdown.read_text()
    for table in re.split(r"\n\n", markdown.read_text()):
        if table.startswith("| "):
            assert len({line.count("|") for line in table.strip().splitlines()}) == 1
    headings = [line for line in markdown.read_text().splitlines() if line.startswith("#")]
    assert headings[0] == "# &lt;script&gt;alert(1)&lt;/script&gt;"
    assert not any("head" in line for line in headings)


def test_no_name_becomes_a_formula_in_a_csv_file(evil_report: Path) -> None:
    texts = set()
    for path in evil_report.glob("*.csv"):
        with path.open(encoding="utf-8", newline="") as file:
            for row in csv.reader(file):
                for cell in row:
                    texts.add(cell)
                    assert not cell.startswith(("=", "+", "@"))
                    if cell.startswith("-"):
                        float(cell)
    assert "'=HYPERLINK(1)" in texts
    assert any(text.startswith("-") for text in texts)  # negative numbers are not quoted


def test_figures_show_names_literally(evil_report: Path) -> None:
    for path in evil_report.glob("*.svg"):
        ElementTree.parse(path)  # well-formed
    figures = re.findall(r"<figure.*?</figure>", (evil_report / "index.html").read_text(), re.S)
    assert figures
    assert any(r"$\frac$ 5" in figure for figure in figures)
