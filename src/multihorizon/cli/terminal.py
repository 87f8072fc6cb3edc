"""Output: tables and colours on a terminal, plain text elsewhere, or JSON for programs."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from multihorizon.reports.escaping import show_controls

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text


SECONDS_BETWEEN_LINES = 5.0
WIDTH_ELSEWHERE = 10_000  # without a terminal, lines are not wrapped


def plain(text: str, style: str = "") -> "Text":
    """Returns text in which rich's markup is not interpreted and control characters are escaped."""
    from rich.text import Text

    return Text(show_controls(text), style)


def show(*items: Any) -> None:
    """Prints texts and tables."""
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:  # rich would exit with status 1 when `head` closes the pipe
            raise BrokenPipeError

    console = Pipe(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_ELSEWHERE
    for item in items:
        console.print(plain(item) if isinstance(item, str) else item)


def show_json(result: Any) -> None:
    print(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "", look_at: int | None = None
) -> "Group":
    """Returns a table with labels in the first column and numbers in the others; row `look_at` is highlighted."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for position, column in enumerate(columns):
        made.add_column(column, justify="left" if position == 0 else "right", overflow="fold")
    for position, row in enumerate(rows):
        made.add_row(*map(plain, row), style="bold cyan" if position == look_at else None)
    return Group(plain(title, "bold"), made, *([plain(f"{note}\n")] if note else []))


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


@contextmanager
def working(message: str) -> Iterator[Callable[[str], None]]:
    """Shows progress during long work: a spinner on a terminal, plain lines elsewhere. Writes to stderr.

    Yields:
        A function that shows a progress message.
    """
    from rich.console import Console

    console = Console(stderr=True, highlight=False)
    said = time.monotonic()

    def tell(how_far: str) -> None:
        nonlocal said
        if time.monotonic() - said > SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            console.print(plain(how_far), soft_wrap=True)

    if not message:
        yield tell
    elif console.is_terminal:
        with console.status(plain(message)) as status:
            yield lambda how_far: status.update(plain(f"{message} {how_far}"))
    else:
        console.print(plain(message), soft_wrap=True)
        yield tell


def duration(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"


def note(message: str) -> None:
    """Prints a note to stderr."""
    print(f"multihorizon: {show_controls(message)}", file=sys.stderr)
