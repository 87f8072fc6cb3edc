"""One update on a GPU, everything included: sampling by priority from a full replay of a million frames, stacks, target
and online passes, projection, gradients, Adam, new priorities.

    python benchmarks/update.py --torch --out results/speed/update.json

One thing at a time is changed from 10 heads, 18 actions, one seed and bfloat16. `--plain` adds the same with XLA's
convolutions, and `--torch` the same work in PyTorch, compiled and replayed as a CUDA graph (`torch_update.py`), in the
same run. `--profile DIR` writes a trace of some updates and prints the kernels that take most of the time.
"""

import argparse
import collections
import gc
import glob
import gzip
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np

from multihorizon.agents import replay as replays
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import NATURE, Convolve, convolve_for
from multihorizon.agents.presets import preset
from multihorizon.agents.replay import ReplayShape
from multihorizon.discounting import hazard, paper_grid, single
from multihorizon.errors import InputError, at_least
from multihorizon.files import writable_file, write_json
from multihorizon.training.compiling import compiled, updates

BATCHES = 32  # programs with draws of their own, before they come again


class Subject:
    """Some seeds of an agent with a full replay, and some updates of them as one program."""

    def __init__(
        self,
        heads: int,
        actions: int,
        seeds: int,
        dtype: str,
        capacity: int,
        streams: int = 80,
        convolve: Convolve | None = None,
        updates: int = 20,
    ) -> None:
        horizons = single(0.99) if heads == 1 else paper_grid(hazard.Exponential(0.01), heads, 0.99)
        agent = replace(preset("multi-rainbow"), horizons=horizons, compute_dtype=dtype)
        how = convolve or convolve_for(in_loop=True)
        self.learner = Learner(agent, actions, (84, 84, 4), NATURE, how)
        self.shape = ReplayShape(capacity, streams, (84, 84, 1), "uint8", 4, agent.n_steps, agent.batch)
        keys = jax.random.split(jax.random.key(0), seeds)
        self.held = jax.jit(jax.vmap(lambda key: (self.learner.init(key), self._full(key))))(keys)
        self.updates = updates
        self.losses = jnp.zeros((seeds, updates, heads))
        # As in training nothing is held anew, so that a CUDA graph finds all of it where it was.
        self.run_ = compiled(jax.vmap(self._updates), donate_argnums=(0, 1), keep_unused=True)
        self.keys = [jax.random.split(jax.random.key(i + 1), seeds) for i in range(BATCHES)]
        self.calls = 0

    def _full(self, key: Any) -> replays.Replay:
        replay = replays.init(self.shape)
        ages = jnp.full(replay.ages.shape, 100, jnp.uint8)
        priorities = jax.random.uniform(key, replay.priorities.shape, minval=0.1)
        rewards = jax.random.bernoulli(key, 0.1, replay.rewards.shape).astype(jnp.float32)
        written = jnp.full(self.shape.streams, self.shape.rows, jnp.int32)
        return replay._replace(
            ages=ages, priorities=priorities, block_sums=priorities.sum(axis=1), rewards=rewards, written=written
        )

    def _updates(self, held: Any, losses: Any, key: Any) -> Any:
        del losses  # the memory for those to come

        def one(carry: Any, key: Any) -> Any:
            state, replay, metrics = self.learner.learn(self.shape, *carry, key)
            return (state, replay), metrics.losses

        return updates(one, held, jax.random.split(key, self.updates))

    def run(self, times: int) -> None:
        for _ in range(times):
            self.held, self.losses = self.run_(self.held, self.losses, self.keys[self.calls % BATCHES])
            self.calls += 1
        jax.block_until_ready(self.losses)

    @property
    def learner_seeds(self) -> int:
        return int(jax.tree.leaves(self.held)[0].shape[0])


def microseconds(subject: Subject, rounds: int = 5, times: int = 20) -> float:
    subject.run(3)
    taken = []
    for _ in range(rounds):
        begun = time.perf_counter()
        subject.run(times)
        taken.append((time.perf_counter() - begun) / times / subject.updates / subject.learner_seeds)
    return 1e6 * float(np.median(taken))


def kernels(folder: Path) -> list[dict[str, Any]]:
    """The kernels of a profile, in the order in which they began."""
    paths = glob.glob(f"{folder}/**/*.trace.json.gz", recursive=True)
    if not paths:
        raise InputError(f"there is no profile in {folder}")
    with gzip.open(paths[0]) as file:
        events = json.load(file)["traceEvents"]
    devices = {e["pid"] for e in events if e.get("name") == "process_name" and "GPU" in e["args"]["name"]}
    threads = {
        (e["pid"], e["tid"])
        for e in events
        if e.get("name") == "thread_name" and e["pid"] in devices and "Stream" in e["args"]["name"]
    }
    found = [e for e in events if e.get("ph") == "X" and (e["pid"], e["tid"]) in threads]
    return sorted(found, key=lambda e: float(e["ts"]))


