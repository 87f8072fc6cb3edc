"""Measures one complete update.

An update includes prioritised sampling, frame stacks, both networks, projection, gradients, Adam and new priorities.

    python benchmarks/update.py --torch --out results/speed/update.json

Case 0 has 10 heads, 18 actions, one seed and bfloat16 (float32 on a CPU). Every other case changes one of these four
settings.

- `--plain` adds case 0 without the library's GPU kernels for convolutions and heads.
- `--torch` adds the same work in compiled PyTorch (`pip install torch`). On a GPU, the compiled program is replayed as
  a CUDA graph.
- `--autotune` adds case 0 in autotuned PyTorch, which takes minutes.
- `--profile DIR` writes a trace of some updates on a GPU, and prints the kernels that take most of the time.
"""

import argparse
import collections
import gc
import glob
import gzip
import json
import os
import time
from collections.abc import Iterator
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np

from multihorizon.agents import replay as replays
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import NATURE
from multihorizon.agents.presets import preset
from multihorizon.agents.replay import ReplayShape
from multihorizon.discounting import hazard, paper_grid, single
from multihorizon.errors import InputError, at_least
from multihorizon.files import writable_file, write_json
from multihorizon.kernels.convolution import Convolve, convolve_for
from multihorizon.training.compiling import compiled, updates

BATCHES = 32  # number of random keys, which are used in turn, so that calls draw different batches
ROUNDS = 5


class Sizes(NamedTuple):
    frames: int
    updates: int  # per program; one on a CPU, as in training
    times: int  # runs of a program in each round


SIZES = {"gpu": Sizes(1_000_000, 20, 20), "cpu": Sizes(50_000, 1, 10)}


class Subject:
    """Several seeds of an agent with full replay buffers, and one program that updates each seed several times."""

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
        self.seeds = seeds
        horizons = single(0.99) if heads == 1 else paper_grid(hazard.Exponential(0.01), heads, gamma_max=0.99)
        agent = replace(preset("multi-rainbow"), horizons=horizons, compute_dtype=dtype)
        how = convolve or convolve_for(in_loop=updates > 1 or seeds > 1)
        self.learner = Learner(agent, actions, (84, 84, 4), NATURE, how)
        self.shape = ReplayShape(capacity, streams, (84, 84, 1), "uint8", 4, agent.n_steps, agent.batch)
        keys = jax.random.split(jax.random.key(0), seeds)
        self.held = jax.jit(jax.vmap(lambda key: (self.learner.init(key), self._full(key))))(keys)
        self.updates = updates
        self.losses = jnp.zeros((seeds, updates, heads))
        # As in training, no memory is reallocated, so that a CUDA graph can be reused.
        self.run_: Any = compiled(jax.vmap(self._updates), donate_argnums=(0, 1), keep_unused=True)
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
        del losses  # XLA writes the next losses to the memory of this argument

        def one(carry: Any, key: Any) -> Any:
            state, replay = carry
            state, replay, metrics = self.learner.learn(self.shape, state, replay, key)
            return (state, replay), metrics.losses

        if self.updates == 1:  # in a loop on a CPU, XLA's convolutions would be single-threaded
            held, losses = one(held, key)
            return held, losses[None]
        return updates(one, held, jax.random.split(key, self.updates))

    def run(self, times: int) -> None:
        for _ in range(times):
            self.held, self.losses = self.run_(self.held, self.losses, self.keys[self.calls % BATCHES])
            self.calls += 1
        jax.block_until_ready(self.losses)

    def program(self) -> Any:
        return self.run_.lower(self.held, self.losses, self.keys[0]).compile()

    def bytes_held(self) -> int:
        return sum(array.nbytes for array in jax.live_arrays())

    def bytes_at_most(self) -> int:
        """Returns the bytes of the state and of XLA's temporary buffers."""
        return self.bytes_held() + int(self.program().memory_analysis().temp_size_in_bytes)


def microseconds(subject: Subject, times: int) -> list[float]:
    """Returns the microseconds per update and seed in each round."""
    subject.run(3)
    taken = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        subject.run(times)
        taken.append(1e6 * (time.perf_counter() - begun) / times / subject.updates / subject.seeds)
    return taken


