"""Measures the whole Atari training loop in frames per second, for several numbers of seeds and environments.

    python benchmarks/loop.py --dtype bfloat16 --seeds 1 3 --out loop.json

The loop includes the environments, copies to the device, the replay buffer and one update for every four agent steps.
The table also shows the speed of the environments alone, with random actions, as an upper limit. `--evaluation STEPS`
measures an evaluation separately. `--dopamine STEPS` also runs Dopamine's JAX Rainbow in the same process;
benchmarks/update_cpu.py says how to install Dopamine.
"""

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax
import numpy as np

from multihorizon.agents.presets import preset
from multihorizon.errors import InputError, at_least, one_of
from multihorizon.files import writable_file, write_json
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.configure import trainer_of
from multihorizon.training import memory
from multihorizon.training.host_collector import HostCollector
from multihorizon.training.host_evaluation import HostEvaluator
from multihorizon.training.schedule import Schedule
from multihorizon.training.state import TrainingState
from multihorizon.training.trainer import Iteration, Progress
from multihorizon.training.worlds import world

FRAMES = 4
SECONDS_ALONE = 3.0
SETTLING = 2  # the first two reports with a loss are not timed, because they include compilation
DOPAMINE_WARM_UP = 500  # agent steps
DOPAMINE_SETTLING = 25  # this number of updates at the start is not timed


class Clock:
    """Adds up the seconds spent in each part of the training loop."""

    def __init__(self) -> None:
        self.taken: dict[str, float] = defaultdict(float)

    def timed(self, name: str, part: Callable[..., Any]) -> Callable[..., Any]:
        def timing(*given: Any) -> Any:
            begun = time.perf_counter()
            try:
                return part(*given)
            finally:
                self.taken[name] += time.perf_counter() - begun

        return timing

    def watch(self, collector: HostCollector) -> None:
        """Times the parts of a turn. In a turn, the host handles one step of one group of environments."""
        environments = collector.environments
        for owner, name, part in (
            (environments, "waiting for environments", "receive"),
            (collector, "handing over a step", "_store"),
            (collector.programs, "handing over updates", "learn"),
            (environments, "waiting for actions, and sending them", "send"),
        ):
            setattr(owner, part, self.timed(name, getattr(owner, part)))


