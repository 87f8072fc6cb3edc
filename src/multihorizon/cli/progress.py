"""Shows the progress of a run on stderr: a bar on a terminal, lines of text elsewhere."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from multihorizon.cli.terminal import SECONDS_BETWEEN_LINES, console, counted, duration, note, while_training
from multihorizon.reports.escaping import replace_controls

if TYPE_CHECKING:
    from multihorizon.runs.progress import Hooks
    from multihorizon.training.trainer import IterationMetrics, Progress


@contextmanager
def training_progress(name: str, steps: int, frames_per_step: int = 1) -> "Iterator[Hooks]":
    """Shows the progress, returns, speed and remaining time of a run."""
    from rich.console import RenderableType
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    from multihorizon.runs.progress import Hooks

    class TwoLines(Bar):
        def get_renderables(self) -> Iterator[RenderableType]:
            yield self.make_tasks_table(self.tasks)
            yield self.tasks[0].fields["said"] if self.tasks else ""

    out, name = console(stderr=True), replace_controls(name)
    described, done = (TextColumn(f"{{task.{part}}}", markup=False) for part in ("description", "fields[done]"))
    columns = (described, BarColumn(bar_width=20), done)
    with TwoLines(*columns, console=out, disable=not out.is_terminal) as bar:
        run = _Run(steps, frames_per_step)
        task = bar.add_task(name, total=steps, done=run.done(0), said="")
        shown = 0.0

        def show(step: int, said: str, at_once: bool) -> None:
            nonlocal shown
            bar.update(task, completed=min(step, steps), done=run.done(step), said=said)
            if not out.is_terminal and (at_once or time.monotonic() - shown > SECONDS_BETWEEN_LINES):
                shown = time.monotonic()
                out.print(f"{name}: {run.done(step)}, {said}", soft_wrap=True)

        def report(progress: "Progress") -> None:
            show(progress.step, run.goes_on(progress), at_once=False)

        def finished(outcome: "IterationMetrics") -> None:
            said = run.ended(outcome)
            if outcome.step >= steps:
                show(outcome.step, said, at_once=True)

        yield Hooks(while_training(report), while_training(finished), while_training(note))


class _Run:
    def __init__(self, steps: int, frames_per_step: int) -> None:
        self._steps, self._frames = steps, frames_per_step
        self._unit = "frames" if frames_per_step > 1 else "steps"
        self._returns, self._evaluated = "-", ""
        self._started = time.monotonic()
        self._told: set[str] = set()
        self._compiled = self._started, 0  # time and number of steps at the last compilation
        self._last: tuple[float, int] | None = None  # time and number of steps at the end of the last iteration

    def done(self, step: int) -> str:
        return f"{min(step, self._steps) * self._frames:,} of {self._steps * self._frames:,} {self._unit}"

    def goes_on(self, progress: "Progress") -> str:
        now = time.monotonic()
        doing = "evaluating" if progress.evaluated else "warm-up" if progress.loss is None else "learning"
        speed = f", {progress.steps_per_second * self._frames:,.0f} {self._unit}/s"
        # The first report of each phase omits the speed, because its time includes compilation.
        if doing not in self._told:
            self._told.add(doing)
            speed = ""
            if not progress.evaluated:
                self._compiled = now, progress.step
        if progress.evaluated:
            steps, episodes = progress.evaluated
            played = f"{steps * self._frames:,} {self._unit}, {counted(episodes, 'episode')}"
            return f"evaluating: {played}, return {mean(progress.returns)}{speed}"
        self._returns = mean(progress.returns, self._returns)
        phase, loss = ("warm-up, ", "") if progress.loss is None else ("", f", loss {progress.loss:.3f}")
        left = self._left(now, progress.step)
        return f"{phase}return {self._returns}{self._evaluated}, ε {progress.epsilon:.2f}{loss}{speed}{left}"

    def _left(self, now: float, step: int) -> str:
        """Estimates the remaining time. After the first iteration, the estimate includes evaluation."""
        compiled, first = self._compiled
        until, last = self._last if self._last and self._last[1] > first else (now, step)
        if last <= first:
            return ""
        whole = (until - compiled) / (last - first) * (self._steps - last)
        return f", {duration(max(0.0, whole - (now - until)))} left"

    def ended(self, outcome: "IterationMetrics") -> str:
        self._last = time.monotonic(), outcome.step
        self._returns = mean(outcome.returns, self._returns)
        if any(outcome.evaluation_episodes):
            self._evaluated = f" (evaluated {mean(outcome.evaluation_returns)})"
        return f"return {self._returns}{self._evaluated}, in {duration(self._last[0] - self._started)}"


def mean(returns: "Sequence[float | None]", unknown: str = "-") -> str:
    known = [r for r in returns if r is not None]
    return f"{sum(known) / len(known):.2f}" if known else unknown
