"""Measures the host memory of a training run over an hour, to find leaks.

    python benchmarks/memory.py --minutes 62 --out results/cpu/memory.json

On a CPU, host memory also contains the replay buffer. The run has a small buffer, which soon fills up. Short iterations
make evaluations and checkpoints frequent.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path

import in_one_line  # noqa: F401
import numpy as np

from multihorizon.files import write_json

LINE = (
    "train multi-rainbow --env atari/Pong --steps 100000000 --training-steps 25000 --evaluation-steps 2000 "
    "--checkpoint-minutes 0 --set replay_capacity=20000 --set warm_up_steps=2000"
)
PARTS = 6


def resident(process: int) -> int:
    """Returns the resident memory of a process in bytes. Linux only."""
    line = next(line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS"))
    return 1024 * int(line.split()[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=62.0)
    parser.add_argument("--every", type=float, default=15.0, help="seconds between two measurements")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    seen: list[tuple[float, int]] = []
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "multihorizon", *LINE.split(), "--out", folder]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            begun = time.monotonic()
            while (now := time.monotonic() - begun) < 60 * options.minutes:
                time.sleep(options.every)
                if run.poll() is not None:
                    sys.exit(f"the run ended after {now:.0f} s with status {run.returncode}")
                seen.append((now + options.every, resident(run.pid)))
            run.kill()
    seconds, memory = np.array(seen).T
    print("| minutes | minimum, MB | mean, MB | maximum, MB |\n|---|---|---|---|")
    edges = np.linspace(0, 60 * options.minutes + options.every, PARTS + 1)
    for low, high in pairwise(edges):
        part = memory[(seconds >= low) & (seconds < high)] / 1e6
        print(f"| {low / 60:.0f} to {high / 60:.0f} | {part.min():.0f} | {part.mean():.0f} | {part.max():.0f} |")
    write_json(options.out, {"command": LINE, "seconds": seconds.tolist(), "bytes": memory.tolist()})


if __name__ == "__main__":
    main()
