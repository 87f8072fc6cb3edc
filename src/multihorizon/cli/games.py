"""multihorizon games: lists the Atari games."""

import argparse

SUMMARY = "lists the sixty Atari games, by the paper's names"
DESCRIPTION = "Lists the games of the paper's table. To train in a game: multihorizon train AGENT --env atari/GAME"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the games as a JSON list")


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import show_json
    from multihorizon.envs.atari import GAMES

    if options.json:
        show_json(list(GAMES))
    else:
        print("\n".join(GAMES))
