"""The update that `update.py` measures, in PyTorch and as fast as PyTorch makes it: the peer to measure beside.

    pip install torch
    python benchmarks/torch_update.py --out torch_update.json

The same work: draws by priority from a full replay whose frames are stored once, stacks, target and online passes,
projection, gradients, Adam, new priorities. All of it is one compiled program; several runs of it are captured in a
CUDA graph, which is replayed. `--check` compares it with `Learner.learn` instead, on the CPU or, with `--device cuda`,
as it runs on a GPU.
"""

import argparse
import gc
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import numpy as np
import torch
from torch_agent import ADAMS, BETAS, CONVOLVES, EPSILON, LEARNING_RATE, Agent

from multihorizon.errors import InputError
from multihorizon.files import write_json

FORMS = ("eager", "compiled", "graph")
# Autotuned: as mode="max-autotune-no-cudagraphs", without its coordinate descent, which takes minutes.
OPTIONS = {"assert_indirect_indexing": False}
COLUMNS = ("heads", "actions", "dtype", "convolve", "adam", "form", "microseconds", "seconds_to_prepare")


class Subject:
    """An agent, and its updates in each of the forms."""

    def __init__(
        self,
        heads: int,
        actions: int,
        dtype: str,
        frames: int,
        convolve: str,
        adam: str,
        device: str = "cuda",
        autotune: bool = True,
    ) -> None:
        release()
        torch.set_float32_matmul_precision("high")  # TF32; cuDNN has it by default
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(0)
        self.agent = Agent(heads, actions, dtype, frames, convolve, adam, device)
        self.optimiser: torch.optim.Adam | None = None
        if adam == "fused":
            self.optimiser = torch.optim.Adam(
                self.agent.state.masters, LEARNING_RATE, BETAS, EPSILON, fused=True, capturable=device == "cuda"
            )
        self._options = OPTIONS | {"max_autotune": autotune}
        self._compiled: Any = None

    def update(self, form: str, draws: torch.Tensor | None = None) -> None:
        agent = self.agent
        if form != "eager" and self._compiled is None:
            self._compiled = torch.compile(agent.learn, fullgraph=True, dynamic=False, options=self._options)
        program = self._compiled if form != "eager" else agent.learn
        with torch.no_grad():
            gradients = program(agent.state, agent.replay, draws)
            if self.optimiser is None:
                return
            for master, gradient in zip(agent.state.masters, gradients, strict=True):
                master.grad = gradient
            self.optimiser.step()
            if agent.state.rounded is not None:
                torch._foreach_copy_(agent.state.rounded, agent.state.masters)

    def runner(self, form: str, updates: int, draws: torch.Tensor | None = None) -> Callable[[], None]:
        """What does so many updates when called. A graph is captured here, after a few updates that warm it up."""

        def several() -> None:
            for _ in range(updates):
                self.update(form, draws)

        if form != "graph":
            return several
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.update(form, draws)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.compiler.set_stance("fail_on_recompile"), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            several()
        replay: Callable[[], None] = graph.replay
        return replay

    @property
    def steps(self) -> int:
        if self.optimiser is None:
            return int(self.agent.state.step)
        return int(self.optimiser.state[self.agent.state.masters[0]]["step"])


def release() -> None:
    """Forgets compiled programs, and gives memory back to others on the device."""
    torch._dynamo.reset()
    gc.collect()
    torch.cuda.empty_cache()


def microseconds(
    heads: int,
    actions: int,
    dtype: str,
    frames: int = 1_000_000,
    form: str = "graph",
    updates: int = 20,
    convolve: str = "plain",
    adam: str = "traced",
    autotune: bool = True,
) -> float:
    """Of one update, on a GPU. Raises RuntimeError where a form does not work; no other takes its place."""
    if not torch.cuda.is_available():
        raise RuntimeError("PyTorch finds no GPU")
    try:
        return measured(Subject(heads, actions, dtype, frames, convolve, adam, autotune=autotune), form, updates)[0]
    finally:
        release()


def measured(subject: Subject, form: str, updates: int, rounds: int = 5, times: int = 20) -> tuple[float, float]:
    """Microseconds of one update, the median over rounds; and the seconds that compiling and capturing took."""
    begun = time.perf_counter()
    run = subject.runner(form, updates)
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    preparing = time.perf_counter() - begun
    before, taken = subject.steps, []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(times):
            run()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - begun) / times / updates)
    if subject.steps - before != rounds * times * updates:
        raise RuntimeError(f"{rounds * times * updates} updates were asked for, {subject.steps - before} were made")
    if not all(torch.isfinite(tensor).all() for tensor in (subject.agent.state.losses, *subject.agent.state.masters)):
        raise RuntimeError("the losses or the weights are not finite")
    return 1e6 * float(np.median(taken)), preparing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heads", type=int, nargs="+", default=[10])
    parser.add_argument("--actions", type=int, nargs="+", default=[18])
    parser.add_argument("--dtypes", nargs="+", default=["float32", "bfloat16"])
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--convolves", nargs="+", choices=CONVOLVES, default=CONVOLVES)
    parser.add_argument("--adams", nargs="+", choices=ADAMS, default=ADAMS)
    parser.add_argument("--frames", type=int, default=1_000_000)
    parser.add_argument("--updates", type=int, default=20, help="in one graph")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--check", action="store_true", help="compare with Learner instead, in every way asked for")
    parser.add_argument("--device", default="cpu", help="to check on")
    options = parser.parse_args()
    ways = list(itertools.product(options.dtypes, options.convolves, options.adams))
    if options.check:
        from torch_check import check

        forms = [form for form in options.forms if options.device == "cuda" or form != "graph"]
        fine = [check(*way, form, options.device) for way in ways for form in forms]
        raise SystemExit(not all(fine))
    if not torch.cuda.is_available():
        raise InputError("PyTorch finds no GPU, and this measures nothing else; --check works without")
    found: dict[str, Any] = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "updates": []}
    print("| " + " | ".join(COLUMNS) + " |\n|" + "---|" * len(COLUMNS), flush=True)
    for actions, heads, (dtype, convolve, adam) in itertools.product(options.actions, options.heads, ways):
        subject = Subject(heads, actions, dtype, options.frames, convolve, adam)
        for form in options.forms:
            row = dict(zip(COLUMNS, (heads, actions, dtype, convolve, adam, form), strict=False))
            try:
                row["microseconds"], row["seconds_to_prepare"] = measured(subject, form, options.updates)
            except RuntimeError as problem:
                row["failed"] = f"{type(problem).__name__}: {problem}"
            shown = [f"{cell:.0f}" if isinstance(cell, float) else str(cell)[:2000] for cell in row.values()]
            print(
                "| " + " | ".join([*shown[:6], *(["FAILED"] if "failed" in row else []), *shown[6:]]) + " |", flush=True
            )
            found["updates"].append(row)
            if options.out:
                write_json(options.out, found)
        del subject
    failures = sum("failed" in row for row in found["updates"])
    if failures:
        raise SystemExit(f"{failures} of {len(found['updates'])} FAILED")


if __name__ == "__main__":
    main()
