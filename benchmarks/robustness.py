"""Disturbs runs and command lines in many ways, and counts the failures.

    python benchmarks/robustness.py --out results/robustness

- A short run is killed, at random times and before file operations, or receives one, two or five signals. The run is
  then resumed and compared with an undisturbed run.
- The files of a run are damaged. The run is then resumed, evaluated or reported on.
- Command lines are generated at random from the parser.
- Agents, environments and folders get hostile names.
- A sweep on Ray loses workers and nodes.

No case may end in a traceback, continue silently with different results, touch a file outside its folder, or run code
from a file or a name. The cases are in tests/robustness; the test suite runs a few of them.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "robustness"))
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import command_lines
import damage
import disturbances
import names
import short_run

from multihorizon.errors import at_least
from multihorizon.files import writable_folder, write_json

DISTURBANCES_OF_A_RUN = 8  # largest number of kills or signals in one run
COUNTS = {"--kills": 200, "--signals": 200, "--damages": 2_000, "--lines": 5_000, "--names": 100, "--ray": 20}
LONGEST = 6.0  # longest time until a kill or a signal, in seconds


class Tally:
    """Cases and failures of one kind."""

    def __init__(self, kind: str, wanted: int) -> None:
        self.kind, self.wanted, self.cases = kind, wanted, 0
        self.failures: list[dict[str, str]] = []
        self.begun = time.monotonic()

    def add(self, case: str, problem: str | None) -> None:
        self.cases += 1
        if problem is not None:
            case, problem = (text.encode(errors="backslashreplace").decode() for text in (case, problem))
            self.failures.append({"case": case, "problem": problem})
            print(f"{self.kind}, {case}:\n{problem}", flush=True)
        if self.cases % 50 == 0:
            print(f"{self.kind}: {self.cases} of {self.wanted}, {len(self.failures)} failures", flush=True)

    def result(self) -> dict[str, Any]:
        seconds = round(time.monotonic() - self.begun)
        return {"cases": self.cases, "failures": self.failures, "seconds": seconds}


def disturb(
    tally: Tally, once: Callable[..., str | None], whole: Path, place: Path, cache: Path, rng: random.Random
) -> None:
    """Disturbs one run after another, lets each run finish, and compares it with the undisturbed run."""
    while tally.cases < tally.wanted:
        folder = place / tally.kind / str(tally.cases)
        for number in range(min(DISTURBANCES_OF_A_RUN, tally.wanted - tally.cases)):
            tally.add(f"{folder.name}, {number}", once(folder, cache, rng, LONGEST))
            if (folder / "weights.npz").exists():
                break
        problem = disturbances.finish(folder, cache) or disturbances.compare(whole, folder)
        if problem is not None:
            tally.failures.append({"case": f"the result of {folder.name}", "problem": problem})
            print(f"{tally.kind}, the result of {folder.name}: {problem}", flush=True)
        shutil.rmtree(folder)


def lose_on_ray(tally: Tally, place: Path, seed: int) -> None:
    script = Path(__file__).with_name("kill_sweep.py")
    kills = -(-tally.wanted // 2)
    command = [sys.executable, str(script), "--kills", str(kills), "--seed", str(seed), "--ray-only"]
    done = subprocess.run([*command, "--out", str(place / "ray.json")], capture_output=True, text=True, check=False)
    held = json.loads((place / "ray.json").read_text()) if (place / "ray.json").exists() else {}
    for kind in ("ray worker", "ray node"):
        found = held.get(kind, {"killed": [], "same": False})
        for killed in found["killed"]:
            tally.add(killed, None)
        if not found["same"]:
            tally.failures.append({"case": kind, "problem": (done.stdout + done.stderr)[-4000:]})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, count in COUNTS.items():
        parser.add_argument(name, type=int, default=count, help=f"number of cases (default: {count:,}; 0 for none)")
    parser.add_argument("--seed", type=int, default=0, help="seed of all cases (default: 0)")
    parser.add_argument("--out", type=Path, required=True, metavar="DIR", help="folder for robustness.json")
    options = parser.parse_args()
    for name in COUNTS:
        at_least(name, getattr(options, name.removeprefix("--")), 0)
    out = writable_folder(options.out.resolve())
    with tempfile.TemporaryDirectory() as temporary:
        found = run_all(options, Path(temporary))
    path = out / "robustness.json"
    before = json.loads(path.read_text())["kinds"] if path.exists() else {}
    now = {kind: {"seed": options.seed} | tally.result() for kind, tally in found.items()}
    write_json(path, {"kinds": before | now})
    print(f"\n{'kind':<16}{'cases':>8}{'failures':>10}")
    for kind, tally in found.items():
        print(f"{kind:<16}{tally.cases:>8,}{len(tally.failures):>10}")
    if any(tally.failures for tally in found.values()):
        raise SystemExit(1)


def run_all(options: argparse.Namespace, place: Path) -> dict[str, Tally]:
    cache = place / "programs"
    os.environ |= {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    outside = place / "outside"
    outside.mkdir()
    (outside / "precious.txt").write_text("nobody may touch this")
    (place / "work").mkdir()
    os.chdir(place / "work")
    untouched = short_run.listing(outside)
    whole = short_run.make_whole(place / "whole", cache)
    unfinished = short_run.make_unfinished(place / "unfinished", cache)
    found: dict[str, Tally] = {}

    def begin(kind: str, wanted: int) -> Tally:
        found[kind] = Tally(kind, wanted)
        return found[kind]

    if options.kills:
        disturb(begin("kills", options.kills), disturbances.kill_once, whole, place, cache, random.Random(options.seed))
    if options.signals:
        tally = begin("signals", options.signals)
        disturb(tally, disturbances.signal_once, whole, place, cache, random.Random(options.seed + 1))
    if options.damages:
        tally, rng = begin("damaged files", options.damages), random.Random(options.seed + 2)
        while tally.cases < options.damages:
            tally.add(*damage.try_damage(unfinished, whole, place / "work", rng))
    if options.lines:
        tally, rng = begin("command lines", options.lines), random.Random(options.seed + 3)
        command_lines.prepare(place / "work")
        while tally.cases < options.lines:
            words = command_lines.random_line(rng, place / "work")
            tally.add(repr(words), command_lines.failure(words))
    if options.names:
        tally, rng = begin("hostile names", options.names), random.Random(options.seed + 4)
        while tally.cases < options.names:
            tally.add(*names.try_name(whole, place / "work", rng))
    if options.ray:
        lose_on_ray(begin("losses on Ray", options.ray), place, options.seed)
    touched = begin("files outside", 1)
    touched.add("precious.txt", None if short_run.listing(outside) == untouched else "it was touched")
    return found


if __name__ == "__main__":
    main()
