"""Kills a short run at random times and resumes it.

Every resume must succeed, and the final weights must equal those of an uninterrupted run.

    python benchmarks/kill.py --kills 20 --out results/resume/kill.json
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import numpy as np

from multihorizon.files import write_json
from multihorizon.runs.metrics import read_metrics

LINE = (
    "train multi-rainbow --env atari/Pong --envs 4 --steps 6000 --training-steps 1000 --evaluation-steps 0 "
    "--checkpoint-minutes 0 --set warm_up_steps=2000 --set replay_capacity=8000 --set batch=4 --device cpu"
)


def weights(folder: Path) -> dict[str, np.ndarray]:
    with np.load(folder / "weights.npz", allow_pickle=False) as held:
        return {name: held[name] for name in held}


def same(whole: Path, killed: Path) -> bool:
    found = weights(killed)
    return all(np.array_equal(value, found[name]) for name, value in weights(whole).items())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        command = [sys.executable, "-m", "multihorizon"]
        environment = os.environ | {"JAX_COMPILATION_CACHE_DIR": f"{place}/cache"}
        begun = time.perf_counter()
        subprocess.run([*command, *LINE.split(), "--out", f"{place}/whole"], env=environment, check=True)
        alone = time.perf_counter() - begun
        rng, folder = random.Random(0), Path(place) / "killed"
        words = [*LINE.split(), "--out", str(folder)]
        kills: list[dict[str, Any]] = []
        ends: list[bool] = []
        while len(kills) < options.kills:
            process = subprocess.Popen([*command, *words], env=environment, stderr=subprocess.DEVNULL)
            wait = rng.uniform(1, max(4.0, 0.5 * alone))
            try:
                process.wait(wait)
                if process.returncode:
                    raise SystemExit(f"the run failed with status {process.returncode}")
                ends.append(same(Path(place) / "whole", folder))
                print("the run finished before it was killed; starting again", flush=True)
                subprocess.run(["rm", "-r", str(folder)], check=True)
                words = [*LINE.split(), "--out", str(folder)]
                continue
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
                process.wait()
            kept = sorted(path.name for path in (folder / "checkpoints").glob("*")) if folder.exists() else []
            kills.append({"seconds": wait, "iterations": len(read_metrics(folder)), "checkpoints": kept})
            print(f"kill {len(kills)} after {wait:.1f} s: {kills[-1]}", flush=True)
            if (folder / "config.json").exists():
                words = ["resume", str(folder)]
        subprocess.run([*command, *words], env=environment, check=True)
        ends.append(same(Path(place) / "whole", folder))
    said = "the same, bit for bit" if all(ends) else "NOT THE SAME"
    print(f"{len(kills)} kills in {len(ends)} runs; the final weights are {said}")
    write_json(options.out, {"command": LINE, "kills": kills, "runs": len(ends), "same_weights": all(ends)})
    if not all(ends):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
