from collections.abc import Callable

import pytest

from multihorizon.cli import progress
from multihorizon.cli.progress import training_progress
from multihorizon.cli.terminal import console, table
from multihorizon.training.trainer import IterationMetrics, Progress


def outcome(step: int, evaluated: float) -> IterationMetrics:
    return IterationMetrics(0, step, [3], [20.0], [9.0], [4], [evaluated], [8.0], 1, [], [], 1.0, 1.0)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def passes(seconds: float) -> None:
        now[0] += seconds

    return passes


def test_progress_lines_show_steps_returns_and_time(
    clock: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with training_progress("rainbow", 1_000, frames_per_step=4) as (report, finished, _):
        report(Progress(100, [None], None, 1.0, 10.0))  # the first two reports include compilation
        clock(20)
        report(Progress(200, [7.0, 9.0], 1.5, 0.5, 0.1))
        clock(10)
        report(Progress(300, [7.0], 1.5, 0.5, 10.0))
        clock(1)
        report(Progress(310, [7.0], 1.5, 0.5, 5.0))  # too soon for another line
        clock(19)
        finished(outcome(500, evaluated=11.0))
        report(Progress(600, [None], 1.25, 0.01, 10.0))
        clock(10)
        report(Progress(600, [4.0], None, 0.001, 0.1, (5_000, 1)))
        clock(10)
        report(Progress(600, [4.0], None, 0.001, 50.0, (6_000, 1)))
        finished(outcome(600, evaluated=11.0))
        clock(10)
        report(Progress(700, [None], 1.25, 0.01, 10.0))
        finished(outcome(1_000, evaluated=12.0))
    assert capsys.readouterr().err.splitlines() == [
        "rainbow: 400 of 4,000 frames, warm-up, return -, ε 1.00",
        "rainbow: 800 of 4,000 frames, return 8.00, ε 0.50, loss 1.500",
        "rainbow: 1,200 of 4,000 frames, return 7.00, ε 0.50, loss 1.500, 40 frames/s, 70 s left",
        "rainbow: 2,400 of 4,000 frames, return 20.00 (evaluated 11.00), ε 0.01, loss 1.250, 40 frames/s, 50 s left",
        "rainbow: 2,400 of 4,000 frames, evaluating: 20,000 frames, 1 episode, return 4.00",
        "rainbow: 2,400 of 4,000 frames, evaluating: 24,000 frames, 1 episode, return 4.00, 200 frames/s",
        "rainbow: 2,800 of 4,000 frames, return 20.00 (evaluated 11.00), ε 0.01, loss 1.250, 40 frames/s, 40 s left",
        "rainbow: 4,000 of 4,000 frames, return 20.00 (evaluated 12.00), in 80 s",
    ]


def test_remaining_time_is_correct_if_the_first_report_is_from_evaluation(
    clock: Callable[[float], None], capsys: pytest.CaptureFixture[str]
) -> None:
    with training_progress("rainbow", 1_000) as (report, finished, _):
        report(Progress(100, [4.0], None, 0.001, 50.0, (500, 1)))
        finished(outcome(100, evaluated=4.0))
        for step in (110, 210):
            clock(20)
            report(Progress(step, [4.0], 1.0, 0.5, 5.0))
    assert capsys.readouterr().err.splitlines()[-1].endswith("5 steps/s, 2.6 min left")


@pytest.mark.parametrize("color", [False, True])
@pytest.mark.parametrize("name", ["[/b]", "[red]x", "\x1b]0;x\x07", "a\nb", ":smile:", "{0}%s", "[link=file:///x]y"])
def test_names_are_shown_without_markup(
    name: str,
    color: bool,
    clock: Callable[[float], None],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if color:
        for variable, value in (("FORCE_COLOR", "1"), ("TTY_COMPATIBLE", "1"), ("COLUMNS", "80"), ("TERM", "xterm")):
            monkeypatch.setenv(variable, value)
    with training_progress(name, 1_000) as shown:
        clock(10)
        shown.report(Progress(100, [7.0], 1.5, 0.5, 10.0))
        show_table = console(stderr=True)
        show_table.print(table(name, [name, name], [[name, name]], name))
    written = capsys.readouterr().err
    said = name.replace("\x1b", "�").replace("\x07", "�").replace("\n", " ")
    assert written.count(said) >= (1 if "\n" in name else 6)
    assert "\x1b]0;" not in written
    assert "\x07" not in written


def test_progress_fits_eighty_columns(
    clock: Callable[[float], None], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FORCE_COLOR", "1"), ("TTY_COMPATIBLE", "1"), ("COLUMNS", "80"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    with training_progress("hyper-rainbow", 50_000_000, frames_per_step=4) as shown:
        shown.report(Progress(1_000, [-12.25], 12.345, 0.99, 12_345.0))
        clock(1)
        shown.report(Progress(12_345_678, [-12.25], 12.345, 0.99, 12_345.0))
    written = capsys.readouterr().err
    assert "49,382,712 of 200,000,000 frames" in written
    assert "return -12.25, ε 0.99, loss 12.345, 49,380 frames/s, 3 s left" in written