def profile(subject: Subject, folder: Path) -> None:
    subject.run(3)
    with jax.profiler.trace(str(folder)):
        subject.run(3)
    (folder / "program.txt").write_text(
        subject.run_.lower(subject.held, subject.losses, subject.keys[0]).compile().as_text()
    )
    total: collections.Counter[str] = collections.Counter()
    count: collections.Counter[str] = collections.Counter()
    for event in kernels(folder):
        total[event["name"]] += event["dur"]
        count[event["name"]] += 1
    made = 3 * subject.updates
    print(f"kernels: {sum(count.values()) / made:.0f} an update, {sum(total.values()) / made:.0f} µs busy")
    for name, duration in total.most_common(60):
        print(f"{duration / made:8.2f} µs {count[name] / made:5.1f} × {name[:90]}")


USUAL = {"heads": 10, "actions": 18, "seeds": 1, "dtype": "bfloat16"}
CHANGES = [{}, {"heads": 1}, {"heads": 30}, {"actions": 4}, {"seeds": 3}, {"seeds": 8}, {"dtype": "float32"}]


def row(how: str, case: dict[str, Any], taken: float, usual: float | None) -> str:
    sizes = " | ".join(str(case[name]) for name in USUAL)
    return f"| {how} | {sizes} | {taken:.0f} | {f'{taken / usual:.2f}' if usual else '1'} |"


def peers(frames: int, updates: int) -> Iterator[tuple[str, float]]:
    """PyTorch's updates of the usual case, for every way of convolving and of compiling."""
    import torch_update

    for autotune in (False, True):
        for convolve in ("plain", "products"):
            taken = torch_update.microseconds(
                USUAL["heads"],
                USUAL["actions"],
                USUAL["dtype"],
                frames,
                updates=updates,
                convolve=convolve,
                autotune=autotune,
            )
            compiled = "compiled and autotuned" if autotune else "compiled"
            yield f"PyTorch, {compiled}, CUDA graph, {convolve} convolutions", taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="+", help="cases, by their number in the table")
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=20, help="in a program; in training usually 10")
    parser.add_argument("--plain", action="store_true")
    parser.add_argument("--torch", action="store_true")
    parser.add_argument("--profile", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if not set(options.only or ()) <= set(range(len(CHANGES))):
        raise InputError(f"--only takes cases from 0 to {len(CHANGES) - 1}")
    if jax.default_backend() != "gpu":
        raise InputError(f"this measures a GPU, and JAX finds none, only: {jax.default_backend()}")
    writable_file(options.out)
    sizes = {"capacity": options.frames, "updates": at_least("--updates", options.updates, 1)}
    results: list[dict[str, Any]] = []
    usual: float | None = None

    def told(how: str, case: dict[str, Any], taken: float, **more: Any) -> None:
        print(row(how, case, taken, usual), flush=True)
        results.append({"how": how, **case, "microseconds": taken, **more})
        versions = {name: version(name) for name in ("jax", *(["torch"] if options.torch else []))}
        about = {"device": jax.devices()[0].device_kind, **versions, "updates_in_a_program": options.updates}
        write_json(options.out, about | {"updates": results})

    print(
        "| | heads | actions | seeds | | µs per update and seed | to the first |\n|---|---|---|---|---|---|---|",
        flush=True,
    )
    for number, change in enumerate(CHANGES):
        if options.only is None or number in options.only:
            case = USUAL | change
            subject = Subject(**case, **sizes)
            taken = microseconds(subject)
            told("ours", case, taken, device_bytes=memory())
            usual = usual or taken
            if options.profile and number == 0:
                profile(subject, options.profile)
            del subject
            gc.collect()  # a learner holds itself through its compiled methods, and with it the device's memory
    if options.plain:
        told(
            "ours, with XLA's convolutions",
            USUAL,
            microseconds(Subject(**USUAL, **sizes, convolve=Convolve.PLAIN)),
        )
    for how, taken in peers(options.frames, options.updates) if options.torch else []:
        told(how, USUAL, taken)


def memory() -> int:
    """On the device, of all that is held."""
    return sum(array.nbytes for array in jax.live_arrays())


if __name__ == "__main__":
    main()
