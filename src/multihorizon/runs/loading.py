"""Opens runs and policies on disk."""

import os
from pathlib import Path
from typing import Any

from multihorizon.errors import InputError, as_path
from multihorizon.runs.configuration import read_configuration
from multihorizon.runs.folder import CONFIGURATION
from multihorizon.runs.policy import Policy
from multihorizon.runs.run import Own, Run
from multihorizon.runs.saved_policy import CONFIGURATION as POLICY
from multihorizon.runs.saved_policy import load_policy
from multihorizon.training.worlds import names_module, stored_world, world


def load_run(
    path: str | Path, *, env: Any = None, network: Any = None, eval_env: Any = None, trust: bool = False
) -> Run:
    """Opens the folder of a run. Opening an untrusted folder cannot run code, unless `trust` is set.

    Args:
        path: The folder.
        env: The user-defined environment of the run, if any.
        network: The user-defined network of the run, if any.
        eval_env: The environment for evaluation, if it differs from the training environment.
        trust: Whether to import the Python module that the environment's name refers to, such as `module` in
            `gym/module:Name-v0`.

    Returns:
        The run.

    Raises:
        InputError: The folder holds no run, or its environment requires `trust`.
    """
    folder = as_path("path", path)
    configuration = read_configuration(folder)
    if env is None and names_module(configuration.environment):
        env = world(configuration.environment) if trust else stored_world(configuration.environment)
    chosen = None if env is None else world(env)
    return Run(folder, configuration, Own(chosen, network, None if eval_env is None else world(eval_env)))


def load(
    path: str | Path, *, env: Any = None, network: Any = None, seed: int | None = None, trust: bool = False
) -> Policy:
    """Loads a policy. Unless `trust` is set, loading cannot run code: the files hold only numbers and settings.

    Args:
        path: A folder that `Policy.save` wrote, or the folder of a run.
        env: The user-defined environment of the policy, if any.
        network: The user-defined network of the policy, if any.
        seed: The seed, if the folder holds a run; by default, the first seed.
        trust: Whether to import the Python module that the environment's name refers to, such as `module` in
            `gym/module:Name-v0`.

    Returns:
        The policy, with frozen weights.

    Raises:
        InputError: The folder holds neither a policy nor a run, or `env` or `network` does not match the policy.
    """
    folder = as_path("path", path)
    if os.path.isfile(folder / POLICY):
        if seed is not None:
            raise InputError(f"{folder} holds a saved policy, which has no seeds; leave out seed")
        return load_policy(folder, env, network, trust)
    if os.path.isfile(folder / CONFIGURATION):
        return load_run(folder, env=env, network=network, trust=trust).policy(seed)
    if not os.path.exists(folder):
        raise InputError(f"{folder} does not exist")
    raise InputError(f"{folder} holds neither a policy ({POLICY}) nor a run ({CONFIGURATION})")
