"""The configuration of a run, and its conversion to JSON and back."""

import math
import os
import platform
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import jax
import numpy as np

from multihorizon import __version__
from multihorizon.agents.acting import Epsilon
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.losses import Categorical, Huber
from multihorizon.agents.networks import ConvTorso, MlpTorso, OwnNetwork
from multihorizon.agents.optimisers import Adam, RmsProp
from multihorizon.discounting import Horizons
from multihorizon.errors import (
    InputError,
    at_least,
    between,
    short_text,
    shown,
    store,
    true_or_false,
)
from multihorizon.files import read_json
from multihorizon.runs.folder import CONFIGURATION
from multihorizon.training.schedule import Schedule

LARGEST_SEED = 2**31 - 1


@dataclass(frozen=True)
class Configuration:
    """Every setting of a run.

    Attributes:
        torso: The network without its heads.
        seed: The first seed.
        seeds: The number of seeds that train in parallel.
        environments: The number of environments for each seed.
        checkpoint_minutes: The minimum time between two checkpoints; with 0, every iteration writes a checkpoint.
        checkpoint_replay: Whether checkpoints hold the replay buffer.
        weights_every: The number of iterations between two permanent weights files.
    """

    agent: AgentConfig
    environment: str
    torso: ConvTorso | MlpTorso | OwnNetwork
    schedule: Schedule
    seed: int
    seeds: int
    environments: int
    evaluation_environments: int = 10
    checkpoint_minutes: float = 10.0
    checkpoint_replay: bool = True
    weights_every: int = 10

    def __post_init__(self) -> None:
        for name in ("agent", "schedule", "torso"):
            _check_kind(name, getattr(self, name), get_type_hints(Configuration)[name])
        minutes = between("checkpoint_minutes", self.checkpoint_minutes, 0, math.inf)
        if minutes == math.inf:
            raise InputError("checkpoint_minutes must be finite, got inf")
        store(
            self,
            environment=short_text("the name of an environment", self.environment),
            seed=at_least("seed", self.seed, 0, LARGEST_SEED),
            seeds=at_least("seeds", self.seeds, 1),
            environments=at_least("num_envs", self.environments, 1),
            evaluation_environments=at_least("num_evaluation_envs", self.evaluation_environments, 1),
            checkpoint_minutes=minutes,
            checkpoint_replay=true_or_false("checkpoint_replay", self.checkpoint_replay),
            weights_every=at_least("weights_every", self.weights_every, 1),
        )
        at_least("the last seed", self.seed + self.seeds - 1, 0, LARGEST_SEED)


def _check_kind(name: str, value: Any, hint: Any) -> None:
    """Raises an error unless a value has a declared type. Subclasses are not accepted."""
    kinds = get_args(hint) or (hint,)
    if type(value) not in kinds:
        raise InputError(f"{name} must be {' or '.join(kind.__name__ for kind in kinds)}, got {shown(value)}")


def plain(value: Any) -> Any:
    """Converts a configuration to JSON. A dataclass becomes an object that contains the name of the class."""
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


def difference(held: Any, asked: Any, name: str = "") -> str | None:
    """Describes the first difference between two configurations in JSON. Returns None if they are equal."""
    if isinstance(held, dict) and isinstance(asked, dict):
        parts = [(key, held.get(key), asked.get(key)) for key in held | asked]
    elif isinstance(held, list) and isinstance(asked, list):
        if len(held) != len(asked):
            return f"{name} has {len(held)} values, not {len(asked)}"
        parts = [(str(place), *pair) for place, pair in enumerate(zip(held, asked, strict=True))]
    else:
        return None if held == asked else f"{name} is {_brief(held)}, not {_brief(asked)}"
    found = (difference(a, b, f"{name}.{key}"[-80:] if name else key[-80:]) for key, a, b in parts)
    return next(filter(None, found), None)


