"""Checks whether XLA overwrites a donated array too early on this device. Takes seconds.

    python benchmarks/donation.py --out results/float32/donation.json

A small program runs once without and once with donation of its four arguments. The program replaces `target` by a copy
of `parameters`, and returns the other three arrays unchanged. An earlier version of training updated the target network
in this way.
"""

import argparse
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp

from multihorizon.files import writable_file, write_json

NAMES = ("parameters", "target", "first moment", "second moment")
EXPECTED = [1.0, 1.0, 3.0, 4.0]


def copy_target(parameters: Any, target: Any, first: Any, second: Any) -> tuple[Any, ...]:
    del target
    return parameters, jnp.copy(parameters), first, second


def returned(donated: tuple[int, ...]) -> list[float]:
    arrays = [jnp.full(1 << 20, value) for value in (1.0, 2.0, 3.0, 4.0)]
    return [float(array[0]) for array in jax.jit(copy_target, donate_argnums=donated)(*arrays)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="JSON file for the returned values")
    options = parser.parse_args()
    writable_file(options.out)
    found = {"not donated": returned(()), "donated": returned((0, 1, 2, 3))}
    for how, values in found.items():
        wrong = [name for name, value, right in zip(NAMES, values, EXPECTED, strict=True) if value != right]
        print(f"{how}: " + (f"wrong values in the {', '.join(wrong)}" if wrong else "all values are right"))
    device = jax.devices()[0].device_kind
    write_json(options.out, {"device": device, "jax": jax.__version__, "expected": EXPECTED, "returned": found})


if __name__ == "__main__":
    main()
