"""The command line. Nothing heavy is imported before a command needs it, so that --help answers at once."""

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from typing import NoReturn

from multihorizon import __version__, interrupts
from multihorizon.cli import (
    agents,
    discount,
    evaluate,
    foraging,
    games,
    pathworld,
    preferences,
    report,
    resume,
    sweep,
    train,
    watch,
)
from multihorizon.errors import InputError, one_of

COMMANDS = {
    "pathworld": pathworld,
    "discount": discount,
    "preferences": preferences,
    "agents": agents,
    "games": games,
    "train": train,
    "resume": resume,
    "evaluate": evaluate,
    "watch": watch,
    "sweep": sweep,
    "report": report,
    "foraging": foraging,
}
# In these commands a signal sets a flag: an exception inside one of JAX's callbacks would be swallowed.
USE_JAX = ("train", "resume", "evaluate", "watch", "foraging", "sweep")

EXAMPLES = """\
examples:
  multihorizon pathworld --out figures          the paper's Pathworld tables and figures
  multihorizon discount                         the discount that the published Atari agents really act by
  multihorizon discount --grid minimax --heads 3 --gamma-cap 0.997 --t-max 300
  multihorizon preferences --discount quasi-hyperbolic:0.7,0.99
  multihorizon train multi-rainbow --env minatar/breakout --seeds 3
  multihorizon train multi-rainbow --env atari/Seaquest
"""


class Parser(argparse.ArgumentParser):
    """argparse whose errors are one line, and name the nearest option."""

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message.removeprefix('argument ')} (see {self.prog} --help)")


def parser() -> Parser:
    top = Parser(
        prog="multihorizon",
        description="Reinforcement learning in which time preference is a choice.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("--version", action="version", version=f"multihorizon {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", dest="command")
    for name, command in COMMANDS.items():
        sub = commands.add_parser(
            name,
            help=command.SUMMARY,
            description=command.DESCRIPTION,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        command.add_arguments(sub)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Exit status: 0, or 2 where what was asked for cannot be done, said in one line."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without γ shows a question mark
    with interrupts.handled(raise_again=False):
        return _guarded(arguments)


def _guarded(arguments: list[str]) -> int:
    try:
        _run(arguments)
        interrupts.check()  # whoever asked to stop learns that it came too late for that
        return 0
    except BrokenPipeError:  # whoever read our output, as `head` does, has seen enough
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - the interpreter flushes it on leaving
        return 0
    except KeyboardInterrupt as stopped:
        print(": ".join(("multihorizon", "interrupted", *map(str, stopped.args))), file=sys.stderr)
        return interrupts.exit_status()
    except Exception as problem:
        if interrupts.was_received():  # which another library may have turned into an error of its own
            print("multihorizon: interrupted", file=sys.stderr)
            return interrupts.exit_status()
        line = _for_people(problem)
        if line is None:
            raise
        print(f"multihorizon: {line}", file=sys.stderr)
        return 2


def _run(arguments: list[str]) -> None:
    top = parser()
    if not arguments:
        top.print_help()
        return
    if not arguments[0].startswith("-"):
        one_of("command", arguments[0], COMMANDS)
    options, unknown = top.parse_known_args(arguments)
    for word in unknown:
        refuse(options.command, word)
    if options.command is None:
        raise InputError(f"a command is missing; allowed: {', '.join(COMMANDS)}")
    with interrupts.deferred() if options.command in USE_JAX else nullcontext():
        COMMANDS[options.command].run(options)


# Arguments of the library's functions whose flags have other names.
FLAGS = {"num_envs": "envs", "num_evaluation_envs": "evaluation-envs", "max_steps": "steps"}
ARGUMENTS = "steps|seeds?|episodes|fps|training_steps|evaluation_steps|checkpoint_minutes|gpu_share|cpus"


def _with_flags(message: str) -> str:
    """A message of the library's, with flags in place of its arguments."""
    words = "|".join([*FLAGS, ARGUMENTS])
    message = re.sub(r"choose an(other|\s?empty) folder$", r"choose an\1 folder with --out", message)
    message = re.sub(r"pass trust=True, or hand the environment in with env=", "add --trust", message)
    message = re.sub(r"FitMethod\.SIGNED_MINIMAX", "--fit signed", message)
    message = re.sub(r"raise the tolerance$", "raise --tolerance", message)
    message = re.sub(r"use the (\w+) grid\b", r"use --grid \1", message)
    message = re.sub(r"hand it in (again )?with (env|network)=", r"train, evaluate and resume it from Python", message)
    return re.sub(rf"^({words})(?= (must|cannot))", lambda m: "--" + FLAGS.get(m[1], m[1]).replace("_", "-"), message)


def _for_people(problem: Exception) -> str | None:
    """In one line; None where it is no fault of the user's, or of the machine's, but ours."""
    if isinstance(problem, InputError):
        return _with_flags(str(problem))
    if isinstance(problem, OSError):
        return f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem.strerror or problem)
    if isinstance(problem, MemoryError):
        return "this takes more memory than there is; ask for less"
    if type(problem).__name__ == "JaxRuntimeError" and "RESOURCE_EXHAUSTED" in str(problem):  # without importing it
        return "the device has too little memory for this: use fewer seeds, a smaller replay or batch, or another one"
    return None


def refuse(command: str | None, word: str) -> NoReturn:
    """An option that the command does not have."""
    if command is None:
        raise InputError(f"'{word}' is not understood (see multihorizon --help)")
    if word.startswith("-"):
        scratch = Parser()
        COMMANDS[command].add_arguments(scratch)
        one_of(
            f"option of {command}",
            word.partition("=")[0],
            [o for o in scratch._option_string_actions if o.startswith("--")],
        )
    raise InputError(f"'{word}' is not understood (see multihorizon {command} --help)")
