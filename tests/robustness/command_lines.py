"""Runs random command lines, generated from the parser.

A command must exit with status 0, 2 or 130, without a traceback. After five seconds, the test interrupts the command.
"""

import argparse
import contextlib
import dataclasses
import io
import os
import random
import signal
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.presets import preset
from multihorizon.cli import main, parser
from multihorizon.cli.running import whole

NUMBERS = [
    "0",
    "1",
    "2",
    "3",
    "5",
    "-1",
    "0.5",
    "1e-9",
    "1e308",
    "1.7e308",
    "1e309",
    "-1e309",
    "nan",
    "inf",
    "-inf",
    "007",
    "1_000",
    "0x10",
    "1e3",
    "٣",
    "½",
    "2.5",
    "-1e-3",
    "1e-320",
    "1e9",
] + [
    str(2**31 - 1),
    str(2**31),
    str(2**32),
    str(2**53 + 1),
    str(2**63),
    str(2**64),
    "9" * 400,
    "1" * 5000,
]
TEXTS = [
    "",
    " ",
    "--",
    "-",
    "=",
    ",",
    ":",
    "/",
    ".",
    "..",
    "~",
    "[/b]",
    "[red]x",
    "$x$",
    "$\\frac$",
    "<script>",
    "\x1b[31m",
    "\x00",
    "\ud800",
    "\udcff",
    "a\nb",
    "γ",
    "a" * 300,
    "%s",
    "{}",
    "None",
    "null",
    "../../x",
    "con",
    "x y",
]
NAMES = [
    "dqn",
    "rainbow",
    "hyper-rainbow",
    "multi-c51",
    "foraging",
    "foraging/hazard",
    "pathworld",
    "minatar/breakout",
    "CartPole-v1",
    "gym/",
    "atari/",
    "atari/Pong",
    "own/x",
    "gym/os:x",
    "hyperbolic",
    "hyperbolic:0.1",
    "quasi-hyperbolic:0.7,0.99",
    "exponential:0.9",
    "exponential:2",
    "none",
    "uniform",
    "gamma:1,2",
    "dirac:0",
    "samples:",
    "samples:/dev/null",
    "density:x.py:f",
    "function:x.py:f",
    "hazard",
    "ablation",
    "paper",
    "gauss",
    "minimax",
    "cpu",
    "gpu",
    "tpu",
    "local",
    "auto",
    "127.0.0.1:1",
    "day",
]
SETTINGS = [
    "batch=0",
    "batch=99999999999999999999",
    "n_steps=0",
    "n_steps=x",
    "optimiser=x",
    "optimiser.learning_rate=-1",
    "learning_rate=1",
    "loss.v_max=nan",
    "loss.v_max=1e999",
    "loss.atoms=1",
    "horizons=0.9",
    "horizons=[1]",
    "acting=2",
    "acting=x",
    "epsilon.final=2",
    "=",
    "a=",
    "=b",
    "a..b=1",
    ".=1",
    "compute_dtype=float64",
    "compute_dtype=x",
    "replay_capacity=1",
    "warm_up_steps=1",
    "clip_rewards=maybe",
    "name=[/b]",
    "__class__=1",
    "optimiser.__init__=1",
]


def _fields() -> list[str]:
    found = []
    for agent in (preset("dqn"), preset("rainbow")):
        for one in dataclasses.fields(AgentConfig):
            value = getattr(agent, one.name)
            parts = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
            found += [f"{one.name}.{part.name}" for part in parts] or [one.name]
    return sorted(set(found))


FIELDS = _fields()


def random_line(rng: random.Random, folder: Path) -> list[str]:
    commands = _subparsers()
    command = rng.choice([*commands, rng.choice(TEXTS)]) if rng.random() < 0.1 else rng.choice(list(commands))
    words = [command]
    if command in commands:
        for action in rng.sample(commands[command]._actions, k=min(len(commands[command]._actions), rng.randrange(6))):
            words += _option(rng, action, folder)
    if rng.random() < 0.1:
        words.insert(rng.randrange(len(words) + 1), rng.choice([*TEXTS, *NUMBERS, "--nonsense", "--out="]))
    return words


def _subparsers() -> dict[str, argparse.ArgumentParser]:
    (action,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


def _option(rng: random.Random, action: argparse.Action, folder: Path) -> list[str]:
    if isinstance(action, argparse._HelpAction) and rng.random() < 0.9:
        return []
    count = {0: 0, None: 1, "?": rng.randrange(2), "+": rng.randrange(1, 4), "*": rng.randrange(4)}[
        action.nargs if not isinstance(action.nargs, int) or action.nargs == 0 else None
    ]
    values = [_value(rng, action, folder) for _ in range(count)]
    if not action.option_strings:
        return values
    flag = rng.choice(action.option_strings)
    if rng.random() < 0.03:
        return [f"{flag}=--"]  # argparse treats this value specially
    return [f"{flag}={values[0]}"] if len(values) == 1 and rng.random() < 0.5 else [flag, *values]


def _value(rng: random.Random, action: argparse.Action, folder: Path) -> str:
    if rng.random() < 0.2:
        return rng.choice([*TEXTS, *NUMBERS])
    if action.type in (int, float, whole):
        return rng.choice(NUMBERS)
    if action.dest == "set":
        return rng.choice(SETTINGS) if rng.random() < 0.5 else f"{rng.choice(FIELDS)}={rng.choice([*NUMBERS, *TEXTS])}"
    paths = [str(folder / name) for name in ("missing", "file.txt", "empty", "run", "bad.npz", "deep/er", "[b]", "$x$")]
    if action.type is Path or action.dest in ("run", "folder", "out", "weights"):
        return rng.choice(paths)
    return rng.choice([*NAMES, *paths])


@contextlib.contextmanager
def limited(seconds: float) -> Iterator[None]:
    def ring(number: int, frame: Any) -> None:
        signal.raise_signal(signal.SIGINT)  # calls the program's own handler, as Ctrl-C does

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def failure(words: Sequence[str], seconds: float = 5.0) -> str | None:
    """Runs a command line in this process, and describes its failure, if any."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), limited(seconds):
            status = main(list(words))
    except KeyboardInterrupt:
        return None  # the command was interrupted before it could handle signals
    except SystemExit as ended:  # argparse's --help and --version
        status = ended.code if isinstance(ended.code, int) else 1
    except Exception:  # noqa: BLE001 - any exception is a failure
        return traceback.format_exc()
    err.seek(0)
    said = err.read()
    if status not in (0, 2, 130) or "Traceback" in said:
        return f"status {status}: {said[-2000:]}"
    if status == 2 and said.count("multihorizon: ") == 0:
        return f"status 2 without a message: {said[-500:]!r}"
    return None


def prepare(folder: Path) -> None:
    (folder / "empty").mkdir(parents=True, exist_ok=True)
    (folder / "run").mkdir(exist_ok=True)
    (folder / "run/config.json").write_text('{"type": "Configuration"}')
    (folder / "file.txt").write_text("1\n2\nx")
    (folder / "bad.npz").write_bytes(b"PK\x03\x04" + os.urandom(50))
