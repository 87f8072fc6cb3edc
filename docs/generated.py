"""Generates parts of the documentation from the code: the command line, the settings and the notebooks."""

import argparse
import json
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any

import multihorizon as mh
from multihorizon.cli import parser

ROOT = Path(__file__).parent.parent
MARK = re.compile(r"<!-- generated: ([\w-]+) -->")
INCLUDE = re.compile(r"^# include (examples/\w+\.py)$", re.M)
ENVIRONMENTS = ("atari/Pong", "minatar/breakout", "CartPole-v1", "foraging", "pathworld")


def fill(markdown: str) -> str:
    """Fills in each `<!-- generated: NAME -->` with the part NAME, and each `# include FILE` with the file."""
    whole = MARK.sub(lambda found: PARTS[found[1]](), markdown)
    return INCLUDE.sub(lambda found: (ROOT / found[1]).read_text(encoding="utf-8").rstrip(), whole)


def command_line() -> str:
    """Returns a section for each command: its description, usage, options and notes."""
    actions = [action for action in parser()._actions if isinstance(action, argparse._SubParsersAction)]
    return "\n".join(_command(name, sub) for name, sub in actions[0].choices.items())


def _command(name: str, sub: argparse.ArgumentParser) -> str:
    usage = sub.format_usage().removeprefix("usage: ").strip()
    rows = []
    for action in sub._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        names = ", ".join(action.option_strings) or str(action.metavar or action.dest)
        value = "" if action.nargs == 0 or not action.option_strings else f" {_value(action)}"
        rows.append((f"`{names}{value}`", action.help or ""))
    notes = f"\n```text\n{sub.epilog.strip()}\n```\n" if sub.epilog else ""
    return f"## {name}\n\n{sub.description}\n\n```text\n{usage}\n```\n\n{_table(('Option', 'Meaning'), rows)}\n{notes}"


def _value(action: argparse.Action) -> str:
    if isinstance(action.metavar, str):
        return action.metavar
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


def settings() -> str:
    """Returns a table of the fields of AgentConfig."""
    types = {name: str(getattr(kind, "__name__", kind)) for name, kind in mh.AgentConfig.__annotations__.items()}
    short = {name: re.sub(r"multihorizon[.\w]*[.]", "", kind) for name, kind in types.items()}
    documented = _documented(mh.AgentConfig.__doc__ or "")
    rows = [(f"`{name}`", f"`{short[name]}`", text) for name, text in documented.items()]
    return _table(("Field", "Type", "Meaning"), rows)


def _documented(docstring: str) -> dict[str, str]:
    """Returns the arguments of a Google-style docstring."""
    body = docstring.partition("Args:\n")[2]
    found = re.findall(r"^        (\w+): (.*(?:\n            .*)*)", body, re.M)
    return {name: " ".join(text.split()) for name, text in found}


def choices() -> str:
    """Returns a table of the allowed values of each setting that is an enum."""
    parts = []
    kinds = {
        "acting": mh.Acting,
        "bootstrap": mh.Bootstrap,
        "consistency": mh.Consistency,
        "priority": mh.Priority,
    }
    for name, kind in kinds.items():
        rows = [(f"`{choice.name.lower()}`", str(choice.value)) for choice in kind]
        parts.append(f"### {name}\n\n{_table(('Value', 'Meaning'), rows)}")
    return "\n".join(parts)


def environments() -> str:
    """Returns a table of Rainbow's settings in environments of each kind."""
    found = {env: mh.agent("rainbow").resolved(env) for env in ENVIRONMENTS}
    rows = []
    for name in next(iter(found.values())).origins:
        cells = []
        for resolution in found.values():
            shown = _shown(getattr(resolution.agent, name))
            cells.append(f"**{shown}**" if resolution.origins[name] == "environment" else shown)
        rows.append((f"`{name}`", *cells))
    return _table(("Setting", *ENVIRONMENTS), rows)


def _shown(value: Any) -> str:
    if isinstance(value, Enum):
        return value.name.lower()
    if isinstance(value, mh.Horizons):
        return "γ = " + ", ".join(f"{gamma:g}" for gamma in value.gammas)
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *[tuple(map(_escaped, row)) for row in rows]]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _escaped(cell: str) -> str:
    """Escapes the column separator, except in code, where MkDocs does not split columns."""
    return "`".join(part if i % 2 else part.replace("|", "\\|") for i, part in enumerate(cell.split("`")))


def notebook(path: Path) -> str:
    """Returns a notebook with its stored outputs as Markdown."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        text = "".join(cell["source"])
        parts.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
        parts += [_output(output) for output in cell.get("outputs", [])]
    return "\n\n".join(parts) + "\n"


def _output(output: dict[str, Any]) -> str:
    if output["output_type"] == "stream":
        return f"```text\n{''.join(output['text']).rstrip()}\n```"
    data = output["data"]
    if "image/png" in data:
        image = "".join(data["image/png"]).replace("\n", "")
        return f"![Output of the cell above](data:image/png;base64,{image})"
    return f"```text\n{''.join(data['text/plain'])}\n```"


PARTS: dict[str, Callable[[], str]] = {
    "command-line": command_line,
    "settings": settings,
    "choices": choices,
    "environments": environments,
}
