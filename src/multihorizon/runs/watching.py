"""Records one episode of a policy step by step, with a picture of each step."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped, UInt8

from multihorizon import interrupts
from multihorizon.agents.acting import require_unit_steps
from multihorizon.envs.environment import Environment, timing_fields
from multihorizon.envs.timing import TimingFields
from multihorizon.envs.vector import Moves, VectorEnvironment
from multihorizon.errors import InputError
from multihorizon.runs.policy import Policy
from multihorizon.training.state import follow
from multihorizon.training.worlds import World

FRAMES_PER_SECOND = 15


@dataclass(frozen=True)
class EpisodeRecord:
    """One recorded episode of T steps.

    Attributes:
        pictures: A picture of each state [T + 1]; None if the environment cannot be drawn.
        values: The heads' Q-values before each step [T H A].
        acting_weights: The weights of the heads at each step [T H].
        frames_per_second: The speed at which the environment is usually shown.
    """

    pictures: list[UInt8[np.ndarray, "h w 3"]] | None
    values: Float[np.ndarray, "T H A"]
    actions: Int[np.ndarray, " T"]
    rewards: Float[np.ndarray, " T"]
    gammas: Float[np.ndarray, " H"]
    acting_weights: Float[np.ndarray, "T H"]
    frames_per_second: int = FRAMES_PER_SECOND


def record_episode(policy: Policy, chosen: World, seed: int, max_steps: int) -> EpisodeRecord:
    """Plays and records one episode of at most `max_steps` steps, with the agent's evaluation ε."""
    learner, parameters = policy._programs.learner, policy.parameters
    played: VectorEnvironment
    if chosen.on_host:
        played = chosen.on_host(1)
        timing = played.timing
    else:
        environment = chosen.make_for_evaluation()
        played, timing = LiftedEnvironment(environment), timing_fields(environment)
    require_unit_steps(policy.agent.consistency, timing)
    shown = chosen.pictures() if chosen.pictures else None
    backdrop = getattr(played, "backdrop", None)
    is_drawn = shown is not None or backdrop is not None or len(played.frame_shape) in (2, 3)
    if not is_drawn and getattr(played, "can_render", False):
        played.close()
        raise InputError(
            f"{chosen.name} was made without a render mode: pass a function that sets one, such as "
            'env=lambda: gymnasium.make("CartPole-v1", render_mode="rgb_array")'
        )

    @jax.jit
    def act(stack: Array, key: Array, elapsed: Array) -> tuple[Array, Array]:
        epsilon = jnp.asarray(policy.agent.epsilon.evaluation)
        return learner.values(parameters, stack), learner.act(parameters, key, stack, epsilon, elapsed)

    advance = jax.jit(follow)
    seeds, key = np.array([seed]), jax.random.key(seed)
    frame = played.reset(seeds)[0]
    pictures = [_picture(shown.reset(seeds)[0] if shown else frame, backdrop)] if is_drawn else []
    blank = jnp.zeros((*frame.shape[:-1], frame.shape[-1] * played.stack), frame.dtype)
    stack = advance(blank, frame, jnp.asarray(True))
    values, actions, rewards = [], [], []
    for step in range(max_steps):
        interrupts.check()
        value, action = act(stack, jax.random.fold_in(key, step), jnp.asarray(step))
        moves = _step(played, np.asarray(action)[None])
        values.append(np.asarray(value))
        actions.append(int(action))
        rewards.append(float(moves.rewards[0]))
        over = bool(moves.terminated[0] | moves.truncated[0])
        last = moves.finals[0] if over and moves.finals is not None else moves.frames[0]
        if shown:
            seen = _step(shown, np.asarray(action)[None])
            last = seen.frames[0]
            if over:  # without `finals`, `frames` already shows the next episode
                last = pictures[-1] if seen.finals is None else seen.finals[0]
        if is_drawn:
            pictures.append(_picture(last, backdrop))
        if over:
            break
        stack = advance(stack, moves.frames[0], jnp.asarray(False))
    for environments in filter(None, (played, shown)):
        environments.close()
    return EpisodeRecord(
        pictures if is_drawn else None,
        np.stack(values),
        np.array(actions),
        np.array(rewards),
        policy.horizons.gammas,
        policy.weights_after(np.arange(len(actions)), len(actions)),
        int(getattr(shown or played, "frames_per_second", FRAMES_PER_SECOND)),
    )


