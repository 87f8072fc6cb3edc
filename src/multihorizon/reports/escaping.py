"""Shows names from run folders as plain text, in the terminal, in figures, and in Markdown, HTML and CSV.

`names.py` and `data.py` call `replace_controls` on every name that they read. `page.py` escapes each text exactly once.
`show_controls` and `escape_json` are for the terminal.
"""

import re
import unicodedata

from multihorizon.errors import CONTROLS, show_controls

__all__ = ["escape_csv", "escape_html", "escape_json", "escape_markdown", "replace_controls", "show_controls"]


def _references(characters: str) -> dict[int, str]:
    return str.maketrans({c: f"&#{ord(c)};" for c in characters})


_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
# A character reference cannot begin a tag, a link, emphasis, code or a table cell: Markdown shows it as text.
_MARKDOWN = _HTML | _references("|[]*_`~#\\$^{}!@")
_LINE_START = re.compile(r"^(?:[-+=]|\d+(?=[.)](?:\s|$)))")  # begins a list, a rule or a heading
# GitHub decodes references before it links addresses, users and issues, and before it shows :name: as an emoji.
# `escape_markdown` prevents links and emojis by an empty comment after each match.
_LINK = re.compile(r"&#(?:35|64);|:(?=\S)|www(?=\.)", re.IGNORECASE)
_FORMULA_STARTS = ("=", "+", "-", "@")  # the first characters of a formula in a spreadsheet


def replace_controls(text: str) -> str:
    """Returns the text on one line: white space becomes single spaces, and other control characters become �.

    Control characters include formatting characters, such as right-to-left marks, and unpaired surrogates.
    """
    return show_controls(" ".join(text.split()))


def escape_html(text: str) -> str:
    """Escapes the text so that HTML shows it literally, even in a double-quoted attribute."""
    return replace_controls(text).translate(_HTML)


def escape_markdown(text: str, alternative: bool = False) -> str:
    """Escapes the text so that Markdown shows it literally and without links.

    Set `alternative` if the text is the alternative text of a picture. Markdown creates no links in such a text.
    """
    escaped = replace_controls(text).translate(_MARKDOWN)
    escaped = _LINE_START.sub(lambda start: "".join(f"&#{ord(c)};" for c in start[0]), escaped)
    return escaped if alternative else _LINK.sub(r"\g<0><!-- -->", escaped)


def escape_csv(text: str) -> str:
    """Returns the text of a CSV cell. An apostrophe precedes text that a spreadsheet would read as a formula."""
    line = replace_controls(text)
    return f"'{line}" if line.startswith(_FORMULA_STARTS) else line


def escape_json(text: str) -> str:
    r"""Replaces control characters in JSON by \u escapes, which programs read as the same characters."""

    def escape(c: str) -> str:
        if c == "\n" or unicodedata.category(c) not in CONTROLS:
            return c
        units = c.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))

    return "".join(map(escape, text))
