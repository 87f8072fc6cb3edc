"""Compares the speed of the Atari training loop in this version and in an earlier version. Needs a GPU.

    git worktree add ../before a6e99a7
    python benchmarks/loop_before.py ../before --out results/speed/loop_before.json

Each version runs in its own process, with its own benchmarks/loop_in_turns.py. In each round, both processes run in
turn for a second or two. Speeds are compared within a round.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

import in_one_line  # noqa: F401
import numpy as np
from loop_in_turns import SETTLING

from multihorizon.errors import InputError, at_least
from multihorizon.files import writable_file, write_json

HERE = Path(__file__).resolve().parent.parent
MEASURED = "frames per second:"
WORKER = f"""
import argparse, json, sys
from loop_in_turns import Run
given = json.loads(sys.argv[1])
run = Run(argparse.Namespace(**given), given["way"])
for line in sys.stdin:
    run.go_on()
    print("{MEASURED}", run.frames_per_second[-1], flush=True)
"""


class Version:
    """A process that trains with the code of one checkout, one round at a time."""

    def __init__(self, checkout: Path, options: argparse.Namespace) -> None:
        self.checkout = checkout
        rounds = SETTLING + options.rounds
        given = {name: getattr(options, name) for name in ("game", "seeds", "dtype", "steps", "way")}
        given |= {"rounds": rounds, "replay": options.replay}
        before = os.environ.get("PYTHONPATH", "")
        paths = [str(checkout / "src"), str(checkout / "benchmarks"), *before.split(os.pathsep)]
        variables = {"XLA_PYTHON_CLIENT_MEM_FRACTION": "0.3"} | os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
        self.process = subprocess.Popen(
            [sys.executable, "-c", WORKER, json.dumps(given)],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def begin(self) -> None:
        assert self.process.stdin
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self) -> float:
        assert self.process.stdout
        for line in self.process.stdout:
            if line.startswith(MEASURED):
                return float(line.removeprefix(MEASURED))
        raise InputError(f"the program of {self.checkout} stopped; its output above says why")

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="checkout of the earlier version")
    parser.add_argument("--game", default="Seaquest", help="Atari game (default: Seaquest)")
    parser.add_argument("--seeds", type=int, default=1, help="seeds trained in parallel (default: 1)")
    parser.add_argument("--way", default="80/2", help="ENVIRONMENTS/GROUPS of each seed (default: 80/2)")
    parser.add_argument("--dtype", default="bfloat16", help="precision (default: bfloat16)")
    parser.add_argument("--steps", type=int, default=24_000, help="agent steps of each seed in a round")
    parser.add_argument("--rounds", type=int, default=12, help="measured rounds (default: 12)")
    parser.add_argument("--replay", type=int, default=0, help="replay capacity in steps (default: the preset's)")
    parser.add_argument("--out", type=Path, required=True, help="file for the result")
    options = parser.parse_args()
    at_least("--rounds", options.rounds, 2)
    if not (options.checkout / "src/multihorizon").is_dir():
        raise InputError(f"{options.checkout} is not a checkout of this project: it has no src/multihorizon")
    writable_file(options.out)
    versions = [Version(options.checkout.resolve(), options), Version(HERE, options)]
    for version in versions:  # the first round compiles and is not timed, so both versions run at once
        version.begin()
    for version in versions:
        version.end()
    measured: list[list[float]] = []
    for number in range(1, SETTLING + options.rounds):
        rates = [0.0, 0.0]
        for index in (0, 1) if number % 2 else (1, 0):
            versions[index].begin()
            rates[index] = versions[index].end()
        measured.append(rates)
        print(f"round {number}: before {rates[0]:,.0f}, now {rates[1]:,.0f} frames/s", flush=True)
    for version in versions:
        version.close()
    counted = np.array(measured[SETTLING - 1 :])
    ratios = counted[:, 1] / counted[:, 0]
    error = ratios.std(ddof=1) / len(ratios) ** 0.5
    before, now = counted.mean(axis=0)
    print("\n| before, frames/s | now, frames/s | now / before |\n|---|---|---|")
    print(f"| {before:,.0f} | {now:,.0f} | {ratios.mean():.3f} ± {error:.3f} |")
    found = {name: getattr(options, name) for name in ("game", "seeds", "way", "dtype", "steps")}
    found |= {"cores": os.cpu_count(), "frames_per_second": counted.tolist()}
    write_json(options.out, found | {"now_to_before": [float(ratios.mean()), float(error)]})


if __name__ == "__main__":
    main()