def _brief(value: Any) -> str:
    """Formats a setting for a message. Floats keep all digits, because some differ only in the last digits."""
    if isinstance(value, str):
        return shown(value)[1:-1]
    return repr(value) if isinstance(value, float) else shown(value)


KINDS = {
    kind.__name__: kind
    for kind in (
        Configuration,
        AgentConfig,
        Schedule,
        Adam,
        RmsProp,
        Huber,
        Categorical,
        Epsilon,
        ConvTorso,
        MlpTorso,
        OwnNetwork,
    )
} | {"Agent": AgentConfig}  # the name of AgentConfig in older runs


def restored(value: Any, hint: Any = None) -> Any:
    """Inverts `plain`. `hint` is the declared type of the field that holds the value."""
    if isinstance(value, dict) and "gammas" in value:
        return Horizons(np.array(value["gammas"], float), np.array(value["weights"], float))
    if isinstance(value, dict):
        kind: Any = KINDS[value["type"]]
        hints = get_type_hints(kind)
        given = {name: restored(item, hints[name]) for name, item in value.items() if name != "type"}
        for name, item in given.items():
            if not _fits(item, hints[name]):
                wanted = getattr(hints[name], "__name__", str(hints[name]))
                raise TypeError(f"{name} must be {wanted}, got {repr(item)[:80]}")
            if hints[name] is float:
                given[name] = float(item)  # a large int does not fit into the device's integers
        return kind(**given)
    if isinstance(value, list):
        return tuple(restored(item) for item in value)
    if isinstance(value, str):
        for choices in (hint, *get_args(hint)):
            if isinstance(choices, type) and issubclass(choices, Enum):
                return choices[value]
    return value


def _fits(value: Any, hint: Any) -> bool:
    if isinstance(hint, UnionType) or get_origin(hint) is Union:
        return any(_fits(value, one) for one in get_args(hint))
    if get_origin(hint) is Literal:
        return value in get_args(hint)
    if hint in (int, float):
        allowed = int if hint is int else (int, float)
        return isinstance(value, allowed) and not isinstance(value, bool)
    if get_origin(hint) is tuple:
        return isinstance(value, tuple) and _items_fit(value, get_args(hint))
    kind = get_origin(hint) or hint
    return not isinstance(kind, type) or isinstance(value, kind)


def _items_fit(values: tuple[Any, ...], hints: tuple[Any, ...]) -> bool:
    if hints[1:] == (...,):
        return all(_fits(value, hints[0]) for value in values)
    return len(values) == len(hints) and all(map(_fits, values, hints))


def read_configuration(folder: Path) -> Configuration:
    """Reads the configuration of the run in a folder.

    Raises:
        InputError: The folder holds no run, or its configuration is damaged.
    """
    path = folder / CONFIGURATION
    if not os.path.exists(folder):
        raise InputError(f"{folder} does not exist")
    if not os.path.isfile(path):
        raise InputError(f"{folder} is not a run: it has no {CONFIGURATION}")
    content = read_json(path)
    content.pop("versions", None)
    try:
        configuration = restored(content)
    except KeyError as problem:
        raise InputError(f"{path} cannot be read: {problem} is missing or unknown") from None
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as problem:
        raise InputError(f"{path} cannot be read: {' '.join(str(problem).split())[:300]}") from None
    if not isinstance(configuration, Configuration):
        raise InputError(f"{path} is not the configuration of a run")
    return configuration


def versions() -> dict[str, str]:
    """Returns the versions of the installed packages that a run depends on, and the device."""
    ours = {"multihorizon": __version__, "python": platform.python_version()}
    for name in ("jax", "jaxlib", "equinox", "optax", "numpy", "gymnasium", "ale-py", "pgx"):
        with suppress(PackageNotFoundError):
            ours[name] = version(name)
    return ours | {"device": device_name()}


def device_name() -> str:
    """Returns the model of the accelerator, or the architecture of the CPU."""
    device = jax.local_devices()[0]
    return platform.machine() + " CPU" if device.platform == "cpu" else str(device.device_kind)
