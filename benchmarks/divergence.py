"""Finds the part of the GPU program that makes float32 training diverge. Needs a GPU.

    python benchmarks/divergence.py --out divergence.json

Trains Rainbow in Seaquest with one change at a time: without the library's kernels, without concurrent graphs, without
programmatic launches, without graphs, with fixed algorithms. Prints the mean loss during training. The loss of an
untrained network is log 51 = 3.93. A change under which the loss keeps falling identifies the cause.
"""

import argparse
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax

from multihorizon.agents.presets import preset
from multihorizon.errors import InputError
from multihorizon.files import writable_file, write_json
from multihorizon.kernels import SWITCH
from multihorizon.runs.configure import configured, made
from multihorizon.runs.recording import train
from multihorizon.training import compiling
from multihorizon.training.trainer import IterationMetrics
from multihorizon.training.worlds import world

CHANGES: dict[str, dict[str, Any]] = {
    "as in training": {},
    "without our kernels": {},
    "serial graphs": {"xla_gpu_command_buffer_scheduling_mode": "SERIALIZE"},
    "no programmatic launches": {"xla_gpu_enable_pdl": False},
    "no graphs": {"xla_gpu_enable_command_buffer": ""},
    "fixed algorithms": {"xla_gpu_autotune_level": 0},
}


def losses(dtype: str, frames: int, seeds: int, options: dict[str, Any], kernels: bool) -> dict[str, Any]:
    """Returns the mean loss of each seed in each iteration, until training stops."""
    os.environ[SWITCH] = "on" if kernels else "off"
    compiling.OPTIONS["gpu"] = USUAL | options
    compiling._options.cache_clear()
    chosen = world("atari/Seaquest")
    agent = replace(preset("rainbow"), compute_dtype=dtype, replay_capacity=300_000, chosen=("compute_dtype",))
    steps = frames // 4
    configuration = configured(
        chosen, agent, seeds=seeds, steps=steps, training_steps=steps // 10, evaluation_steps=0, environments=80
    )
    found: list[list[float]] = []

    def keep(outcome: IterationMetrics) -> None:
        if outcome.losses:
            found.append([sum(heads) / len(heads) for heads in outcome.losses])
            print(f"  {outcome.step * 4:,} frames: " + ", ".join(f"{loss:.3g}" for loss in found[-1]), flush=True)

    said = "trained to the end"
    with made(configuration) as trainer:
        try:
            train(trainer, seed=0, finished=keep)
        except InputError as problem:
            said = str(problem)
    print(f"  {said}", flush=True)
    return {"losses": found, "end": said}


USUAL = dict(compiling.OPTIONS["gpu"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--frames", type=int, default=600_000)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(CHANGES), default=list(CHANGES))
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if jax.default_backend() != "gpu":
        raise InputError("this benchmark needs a GPU, but JAX finds none")
    writable_file(options.out)
    result: dict[str, Any] = {"device": jax.devices()[0].device_kind, "jax": jax.__version__, "dtype": options.dtype}
    for name in options.only:
        print(name, flush=True)
        kernels = name != "without our kernels"
        result[name] = losses(options.dtype, options.frames, options.seeds, CHANGES[name], kernels)
        write_json(options.out, result)


if __name__ == "__main__":
    main()
