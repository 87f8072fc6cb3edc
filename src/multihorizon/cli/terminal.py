"""How results reach a person: tables and colours on a terminal, plain text elsewhere; or JSON for machines."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group


def show(*items: Any) -> None:
    from rich.console import Console

    console = Console(highlight=False)
    for item in items:
        console.print(item)


def show_json(result: Any) -> None:
    print(json.dumps(result, indent=2, ensure_ascii=False))


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "") -> "Group":
    """The first column is a label; the rest are figures. A row that begins with * is the one to look at."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD)
    for position, column in enumerate(columns):
        made.add_column(column, justify="left" if position == 0 else "right")
    for row in rows:
        first = row[0].removeprefix("*")
        made.add_row(first, *row[1:], style="bold cyan" if row[0].startswith("*") else None)
    return Group(f"[bold]{title}[/bold]", made, *([note + "\n"] if note else []))


@contextmanager
def working(message: str) -> Iterator[None]:
    """A spinner on the terminal while something takes its time; a line elsewhere. On stderr, clear of results."""
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(message):
            yield
    else:
        console.print(message, highlight=False)
        yield
