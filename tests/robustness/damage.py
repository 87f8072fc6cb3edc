"""Damages files of a run at random, or replaces them as an attacker would.

Examples of damage are flipped bits, changed JSON values, truncated files, links, huge files, and files of another run.
"""

import contextlib
import io
import json
import os
import random
import resource
import shutil
import struct
import traceback
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from command_lines import limited
from short_run import MESSAGES, dead_process, difference

from multihorizon.cli import main
from multihorizon.files import read_json, write_json
from multihorizon.runs.metrics import format_line
from multihorizon.runs.weights import save_weights

Damage = Callable[[Path, random.Random], str | None]
VALUES: list[Any] = [
    None,
    True,
    -1,
    0,
    1,
    2**31,
    2**63,
    2**64,
    10**400,
    1e308,
    float("nan"),
    "",
    "x",
    "[/b]",
    "$x$",
    "../x",
    "\ud800",
    "gym/canary:Canary-v0",
    [],
    {},
    [[]],
    {"type": "Adam"},
    {"type": "os"},
]


EDITED = ", and no checksum"
FOLDER, PRECIOUS, CANARY = "damaged", "precious.txt", "nobody may touch this"
LONGEST = 60.0  # time limit of a command, in seconds
HUGE = 2**30  # size in bytes of a file that no command may load into memory
# For each file, the commands that must refuse the file if it is a link or belongs to another run.
READ_BY = {
    "config.json": ("resume", "evaluate", "report"),
    "metrics.jsonl": ("resume", "report"),
    "weights.npz": ("evaluate",),
    "weights-latest.npz": ("evaluate",),
}


def damage_file(path: Path, rng: random.Random) -> str:
    kinds: list[Damage] = [_flip, _flip, _flip, _cut, _empty, _zeros, _noise, _remove, _make_folder, _swap]
    kinds += [_link, _link_to_copy, _hard_link, _pipe, _add_link, _add_folder]
    if path.name in READ_BY:
        kinds += [_of_another_run] * 2
    if path.suffix in (".json", ".jsonl"):
        kinds += [_change_value] * 6 + [_nest, _change_lines]
    if path.parent.name == "checkpoints":
        kinds += [_rename, _rename, _recompress, _add_huge]
    kind = rng.choice(kinds)
    return f"{kind.__name__.strip('_')} {kind(path, rng) or ''}"


def _flip(path: Path, rng: random.Random) -> None:
    content = bytearray(path.read_bytes())
    for _ in range(rng.choice([1, 1, 1, 8]) if content else 0):
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def _cut(path: Path, rng: random.Random) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: rng.randrange(len(content) + 1)])


def _empty(path: Path, rng: random.Random) -> None:
    path.write_bytes(b"")


def _zeros(path: Path, rng: random.Random) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def _noise(path: Path, rng: random.Random) -> None:
    path.write_bytes(rng.randbytes(rng.randrange(1, 2_000)))


def _remove(path: Path, rng: random.Random) -> None:
    path.unlink()


def _make_folder(path: Path, rng: random.Random) -> None:
    path.unlink()
    path.mkdir()


def _precious(path: Path) -> Path:
    return next(parent for parent in path.parents if parent.name == FOLDER).with_name(PRECIOUS)


def _link(path: Path, rng: random.Random) -> str:
    """Replaces a file or its folder by a symbolic link to a file, a folder, a device, itself or nothing."""
    target = rng.choice([_precious(path), _precious(path).parent, Path("/dev/zero"), Path("missing"), Path(path.name)])
    if path.parent.name == "checkpoints" and rng.random() < 0.5:
        path = path.parent
        shutil.rmtree(path)
    else:
        path.unlink()
    path.symlink_to(target)
    return f"{path.name} to {target.name}"


def _link_to_copy(path: Path, rng: random.Random) -> None:
    outside = _precious(path).with_name(f"copy-{path.name}")
    shutil.move(path, outside)
    path.symlink_to(outside)


def _of_another_run(path: Path, rng: random.Random) -> None:
    if path.name == "config.json":
        content = read_json(path)
        write_json(path, content | {"seed": content["seed"] + 1}, checked=True)
    elif path.suffix == ".jsonl":
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for line in lines:
            del line["checksum"]
        path.write_text("".join(format_line(line | {"run": "0" * 8}) + "\n" for line in lines))
    else:
        with np.load(path, allow_pickle=False) as held:
            save_weights(path, {name: held[name] ^ 1 if name == "run" else held[name] for name in held})


def _add_folder(path: Path, rng: random.Random) -> str:
    """Adds a folder with a name that the program uses for a file."""
    run = _precious(path).with_name(FOLDER)
    names = ["weights-000010.npz", "damaged-metrics.jsonl", f".config.unfinished-{dead_process()}.json", ".lock"]
    names += [
        f"checkpoints/{name}" for name in (".iteration-000001", "iteration-000000-x.npz", "iteration-9999999-0.npz")
    ]
    added = run / rng.choice(names)
    if added.is_file():
        added.unlink()
    added.mkdir(parents=True, exist_ok=True)
    return added.name.split("unfinished")[0]


def _recompress(path: Path, rng: random.Random) -> None:
    """Compresses a checkpoint, changes up to 40 bytes near its start, and corrects the checksum in its name."""
    with zipfile.ZipFile(path) as file:
        held = {name: file.read(name) for name in file.namelist()}
    methods = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
    with zipfile.ZipFile(path, "w", rng.choice(methods)) as file:
        for name, content in held.items():
            file.writestr(name, content)
    broken = bytearray(path.read_bytes())
    for at in range(60, 60 + rng.choice([0, 1, 40])):
        broken[at] ^= rng.randrange(256)
    path.write_bytes(broken)
    path.rename(path.with_name(f"{path.stem[:16]}-{zlib.crc32(broken):08x}.npz"))


