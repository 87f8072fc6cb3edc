"""Prints text, tables and JSON."""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from multihorizon import interrupts
from multihorizon.reports.escaping import escape_json, show_controls

if TYPE_CHECKING:
    from rich.console import Console, Group
    from rich.text import Text


SECONDS_BETWEEN_LINES = 5.0
BROKEN_PIPE = getattr(signal, "SIGPIPE", 13)
WIDTH_ELSEWHERE = 10_000  # outside a terminal, lines are not wrapped


def plain(text: str, style: str = "") -> "Text":
    """Returns text without markup, in which control characters are escaped."""
    from rich.text import Text

    return Text(show_controls(text), style)


def console(stderr: bool = False) -> "Console":
    """Returns a console for stdout or stderr that does not interpret markup or emoji codes."""
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:  # rich would exit with status 1 when `head` closes the pipe
            raise BrokenPipeError

    return Pipe(highlight=False, markup=False, emoji=False, stderr=stderr)


def show(*items: Any) -> None:
    out = console()
    if not out.is_terminal:
        out.width = WIDTH_ELSEWHERE
    for item in items:
        out.print(plain(item) if isinstance(item, str) else item)


def while_training(say: Callable[..., None]) -> Callable[..., None]:
    """Wraps `say`, a function that prints. The wrapped function never raises an OSError.

    If the reader of the output closes the pipe, as `head` does, training stops as after a signal. Other errors, such as
    a full disk, are ignored.
    """

    def said(*given: Any) -> None:
        try:
            say(*given)
        except BrokenPipeError:
            interrupts.request(BROKEN_PIPE)
        except OSError:
            pass

    return said


def show_json(result: Any) -> None:
    """Prints JSON with escaped control characters."""
    print(escape_json(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False)))


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "", look_at: int | None = None
) -> "Group":
    from rich import box
    from rich.console import Group
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    for position, column in enumerate(columns):
        made.add_column(plain(column), justify="left" if position == 0 else "right", overflow="fold")
    for position, row in enumerate(rows):
        made.add_row(*map(plain, row), style="bold cyan" if position == look_at else None)
    return Group(plain(title, "bold"), made, *([plain(f"{note}\n")] if note else []))


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


@contextmanager
def working(message: str) -> Iterator[Callable[[str], None]]:
    """Shows progress on stderr: a spinner on a terminal, lines of text elsewhere.

    Yields:
        A function that shows a progress message.
    """
    shown = console(stderr=True)
    said = time.monotonic()

    def write(text: str) -> None:
        with suppress(OSError):  # stderr is a closed pipe or a full disk
            shown.print(plain(text), soft_wrap=True)

    def tell(how_far: str) -> None:
        nonlocal said
        if time.monotonic() - said > SECONDS_BETWEEN_LINES:
            said = time.monotonic()
            write(how_far)

    if not message:
        yield tell
    elif shown.is_terminal:
        with shown.status(plain(message)) as status:
            yield lambda how_far: status.update(plain(f"{message} {how_far}"))
    else:
        write(message)
        yield tell


def duration(seconds: float) -> str:
    for unit, size in (("days", 86_400.0), ("h", 3_600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:,.1f} {unit}"
    return f"{seconds:.0f} s"


def note(message: str) -> None:
    with suppress(OSError):
        print(f"multihorizon: {show_controls(message)}", file=sys.stderr)