def kernels(folder: Path) -> list[dict[str, Any]]:
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
    (folder / "program.txt").write_text(subject.program().as_text())
    total: collections.Counter[str] = collections.Counter()
    count: collections.Counter[str] = collections.Counter()
    for event in kernels(folder):
        total[event["name"]] += event["dur"]
        count[event["name"]] += 1
    made = 3 * subject.updates
    print(f"kernels: {sum(count.values()) / made:.0f} per update, {sum(total.values()) / made:.0f} µs busy")
    for name, duration in total.most_common(60):
        print(f"{duration / made:8.2f} µs {count[name] / made:5.1f} × {name[:90]}")


USUAL = {"heads": 10, "actions": 18, "seeds": 1}
CHANGES: list[dict[str, Any]] = [{}, {"heads": 1}, {"heads": 30}, {"actions": 4}, {"seeds": 3}, {"seeds": 8}]
DTYPES = {"gpu": ("bfloat16", "float32"), "cpu": ("float32", "bfloat16")}  # the usual precision comes first
ONLY = (
    "cases: 0 = default, 1 = one head, 2 = thirty heads, 3 = four actions, 4 = three seeds, 5 = eight seeds, "
    "6 = other dtype"
)
CONVOLUTIONS = {"plain": "plain convolutions", "products": "convolutions as matrix products"}
COLUMNS = ("", *USUAL, "", "µs per update and seed", "relative to the first row", "relative to ours", "GB")


def cases(backend: str) -> list[dict[str, Any]]:
    usual, other = DTYPES[backend]
    return [USUAL | {"dtype": usual} | change for change in (*CHANGES, {"dtype": other})]


class Table:
    def __init__(self, out: Path, about: dict[str, Any]) -> None:
        self.out, self.about = out, about
        self.rows: list[dict[str, Any]] = []
        self.failures: list[dict[str, Any]] = []
        print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)

    def add(self, how: str, case: dict[str, Any], rounds: list[float], **more: Any) -> None:
        taken = float(np.median(rounds))
        row = {"how": how, **case, "microseconds": taken, "rounds": rounds, **more}
        self.rows.append(row)
        ours = next(one for one in self.rows if one["how"] == "ours" and case.items() <= one.items())
        ratios = [f"{taken / to['microseconds']:.2f}" for to in (self.rows[0], ours)]
        memory = f"{row['most_bytes'] / 1e9:.1f}" if row.get("most_bytes") else ""
        print("| " + " | ".join([how, *map(str, case.values()), f"{taken:.0f}", *ratios, memory]) + " |", flush=True)
        self._write()

    def failed(self, how: str, case: dict[str, Any], why: str) -> None:
        self.failures.append({"how": how, **case, "why": why})
        print(f"FAILED: {how}, {case}: {why}", flush=True)
        self._write()

    def _write(self) -> None:
        write_json(self.out, self.about | {"updates": self.rows, "failures": self.failures})


def peers(case: dict[str, Any], sizes: Sizes, usual: bool, autotune: bool) -> Iterator[tuple[str, Any]]:
    """Measures a case in PyTorch. Case 0 is also measured with PyTorch's own Adam and, on request, autotuned."""
    import torch_update

    on_gpu = jax.default_backend() == "gpu"
    device, form, replayed = ("cuda", "graph", ", CUDA graph") if on_gpu else ("cpu", "compiled", "")
    ways = [("plain", "traced", False), ("products", "traced", False)]
    if usual:
        ways += [("plain", "fused", False)]
    if usual and autotune:
        ways += [("plain", "traced", True), ("products", "traced", True)]
    for convolve, adam, tuned in ways:
        compiled = "compiled and autotuned" if tuned else "compiled"
        own = ", PyTorch's own fused Adam" if adam == "fused" else ""
        how = f"PyTorch, {compiled}{replayed}, {CONVOLUTIONS[convolve]}{own}"
        subject: Any = None
        try:
            subject = torch_update.Subject(
                case["heads"],
                case["actions"],
                case["dtype"],
                sizes.frames,
                convolve,
                adam,
                device,
                tuned,
                case["seeds"],
            )
            yield how, torch_update.measured(subject, form, sizes.updates, ROUNDS, sizes.times)
        except RuntimeError as problem:  # out of memory, or PyTorch cannot run this form
            yield how, f"{type(problem).__name__}: {str(problem)[:500]}"
        subject = None
        torch_update.release()


