"""Kills a sweep of 2 environments × 3 agents × 3 seeds at random times, and checks that its results stay the same.

    python benchmarks/kill_sweep.py --out results/resume/kill_sweep.json

The sweep runs in four ways:

- undisturbed
- in a process that is killed with kill -9 and restarted
- on Ray, with killed workers
- on Ray, with removed nodes of a simulated cluster

All sweeps must end with the same weights, bit for bit, and the same metrics except for times. This file also defines
the experiment: `multihorizon sweep benchmarks/kill_sweep.py`.
"""

import argparse
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

from multihorizon.agents.acting import Epsilon
from multihorizon.agents.presets import preset
from multihorizon.experiments.experiment import Experiment, ExperimentRun
from multihorizon.files import write_json
from multihorizon.runs.metrics import read_metrics

AGENTS = ("dqn", "multi-c51", "hyper-rainbow")
ENVIRONMENTS = ("foraging/hazard", "pathworld")
SETTINGS = {"warm_up_steps": 200, "replay_capacity": 1_000, "epsilon": Epsilon(decay_steps=500)}
EXPERIMENT = Experiment(
    name="killed",
    title="A sweep to be killed",
    about="Three agents in two small worlds, three seeds, a few hundred updates.",
    runs=[
        ExperimentRun(
            preset(agent),
            environment,
            seeds=3,
            steps=2_400,
            training_steps=120,
            evaluation_steps=200,
            settings=SETTINGS,
        )
        for environment in ENVIRONMENTS
        for agent in AGENTS
    ],
)
TIMES = ("seconds", "steps_per_second")


def command(out: Path, *more: str) -> list[str]:
    words = ["sweep", str(Path(__file__).resolve()), "--out", str(out), "--checkpoint-minutes", "0", *more]
    return [sys.executable, "-m", "multihorizon", *words]


def results(out: Path) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for run in EXPERIMENT.runs:
        lines = [{k: v for k, v in line.items() if k not in TIMES} for line in read_metrics(out / run.folder)]
        with np.load(out / run.folder / "weights.npz", allow_pickle=False) as held:
            found[run.folder] = lines, {name: held[name] for name in held}
    return found


def same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return all(
        one[name][0] == other[name][0] and all(np.array_equal(v, other[name][1][k]) for k, v in one[name][1].items())
        for name in one
    )


def processes(out: Path, rng: random.Random, kills: int) -> list[float]:
    moments = []
    for _ in range(kills):
        process = subprocess.Popen(command(out), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        moments.append(round(rng.uniform(6, 25), 2))
        try:
            process.wait(moments[-1])
            raise SystemExit("the sweep finished before all requested kills")
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            process.wait()
        done = len(list(out.glob("*/*/weights.npz")))
        print(f"killed after {moments[-1]} s, {done} of {len(EXPERIMENT.runs)} runs finished", flush=True)
    subprocess.run(command(out), check=True, stderr=subprocess.DEVNULL)
    return moments


def on_ray(out: Path, rng: random.Random, kills: int, whole_nodes: bool) -> list[str]:
    """Runs the sweep on a simulated cluster with two nodes, and kills workers or nodes."""
    from ray.cluster_utils import Cluster

    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})
    nodes = [cluster.add_node(num_cpus=1) for _ in range(2)]
    running: dict[str, int] = {}
    killed: list[str] = []
    process = subprocess.Popen(
        command(out, "--ray", cluster.address), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )

    def follow() -> None:
        for line in process.stderr or ():
            told = re.match(r"\[\d+/\d+\] (.*): (running|done|failed) \([^,]*, process (\d+)", line)
            if told and told[2] == "running":
                running[told[1]] = int(told[3])
            elif told:
                running.pop(told[1], None)

    thread = threading.Thread(target=follow)
    thread.start()
    while process.poll() is None and len(killed) < kills:
        time.sleep(rng.uniform(4, 12))
        if not running or process.poll() is not None:
            continue
        if whole_nodes:
            node = nodes.pop(0)
            killed.append(f"a node; runs in progress on the cluster: {', '.join(running)}")
            cluster.remove_node(node, allow_graceful=False)
            nodes.append(cluster.add_node(num_cpus=1))
        else:
            name, pid = rng.choice(sorted(running.items()))
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
            killed.append(f"the worker of {name}")
        print(f"killed {killed[-1]}", flush=True)
    process.wait()
    thread.join()
    cluster.shutdown()
    if process.returncode:
        raise SystemExit(f"the sweep on Ray failed with status {process.returncode}")
    return killed


def sweeps_on_ray(
    place: Path, rng: random.Random, kills: int, whole_nodes: bool, whole: dict[str, Any]
) -> dict[str, Any]:
    """Repeats the sweep on Ray until `kills` workers or nodes were killed, and compares all results with `whole`."""
    killed: list[str] = []
    sweeps, all_same = 0, True
    while len(killed) < kills:
        out = place / f"ray-{'nodes' if whole_nodes else 'workers'}-{sweeps}"
        more = on_ray(out, rng, kills - len(killed), whole_nodes)
        if not more:
            raise SystemExit("the sweep on Ray finished before the first kill")
        killed += more
        sweeps += 1
        all_same = same(whole, results(out)) and all_same
    return {"killed": killed, "sweeps": sweeps, "same": all_same}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=5, help="kills of each kind (default: 5)")
    parser.add_argument("--ray-only", action="store_true", help="kill only Ray workers and nodes")
    parser.add_argument("--seed", type=int, default=0, help="random seed for the kill times (default: 0)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rng = random.Random(options.seed)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")  # on a CPU, runs resume bit for bit
    with tempfile.TemporaryDirectory() as place:
        os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", f"{place}/programs")
        os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.3")
        subprocess.run(command(Path(place) / "whole"), check=True, stderr=subprocess.DEVNULL)
        whole = results(Path(place) / "whole")
        told: dict[str, dict[str, Any]] = {}
        if not options.ray_only:
            out = Path(place) / "process"
            killed = processes(out, rng, options.kills)
            told["process"] = {"killed": killed, "same": same(whole, results(out))}
        for name, whole_nodes in (("ray worker", False), ("ray node", True)):
            told[name] = sweeps_on_ray(Path(place), rng, options.kills, whole_nodes, whole)
        for name, one in told.items():
            print(f"{name}: {len(one['killed'])} kills; results are {'the same' if one['same'] else 'NOT THE SAME'}")
    write_json(options.out, {"agents": AGENTS, "environments": ENVIRONMENTS, "seeds": 3} | told)
    if not all(one["same"] for one in told.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
