"""How results reach a person: tables and colours on a terminal, plain text elsewhere; or JSON for machines."""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group


def show(*items: Any) -> None:
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:  # rich would leave with status 1; `head` has only seen enough
            raise BrokenPipeError

    console = Pipe(highlight=False)
    for item in items:
        console.print(item)


def show_json(result: Any) -> None:
    print(json.dumps(result, indent=2, ensure_ascii=False, allow_nan=False))


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str = "", look_at: int | None = None
) -> "Group":
    """The first column is a label; the rest are figures. Row `look_at` stands out."""
    from rich import box
    from rich.console import Group
    from rich.table import Table

    made = Table(box=box.SIMPLE_HEAD)
    for position, column in enumerate(columns):
        made.add_column(column, justify="left" if position == 0 else "right")
    for position, row in enumerate(rows):
        made.add_row(*row, style="bold cyan" if position == look_at else None)
    return Group(f"[bold]{title}[/bold]", made, *([note + "\n"] if note else []))


@contextmanager
def working(message: str) -> Iterator[None]:
    """A spinner on the terminal while something takes its time; a line elsewhere. On stderr, clear of results."""
    from rich.console import Console

    console = Console(stderr=True)
    if not message:
        yield
    elif console.is_terminal:
        with console.status(message):
            yield
    else:
        console.print(message, highlight=False)
        yield