def ours(options: argparse.Namespace, seeds: int, environments: int) -> dict[str, Any]:
    chosen = world(f"atari/{options.game}")
    agent = replace(preset(options.agent), compute_dtype=options.dtype, warm_up_steps=options.warm_up)
    if options.replay:
        agent = replace(agent, replay_capacity=options.replay)
    schedule = Schedule(1, options.warm_up + options.steps, 0)
    counts = (seeds, environments, options.evaluation_envs or chosen.evaluation_environments)
    trainer = trainer_of(Configuration(agent, chosen.name, chosen.torso, schedule, 0, *counts))
    collector, evaluator = trainer.collector, trainer.evaluator
    assert isinstance(collector, HostCollector)
    assert isinstance(evaluator, HostEvaluator)
    memory.check(trainer)
    alone = FRAMES * steps_alone(collector, SECONDS_ALONE)
    clock = Clock()
    clock.watch(collector)
    seen: list[Progress] = []
    marks: list[tuple[float, int, dict[str, float]]] = []  # time, number of steps, and seconds of each part so far

    def report(progress: Progress) -> None:
        seen.append(progress)
        # The end of an iteration truncates all episodes. This compiles another program, so the end is not timed.
        ends = progress.step > trainer.iteration_steps - environments
        if sum(p.loss is not None for p in seen) >= SETTLING and not ends:
            marks.append((time.perf_counter(), progress.step, clock.taken.copy()))

    training, _ = trainer.iterate(trainer.init(0), 0, 0, report)
    if len(marks) < 2:
        raise InputError(
            f"{options.steps} steps are too few: training ends before learning can be timed; use more --steps"
        )
    (begun, first, before_it), (ended, last, after_it) = marks[0], marks[-1]
    turns = max(1, (last - first) // collector.environments.group_size)
    parts = {name: 1e3 * (after_it[name] - before_it[name]) / turns for name in after_it}
    learning = [p.steps_per_second for p in seen if p.loss is not None]
    evaluation = evaluated(evaluator, training, options.evaluation)
    trainer.close()
    return {
        "seeds": seeds,
        "environments": environments,
        "groups": collector.environments.groups,
        "actions": trainer.learner.actions,
        "heads": len(agent.horizons),
        "frames_per_second_of_environments_alone": alone,
        "frames_per_second": FRAMES * seeds * (last - first) / (ended - begun),
        "measured": {"steps_of_each_seed": last - first, "seconds": ended - begun},
        "share_of_time_waiting_for_environments": parts["waiting for environments"] * turns / 1e3 / (ended - begun),
        "milliseconds_a_turn": {"whole": 1e3 * (ended - begun) / turns} | parts,
        "every_second": [FRAMES * speed for speed in learning],
        "evaluation": evaluation,
    }


def steps_alone(collector: HostCollector, seconds: float) -> float:
    """Returns the steps per second of environments that never wait for an agent."""
    worlds = [collector.environments.group(group) for group in range(collector.environments.groups)]
    size, rng = collector.num_seeds * collector.environments.group_size, np.random.default_rng(0)
    actions = rng.integers(collector.core.learner.actions, size=(64, size))
    for world_ in worlds:
        world_.reset(np.arange(size))
        world_.send(actions[0])
    begun, turns = time.perf_counter(), 0
    while time.perf_counter() < begun + seconds:
        for world_ in worlds:
            world_.receive()
            world_.send(actions[turns % len(actions)])
            turns += 1
    taken = time.perf_counter() - begun
    for world_ in worlds:
        world_.receive()
    return turns * size / taken


def evaluated(evaluator: HostEvaluator, state: TrainingState, steps: int) -> dict[str, float] | None:
    if not steps:
        return None

    def evaluate(number: int, steps: int) -> int:
        iteration = Iteration(number, 0, 0, 0, 0, is_last=True)
        parameters, keys = state.learner.parameters, state.keys.evaluation
        return int(np.sum(evaluator.evaluate(parameters, keys, iteration, steps, lambda progress: None).lengths))

    evaluate(0, 1)  # compiles
    begun = time.perf_counter()
    played = evaluate(1, steps)
    taken = time.perf_counter() - begun
    return {
        "environments": evaluator.environments.num_envs,
        "seconds": taken,
        "steps": played,
        "steps_per_second": played / taken,
    }


def dopamine(options: argparse.Namespace) -> float:
    """Returns Dopamine's frames per second while learning. The first updates are not timed."""
    import dopamine_agent

    world_, agent = dopamine_agent.world_and_agent(options.game, DOPAMINE_WARM_UP)
    action, begun = agent.begin_episode(world_.reset()), 0.0
    left_out = DOPAMINE_WARM_UP + 4 * DOPAMINE_SETTLING
    for steps in range(left_out + options.dopamine):
        if steps == left_out:
            begun = time.perf_counter()
        observation, reward, over, _ = world_.step(action)
        if over or world_.game_over:
            agent.end_episode(reward, over)
            action = agent.begin_episode(world_.reset())
        else:
            action = agent.step(np.clip(reward, -1, 1), observation)
    return FRAMES * options.dopamine / (time.perf_counter() - begun)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Seaquest")
    parser.add_argument("--agent", default="multi-rainbow")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--envs", type=int, nargs="+", help="environments of each seed (default: as in training)")
    parser.add_argument("--evaluation-envs", type=int, help="environments in evaluation")
    parser.add_argument("--dtype", default="float32")
    parser.add_argument("--warm-up", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=150_000, help="agent steps of each seed after the warm-up")
    parser.add_argument("--replay", type=int, default=0, help="replay capacity in steps")
    parser.add_argument("--evaluation", type=int, default=0, help="evaluation steps of each seed")
    parser.add_argument("--dopamine", type=int, default=0, help="agent steps of Dopamine to time")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    at_least("--steps", options.steps, 1)
    if options.evaluation_envs is not None:
        at_least("--evaluation-envs", options.evaluation_envs, 1)
    one_of("--dtype", options.dtype, ["float32", "bfloat16"])
    for count in options.seeds:
        at_least("--seeds", count, 1)
    counts = options.envs or [world(f"atari/{options.game}").environments]
    writable_file(options.out)
    device = f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores"
    found: dict[str, Any] = {"game": options.game, "agent": options.agent, "dtype": options.dtype, "device": device}
    found["ours"] = []
    print("| agent | seeds | envs | groups | actions | envs alone, frames/s | frames/s | waiting for envs |")
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for seeds in options.seeds:
        for environments in counts:
            one = ours(options, seeds, environments)
            found["ours"].append(one)
            print(
                f"| {options.agent}, {options.dtype} | {seeds} | {environments} | {one['groups']} | {one['actions']} | "
                f"{one['frames_per_second_of_environments_alone']:,.0f} | {one['frames_per_second']:,.0f} | "
                f"{100 * one['share_of_time_waiting_for_environments']:.0f}% |",
                flush=True,
            )
            write_json(options.out, found)
    print("\nmilliseconds per turn")
    for one in found["ours"]:
        parts = ", ".join(f"{name} {taken:.2f}" for name, taken in one["milliseconds_a_turn"].items())
        print(f"{one['seeds']} seeds, {one['environments']} envs: {parts}")
        if told := one["evaluation"]:
            print(f"evaluation in {told['environments']} environments: {told['steps_per_second']:,.0f} steps/s")
    if options.dopamine:
        found["dopamine_frames_per_second"] = peer = dopamine(options)
        print(f"Dopamine's Rainbow, one head: {peer:,.0f} frames/s")
        print(f"ours relative to Dopamine's: {found['ours'][0]['frames_per_second'] / peer:.2f}")
        write_json(options.out, found)


if __name__ == "__main__":
    main()
