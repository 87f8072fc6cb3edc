"""What worlds outside the device are to an agent: many at once, stepped on the CPU while the device learns."""

from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int, Shaped

from multihorizon.envs.timing import Timing, TimingFields
from multihorizon.errors import InputError


class Moves(NamedTuple):
    """What a step of every environment gave. Where an episode ended the next has begun, and `frames` holds its first;
    what the old one ended with is in `finals`, valid in those rows alone."""

    frames: Shaped[np.ndarray, "M ..."]
    rewards: Float[np.ndarray, " M"]
    terminated: Bool[np.ndarray, " M"]
    truncated: Bool[np.ndarray, " M"]
    finals: Shaped[np.ndarray, "M ..."] | None
    timing: Timing = Timing()  # [M], in the fields that the environments have


@runtime_checkable
class VectorEnvironment(Protocol):
    """Environments that step between `send` and `receive`. The arrays they hand out are the caller's to keep."""

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
        """How many frames make an observation, along the last axis."""

    @property
    def most_steps(self) -> int:
        """Of an episode; 0 where nothing is known."""

    @property
    def timing(self) -> TimingFields:
        """Whether `Moves` has durations and survivals."""

    def reset(self, seeds: Int[np.ndarray, " M"]) -> Shaped[np.ndarray, "M ..."]:
        """Begins new episodes, which the seeds fix, and gives their first frames."""

    def send(self, actions: Int[np.ndarray, " M"]) -> None: ...

    def receive(self) -> Moves: ...

    def close(self) -> None: ...


def check_actions(given: Int[np.ndarray, " M"], actions: int) -> None:
    if given.min() < 0 or given.max() >= actions:
        wrong = given[(given < 0) | (given >= actions)][0]
        raise InputError(f"action {wrong} is outside the action set; allowed: 0 to {actions - 1}")
