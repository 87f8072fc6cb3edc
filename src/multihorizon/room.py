"""Measures the free memory of the device, and checks whether arrays fit into it."""

import math
import os
from pathlib import Path
from typing import Any

import jax

from multihorizon.errors import InputError


def available_bytes() -> float:
    """Returns the free memory of the device, or the total memory of a machine without /proc/meminfo."""
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


def bytes_of(tree: Any) -> int:
    """Returns the size in bytes of the arrays in a tree. Leaves may also be `jax.ShapeDtypeStruct`."""
    return sum(leaf.size * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree) if hasattr(leaf, "shape"))


def check_fits(what: str, needed: float, advice: str) -> None:
    """Raises an error if less memory is free than `what` needs."""
    available = available_bytes()
    if needed > available:
        raise InputError(f"{what} needs {shown(needed)} of memory, but only {shown(available)} are free; {advice}")


def shown(count: float) -> str:
    """Formats a number of bytes for a message."""
    return f"{count / 1e9:,.2f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
