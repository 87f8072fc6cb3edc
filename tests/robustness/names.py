"""Tests that hostile names of folders, agents and environments are shown as plain text."""

import contextlib
import io
import json
import os
import pty
import random
import re
import select
import shutil
import subprocess
import time
import traceback
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from command_lines import limited
from damage import LONGEST
from short_run import MESSAGES, environment, program

from multihorizon.cli import main

NAMES = [
    "[/b]",
    "[red]x[/red]",
    "[link=file:///etc/passwd]x",
    "$x$",
    "$\\frac{1}{",
    "x_1^2",
    "<script>alert(1)</script>",
    "\x1b[31mred\x1b[0m",
    "\x1b]0;title\x07",
    "a\nb",
    "a\tb",
    "a\rb",
    "=1+1",
    "@SUM(A1)",
    "-2",
    "+1",
    "|a|b|",
    "`code`",
    "**bold**",
    "![x](http://localhost/x.png)",
    "[x](javascript:alert(1))",
    "\u202egnp.exe",
    "\u200b",
    "é",
    "e\u0301",
    "日本語",
    "🙂",
    "%s%n",
    "{0}",
    "${HOME}",
    "$(touch canary-ran)",
    "; touch canary-ran;",
    "'\"",
    "\\",
    " leading",
    "trailing ",
    "--out",
    "-rf",
    "con",
    "nul.txt",
    "a" * 200,
    ".hidden",
    "..",
    "...",
    "~",
    "&amp;",
    "#heading",
    "# a\n## b",
    "<!--",
    "]]>",
    "\u2028line",
    "\x9b31m",
    ":smile:",
    "_em_",
    "www.x.example",
    "@org",
    "#000000",
    'id="q url(#z',
    "dqn\u200c",
    "🙂" * 100,
]
ON_TERMINAL = 0.25  # probability that a case also tests `watch`, and runs two commands on a terminal
# Escape sequences that the commands print for colours and movements of the cursor.
OURS = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def try_name(finished: Path, place: Path, rng: random.Random) -> tuple[str, str | None]:
    """Runs commands on a run with hostile names. Returns the names, and the problem or None."""
    agent, world, label = (rng.choice(NAMES) for _ in range(3))
    folder = place / "named" / _as_folder(rng.choice(NAMES))
    trains = rng.random() < ON_TERMINAL
    world = "foraging" if trains else rng.choice(["foraging", world])
    shutil.rmtree(place / "named", ignore_errors=True)
    shutil.copytree(finished, folder)
    path = folder / "config.json"
    content = json.loads(path.read_text())
    content.pop("checksum", None)
    content["agent"]["name"], content["environment"] = agent, world
    path.write_text(json.dumps(content))
    (folder / "matplotlibrc").write_text("text.usetex: True\n")
    if rng.random() < 0.5:
        run = {"folder": folder.name, "environment": world, "seeds": 1, "label": label, "wanted": None}
        held = {"name": label, "title": agent, "about": world, "pairs": [[label, agent]], "panels": [], "runs": [run]}
        (place / "named/experiment.json").write_text(json.dumps(held))
    done = f"agent {agent!r}, environment {world!r}, label {label!r}, folder {folder.name!r}"
    out = place / "named-report"
    shutil.rmtree(out, ignore_errors=True)
    as_json = ["--json"] if rng.random() < 0.5 else []
    report = ["report", str(place / "named"), "--out", str(out)]
    commands = [
        report + as_json,
        ["evaluate", str(folder), "--episodes", "1", *as_json],
        ["train", "dqn", "--env", "foraging", "--out", str(folder)],
    ]
    if trains:
        commands.append(["watch", str(folder), "--steps", "5", "--out", str(place / "named.gif")])
    for words in commands:
        problem = _judge(*_run_here(words), allowed="")
        if problem is not None:
            return done, f"{words[0]}: {problem}"
    for words in (["resume", str(folder), "--steps", "3300"], report) if trains else ():
        problem = _judge(*_run_on_terminal(words, folder, place / "programs"), allowed="\r")
        if problem is not None:
            return done, f"{words[0]} on a terminal: {problem}"
    problem = next(filter(None, map(_judge_page, sorted(out.glob("*.*")))), None)
    if problem is not None:
        return done, problem
    if (place / "canary-ran").exists() or Path("canary-ran").exists():
        return done, "code in a name was run"
    return done, None


def _run_here(words: Sequence[str]) -> tuple[int | None, str]:
    said = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", newline="", write_through=True)
    try:
        with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), limited(LONGEST):
            status = main(list(words))
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - any exception is a failure; the time limit interrupts
        return None, traceback.format_exc()
    said.seek(0)
    return status, said.read()


def _run_on_terminal(words: Sequence[str], folder: Path, cache: Path) -> tuple[int | None, str]:
    """Runs a command on a pseudo-terminal; returns its status (None after the time limit) and output without `OURS`."""
    ours, its = pty.openpty()
    settings = environment(cache) | {"TERM": "xterm-256color", "COLUMNS": "200", "NO_COLOR": "1"}
    process = subprocess.Popen(program(words), stdin=its, stdout=its, stderr=its, cwd=folder, env=settings)
    os.close(its)
    written, end = b"", time.monotonic() + LONGEST
    with contextlib.suppress(OSError):  # Linux reports the end of the output as an error
        while select.select([ours], [], [], max(0.0, end - time.monotonic()))[0]:
            if not (piece := os.read(ours, 65_536)):
                break
            written += piece
    os.close(ours)
    is_late = time.monotonic() > end
    if is_late:
        process.kill()
    status = process.wait()
    return None if is_late else status, OURS.sub("", written.decode(errors="replace"))


def _judge(status: int | None, said: str, allowed: str) -> str | None:
    """Returns the problem with an exit status or an output, if any. `allowed` lists allowed control characters."""
    if status not in (0, 2) or "Traceback" in said:
        return f"status {status}: {said[-MESSAGES:]}"
    if "Warning" in said:
        return f"a warning: {said[-MESSAGES:]}"
    found = {c for c in said if unicodedata.category(c) in ("Cc", "Cf", "Cs")} - {"\n", *allowed}
    return f"control characters {found} in {said[-MESSAGES:]!r}" if found else None


def _judge_page(page: Path) -> str | None:
    if page.suffix not in (".md", ".html", ".csv"):
        return None
    text = page.read_text(encoding="utf-8")
    markup = {
        ".csv": (),
        ".html": ("<script>alert",),
        ".md": ("<script>alert", "](javascript", "_em_", "www.x", "@org", "**bold**", "`code`", "$x$", ":smile:"),
    }[page.suffix]
    if any(part in text for part in ("\x1b", "\x9b", "\u202e", *markup)):
        return f"{page.name} contains an unescaped name"
    cells = [cell for line in text.splitlines() for cell in line.split(",")]
    if page.suffix == ".csv" and any(cell.startswith(("=", "@")) for cell in cells):
        return f"{page.name} contains a formula"
    return None


def _as_folder(name: str) -> str:
    kept = name.replace("/", "_").replace("\x00", "_").encode()[:200].decode(errors="ignore")
    return "dots" if kept in (".", "..") else kept
