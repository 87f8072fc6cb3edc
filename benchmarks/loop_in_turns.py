"""Compares the speed of the whole Atari training loop with different numbers of environments and groups.

    python benchmarks/loop_in_turns.py --dtype bfloat16 --seeds 1 --ways 80/2 160/2 160/4 --out loop_in_turns.json

On some machines, the speed of a run varies by a quarter or more within minutes. Therefore one process contains a run
for each ENVIRONMENTS/GROUPS of `--ways`. In each round, all runs train in turn for a second or two. Speeds are compared
within a round. On Linux with a GPU, the table also shows how many cores the emulators and the other threads use.
"""

import argparse
import os
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax
import numpy as np
from loop import FRAMES

from multihorizon.agents.presets import preset
from multihorizon.errors import InputError, at_least
from multihorizon.files import writable_file, write_json
from multihorizon.training import memory
from multihorizon.training.host_collector import HostCollector
from multihorizon.training.schedule import Schedule
from multihorizon.training.state import TrainingState
from multihorizon.training.trainer import Trainer
from multihorizon.training.worlds import world

SETTLING = 2  # the results leave out this number of rounds at the start
SCHED_IDLE = 5  # the scheduling policy that only emulator threads have (envs/atari.py)


class Run:
    def __init__(self, options: argparse.Namespace, way: str) -> None:
        environments, groups = (int(number) for number in way.split("/"))
        agent = replace(preset("multi-rainbow"), compute_dtype=options.dtype, warm_up_steps=options.steps // 2)
        if options.replay:
            agent = replace(agent, replay_capacity=options.replay)
        least = 2 * (agent.batch + agent.n_steps * environments)  # the warm-up takes half of the first round
        at_least(f"--steps, with {environments} environments,", options.steps, least)
        chosen = world(f"atari/{options.game}")
        assert chosen.on_host
        rounds = SETTLING + options.rounds
        # The last round of a schedule truncates all episodes. The schedule has one more round, which is never trained.
        schedule = Schedule(rounds + 1, options.steps, 0)
        counts = (options.seeds, environments, lambda count: groups, rounds + 1)
        self.way = way
        self.environments, self.groups = environments, groups
        self.trainer = Trainer(HostCollector(agent, chosen.on_host, chosen.torso, schedule, *counts), schedule)
        self.training: TrainingState | None = None
        self.iteration = 0
        self.frames_per_second: list[float] = []
        self.cores: list[tuple[float, float]] = []

    def go_on(self) -> None:
        if self.training is None:
            self.training = self.trainer.init(0)
        before, begun = processor_seconds(), time.perf_counter()
        self.training, _ = self.trainer.iterate(self.training, self.iteration, 0, lambda progress: None)
        jax.block_until_ready(self.training)
        taken = time.perf_counter() - begun
        steps = self.trainer.iteration_steps * self.trainer.num_seeds
        self.iteration += 1
        self.frames_per_second.append(FRAMES * steps / taken)
        emulators, others = processor_seconds() - before
        self.cores.append((emulators / taken, others / taken))


def compared(runs: list[Run]) -> list[dict[str, Any]]:
    found = []
    for run in runs:
        measured, first = (np.array(one.frames_per_second[SETTLING:]) for one in (run, runs[0]))
        emulators, others = np.mean(run.cores[SETTLING:], axis=0)
        found.append(
            {
                "environments": run.environments,
                "groups": run.groups,
                "frames_per_second": _mean(measured),
                "to_the_first": _mean(measured / first),
                # `emulators` is 0 if the scheduling policy does not identify emulator threads.
                "cores_of_emulators": emulators if emulators else None,
                "cores_of_all_else": others if emulators else None,
                "every_round": measured.tolist(),
            }
        )
    return found


def processor_seconds() -> np.ndarray:
    """Returns the CPU seconds used so far by emulator threads, and by all other threads."""
    taken = np.zeros(2)
    for stat in Path("/proc/self/task").glob("*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # the thread has ended
            continue
        user, system, policy = int(fields[11]), int(fields[12]), int(fields[38])
        taken[0 if policy == SCHED_IDLE else 1] += (user + system) / os.sysconf("SC_CLK_TCK")
    return taken


def _mean(values: np.ndarray) -> tuple[float, float]:
    return float(values.mean()), float(values.std(ddof=1) / len(values) ** 0.5)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Seaquest")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--ways", nargs="+", default=["80/2", "160/2", "160/4"], help="ENVIRONMENTS/GROUPS to compare")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--steps", type=int, default=24_000, help="agent steps of each seed in a round")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--replay", type=int, default=0, help="replay capacity in steps")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    at_least("--rounds", options.rounds, 2)
    if wrong := [way for way in options.ways if not re.fullmatch(r"[1-9]\d*/[1-9]\d*", way)]:
        raise InputError(f"--ways must be ENVIRONMENTS/GROUPS, such as 80/2, got {wrong[0]}")
    writable_file(options.out)
    device = f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores"
    found = {"game": options.game, "dtype": options.dtype, "device": device, "seeds": options.seeds}
    runs = [Run(options, way) for way in options.ways]
    memory.check(*(run.trainer for run in runs))
    for number in range(SETTLING + options.rounds):
        for run in runs[number % len(runs) :] + runs[: number % len(runs)]:
            run.go_on()
        latest = ", ".join(f"{run.way} {run.frames_per_second[-1]:,.0f}" for run in runs)
        print(f"round {number}: {latest}", flush=True)
        if number > SETTLING:
            write_json(options.out, found | {"ways": compared(runs)})
    for run in runs:
        run.trainer.close()
    print("\n| seeds | environments | groups | frames/s | relative to the first | emulator cores | other cores |")
    print("|---|---|---|---|---|---|---|")
    for one in compared(runs):
        cores = [one["cores_of_emulators"], one["cores_of_all_else"]]
        print(
            f"| {options.seeds} | {one['environments']} | {one['groups']} | "
            f"{one['frames_per_second'][0]:,.0f} ± {one['frames_per_second'][1]:,.0f} | "
            f"{one['to_the_first'][0]:.2f} ± {one['to_the_first'][1]:.2f} | "
            + " | ".join("–" if count is None else f"{count:.1f}" for count in cores)
            + " |"
        )


if __name__ == "__main__":
    main()
