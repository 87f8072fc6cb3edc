"""multihorizon resume: goes on with a run that was stopped."""

import argparse
from pathlib import Path

from multihorizon.cli import running

SUMMARY = "goes on with a run that was stopped: multihorizon resume RUN"
DESCRIPTION = """\
Goes on from the newest checkpoint that is whole. On a CPU the run ends with the same weights, bit for bit, as if it had
never been stopped.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
    running.add_arguments(parser)


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.training.records import read_configuration

    running.go(read_configuration(options.run), options.run, options.json)
