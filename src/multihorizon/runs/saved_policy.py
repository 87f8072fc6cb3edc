"""Saves and loads policies: weights as safetensors and the configuration as JSON.

Unless `trust` is set, loading cannot run code.
"""

import os
import re
import zlib
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import ConvTorso, MlpTorso, OwnNetwork, as_torso
from multihorizon.agents.risk import restored_risk
from multihorizon.errors import InputError, at_least, one_of, short_text
from multihorizon.files import atomically, file_checksum, open_inside, read_json, remove, writable_folder, write_json
from multihorizon.room import bytes_of
from multihorizon.runs.configuration import plain, restored
from multihorizon.runs.configure import stored_network
from multihorizon.runs.observations import check_environment
from multihorizon.runs.policy import Policy
from multihorizon.training.worlds import names_module, world

CONFIGURATION = "policy.json"
WEIGHTS = "weights-{checksum}.safetensors"  # policy.json holds the checksum, so files of two policies never mix
OBSERVATION_TYPES = ["bool", "bfloat16", "float16", "float32", "float64"]
OBSERVATION_TYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
MOST_OVERHEAD_BYTES = 2**20  # the largest size of a safetensors file without its arrays
OLD_WEIGHTS = "weights.safetensors"  # the name in earlier versions
LONGEST_DISCOUNT = 1_000  # the description of a discount has at most this number of characters


def save_policy(policy: Policy, folder: Path) -> Path:
    """Writes a policy to a folder; see `Policy.save`."""
    from safetensors.numpy import save

    if os.path.isfile(folder):
        raise InputError(f"{folder} is a file; a policy is saved to a folder")
    writable_folder(folder)
    content = save({name: np.asarray(value) for name, value in policy.parameters.items()})
    checksum = f"{zlib.crc32(content):08x}"
    weights, replaced = folder / WEIGHTS.format(checksum=checksum), _old_weights(folder)
    with atomically(weights) as file:
        file.write_bytes(content)
    description = {
        "agent": plain(policy.agent),
        "environment": policy.environment,
        "num_actions": policy.num_actions,
        "observation_shape": list(policy.observation_shape),
        "observation_dtype": policy.observation_dtype,
        "network": plain(stored_network(policy.network)),
        "weights_checksum": checksum,
        "discount": _stated(policy),
        "risk": plain(policy.risk),
    }
    write_json(folder / CONFIGURATION, description, checked=True)
    for one in replaced:
        if one != weights:
            remove(one)
    return folder


def _stated(policy: Policy) -> str | None:
    """Returns the description of a changed discount, shortened and encoded for a file."""
    if policy.reweighting is None:
        return policy.saved_discount
    text = str(policy.reweighting).encode(errors="replace").decode()
    return text if len(text) <= LONGEST_DISCOUNT else f"{text[: LONGEST_DISCOUNT - 3]}..."


def _old_weights(folder: Path) -> list[Path]:
    """Returns the weights files of earlier policies in a folder. Files with a wrong checksum are left out."""
    found = []
    for path in folder.glob(WEIGHTS.format(checksum="*")):
        with suppress(ValueError, OSError):  # a link or an unreadable file
            if path.name == WEIGHTS.format(checksum=file_checksum(path)):
                found.append(path)
    earlier = folder / OLD_WEIGHTS
    with suppress(ValueError, OSError):  # no policy, or no weights file of an earlier version
        checksum = read_json(folder / CONFIGURATION).get("weights_checksum")
        if file_checksum(earlier) == checksum or checksum is None:
            found.append(earlier)
    return found


