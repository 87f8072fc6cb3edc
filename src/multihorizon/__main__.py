"""Runs the command line: `multihorizon`, or `python -m multihorizon`."""

import os
import signal
import sys

from multihorizon import interrupts


def main() -> None:
    """Runs the command line. A signal during imports ends the program with a one-line message."""
    _open_standard_streams()
    for one in interrupts.SIGNALS:
        if signal.getsignal(one) != signal.SIG_IGN:  # an ignored signal stays ignored, as under nohup
            signal.signal(one, interrupts.leave_at_once)
    from multihorizon.cli import main as run

    sys.exit(run())


def _open_standard_streams() -> None:
    """Opens closed standard streams. Otherwise messages could be written to the next file that is opened."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the new descriptor gets the lowest free number
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - it stays open


if __name__ == "__main__":
    main()
