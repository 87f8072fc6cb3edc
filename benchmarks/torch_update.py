"""Makes the PyTorch updates that `update.py` measures.

An update has three forms:

- `eager` is not compiled.
- `compiled` is one compiled program. PyTorch's own fused Adam is not part of this program.
- `graph` captures several compiled updates in a CUDA graph and replays the graph.

`torch_check.py` compares the updates with `Learner.learn`.
"""

import gc
import time
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch_agent import BETAS, EPSILON, LEARNING_RATE, Agent

from multihorizon.errors import InputError

FORMS = ("eager", "compiled", "graph")
# `autotune` adds the option `max_autotune`. PyTorch's mode "max-autotune-no-cudagraphs" would also tune by coordinate
# descent, which takes minutes.
OPTIONS = {"assert_indirect_indexing": False}


class Measured(NamedTuple):
    rounds: list[float]  # microseconds per update and seed in each round
    most_bytes: int | None  # peak memory on a GPU


def check_device(device: str) -> None:
    if device == "cuda" and not torch.cuda.is_available():
        raise InputError("PyTorch finds no GPU")


class Subject:
    """One or more seeds of an agent, and their updates in each of `FORMS`.

    All seeds share one compiled program. On a GPU, each seed has its own stream, so that seeds run in parallel.
    """

    def __init__(
        self,
        heads: int,
        actions: int,
        dtype: str,
        frames: int,
        convolve: str,
        adam: str,
        device: str = "cuda",
        autotune: bool = False,
        seeds: int = 1,
    ) -> None:
        release()
        torch.set_float32_matmul_precision("high")  # allows TF32, which cuDNN uses by default
        torch.backends.cudnn.benchmark = True
        torch.manual_seed(0)
        if device == "cuda":
            torch.cuda.reset_peak_memory_stats()
        self.device = device
        self.agents = [Agent(heads, actions, dtype, frames, convolve, adam, device) for _ in range(seeds)]
        self.optimisers: list[torch.optim.Adam] = []
        if adam == "fused":
            self.optimisers = [
                torch.optim.Adam(
                    agent.state.masters, LEARNING_RATE, BETAS, EPSILON, fused=True, capturable=device == "cuda"
                )
                for agent in self.agents
            ]
        self._streams = [torch.cuda.Stream() for _ in self.agents] if device == "cuda" and seeds > 1 else []
        self._options = OPTIONS | {"max_autotune": autotune}
        self._compiled: Any = None

    def update(self, form: str, draws: torch.Tensor | None = None, seed: int = 0) -> None:
        agent, learn = self.agents[seed], self.agents[0].learn
        if form != "eager" and self._compiled is None:
            self._compiled = torch.compile(learn, fullgraph=True, dynamic=False, options=self._options)
        program = self._compiled if form != "eager" else learn
        with torch.no_grad():
            gradients = program(agent.state, agent.replay, draws)
            if not self.optimisers:
                return
            for master, gradient in zip(agent.state.masters, gradients, strict=True):
                master.grad = gradient
            self.optimisers[seed].step()
            if agent.state.rounded is not None:
                torch._foreach_copy_(agent.state.rounded, agent.state.masters)

    def runner(self, form: str, updates: int, draws: torch.Tensor | None = None) -> Callable[[], None]:

        def several(updates: int = updates) -> None:
            # This loop comes before the first update, because the current stream may be the stream of a seed.
            for stream in self._streams:
                stream.wait_stream(torch.cuda.current_stream())
            for seed in range(len(self.agents)):
                with torch.cuda.stream(self._streams[seed]) if self._streams else nullcontext():
                    for _ in range(updates):
                        self.update(form, draws, seed)
            for stream in self._streams:
                torch.cuda.current_stream().wait_stream(stream)

        if form != "graph":
            return several
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            several(3)
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.compiler.set_stance("fail_on_recompile"), torch.cuda.graph(graph, capture_error_mode="thread_local"):
            several()
        replay: Callable[[], None] = graph.replay
        return replay

    @property
    def steps(self) -> int:
        """The total number of updates of all seeds."""
        if not self.optimisers:
            return sum(int(agent.state.step) for agent in self.agents)
        first = [agent.state.masters[0] for agent in self.agents]
        return sum(int(adam.state[weight]["step"]) for adam, weight in zip(self.optimisers, first, strict=True))

    @property
    def is_finite(self) -> bool:
        return all(
            bool(torch.isfinite(tensor).all())
            for agent in self.agents
            for tensor in (agent.state.losses, *agent.state.masters)
        )


def release() -> None:
    """Clears compiled programs and frees memory on the device."""
    torch._dynamo.reset()
    gc.collect()
    if torch.cuda.is_available():
        torch._C._cuda_clearCublasWorkspaces()  # otherwise later measurements would count this memory
        torch.cuda.empty_cache()


def measured(subject: Subject, form: str, updates: int, rounds: int = 5, times: int = 20) -> Measured:
    """Measures one form. Raises RuntimeError if PyTorch cannot run the form."""
    on_gpu = subject.device == "cuda"
    wait: Callable[[], None] = torch.cuda.synchronize if on_gpu else lambda: None
    run = subject.runner(form, updates)
    for _ in range(3):
        run()
    wait()
    before, taken = subject.steps, []
    for _ in range(rounds):
        wait()
        begun = time.perf_counter()
        for _ in range(times):
            run()
        wait()
        taken.append(1e6 * (time.perf_counter() - begun) / times / updates / len(subject.agents))
    asked, made = rounds * times * updates * len(subject.agents), subject.steps - before
    if made != asked:
        raise RuntimeError(f"expected {asked} updates, but {made} were made")
    if not subject.is_finite:
        raise RuntimeError("the losses or the weights are not finite")
    return Measured(taken, torch.cuda.max_memory_allocated() if on_gpu else None)
