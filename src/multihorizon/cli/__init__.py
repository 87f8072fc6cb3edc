"""The command line. A command imports heavy modules only when it runs, which keeps --help fast."""

import argparse
import io
import os
import re
import sys
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from typing import Any, NoReturn

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
from multihorizon.errors import InputError, one_of, shown
from multihorizon.reports.escaping import show_controls

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
# In these commands, a signal only sets a flag, because JAX's callbacks would swallow an exception.
USE_JAX = ("train", "resume", "evaluate", "watch", "foraging", "sweep")

EXAMPLES = """\
examples:
  multihorizon pathworld --out figures          the paper's Pathworld tables and figures
  multihorizon discount                         the discount of the published Atari agents
  multihorizon discount --grid minimax --heads 3 --gamma-cap 0.997 --t-max 300
  multihorizon preferences --discount quasi-hyperbolic:0.7,0.99
  multihorizon train multi-rainbow --env minatar/breakout --seeds 3
  multihorizon train multi-rainbow --env atari/Seaquest
"""


NEGATIVE = re.compile(r"^-(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$|^-(inf|infinity|nan)$", re.IGNORECASE)
LONGEST_MESSAGE = 500  # argparse's messages are cut after this number of characters


class Parser(argparse.ArgumentParser):
    """A parser whose errors are one line."""

    def __init__(self, *given: Any, **options: Any) -> None:
        super().__init__(*given, **options)
        self._negative_number_matcher = NEGATIVE  # argparse would read -1e-3 as an option

    def _get_values(self, action: argparse.Action, arg_strings: list[str]) -> Any:
        if action.nargs == argparse.PARSER:
            return super()._get_values(action, arg_strings)
        name = action.option_strings[-1] if action.option_strings else action.metavar or action.dest
        if action.option_strings and arg_strings == ["--"]:  # argparse would return an empty list
            raise InputError(f"{name} needs a value, got '--'")
        for text in arg_strings:
            if text == "":  # for example "$UNSET" in a shell
                raise InputError(f"{name} needs a value, got an empty text")
            _check_text(str(name), text)
        return super()._get_values(action, arg_strings)

    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        if len(message) > LONGEST_MESSAGE:
            message = f"{message[:LONGEST_MESSAGE]}..."
        raise InputError(f"{message} (see {self.prog} --help)")


def _check_text(name: str, text: str) -> None:
    """Refuses text that cannot be part of a path."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        raise InputError(f"{name} cannot be encoded: it contains an unpaired surrogate") from None
    if "\0" in text:
        raise InputError(f"{name} must not contain a null character")


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
    """Runs a command and returns its exit status: 0, 2 after a reported error, or 128 + the signal number."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # characters that cannot be encoded, such as γ, become ?
    try:
        with interrupts.handled(raise_again=False):
            return _guarded(arguments)
    except interrupts.Interrupted as stopped:  # the signal came while the command was starting or ending
        _say("multihorizon: interrupted")
        return 128 + stopped.number


def _guarded(arguments: list[str]) -> int:
    try:
        _run(arguments)
        interrupts.check()  # reports a signal that came too late to stop the command
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # the program that reads our output, such as `head`, has ended
        return interrupts.exit_status() if interrupts.was_received() else 0
    except KeyboardInterrupt as stopped:
        _say(": ".join(("multihorizon", "interrupted", *map(str, stopped.args))))
        return interrupts.exit_status()
    except Exception as problem:
        line = _for_people(problem)
        if interrupts.was_received():  # a library may have replaced the interrupt by an error
            _say(show_controls(": ".join(filter(None, ("multihorizon", "interrupted", line)))))
            return interrupts.exit_status()
        if line is None:
            raise
        _say(f"multihorizon: {show_controls(line)}")
        return 2
    finally:
        _drop_what_cannot_be_printed()


def _say(line: str) -> None:
    with suppress(OSError):  # stderr is a closed pipe or a full disk
        print(line, file=sys.stderr)


def _drop_what_cannot_be_printed() -> None:
    """Replaces stdout if writing to stdout fails. Otherwise Python would report the failure when it exits."""
    try:
        sys.stdout.flush()
    except OSError:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - must stay open until Python exits


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


# Python arguments whose command-line flags have different names.
FLAGS = {"num_envs": "envs", "num_evaluation_envs": "evaluation-envs", "max_steps": "steps"}
ARGUMENTS = "steps|seeds?|episodes|fps|training_steps|evaluation_steps|checkpoint_minutes|gpu_share|cpus"


def _with_flags(message: str) -> str:
    """Replaces the names of Python arguments in an error message by command-line flags."""
    words = "|".join([*FLAGS, ARGUMENTS])
    message = re.sub(r"choose an(other|\s?empty) folder$", r"choose an\1 folder with --out", message)
    message = re.sub(r"load with trust=True, or pass the environment with env=", "add --trust", message)
    message = re.sub(
        r"method=FitMethod\.(\w+)(, tolerance)?",
        lambda m: f"--fit {m[1].lower().replace('_', '-')}{' tolerance' if m[2] else ''}",
        message,
    )
    message = re.sub(r"\btolerance=", "--tolerance ", message)
    message = re.sub(r"use the (\w+) grid\b", r"use --grid \1", message)
    message = re.sub(r"use gauss or minimax", "use --grid gauss or --grid minimax", message)
    message = re.sub(r"\bgamma_max\b", "--gamma-cap", message)
    message = re.sub(r"pass it (again )?with (env|network)=", r"train, evaluate and resume it from Python", message)
    return re.sub(rf"^({words})(?= (must|cannot))", lambda m: "--" + FLAGS.get(m[1], m[1]).replace("_", "-"), message)


def _for_people(problem: Exception) -> str | None:
    """Returns a one-line message, or None if the exception is a bug in this package."""
    if isinstance(problem, InputError):
        return _with_flags(str(problem))
    if isinstance(problem, OSError):
        return f"{problem.filename}: {problem.strerror}" if problem.filename else str(problem.strerror or problem)
    if isinstance(problem, MemoryError):
        return "not enough memory; use fewer seeds, a smaller replay buffer or a smaller batch"
    # Comparing names avoids an import of JAX.
    if type(problem).__name__ == "JaxRuntimeError" and "RESOURCE_EXHAUSTED" in str(problem):
        return "the device is out of memory; use fewer seeds, a smaller replay buffer or a smaller batch"
    return None


def refuse(command: str | None, word: str) -> NoReturn:
    """Raises an InputError for an unknown option, and suggests a similar one."""
    if command is None:
        raise InputError(f"{shown(word)} is not understood (see multihorizon --help)")
    if word.startswith("-"):
        scratch = Parser()
        COMMANDS[command].add_arguments(scratch)
        one_of(
            f"option of {command}",
            word.partition("=")[0],
            [o for o in scratch._option_string_actions if o.startswith("--")],
        )
    raise InputError(f"{shown(word)} is not understood (see multihorizon {command} --help)")
