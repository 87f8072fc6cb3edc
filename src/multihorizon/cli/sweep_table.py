"""Shows the progress of a sweep on stderr: a table on a terminal, lines of text elsewhere."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from multihorizon import interrupts
from multihorizon.cli.terminal import SECONDS_BETWEEN_LINES, console, plain, while_training

if TYPE_CHECKING:
    from rich.console import Group

    from multihorizon.experiments.sweep import PlannedRun, Status

MOST_ROWS = 20


@contextmanager
def board(planned: "Sequence[PlannedRun]") -> "Iterator[Callable[[PlannedRun, Status], None]]":
    from rich.live import Live

    from multihorizon.experiments.sweep import State

    out = console(stderr=True)
    statuses = {one.run.folder: one.status() for one in planned}
    shown: dict[str, tuple[float, object]] = {}
    with Live(console=out, auto_refresh=False, transient=True) as live:

        def tell(one: "PlannedRun", status: "Status") -> None:
            interrupts.check()
            statuses[one.run.folder] = status
            if out.is_terminal:
                live.update(_table(planned, statuses), refresh=True)
                return
            when, last = shown.get(one.run.folder, (0.0, None))
            now, key = time.monotonic(), (status.state, status.where)
            if key != last or (status.state is State.RUNNING and now - when > SECONDS_BETWEEN_LINES):
                shown[one.run.folder] = (now, key)
                done = sum(s.state is State.DONE for s in statuses.values())
                out.print(plain(f"[{done}/{len(planned)}] {one.name}: {_line(one, status)}"), soft_wrap=True)

        yield while_training(tell)


def _line(one: "PlannedRun", status: "Status") -> str:
    from multihorizon.experiments.sweep import State

    if status.state is State.FAILED:
        return f"failed: {status.said}"
    words = [status.state.value + (f" ({status.where})" if status.where else "")]
    if status.step:
        words.append(f"{min(status.step, one.steps):,} of {one.steps:,} steps")
    if status.returns is not None:
        words.append(f"return {_returns(status)}")
    if status.steps_per_second:
        words.append(f"{status.steps_per_second:,.0f} steps/s")
    return ", ".join(words)


def _returns(status: "Status") -> str:
    if status.returns is None:
        return ""
    return f"{status.returns:.2f} ({'evaluated' if status.evaluated else 'training'})"


def _table(planned: "Sequence[PlannedRun]", statuses: "dict[str, Status]") -> "Group":
    from multihorizon.cli.terminal import counted, table
    from multihorizon.experiments.sweep import State

    counts = {state: sum(s.state is state for s in statuses.values()) for state in State}
    said = ", ".join(f"{count} {state.value}" for state, count in counts.items() if count)
    rows = []
    for state in (State.RUNNING, State.FAILED):
        for one in planned:
            status = statuses[one.run.folder]
            if status.state is state:
                rows.append(
                    [
                        one.run.environment,
                        one.run.label,
                        status.where or state.value,
                        f"{min(1.0, status.step / one.steps):.0%}",
                        _returns(status),
                        f"{status.steps_per_second:,.0f}" if status.steps_per_second else "",
                    ]
                )
    columns = ["environment", "agent", "where", "done", "return", "steps/s"]
    more = f"and {len(rows) - MOST_ROWS} more" if len(rows) > MOST_ROWS else ""
    return table(f"{counted(len(planned), 'run')}: {said}", columns, rows[:MOST_ROWS], more)
