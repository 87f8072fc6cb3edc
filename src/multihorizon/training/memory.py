"""Estimates the memory of a run and checks that it is available, before training starts."""

import math
import os
from pathlib import Path

import jax

from multihorizon.errors import InputError
from multihorizon.training.trainer import Trainer


def needed_bytes(trainer: Trainer) -> tuple[int, int]:
    """Returns the bytes of the replay buffers, and the total with weights, targets, moments and gradients."""
    state = jax.eval_shape(lambda: trainer.init(0))
    sizes = {
        name: sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(part)) for name, part in state._asdict().items()
    }
    parameters = sum(x.size * x.dtype.itemsize for x in jax.tree.leaves(state.learner.parameters))
    return sizes["replay"], sum(sizes.values()) + 2 * parameters  # gradients and updates


def available_bytes() -> float:
    """Returns the free memory of the device, or of the machine or container if the device is the CPU.

    Without /proc/meminfo, it returns the total memory of the machine.
    """
    stats = jax.local_devices()[0].memory_stats()
    if stats and "bytes_limit" in stats:
        return int(stats["bytes_limit"] - stats.get("bytes_in_use", 0))
    known = Path("/proc/meminfo")
    if known.exists():  # free memory, including caches
        line = next(line for line in known.read_text().splitlines() if line.startswith("MemAvailable"))
        return min(int(line.split()[1]) * 1024, _left_to_container())
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _left_to_container() -> float:
    limit, used = Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory.current")
    if not (limit.exists() and used.exists()) or limit.read_text().strip() == "max":
        return math.inf
    cached = dict(line.split() for line in Path("/sys/fs/cgroup/memory.stat").read_text().splitlines())
    return int(limit.read_text()) - int(used.read_text()) + int(cached["inactive_file"])


def check(*trainers: Trainer) -> str:
    """Returns one line about the memory that the trainers need together.

    Raises:
        InputError: If less memory is available.
    """
    replay, whole = map(sum, zip(*map(needed_bytes, trainers), strict=True))
    available = available_bytes()
    if whole > available:
        raise InputError(
            f"this run needs {_size(whole)} of memory ({_size(replay)} for replay), but only {_size(available)} are "
            "free; use fewer horizons, fewer seeds or a smaller replay buffer"
        )
    return f"memory: {_size(whole)}, of which {_size(replay)} is replay"


def _size(count: float) -> str:
    return f"{count / 1e9:,.2f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
