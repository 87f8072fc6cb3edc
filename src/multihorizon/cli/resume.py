"""multihorizon resume: continues or extends a run."""

import argparse
from pathlib import Path

from multihorizon.cli import running

SUMMARY = "continues a run that was stopped, or extends one that is finished: multihorizon resume RUN"
DESCRIPTION = """\
Continues from the newest checkpoint. On a CPU a run that is resumed from a checkpoint with its replay buffer ends with
the same weights, bit for bit, as if it had never been stopped. After Ctrl-C, and when a finished run is extended, the
replay buffer is filled again first.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--steps", type=running.whole, metavar="N", help="train to N steps in all (default: as begun)")
    parser.add_argument("--checkpoint-minutes", type=float, metavar="M", help="least minutes between two checkpoints")
    parser.add_argument("--evaluation-steps", type=running.whole, metavar="N", help="evaluation steps of an iteration")
    running.add_arguments(parser)


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.training.runs import load_run

    watcher = running.Terminal(options.json)
    given = {name: getattr(options, name) for name in ("checkpoint_minutes", "evaluation_steps")}
    changes = {name: value for name, value in given.items() if value is not None}
    watcher.show_end(load_run(options.run).resume(steps=options.steps, watcher=watcher, **changes))
