"""How results reach a person: tables and colours on a terminal, plain text elsewhere; or JSON for machines."""

import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Group

    from multihorizon.training.iterations import Outcome, Progress


SECONDS_BETWEEN_LINES = 5.0
WIDTH_ELSEWHERE = 10_000  # where there is no terminal, nothing has to be cut


def show(*items: Any) -> None:
    from rich.console import Console

    class Pipe(Console):
        def on_broken_pipe(self) -> None:  # rich would leave with status 1; `head` has only seen enough
            raise BrokenPipeError

    console = Pipe(highlight=False)
    if not console.is_terminal:
        console.width = WIDTH_ELSEWHERE
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
        made.add_column(column, justify="left" if position == 0 else "right", overflow="fold")
    for position, row in enumerate(rows):
        made.add_row(*row, style="bold cyan" if position == look_at else None)
    return Group(f"[bold]{title}[/bold]", made, *([note + "\n"] if note else []))


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


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


def note(message: str) -> None:
    """Something to know, beside the results."""
    print(f"multihorizon: {message}", file=sys.stderr)


@contextmanager
def training_progress(
    name: str, steps: int, frames_per_step: int = 1
) -> "Iterator[tuple[Callable[[Progress], None], Callable[[Outcome], None]]]":
    """A bar with what a run has done and earned, its speed and the time left; plain lines where there is no terminal.
    On stderr. In frames where a step is several of them."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    unit = "frames" if frames_per_step > 1 else "steps"
    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=20),
        TextColumn("{task.fields[done]} of {task.fields[all]}  {task.fields[said]}"),
        TimeRemainingColumn(),
    )
    with Bar(*columns, console=console, disable=not console.is_terminal) as bar:
        whole = f"{steps * frames_per_step:,} {unit}"
        task = bar.add_task(name, total=steps, done="0", all=whole, said="")
        evaluated, shown = "", 0.0

        def report(progress: "Progress") -> None:
            done = f"{min(progress.step, steps) * frames_per_step:,}"
            loss = "" if progress.loss is None else f", loss {progress.loss:.3f}"
            speed = f"{progress.steps_per_second * frames_per_step:,.0f} {unit}/s"
            said = f"return {_mean(progress.returns)}{evaluated}, ε {progress.epsilon:.2f}{loss}, {speed}"
            bar.update(task, completed=min(progress.step, steps), done=done, said=said)
            nonlocal shown
            if not console.is_terminal and (time.monotonic() - shown > SECONDS_BETWEEN_LINES or progress.step >= steps):
                shown = time.monotonic()
                console.print(f"{name}: {done} of {whole}, {said}", soft_wrap=True)

        def finished(outcome: "Outcome") -> None:
            nonlocal evaluated
            if any(outcome.evaluation_episodes):
                evaluated = f" (evaluated {_mean(outcome.evaluation_returns)})"

        yield report, finished


def _mean(returns: "Sequence[float | None]") -> str:
    known = [r for r in returns if r is not None]
    return f"{sum(known) / len(known):.2f}" if known else "-"
