"""Checks observations and environments that users pass to a policy."""

from typing import Any

import numpy as np
from jaxtyping import Shaped
from numpy.typing import ArrayLike

from multihorizon.errors import InputError, shown
from multihorizon.training.worlds import world


def as_batch(obs: ArrayLike, shape: tuple[int, ...], dtype: str) -> tuple[Shaped[np.ndarray, "B ..."], bool]:
    """Returns `obs` as a batch of observations of the given shape and type, and whether it was a single observation."""
    try:
        array = np.asarray(obs)
    except ValueError:  # a ragged list
        array = np.asarray(None)
    if array.dtype.kind not in "biufV":  # kind V is bfloat16
        raise InputError(f"an observation must be an array of numbers, got {shown(obs)}")
    is_single = array.shape == shape
    if not is_single and array.shape[1:] != shape:
        is_state = len(shape) == 1 and array.ndim < 2 and array.dtype.kind in "iu"
        hint = f"; give the states of a Discrete space as one-hot vectors, np.eye({shape[0]})[obs]" if is_state else ""
        raise InputError(
            f"an observation must have shape {list(shape)}, or [B, {', '.join(map(str, shape))}] for a batch, "
            f"got {list(array.shape)}{hint}"
        )
    with np.errstate(over="ignore", invalid="ignore"):  # an overflow is detected below
        cast = array.astype(dtype)
    if not all(np.all(np.isfinite(one)) for one in (array, cast) if one.dtype.kind == "f"):
        raise InputError(f"an observation must be finite in {cast.dtype}, but this one is not")
    if cast.dtype.kind in "biu" and cast.dtype != array.dtype and not np.array_equal(cast, array):
        allowed = "0 and 1" if cast.dtype.kind == "b" else "whole numbers"
        raise InputError(
            f"observations of this policy have the type {cast.dtype} and hold {allowed}, but this one contains "
            f"{array[cast != array].flat[0]:g}"
        )
    return cast[None] if is_single else cast, is_single


def check_environment(env: Any, shape: tuple[int, ...], actions: int) -> None:
    """Raises an error if an environment has other observations or actions than a policy."""
    found_shape, found_actions = world(env).spaces()
    if (found_shape, found_actions) != (shape, actions):
        raise InputError(
            f"the policy was trained with observations of shape {list(shape)} and {actions} actions, but this "
            f"environment has observations of shape {list(found_shape)} and {found_actions} actions"
        )
