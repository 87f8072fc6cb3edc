"""How results reach a person: tables and colours on a terminal, plain text elsewhere; or JSON for machines."""

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group

    from multihorizon.training.run import Chunk


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

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
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


@contextmanager
def training_progress(name: str, steps: int) -> "Iterator[Callable[[Chunk], None]]":
    """A bar with the latest return, speed and time left; plain lines where there is no terminal. On stderr."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("return {task.fields[earned]}  {task.fields[speed]}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=steps, earned="-", speed="")

        def report(chunk: "Chunk") -> None:
            known = [r for r in chunk.returns if r is not None]
            earned = f"{sum(known) / len(known):.2f}" if known else "-"
            speed = f"{chunk.steps_per_second:,.0f} steps/s"
            progress.update(task, completed=min(chunk.step, steps), earned=earned, speed=speed)
            if not console.is_terminal:
                console.print(f"{name}: {chunk.step:,} of {steps:,} steps, return {earned}, {speed}")

        yield report
