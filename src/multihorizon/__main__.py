"""Runs the command line: `multihorizon`, or `python -m multihorizon`."""

import signal
import sys

from multihorizon import interrupts


def main() -> None:
    """Runs the command line. A signal while modules are imported ends the program with one line."""
    for one in interrupts.SIGNALS:
        if signal.getsignal(one) != signal.SIG_IGN:  # as under nohup
            signal.signal(one, interrupts.leave_at_once)
    from multihorizon.cli import main as run

    sys.exit(run())


if __name__ == "__main__":
    main()
