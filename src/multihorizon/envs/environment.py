"""The interface of environments on the device: two pure functions of JAX arrays, compiled together with the agent."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Bool, Float, Int, Key

from multihorizon.envs.timing import Timing, TimingFields
from multihorizon.errors import InputError, at_least, shown


class Step(NamedTuple):
    """What an environment returns for one action.

    A head with discount factor γ discounts the next state's value by γ^duration · survival. An environment must report
    `duration` at every step or never. The same holds for `survival`.

    Attributes:
        observation: The next observation. At the end of an episode, it is the last observation of that episode.
        reward: The reward, paid at the start of the step.
        terminated: Whether the episode is over. Nothing follows, so the value of the next state is 0.
        truncated: Whether the episode was cut off, for example by a time limit. Targets bootstrap from `observation`.
        duration: The positive duration of the step; by default 1.
        survival: The probability e^{-λ(s, a)} of surviving the step, in (0, 1]; by default 1. Agents discount by the
            survival, but the survival does not end episodes. If a danger already ends episodes, do not report it as
            survival. `Lethal` turns reported survival into deaths.
    """

    observation: Array
    reward: Float[Array, ""]
    terminated: Bool[Array, ""]
    truncated: Bool[Array, ""]
    duration: Any = None
    survival: Any = None

    @property
    def timing(self) -> Timing:
        return Timing(self.duration, self.survival)


@runtime_checkable
class Environment(Protocol):
    """A single JAX environment; training runs several copies with vmap. A state is any pytree of arrays."""

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
            The next state and a `Step`.
        """


def _traced(environment: Environment) -> tuple[Any, Any]:
    state, first = jax.eval_shape(environment.reset, jax.random.key(0))
    _, step = jax.eval_shape(environment.step, jax.random.key(0), state, jax.ShapeDtypeStruct((), "int32"))
    return first, step


def check_environment(environment: Environment) -> Environment:
    """Returns `environment`, or raises an error if it is not a JAX environment."""
    if isinstance(environment, type):
        raise InputError(
            f"environment must be a JAX environment, got the class {environment.__name__}; make an instance of it"
        )
    if not isinstance(environment, Environment):
        wanted = "a JAX environment, such as Foraging().environment()"
        raise InputError(f"environment must be {wanted}, got {shown(environment)}")
    return environment


def timing_fields(environment: Environment) -> TimingFields:
    """Returns whether the steps of an environment have durations and survivals."""
    return _traced(environment)[1].timing.fields


def check_shapes(environment: Environment, name: str) -> None:
    """Raises an InputError if a JAX environment cannot be traced or returns an array of the wrong shape."""
    at_least(f"actions of {name}", environment.actions, 1)
    try:
        first, step = _traced(environment)
    except (TypeError, ValueError) as problem:
        raise InputError(f"{name} cannot be traced by JAX: {' '.join(str(problem).split())[:300]}") from problem
    wanted = tuple(environment.observation_shape)
    for what, array, shape in (
        ("the first observation", first, wanted),
        ("the next observation", step.observation, wanted),
        ("the reward", step.reward, ()),
        ("terminated", step.terminated, ()),
        ("truncated", step.truncated, ()),
        ("the duration", step.duration, ()),
        ("the survival", step.survival, ()),
    ):
        if array is not None and tuple(array.shape) != shape:
            raise InputError(f"{what} of {name} has shape {list(array.shape)}, but must have {list(shape)}")
