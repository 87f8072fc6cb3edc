"""Handling of Ctrl-C and other signals: the first signal asks the program to stop, the second ends it at once.

While long work is in progress, a signal only sets a flag, and the work calls `check` where it can stop: between two
steps, never while a file is written or inside another library's callback, which would swallow the exception.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class _Received:
    """The first signal that the process received, and the number of active `deferred` contexts."""

    number: int | None = None
    deferring: int = 0
    handled: bool = False


_received = _Received()


def check() -> None:
    """Raises KeyboardInterrupt if a signal was received."""
    if _received.number is not None:
        raise KeyboardInterrupt


def exit_status() -> int:
    """Returns the exit status after a signal: 128 plus its number."""
    return 128 + (signal.SIGINT if _received.number is None else _received.number)


@contextmanager
def deferred() -> Iterator[None]:
    """Makes signals set a flag only. Code inside the context must call `check`."""
    _received.deferring += 1
    try:
        yield
    finally:
        _received.deferring -= 1


def _first(number: int, frame: Any) -> None:
    del frame
    _received.number = number
    for one in SIGNALS:
        signal.signal(one, _second)
    if not _received.deferring:
        raise KeyboardInterrupt


def _second(number: int, frame: Any) -> None:
    del frame
    os.write(2, b"\nmultihorizon: stopped at once; the last checkpoint is kept\n")
    os._exit(128 + number)


@contextmanager
def handled(raise_again: bool = True) -> Iterator[None]:
    """Handles SIGINT, SIGTERM and SIGHUP until the context ends.

    Nothing changes in a thread that cannot handle signals, where the caller has handlers of its own, or inside another
    such context.

    Args:
        raise_again: Whether a SIGTERM or SIGHUP ends the process when the context ends, once work has been saved. The
            command line exits with `exit_status` instead.
    """
    defaults = (signal.SIG_DFL, signal.default_int_handler)
    is_main = threading.current_thread() is threading.main_thread()
    if _received.handled or not is_main or any(signal.getsignal(one) not in defaults for one in SIGNALS):
        yield
        return
    before = {one: signal.signal(one, _first) for one in SIGNALS}
    _received.handled, _received.number = True, None
    try:
        yield
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        number, _received.number, _received.handled = _received.number, None, False
        if raise_again and number not in (None, signal.SIGINT):
            signal.raise_signal(number)