def load_policy(folder: Path, env: Any = None, network: Any = None, trust: bool = False) -> Policy:
    """Reads a policy that `Policy.save` wrote. The other arguments are as for `multihorizon.load`."""
    from safetensors import SafetensorError
    from safetensors.numpy import load

    path = folder / CONFIGURATION
    content = read_json(path)
    try:
        agent, stored = restored(content["agent"]), restored(content["network"])
        if not isinstance(agent, AgentConfig):
            raise ValueError("agent is not a configuration")
        if not isinstance(stored, ConvTorso | MlpTorso | OwnNetwork):
            raise ValueError("network is not the configuration of a network")
        shape = tuple(at_least("observation_shape", n, 1) for n in content["observation_shape"])
        actions = at_least("num_actions", content["num_actions"], 1)
        environment = short_text("the name of an environment", content["environment"])
        dtype = one_of("type of an observation", content["observation_dtype"], OBSERVATION_TYPES)
        discount = short_text("the discount", content.get("discount") or "", LONGEST_DISCOUNT)
        risk = restored_risk(content.get("risk"))
        checksum = content.get("weights_checksum")
    except KeyError as problem:
        raise InputError(f"{path} cannot be read: {problem} is missing or unknown") from None
    except (ValueError, TypeError, AttributeError, RecursionError, OverflowError) as problem:
        raise InputError(f"{path} cannot be read: {' '.join(str(problem).split())[:300]}") from None
    if env is None and trust and names_module(environment):
        env = environment
    if env is not None:
        env = world(env)
        check_environment(env, shape, actions)
    given = stored if network is None else network
    try:
        like = parameter_shapes(agent, actions, shape, given)
    except (ValueError, TypeError, OverflowError) as problem:
        raise InputError(f"{path} cannot be used: {' '.join(str(problem).split())[:300]}") from None
    weights = _weights_file(folder, checksum)
    try:
        with open_inside(weights, bytes_of(like) + MOST_OVERHEAD_BYTES) as file:
            stream = file.read()
        if checksum is not None and f"{zlib.crc32(stream):08x}" != checksum:
            raise ValueError("checksum mismatch")
        held = load(stream)
    except OSError as problem:
        raise InputError(f"{weights} cannot be read: {problem.strerror}") from None
    except (SafetensorError, ValueError) as problem:
        raise InputError(f"{weights} cannot be read: {problem}") from None
    except (KeyError, TypeError, AttributeError) as problem:  # a type that NumPy lacks
        raise InputError(f"{weights} cannot be read: it holds the type {problem}, but weights are float32") from None
    check_shapes(held, like, weights)
    parameters = {name: jnp.asarray(held[name]) for name in like}
    found = Policy(agent, environment, actions, shape, dtype, given, parameters, risk=risk, own_env=env)
    return replace(found, saved_discount=discount or None)


def _weights_file(folder: Path, checksum: Any) -> Path:
    """Returns the path of the weights file with a checksum, or the path that earlier versions used."""
    if isinstance(checksum, str) and re.fullmatch("[0-9a-f]{8}", checksum):
        named = folder / WEIGHTS.format(checksum=checksum)
        if os.path.lexists(named) or not (folder / OLD_WEIGHTS).exists():
            return named
    return folder / OLD_WEIGHTS


def parameter_shapes(agent: AgentConfig, actions: int, shape: tuple[int, ...], network: Any) -> dict[str, Any]:
    """Returns the shape and type of each weight."""
    learner = Learner(agent, actions, shape, as_torso(network))
    return jax.eval_shape(learner.init, jax.random.key(0)).parameters


def check_shapes(held: dict[str, Any], like: dict[str, Any], source: Any) -> None:
    """Raises an error for a weight with another shape or type, or with a value that is not finite."""
    for name in [*like, *held]:
        found = tuple(held[name].shape) if name in held else "none"
        wanted = tuple(like[name].shape) if name in like else "none"
        if found != wanted:
            raise InputError(
                f"{source} holds the weights of another network: {name} has shape {found} there, but {wanted} here"
            )
    for name in like:
        if held[name].dtype != np.float32 or not np.all(np.isfinite(held[name])):
            raise InputError(f"{source} is damaged: {name} must be finite numbers in float32")
