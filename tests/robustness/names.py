"""Hostile names of folders, agents and environments: shown as plain text, never interpreted."""

import json
import random
import shutil
from pathlib import Path

from damage import run_quietly
from short_run import MESSAGES

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
]


def try_name(finished: Path, place: Path, rng: random.Random) -> tuple[str, str | None]:
    """Runs `report`, `evaluate` and `train` on a run with hostile names. Returns the names and any problem."""
    agent, environment, label = (rng.choice(NAMES) for _ in range(3))
    folder = place / "named" / _as_folder(rng.choice(NAMES))
    shutil.rmtree(place / "named", ignore_errors=True)
    shutil.copytree(finished, folder)
    path = folder / "config.json"
    content = json.loads(path.read_text())
    content.pop("checksum", None)
    content["agent"]["name"], content["environment"] = agent, rng.choice(["foraging", environment])
    path.write_text(json.dumps(content))
    if rng.random() < 0.5:
        run = {"folder": folder.name, "environment": environment, "seeds": 1, "label": label, "wanted": None}
        held = {
            "name": label,
            "title": agent,
            "about": environment,
            "pairs": [[label, agent]],
            "panels": [],
            "runs": [run],
        }
        (place / "named/experiment.json").write_text(json.dumps(held))
    done = f"agent {agent!r}, environment {environment!r}, label {label!r}, folder {folder.name!r}"
    out = place / "named-report"
    shutil.rmtree(out, ignore_errors=True)
    for words in (
        ["report", str(place / "named"), "--out", str(out)],
        ["evaluate", str(folder), "--episodes", "1"],
        ["train", "dqn", "--env", "foraging", "--out", str(folder)],
    ):
        status, said = run_quietly(words)
        if status is None or status not in (0, 2) or "Traceback" in said:
            return done, f"{words[0]}: status {status}: {said[-MESSAGES:]}"
        if "\x1b[31m" in said or "\x1b]0" in said:
            return done, f"{words[0]} printed a control sequence"
    for page in out.glob("*.*"):
        if page.suffix in (".md", ".html", ".csv"):
            text = page.read_text(encoding="utf-8")
            markup = {".csv": (), ".html": ("<script>alert",), ".md": ("<script>alert", "](javascript")}[page.suffix]
            if any(part in text for part in ("\x1b", *markup)):
                return done, f"{page.name} holds a name that is not escaped"
            if page.suffix == ".csv" and any(
                cell.startswith(("=", "@")) for line in text.splitlines() for cell in line.split(",")
            ):
                return done, f"{page.name} holds a formula"
    if (place / "canary-ran").exists() or Path("canary-ran").exists():
        return done, "code in a name was run"
    return done, None


def _as_folder(name: str) -> str:
    """Converts a name to one that the file system allows."""
    kept = name.replace("/", "_").replace("\x00", "_")
    return "dots" if kept in (".", "..") else kept
