"""Makes names from run folders safe to show: they are plain text in the terminal, figures, Markdown, HTML and CSV.

`names.py` and `data.py` call `replace_controls` on every name that is read; `page.py` calls `escape_html`,
`escape_markdown` or `escape_csv` once on every text that it writes. `show_controls` is for the terminal, and
`escape_json` for JSON there.
"""

import re
import unicodedata

from multihorizon.errors import CONTROLS, show_controls

__all__ = ["escape_csv", "escape_html", "escape_json", "escape_markdown", "replace_controls", "show_controls"]


def _references(characters: str) -> dict[int, str]:
    return str.maketrans({c: f"&#{ord(c)};" for c in characters})


_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"})
# A character reference in Markdown is text: it cannot begin a tag, a link, emphasis, code, mathematics or a table cell.
_MARKDOWN = _HTML | _references("|[]*_`~#\\$^{}!@")
_LINE_START = re.compile(r"^(?:[-+=]|\d+(?=[.)](?:\s|$)))")  # begins a list, a rule or a heading
# After GitHub has decoded these references, it still links addresses, users and issues, and shows :name: as an emoji.
_LINK = re.compile(r"&#(?:35|64);|:(?=\S)|www(?=\.)", re.IGNORECASE)
_FORMULA_STARTS = ("=", "+", "-", "@")  # spreadsheet programs read a cell that starts with one as a formula


def replace_controls(text: str) -> str:
    """Returns the text on one line: white space becomes single spaces, other control characters become �.

    Formatting characters, such as those that reverse the direction of text, and unpaired surrogates count as control
    characters.
    """
    return show_controls(" ".join(text.split()))


def escape_html(text: str) -> str:
    """Escapes the text so that HTML shows it literally, also inside a double-quoted attribute."""
    return replace_controls(text).translate(_HTML)


def escape_markdown(text: str, alternative: bool = False) -> str:
    """Escapes the text so that Markdown shows it literally, and does not link any of it.

    Args:
        text: The text.
        alternative: Whether it is the alternative text of a picture, where nothing is linked.
    """
    escaped = replace_controls(text).translate(_MARKDOWN)
    escaped = _LINE_START.sub(lambda start: "".join(f"&#{ord(c)};" for c in start[0]), escaped)
    return escaped if alternative else _LINK.sub(r"\g<0><!-- -->", escaped)


def escape_csv(text: str) -> str:
    """Returns the text of a CSV cell. An apostrophe precedes text that a spreadsheet would read as a formula."""
    line = replace_controls(text)
    return f"'{line}" if line.startswith(_FORMULA_STARTS) else line


def escape_json(text: str) -> str:
    r"""Returns JSON with \u escapes in place of control characters. Programs read the same values from it."""

    def escape(c: str) -> str:
        if c == "\n" or unicodedata.category(c) not in CONTROLS:
            return c
        units = c.encode("utf-16-be", "surrogatepass")
        return "".join(f"\\u{units[i : i + 2].hex()}" for i in range(0, len(units), 2))

    return "".join(map(escape, text))
