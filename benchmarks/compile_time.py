"""Measures how long XLA takes to compile before training starts.

    python benchmarks/compile_time.py --out results/cpu/compile_time.json

Runs one short iteration in each environment of `--envs`, without a compilation cache.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path

import in_one_line  # noqa: F401
import jax

from multihorizon.agents.presets import preset
from multihorizon.files import write_json
from multihorizon.runs.configure import configured, made
from multihorizon.training.worlds import world

EVENT = "/jax/core/compile/backend_compile_duration"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--agent", default="multi-rainbow")
    parser.add_argument(
        "--envs", nargs="+", default=["atari/Seaquest", "minatar/breakout", "foraging", "gym/CartPole-v1"]
    )
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    jax.config.update("jax_enable_compilation_cache", False)
    compiled: list[float] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, duration_secs, **_: compiled.append(duration_secs) if event == EVENT else None
    )
    found = {}
    print("| environment | compilation, s | programs | whole iteration, s |\n|---|---|---|---|", flush=True)
    for name in options.envs:
        chosen = world(name)
        agent = replace(chosen.adapt(preset(options.agent)), warm_up_steps=400, replay_capacity=8_000)
        configuration = configured(chosen, agent, seeds=1, steps=800, training_steps=800, evaluation_steps=100)
        compiled.clear()
        begun = time.perf_counter()
        with made(configuration) as trainer:
            jax.block_until_ready(trainer.iterate(trainer.init(0), 0, 0, lambda _: None)[0].tally)
        found[name] = {"compiling": sum(compiled), "programs": len(compiled), "whole": time.perf_counter() - begun}
        print(f"| {name} | {sum(compiled):.1f} | {len(compiled)} | {found[name]['whole']:.1f} |", flush=True)
        jax.clear_caches()
    write_json(options.out, {"device": jax.devices()[0].device_kind, "agent": options.agent, "runs": found})


if __name__ == "__main__":
    main()