def _add_huge(path: Path, rng: random.Random) -> None:
    """Adds a sparse checkpoint file: a zip archive with a huge central directory."""
    added = path.with_name(f"iteration-000009-{rng.randrange(2**32):08x}.npz")
    with added.open("wb") as file:
        file.seek(HUGE)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, HUGE - 100, 100, 0))


def _hard_link(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.link(_precious(path), path)


def _pipe(path: Path, rng: random.Random) -> None:
    path.unlink()
    os.mkfifo(path)


def _add_link(path: Path, rng: random.Random) -> str:
    """Adds a link with a name that the program uses for a file."""
    unfinished = f".{path.stem}.unfinished-{os.getpid()}{path.suffix}"
    added = path.with_name(rng.choice([unfinished, "damaged-metrics.jsonl", "weights-000010.npz", "report", "videos"]))
    added.unlink(missing_ok=True)
    if rng.random() < 0.5:
        added.symlink_to(_precious(path))
    else:
        os.link(_precious(path), added)
    return added.name.replace(str(os.getpid()), "PID")


def _swap(path: Path, rng: random.Random) -> None:
    other = rng.choice([one for one in sorted(path.parent.iterdir()) if one.is_file()])
    path.write_bytes(other.read_bytes())


def _rename(path: Path, rng: random.Random) -> str:
    name = rng.choice(["000000", "000001", "000099", "999999", "00000x", "-00001", "٣"])
    path.rename(path.with_name(f"iteration-{name}-{path.stem.split('-', 2)[2]}.npz"))
    return name


def _nest(path: Path, rng: random.Random) -> None:
    path.write_text("[" * 100_000)


def _change_lines(path: Path, rng: random.Random) -> None:
    lines = path.read_text().splitlines(keepends=True)
    if rng.random() < 0.5:
        lines.pop(rng.randrange(len(lines)))
    else:
        lines.append(rng.choice(lines))
    path.write_text("".join(lines))


def _change_value(path: Path, rng: random.Random) -> str:
    """Replaces one value of a JSON file. With probability 0.5, the checksum is also removed."""
    lines = path.read_text().splitlines() if path.suffix == ".jsonl" else [path.read_text()]
    which = rng.randrange(len(lines))
    try:
        content = json.loads(lines[which])
    except ValueError:
        return "nothing"
    places: list[tuple[Any, Any]] = []

    def collect(value: Any) -> None:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            places.append((value, key))
            if isinstance(inner, dict | list):
                collect(inner)

    collect(content)
    holder, key = rng.choice(places)
    holder[key] = value = rng.choice(VALUES)
    if rng.random() < 0.5:
        content.pop("checksum", None)
    lines[which] = json.dumps(content, indent=2 if path.suffix == ".json" else None)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="surrogatepass")
    return f"{key} = {str(value)[:40]}{'' if 'checksum' in content else EDITED}"


def run_quietly(words: Sequence[str]) -> tuple[int | None, str]:
    """Runs a command in this process; returns its status and stderr, or None and the traceback."""
    out, err = (
        io.TextIOWrapper(io.BytesIO(), encoding="utf-8", errors="replace", write_through=True) for _ in range(2)
    )
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), limited(LONGEST):
            status = main(list(words))
    except (Exception, KeyboardInterrupt):  # noqa: BLE001 - any exception is a failure; the time limit interrupts
        return None, traceback.format_exc()
    err.seek(0)
    return status, err.read()


def _unclear(status: int | None, said: str) -> str | None:
    if status is None or "Traceback" in said:
        return said[-MESSAGES:]
    if status not in (0, 2):
        return f"status {status}: {said[-MESSAGES:]}"
    if status == 2 and not said.strip().splitlines()[-1].startswith("multihorizon: "):
        return f"status 2 without a message: {said[-500:]!r}"
    return None


def try_damage(unfinished: Path, whole: Path, place: Path, rng: random.Random) -> tuple[str, str | None]:
    """Damages a copy of a run, and runs a command on it. Returns the damage, and the problem or None."""
    source = rng.choice([unfinished, unfinished, whole])
    folder = place / FOLDER
    (place / PRECIOUS).write_text(CANARY)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(source, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.parent.name != "events")
    path = rng.choice([one for one in files if one.name != ".lock"])
    kind = damage_file(path, rng)
    done = f"{path.relative_to(folder)}: {kind}"
    commands = {
        "resume": ["resume", str(folder)],
        "evaluate": ["evaluate", str(folder), "--episodes", "2"],
        "report": ["report", str(folder), "--out", str(place / "report")],
    }
    name = (
        rng.choice(["resume", "resume", "evaluate", "report"]) if source is unfinished else rng.choice(list(commands))
    )
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status, said = run_quietly(commands[name])
    taken = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
    done = f"{name} after {done}"
    problem = _unclear(status, said)
    if (place / PRECIOUS).read_text() != CANARY:
        problem = f"a file outside the folder was changed: {said[-500:]!r}"
    if taken >= HUGE:
        problem = f"the command took {taken:,} bytes of memory"
    if status == 0 and kind.startswith(("link_to_copy", "of_another_run")) and name in READ_BY.get(path.name, ()):
        problem = f"the command used the file: {said[-500:]!r}"
    if problem is not None:
        return done, problem
    if name == "resume" and status == 0 and not done.endswith(EDITED):
        differs = difference(whole, folder)
        if differs and not any(word in said for word in ("damaged", "missing", "no checkpoint", "lost")):
            return done, f"no warning, but {differs}: {said[-500:]!r}"
    if os.path.exists(place / "canary-ran"):
        return done, "code from the folder was run"
    return done, None
