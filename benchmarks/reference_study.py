"""Trains Rainbow in Seaquest with one change at a time, to find what separates it from Dopamine. Needs a GPU.

    python benchmarks/reference_study.py --only float32 acting-8000 --out results/reference

Each variant has three seeds and 8 million frames, which takes about six minutes on an H200 with 16 cores. A variant
whose run is finished is skipped.
"""

import argparse
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp

import multihorizon as mh
from multihorizon.errors import InputError
from multihorizon.files import writable_folder
from multihorizon.training.host_collector import Group, HostCollector

VARIANTS: dict[str, dict[str, Any]] = {
    "float32": {"settings": {"compute_dtype": "float32"}},
    "bfloat16": {"settings": {"compute_dtype": "bfloat16"}},
    "environments-8": {"num_envs": 8},
    "environments-16": {"num_envs": 16},
    "environments-160": {"num_envs": 160},
    "acting-800": {"acting_period": 800},
    "acting-8000": {"acting_period": 8_000},
}


@contextmanager
def acting_period(steps: int | None) -> Iterator[None]:
    """Lets agents act with weights that are copied only every `steps` steps, as the target network's are."""
    if steps is None:
        yield
        return
    held: dict[str, Any] = {"until": -1, "weights": None}
    store = HostCollector._store

    def acting_weights(weights: Any, step: int) -> Any:
        if step >= held["until"]:
            held["until"], held["weights"] = step + steps, jax.tree.map(jnp.copy, weights)
        return held["weights"]

    def stored(self: HostCollector, state: Any, group: Group, moves: Any, step: int, interrupts: bool) -> Any:
        turns = {"turn": self.programs.turn, "warm_up_turn": self.programs.warm_up_turn}

        def with_held(turn: Any) -> Any:
            return lambda weights, *given: turn(acting_weights(weights, step), *given)

        with mock.patch.multiple(self.programs, **{name: with_held(turn) for name, turn in turns.items()}):
            return store(self, state, group, moves, step, interrupts)

    with mock.patch.object(HostCollector, "_store", stored):
        yield


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS), default=list(VARIANTS), help="(default: all)")
    parser.add_argument("--game", default="Seaquest", help="Atari game (default: Seaquest)")
    parser.add_argument("--steps", type=int, default=2_000_000, help="agent steps of each seed (default: 2,000,000)")
    parser.add_argument("--evaluation-steps", type=int, default=5_000, help="per million frames (default: 5,000)")
    parser.add_argument("--out", type=Path, required=True, help="folder of the runs, one for each variant")
    options = parser.parse_args()
    if jax.default_backend() != "gpu":
        raise InputError("this benchmark needs a GPU, but JAX finds none")
    writable_folder(options.out)
    for name in options.only:
        chosen = VARIANTS[name]
        folder = options.out / name
        if (folder / "config.json").exists() and mh.load_run(folder).finished:
            print(f"{name}: finished before", flush=True)
            continue
        print(name, flush=True)
        with acting_period(chosen.get("acting_period")):
            mh.train(
                mh.agent("rainbow", **chosen.get("settings", {})),
                f"atari/{options.game}",
                steps=options.steps,
                training_steps=250_000,
                evaluation_steps=options.evaluation_steps,
                num_evaluation_envs=10,
                seeds=3,
                num_envs=chosen.get("num_envs"),
                checkpoint_replay=False,
                checkpoint_minutes=1_000,
                out=folder,
                watcher=mh.PrintedProgress(),
            )


if __name__ == "__main__":
    main()
