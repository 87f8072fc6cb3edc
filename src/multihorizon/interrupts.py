"""Handles Ctrl-C, SIGTERM and SIGHUP. The first signal asks the program to stop; the second ends it at once.

Inside `deferred`, the first signal only sets a flag. The code calls `check` where it can stop, such as between steps.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

SECONDS_TO_TRY_AGAIN = 0.05
SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Interrupted(KeyboardInterrupt):
    """The exception that the first signal raises outside `deferred`.

    A subclass is used, because Python may replace the program's exit status after a plain KeyboardInterrupt.
    """

    def __init__(self, number: int) -> None:
        super().__init__()
        self.number = number


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


def was_received() -> bool:
    """Returns whether a signal was received."""
    return _received.number is not None


def request(number: int) -> None:
    """Asks the program to stop, as the first signal does."""
    if _received.number is None:
        _received.number = number


def exit_status() -> int:
    """Returns the exit status after a signal: 128 plus its number."""
    return 128 + (signal.SIGINT if _received.number is None else _received.number)


@contextmanager
def deferred() -> Iterator[None]:
    """Makes the first signal set a flag instead of raising an exception. The code inside must call `check`."""
    _received.deferring += 1
    try:
        yield
    finally:
        _received.deferring -= 1


def leave_at_once(number: int, frame: Any = None) -> None:
    """Ends the process. This handler is used while the program starts and exits."""
    del frame
    _tell(b"multihorizon: interrupted\n")
    os._exit(128 + number)


def _tell(line: bytes) -> None:
    with suppress(OSError):
        os.write(2, line)


def _first(number: int, frame: Any) -> None:
    del frame
    _received.number = number
    for one in SIGNALS:
        if signal.getsignal(one) is _first:
            signal.signal(one, _second)
    if not _received.deferring:
        raise Interrupted(number)
    _tell(b"\nmultihorizon: interrupted, stopping after the current step; interrupt again to stop at once\n")


def _swallowed(told: "sys.UnraisableHookArgs") -> None:
    """Sends the signal again if Python ignored `Interrupted`, as in callbacks of the garbage collector."""
    if _received.number is None or not issubclass(told.exc_type, Interrupted):
        sys.__unraisablehook__(told)
        return
    for one in SIGNALS:
        if signal.getsignal(one) is _second:
            signal.signal(one, _first)
    threading.Timer(SECONDS_TO_TRY_AGAIN, os.kill, (os.getpid(), _received.number)).start()


def _second(number: int, frame: Any) -> None:
    del number, frame
    _tell(b"\nmultihorizon: stopped at once; the last checkpoint is kept\n")
    os._exit(exit_status())


@contextmanager
def handled(raise_again: bool = True) -> Iterator[None]:
    """Handles SIGINT, SIGTERM and SIGHUP until the context ends.

    The context has no effect outside the main thread, inside another `handled` context, or if the caller has installed
    handlers. With `raise_again`, a received SIGTERM or SIGHUP is raised again when the context ends.
    """
    defaults = (signal.SIG_DFL, signal.default_int_handler, leave_at_once)
    is_main = threading.current_thread() is threading.main_thread()
    now = {one: signal.getsignal(one) for one in SIGNALS}
    ours = [one for one, handler in now.items() if handler in defaults]
    if _received.handled or not is_main or any(now[one] != signal.SIG_IGN for one in SIGNALS if one not in ours):
        yield
        return
    before = {one: signal.signal(one, _first) for one in ours}
    _received.handled, _received.number = True, None
    hook, sys.unraisablehook = sys.unraisablehook, _swallowed
    try:
        yield
    finally:
        sys.unraisablehook = hook
        for one, handler in before.items():
            signal.signal(one, handler)
        number, _received.number, _received.handled = _received.number, None, False
        if raise_again and number not in (None, signal.SIGINT):
            signal.raise_signal(number)
