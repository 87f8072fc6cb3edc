"""What a world is to an agent: two pure functions on JAX arrays, so that it can live on the device with it."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Float, Int, Key


class Step(NamedTuple):
    """Terminated: the episode is over. Truncated: it was cut off, and its values go on."""

    observation: Array
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@runtime_checkable
class Environment(Protocol):
    """Written for one world; vmap adds more. A state is any pytree of arrays."""

    @property
    def actions(self) -> int: ...

    @property
    def observation_shape(self) -> tuple[int, ...]: ...

    @property
    def observation_dtype(self) -> str: ...

    def reset(self, key: Key[Array, ""]) -> tuple[Any, Array]:
        """The state of a new episode, and its first observation."""

    def step(self, key: Key[Array, ""], state: Any, action: Int[Array, ""]) -> tuple[Any, Step]: ...
