"""Runs the command line: `multihorizon`, or `python -m multihorizon`."""

import signal
import sys

from multihorizon import interrupts


def main() -> None:
    """Runs the command line. A signal during imports ends the program with a one-line message."""
    for one in interrupts.SIGNALS:
        if signal.getsignal(one) != signal.SIG_IGN:  # an ignored signal stays ignored, as under nohup
            signal.signal(one, interrupts.leave_at_once)
    from multihorizon.cli import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
