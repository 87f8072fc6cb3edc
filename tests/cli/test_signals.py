"""Ctrl-C and SIGTERM write a checkpoint, print one line and set the right exit status."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multihorizon import interrupts

LINE = "train dqn --env foraging --steps 2000000 --training-steps 300 --evaluation-steps 0 --set warm_up_steps=300"


def started(out: Path) -> "subprocess.Popen[str]":
    environment = os.environ | {"JAX_PLATFORMS": "cpu"}
    words = [sys.executable, "-m", "multihorizon", *LINE.split(), "--out", str(out)]
    process = subprocess.Popen(words, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 90
    while not (out / "weights-latest.npz").exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    return process


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_first_signal_writes_a_checkpoint_and_says_how_to_resume(
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


def test_signal_stops_work_even_if_its_exception_was_swallowed() -> None:
    with interrupts.handled(raise_again=False):
        interrupts.check()
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(1)
        except KeyboardInterrupt:
            pass  # as JAX's callbacks do
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()
        assert interrupts.exit_status() == 143
    interrupts.check()


def test_deferred_signals_wait_for_a_check() -> None:
    with interrupts.handled(raise_again=False), interrupts.deferred():
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.05)  # nothing is raised here
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def test_callers_handlers_are_kept() -> None:
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
