"""multihorizon resume: continues or extends a run."""

import argparse
from pathlib import Path

from multihorizon.cli import running

SUMMARY = "continues a stopped run, or extends a finished run: multihorizon resume RUN"
DESCRIPTION = """\
Continues from the newest checkpoint. On a CPU, the run ends with exactly the weights of an uninterrupted run. In three
cases, the replay buffer must first be refilled, and the final weights differ:

- The run was stopped before its first regular checkpoint.
- The run was started with --no-checkpoint-replay.
- The run was finished, and --steps extends it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument(
        "--steps", type=running.whole, metavar="N", help="total training steps of each seed (default: unchanged)"
    )
    parser.add_argument(
        "--checkpoint-minutes",
        type=float,
        metavar="M",
        help="minimum minutes between two checkpoints (default: unchanged)",
    )
    parser.add_argument(
        "--evaluation-steps",
        type=running.whole,
        metavar="N",
        help="evaluation steps of each iteration (default: unchanged)",
    )
    running.add_trust(parser)
    running.add_arguments(parser)


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.runs.loading import load_run

    watcher = running.Terminal(options.json)
    given = {name: getattr(options, name) for name in ("checkpoint_minutes", "evaluation_steps")}
    changes = {name: value for name, value in given.items() if value is not None}
    watcher.show_end(load_run(options.run, trust=options.trust).resume(steps=options.steps, watcher=watcher, **changes))
