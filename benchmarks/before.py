"""Compares the training speed of this version and of an earlier version, in alternating runs.

    git worktree add ../before 26d6444
    python benchmarks/before.py ../before --out results/cpu/before.json

Each version trains a short run and a long run. Compiled programs come from a cache. The difference between the times of
the two runs gives the time per step.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import in_one_line  # noqa: F401
import numpy as np

from multihorizon.errors import InputError, at_least
from multihorizon.files import writable_file, write_json

HERE = Path(__file__).resolve().parent.parent
COMMAND = "import sys; from multihorizon.cli import main; sys.exit(main())"
# For each environment: command-line options, steps of the short run, and steps of the long run.
RUNS = {
    "minatar/breakout": (("--set", "warm_up_steps=1000"), 4_000, 28_000),
    "atari/Pong": (("--set", "warm_up_steps=400", "--set", "replay_capacity=20000", "--envs", "8"), 800, 2_800),
}


def seconds(checkout: Path, environment: str, steps: int, programs: Path) -> float:
    settings = [*RUNS[environment][0], "--evaluation-steps", "0", "--steps", str(steps)]
    variables = os.environ | {
        "PYTHONPATH": str(checkout / "src"),
        "JAX_COMPILATION_CACHE_DIR": str(programs),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
    }
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        arguments = ["train", "multi-rainbow", "--env", environment, "--out", f"{folder}/run", *settings]
        ended = subprocess.run(
            [sys.executable, "-c", COMMAND, *arguments], env=variables, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            raise InputError(f"{checkout} fails to train in {environment}: {ended.stderr.strip()[-300:]}")
        return time.perf_counter() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkout", type=Path, help="checkout of the earlier version")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--envs", nargs="+", default=list(RUNS), choices=list(RUNS))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    at_least("--rounds", options.rounds, 1)
    if not (options.checkout / "src/multihorizon").is_dir():
        raise InputError(f"{options.checkout} is not a checkout of this project: it has no src/multihorizon")
    writable_file(options.out)
    checkouts = {"before": options.checkout.resolve(), "now": HERE}
    found: dict[str, dict[str, list[float]]] = {}
    print("| environment | before, steps/s | now, steps/s | now / before |\n|---|---|---|---|", flush=True)
    for environment in options.envs:
        _, short, long = RUNS[environment]
        rates: dict[str, list[float]] = {"before": [], "now": []}
        with tempfile.TemporaryDirectory() as programs:
            for name, checkout in checkouts.items():
                seconds(checkout, environment, short, Path(programs, name))  # fills the compilation cache
            for _ in range(options.rounds):
                for name, checkout in checkouts.items():
                    taken = [seconds(checkout, environment, steps, Path(programs, name)) for steps in (short, long)]
                    rates[name].append((long - short) / (taken[1] - taken[0]))
        found[environment] = rates
        before, now = (float(np.median(rates[name])) for name in checkouts)
        print(f"| {environment} | {before:,.0f} | {now:,.0f} | {now / before:.2f} |", flush=True)
        write_json(options.out, {"steps_per_second": found})


if __name__ == "__main__":
    main()
