"""Tests that Ctrl-C and SIGTERM write a checkpoint, print one line and set the exit status."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from multihorizon import interrupts
from multihorizon.cli import main

LINE = "train dqn --env foraging --steps 2000000 --training-steps 300 --evaluation-steps 0 --set warm_up_steps=300"


def started(out: Path, stderr: Any = subprocess.PIPE) -> "subprocess.Popen[str]":
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    words = [sys.executable, "-m", "multihorizon", *LINE.split(), "--out", str(out)]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=stderr, text=True)
    deadline = time.monotonic() + 90
    while not (out / "weights-latest.npz").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return process


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_first_signal_writes_a_checkpoint_and_prints_how_to_resume(
    number: signal.Signals, status: int, tmp_path: Path
) -> None:
    process = started(tmp_path / "run")
    try:
        process.send_signal(number)
        _, told = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == status
    assert "Traceback" not in told
    assert "continues after iteration" in told.strip().splitlines()[-1]
    assert list((tmp_path / "run/checkpoints").glob("iteration-*.npz"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is always full")
def test_a_signal_writes_a_checkpoint_even_if_stderr_fails(tmp_path: Path) -> None:
    with open("/dev/full", "w") as full:
        process = started(tmp_path / "run", stderr=full)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 143
    assert list((tmp_path / "run/checkpoints").glob("iteration-*.npz"))


def test_an_interrupt_is_raised_again_if_its_exception_was_swallowed() -> None:
    with interrupts.handled(raise_again=False):
        interrupts.check()
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        except KeyboardInterrupt:
            pass  # JAX's callbacks also swallow exceptions
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        assert interrupts.exit_status() == 143
    interrupts.check()


def test_a_deferred_signal_raises_no_exception_before_the_next_check() -> None:
    with interrupts.handled(raise_again=False), interrupts.deferred():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)  # the signal arrives here, but raises no exception
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def test_a_signal_also_reaches_the_handler_that_the_caller_installed() -> None:
    received = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: received.append(number))
    try:
        with interrupts.handled():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)
            interrupts.check()
    finally:
        signal.signal(signal.SIGTERM, before)
    assert received == [signal.SIGTERM]


IN_EXEC = """
import sys
from multihorizon import interrupts
with interrupts.handled(raise_again=False):
    try:
        exec("import os, signal, time; os.kill(os.getpid(), signal.SIGTERM); time.sleep(5)")
    except KeyboardInterrupt:
        status = interrupts.exit_status()
sys.exit(status)
"""


def test_a_signal_during_exec_sets_the_exit_status() -> None:
    """By default, Python kills itself with SIGINT after a KeyboardInterrupt in `exec`."""
    assert subprocess.run([sys.executable, "-c", IN_EXEC], check=False).returncode == 143


class SignalsWhenDeleted:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(0.01)  # the handler raises here, and Python ignores the exception


def test_a_signal_is_sent_again_if_its_exception_was_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    with interrupts.handled(raise_again=False):
        with pytest.raises(KeyboardInterrupt):
            wait_after_deleting()
        assert interrupts.exit_status() == 143
    assert "ignored" not in capsys.readouterr().err


def wait_after_deleting() -> None:
    SignalsWhenDeleted()
    time.sleep(5)


class LeftAtOnceError(BaseException):
    pass


def interrupted_main(words: list[str], wanted: int, number: int) -> tuple[int | None, bool]:
    """Runs a command line, and sends a signal at trace event number `wanted`.

    Returns:
        The exit status (None if `leave_at_once` was called), and whether the signal was sent.
    """
    passed = 0

    def trace(frame: Any, event: str, value: Any) -> Callable[..., Any] | None:
        nonlocal passed
        if not frame.f_code.co_filename.endswith(("cli/__init__.py", "interrupts.py", "contextlib.py")):
            return None
        frame.f_trace_opcodes = True
        passed += 1
        if passed == wanted:
            sys.settrace(None)
            signal.raise_signal(number)
        return trace

    sys.settrace(trace)
    try:
        return main(words), passed >= wanted
    except LeftAtOnceError:
        return None, True
    finally:
        sys.settrace(None)


def test_a_signal_at_any_instruction_sets_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    def leave(number: int, frame: Any) -> None:
        raise LeftAtOnceError

    monkeypatch.setattr(interrupts, "leave_at_once", leave)
    before = {one: signal.getsignal(one) for one in interrupts.SIGNALS}
    statuses = set()
    try:
        for wanted in range(1, 5_000, 7):
            for one in interrupts.SIGNALS:
                signal.signal(one, leave)
            monkeypatch.setattr(interrupts, "_received", interrupts._Received())
            number = interrupts.SIGNALS[wanted % len(interrupts.SIGNALS)]
            status, sent = interrupted_main(["nonsense"], wanted, number)
            if not sent:
                break
            assert status in (128 + number, None), wanted
            statuses.add(status)
        assert statuses == {129, 130, 143, None}
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)


def test_training_whose_output_is_closed_writes_a_checkpoint(tmp_path: Path) -> None:
    process = started(tmp_path / "run")
    assert process.stderr is not None
    process.stderr.close()
    try:
        assert process.wait(60) == 128 + signal.SIGPIPE
    finally:
        process.kill()
        process.wait()
    assert list((tmp_path / "run/checkpoints").glob("iteration-*.npz"))


@pytest.mark.parametrize("streams", [">&-", "2>&-", "<&- >&- 2>&-", "2>/dev/full"])
def test_closed_and_full_standard_streams_do_not_stop_a_command(streams: str, tmp_path: Path) -> None:
    done = subprocess.run(
        ["sh", "-c", f"{sys.executable} -m multihorizon discount --out {tmp_path}/out {streams}"], check=False
    )
    assert done.returncode == 0
    assert (tmp_path / "out/discount.json").exists()


def test_messages_never_enter_a_data_file_if_the_standard_streams_are_closed(tmp_path: Path) -> None:
    code = "from multihorizon import __main__ as m, interrupts; m._open_standard_streams();"
    code += f"file = open({str(tmp_path / 'data')!r}, 'w'); interrupts.leave_at_once(2)"
    subprocess.run(["sh", "-c", f'{sys.executable} -c "{code}" <&- >&- 2>&-'], check=False)
    assert (tmp_path / "data").read_text() == ""
