"""A run's directory: its whole configuration, a line of metrics for each chunk, and its weights. Nothing that runs code
when it is read."""

import json
import platform
from dataclasses import fields, is_dataclass
from enum import Enum
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, PyTree

from multihorizon.discounting import Horizons
from multihorizon.errors import InputError
from multihorizon.files import atomically, write_json

CONFIGURATION, METRICS, WEIGHTS = "config.json", "metrics.jsonl", "weights.npz"


def plain(value: Any) -> Any:
    """A configuration as JSON: dataclasses become objects that name their type, choices their names."""
    if isinstance(value, Horizons):
        return {"gammas": value.gammas.tolist(), "weights": value.weights.tolist()}
    if is_dataclass(value) and not isinstance(value, type):
        return {"type": type(value).__name__} | {f.name: plain(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, Enum):
        return value.name
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, tuple | list):
        return [plain(item) for item in value]
    return value


def versions() -> dict[str, str]:
    packages = ("multihorizon", "jax", "equinox", "optax", "numpy")
    return {"python": platform.python_version()} | {name: version(name) for name in packages}


class Records:
    """Writes one run. A folder that holds a run already is refused rather than overwritten."""

    def __init__(self, folder: Path, configuration: dict[str, Any]) -> None:
        if (folder / CONFIGURATION).exists():
            raise InputError(f"{folder} holds a run already; choose another folder with --out")
        self.folder = folder
        write_json(folder / CONFIGURATION, plain(configuration) | {"versions": versions()})

    def metrics(self, line: dict[str, Any]) -> None:
        with (self.folder / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")

    def weights(self, parameters: PyTree[Array], suffix: str = "") -> Path:
        path = self.folder / WEIGHTS.replace(".", f"{suffix}.")
        named: dict[str, Any] = {
            jax.tree_util.keystr(key): np.asarray(leaf) for key, leaf in jax.tree_util.tree_leaves_with_path(parameters)
        }
        with atomically(path) as file, file.open("wb") as stream:
            np.savez(stream, allow_pickle=False, **named)
        return path


def load_weights(path: Path, like: PyTree[Array]) -> PyTree[Array]:
    """The weights of a run, in the structure of `like`."""
    with np.load(path, allow_pickle=False) as held:
        leaves, structure = jax.tree_util.tree_flatten_with_path(like)
        return jax.tree_util.tree_unflatten(
            structure, [jnp.asarray(held[jax.tree_util.keystr(key)]) for key, _ in leaves]
        )
