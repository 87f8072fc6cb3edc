"""What a world is to an agent: two pure functions on JAX arrays, so that it can live on the device with it."""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
from jaxtyping import Array, Bool, Float, Int, Key

from multihorizon.envs.timing import Timing, TimingFields
from multihorizon.errors import InputError, at_least


class Step(NamedTuple):
    """What one step gave.

    A head with discount factor γ values what follows the step by γ^duration · survival. An environment sets `duration`
    and `survival` at every step or at none.

    Attributes:
        observation: What is observed after the step.
        reward: The reward, which comes at the start of the step.
        terminated: The episode is over.
        truncated: The episode was cut off, and its values still bootstrap.
        duration: Units of time that the step lasted, positive; by default 1.
        survival: The probability e^{-λ(s, a)} of surviving the step, in (0, 1]; by default 1. It is a belief that
            agents learn with, and ends no episode. An environment that ends episodes by the same danger must not report
            it: it would count twice. `Lethal` turns reported survival into deaths.
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


def _traced(environment: Environment) -> tuple[Any, Any]:
    """Returns the shapes of a first observation and of a step."""
    state, first = jax.eval_shape(environment.reset, jax.random.key(0))
    _, step = jax.eval_shape(environment.step, jax.random.key(0), state, jax.ShapeDtypeStruct((), "int32"))
    return first, step


def timing_fields(environment: Environment) -> TimingFields:
    """Returns whether the steps of an environment have durations and survivals."""
    return _traced(environment)[1].timing.fields


def check_shapes(environment: Environment, name: str) -> None:
    """Raises one line where a JAX environment does not do what its attributes say."""
    at_least(f"actions of {name}", environment.actions, 1)
    try:
        first, step = _traced(environment)
    except (TypeError, ValueError) as problem:
        raise InputError(f"{name} cannot be traced by JAX: {' '.join(str(problem).split())[:300]}") from problem
    wanted = tuple(environment.observation_shape)
    for what, array, shape in (
        ("reset's observation", first, wanted),
        ("step's observation", step.observation, wanted),
        ("the reward", step.reward, ()),
        ("terminated", step.terminated, ()),
        ("truncated", step.truncated, ()),
        ("the duration", step.duration, ()),
        ("the survival", step.survival, ()),
    ):
        if array is not None and tuple(array.shape) != shape:
            raise InputError(f"{what} of {name} has shape {list(array.shape)}, and must have {list(shape)}")
