"""Makes names from run folders safe to print: on one line, and as plain text in Markdown, HTML and CSV.

`data.py` calls `replace_controls` once on every name that it reads; `page.py` calls `escape_markup` or
`escape_csv` once on every text that it writes.
"""

import unicodedata

REPLACEMENT = "�"
CONTROLS = ("Cc", "Cf", "Cs")
# Character references are plain text both in HTML and in Markdown (where they cannot start a tag, a link, emphasis, a
# code span, a heading or a new table cell), so one function serves both.
_REFERENCES = str.maketrans(
    {
        "&": "&amp;",
        "<": "&lt;",
        ">": "&gt;",
        '"': "&quot;",
        "|": "&#124;",
        "[": "&#91;",
        "]": "&#93;",
        "*": "&#42;",
        "`": "&#96;",
        "#": "&#35;",
        "\\": "&#92;",
    }
)
_FORMULA_STARTS = ("=", "+", "-", "@")  # spreadsheet programs read a cell that starts with one as a formula


def replace_controls(text: str) -> str:
    """Returns the text on one line: white space becomes single spaces, other control characters become �.

    Formatting characters, such as those that reverse the direction of text, and unpaired surrogates count as control
    characters.
    """
    return show_controls(" ".join(text.split()))


def show_controls(text: str) -> str:
    """Returns the text with � in place of every control character except line breaks, for a terminal."""
    return "".join(c if c == "\n" or unicodedata.category(c) not in CONTROLS else REPLACEMENT for c in text)


def escape_markup(text: str) -> str:
    """Escapes the text so that Markdown and HTML show it literally, also inside a double-quoted attribute."""
    return replace_controls(text).translate(_REFERENCES)


def escape_csv(text: str) -> str:
    """Returns the text of a CSV cell. An apostrophe precedes text that a spreadsheet would read as a formula."""
    line = replace_controls(text)
    return f"'{line}" if line.startswith(_FORMULA_STARTS) else line
