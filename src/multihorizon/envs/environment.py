"""The interface of environments on the device: two pure functions of JAX arrays, compiled together with the agent."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Float, Int, Key


class Step(NamedTuple):
    """What an environment returns for one action.

    Attributes:
        observation: The next observation, also at the end of an episode.
        reward: The reward of the step.
        terminated: Whether the episode is over. Nothing follows, so its value is 0.
        truncated: Whether the episode was cut off, for example by a time limit. Its value still bootstraps.
    """

    observation: Array
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]


@runtime_checkable
class Environment(Protocol):
    """A JAX environment, written for a single copy; training adds more with vmap. A state is any pytree of arrays."""

    @property
    def actions(self) -> int:
        """The number of actions."""

    @property
    def observation_shape(self) -> tuple[int, ...]:
        """The shape of an observation."""

    @property
    def observation_dtype(self) -> str:
        """The data type of an observation, such as "float32" or "uint8"."""

    def reset(self, key: Key[Array, ""]) -> tuple[Any, Array]:
        """Starts an episode.

        Args:
            key: A random key.

        Returns:
            The state and the first observation.
        """

    def step(self, key: Key[Array, ""], state: Any, action: Int[Array, ""]) -> tuple[Any, Step]:
        """Takes an action.

        Args:
            key: A random key.
            state: The current state.
            action: The action.

        Returns:
            The next state, and what the agent receives.
        """