def _step(environments: VectorEnvironment, actions: Int[np.ndarray, " M"]) -> Moves:
    environments.send(actions)
    return environments.receive()


class LiftedEnvironment:
    """Adapts one environment on the device to the interface of host environments."""

    count, stack, most_steps = 1, 1, 0
    timing = TimingFields()  # recording does not learn, so it needs no timing

    def __init__(self, environment: Environment) -> None:
        self.actions, self._environment = environment.actions, environment
        self.frame_shape, self.frame_dtype = tuple(environment.observation_shape), environment.observation_dtype
        self._reset, self._step = jax.jit(environment.reset), jax.jit(environment.step)
        self._state: Any = None
        self._key: Any = None
        self._sent: Any = None

    @property
    def backdrop(self) -> UInt8[np.ndarray, "h w 3"] | None:
        """The background of pictures, or None if the environment has no background."""
        inner: Any = self._environment
        while hasattr(inner, "environment"):  # unwraps wrappers, such as hazard
            inner = inner.environment
        return getattr(inner, "backdrop", None)

    def reset(self, seeds: Int[np.ndarray, " M"]) -> Shaped[np.ndarray, "M ..."]:
        self._key, key = jax.random.split(jax.random.key(int(seeds[0])))
        self._state, observation = self._reset(key)
        return np.asarray(observation)[None]

    def send(self, actions: Int[np.ndarray, " M"]) -> None:
        self._sent = jnp.asarray(actions[0])

    def receive(self) -> Moves:
        self._key, step_key, reset_key = jax.random.split(self._key, 3)
        self._state, step = self._step(step_key, self._state, self._sent)
        frame = last = np.asarray(step.observation)[None]
        terminated, truncated = np.asarray(step.terminated)[None], np.asarray(step.truncated)[None]
        if terminated[0] or truncated[0]:
            self._state, first = self._reset(reset_key)
            frame = np.asarray(first)[None]
        rewards = np.asarray(step.reward, np.float32)[None]
        return Moves(frame, rewards, terminated, truncated & ~terminated, last)

    def close(self) -> None:
        self._state = None


CHANNELS = np.array(  # Okabe & Ito's colours, one for each channel of an observation
    [(0, 114, 178), (230, 159, 0), (0, 158, 115), (213, 94, 0), (204, 121, 167), (86, 180, 233), (240, 228, 66)]
    + [(153, 153, 153), (255, 255, 255), (120, 80, 40)],
    np.uint8,
)


AGENT = (0, 60, 140)  # colour of the agent on a backdrop


def _picture(
    frame: Shaped[np.ndarray, "..."], backdrop: UInt8[np.ndarray, "h w 3"] | None = None
) -> UInt8[np.ndarray, "h w 3"]:
    """Draws the agent on a backdrop, copies an image, or gives each channel of an observation a colour."""
    if backdrop is not None:
        return np.where(frame[..., :1] > 0, np.array(AGENT, np.uint8), backdrop)
    if frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[-1] in (1, 3):
        return np.broadcast_to(frame, (*frame.shape[:2], 3)).copy()
    if frame.ndim == 2:
        frame = frame[..., None]
    picture = np.zeros((*frame.shape[:2], 3), np.uint8)
    for channel in range(frame.shape[-1]):
        picture[frame[..., channel] > 0] = CHANNELS[channel % len(CHANNELS)]
    return picture
