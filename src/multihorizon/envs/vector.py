"""The interface of environments on the host, which step on the CPU while the device learns."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from multihorizon.envs.timing import Timing, TimingFields
from multihorizon.errors import InputError


class Moves(NamedTuple):
    """The result of one step in each of M environments. M includes the environments of all seeds.

    If an environment's episode ended, its entry of `finals` is the last frame of the episode, and its entry of `frames`
    is the first frame of the next episode. If the episode continues, the entry of `finals` is undefined.
    """

    frames: Shaped[np.ndarray, "M ..."]
    rewards: Float[np.ndarray, " M"]
    terminated: Bool[np.ndarray, " M"]
    truncated: Bool[np.ndarray, " M"]
    finals: Shaped[np.ndarray, "M ..."] | None
    timing: Timing = Timing()  # only the fields that the environments report, each [M]


@runtime_checkable
class VectorEnvironment(Protocol):
    """Environments that step between `send` and `receive`. Later calls do not overwrite the returned arrays."""

    @property
    def count(self) -> int: ...

    @property
    def actions(self) -> int: ...

    @property
    def frame_shape(self) -> tuple[int, ...]: ...

    @property
    def frame_dtype(self) -> str: ...

    @property
    def stack(self) -> int:
        """The number of frames that are stacked along the last axis to form an observation."""

    @property
    def most_steps(self) -> int:
        """The largest number of steps in an episode; 0 if unknown."""

    @property
    def timing(self) -> TimingFields:
        """Whether `Moves` has durations and survivals."""

    def reset(self, seeds: Int[np.ndarray, " M"]) -> Shaped[np.ndarray, "M ..."]:
        """Starts new episodes with the given seeds and returns their first frames."""

    def send(self, actions: Int[np.ndarray, " M"]) -> None: ...

    def receive(self) -> Moves: ...

    def close(self) -> None: ...


def check_actions(given: Int[np.ndarray, " M"], actions: int) -> None:
    """Raises an InputError if an action lies outside 0, ..., actions - 1."""
    if given.min() < 0 or given.max() >= actions:
        wrong = given[(given < 0) | (given >= actions)][0]
        raise InputError(f"action {wrong} is outside the action set; allowed: 0 to {actions - 1}")