def ours(table: Table, case: dict[str, Any], sizes: Sizes, plain: bool, profile_to: Path | None) -> None:
    subject = Subject(**case, capacity=sizes.frames, updates=sizes.updates)
    taken = microseconds(subject, sizes.times)
    table.add("ours", case, taken, device_bytes=subject.bytes_held(), most_bytes=subject.bytes_at_most())
    if profile_to:
        profile(subject, profile_to)
    del subject
    gc.collect()  # a learner and its compiled methods form a reference cycle that keeps device memory allocated
    if plain:
        subject = Subject(**case, capacity=sizes.frames, updates=sizes.updates, convolve=Convolve.PLAIN)
        table.add("ours, without kernels for convolutions and heads", case, microseconds(subject, sizes.times))
        del subject
        gc.collect()


def sizes_of(backend: str, frames: int | None, updates: int | None) -> Sizes:
    usual = SIZES[backend]
    frames, updates = usual.frames if frames is None else frames, usual.updates if updates is None else updates
    return Sizes(at_least("--frames", frames, 1_000), at_least("--updates", updates, 1), usual.times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", type=int, nargs="+", help=ONLY)
    parser.add_argument("--frames", type=int, help="frames in the replay buffer (default: a million; on a CPU 50,000)")
    parser.add_argument("--updates", type=int, help="updates in one program (default: 20; on a CPU 1)")
    parser.add_argument(
        "--plain", action="store_true", help="also measure case 0 without kernels for convolutions and heads"
    )
    parser.add_argument("--torch", action="store_true", help="also measure the same work in PyTorch")
    parser.add_argument("--autotune", action="store_true", help="also measure case 0 in autotuned PyTorch (minutes)")
    parser.add_argument("--profile", type=Path, help="folder for a trace of case 0, on a GPU")
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the measurements")
    options = parser.parse_args()
    os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", "0.5")  # leaves half of a GPU's memory to PyTorch
    backend = jax.default_backend()
    if backend not in SIZES:
        raise InputError(f"this benchmark needs a GPU or a CPU, but JAX uses {backend}")
    if options.profile and backend != "gpu":
        raise InputError(f"--profile needs a GPU, but JAX uses {backend}")
    if options.autotune and not (options.torch and backend == "gpu"):
        raise InputError("--autotune needs --torch and a GPU that JAX can use")
    chosen = cases(backend)
    only = list(range(len(chosen))) if options.only is None else options.only
    if not set(only) <= set(range(len(chosen))):
        raise InputError(f"--only takes cases from 0 to {len(chosen) - 1}")
    if (options.plain or options.profile or options.autotune) and 0 not in only:
        raise InputError("--plain, --autotune and --profile measure case 0; add 0 to --only")
    if options.torch:
        import torch_update

        torch_update.check_device("cuda" if backend == "gpu" else "cpu")
    sizes = sizes_of(backend, options.frames, options.updates)
    writable_file(options.out)
    versions = {name: version(name) for name in ("jax", *(["torch"] if options.torch else []))}
    about = {"device": f"{jax.devices()[0].device_kind}, {os.cpu_count()} cores", **versions}
    table = Table(options.out, about | {"frames": sizes.frames, "updates_in_a_program": sizes.updates})
    for number in only:
        usual = number == 0
        ours(table, chosen[number], sizes, options.plain and usual, options.profile if usual else None)
        for how, found in peers(chosen[number], sizes, usual, options.autotune) if options.torch else []:
            if isinstance(found, str):
                table.failed(how, chosen[number], found)
            else:
                table.add(how, chosen[number], found.rounds, most_bytes=found.most_bytes)
    if table.failures:
        raise SystemExit(f"{len(table.failures)} PyTorch measurements FAILED; see above")


if __name__ == "__main__":
    main()
