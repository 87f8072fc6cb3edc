"""Ctrl-C and its like: the first asks the command to stop, the second ends it at once."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

SIGNALS = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]


class Caught:
    """Which signal came, if any."""

    number: int | None = None

    @property
    def status(self) -> int:
        """The exit status: 128 and the signal's number."""
        return 128 + (signal.SIGINT if self.number is None else self.number)


_current = Caught()


def raise_if_caught() -> None:
    """Raises KeyboardInterrupt again where a signal came and its exception was swallowed, as JAX's callbacks do."""
    if _current.number is not None:
        raise KeyboardInterrupt


@contextmanager
def stopping() -> Iterator[Caught]:
    """Turns the first signal into KeyboardInterrupt, and ends the process at the second.

    An exception that a handler raises can be swallowed where Python runs inside other code. Long work therefore
    calls `raise_if_caught` now and then.
    """
    global _current  # noqa: PLW0603 - a process has one set of signal handlers
    caught = _current = Caught()
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def second(number: int, frame: Any) -> None:
        del frame
        os.write(2, b"\nmultihorizon: stopped at once; the last checkpoint is kept\n")
        os._exit(128 + number)

    def first(number: int, frame: Any) -> None:
        del frame
        caught.number = number
        for one in SIGNALS:
            signal.signal(one, second)
        raise KeyboardInterrupt

    before = {one: signal.signal(one, first) for one in SIGNALS}
    try:
        yield caught
    finally:
        for one, handler in before.items():
            signal.signal(one, handler)
        _current = Caught()
