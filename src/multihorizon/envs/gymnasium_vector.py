"""An adapter for Gymnasium environments with discrete actions. It uses Gymnasium's own vector environment."""

import warnings
from collections.abc import Callable
from typing import Any, SupportsFloat

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from jaxtyping import Int, Shaped

from multihorizon.envs.timing import METADATA, Timing, TimingFields, declared_timing, declares_timing, read_timing
from multihorizon.envs.vector import Moves, check_actions
from multihorizon.errors import InputError


class Gymnasium:
    """`count` copies of a Gymnasium environment, made from a registered name or by a function.

    Observations are vectors, images [height width channels] or grey images [height width]. Discrete observations become
    one-hot vectors. With `rendered`, frames are rendered images instead. An environment that reports `info["duration"]`
    or `info["survival"]` must declare these fields in `metadata["timing"]`.
    """

    stack = 1

    def __init__(self, make: str | Callable[[], gymnasium.Env[Any, Any]], count: int, rendered: bool = False) -> None:
        self.count, self._rendered = count, rendered
        self._environments = SyncVectorEnv(
            [lambda: _made(make, rendered)] * count, autoreset_mode=AutoresetMode.SAME_STEP
        )
        name = make if isinstance(make, str) else getattr(make, "__name__", type(make).__name__)
        space = self._environments.single_action_space
        if not isinstance(space, gymnasium.spaces.Discrete):
            raise InputError(
                f"only discrete actions are supported, but {name} has {space}; a gymnasium.ActionWrapper can "
                "map discrete actions to that space"
            )
        self.actions, self._first_action = int(space.n), int(space.start)
        observed: Any = self._environments.single_observation_space
        if not isinstance(observed, gymnasium.spaces.Box) or not observed.shape:
            raise InputError(
                f"observations must be vectors, images or Discrete, but {name} has {observed}; "
                "gymnasium.wrappers.FlattenObservation makes vectors"
            )
        shape = tuple(observed.shape)
        if len(shape) > 3:
            raise InputError(
                f"observations must be vectors or images, but the observations of {name} have shape {shape}; "
                "gymnasium.wrappers.FlattenObservation makes vectors"
            )
        if len(shape) == 3 and shape[0] <= 4 < min(shape[1:]):
            raise InputError(
                f"images must be [height width channels], but the images of {name} have shape {shape}; "
                "gymnasium.wrappers.TransformObservation can move the channels"
            )
        is_grey = len(shape) == 2 and observed.dtype == np.uint8
        self.most_steps = getattr(self._environments.envs[0].spec, "max_episode_steps", None) or 0
        self.frame_shape = (*shape, 1) if is_grey else shape
        self.frame_dtype = "uint8" if observed.dtype == np.uint8 else "float32"
        metadata = self._environments.envs[0].metadata or {}
        self.timing, self._declares_timing = declared_timing(metadata), declares_timing(metadata)
        rate = metadata.get("render_fps")
        self.frames_per_second = min(int(rate), 120) if rate else 15
        self.can_render = "rgb_array" in (metadata.get("render_modes") or ())
        self._sent: Any = None

    def check_observation(self) -> None:
        """Raises `InputError` if the shape of an observation differs from the observation space."""
        one = self._environments.envs[0]
        observation, _ = one.reset(seed=0)
        seen, expected = np.shape(observation), one.observation_space.shape
        if seen != expected:
            raise InputError(
                f"reset returned an observation of shape {list(seen)}, but observation_space has {list(expected or ())}"
            )

    def reset(self, seeds: Int[np.ndarray, " M"]) -> Shaped[np.ndarray, "M ..."]:
        frames, _ = self._environments.reset(seed=[int(seed) for seed in seeds])
        return self._frames(frames)

    def _frames(self, observed: Any) -> Shaped[np.ndarray, "M ..."]:
        if self._rendered:
            try:
                return np.stack([np.asarray(picture) for picture in self._environments.render() or ()])
            except gymnasium.error.Error as problem:
                raise InputError(f"this environment cannot be rendered: {problem}") from None
        return np.array(observed, self.frame_dtype).reshape(-1, *self.frame_shape)

    def send(self, actions: Int[np.ndarray, " M"]) -> None:
        check_actions(actions, self.actions)
        self._sent = actions + self._first_action

    def receive(self) -> Moves:
        frames, rewards, terminated, truncated, info = self._environments.step(self._sent)
        if not np.isfinite(rewards).all():
            raise InputError(f"the environment gave a reward of {rewards[~np.isfinite(rewards)][0]}; it must be finite")
        if not self._declares_timing:
            _check_undeclared(info)
        finals = None
        if "final_obs" in info and not self._rendered:
            finals = np.zeros((self.count, *self.frame_shape), self.frame_dtype)
            for row in np.flatnonzero(info["_final_obs"]):
                finals[row] = np.reshape(info["final_obs"][row], self.frame_shape)
        return Moves(
            self._frames(frames),
            np.asarray(rewards, np.float32),
            np.asarray(terminated),
            np.asarray(truncated) & ~np.asarray(terminated),
            finals,
            self._timing_of_step(),
        )

    def _timing_of_step(self) -> Timing:
        """Returns the timing of the latest step in each environment.

        Gymnasium's combined `info` cannot be used. If the first environment reports an integer, Gymnasium truncates the
        values of all environments to integers.
        """
        each: list[Any] = list(self._environments.envs)
        names = [name for name, field in self.timing._asdict().items() if field]
        return Timing(**{name: np.array([getattr(one.timing, name) for one in each], np.float32) for name in names})

    def close(self) -> None:
        self._environments.close()


class _Timed(gymnasium.Wrapper[Any, Any, Any, Any]):
    def __init__(self, env: gymnasium.Env[Any, Any], fields: TimingFields) -> None:
        super().__init__(env)
        self._fields, self.timing = fields, Timing()

    def step(self, action: Any) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        self.timing = read_timing(info, self._fields)
        return observation, reward, terminated, truncated, info


def _check_undeclared(info: dict[str, Any]) -> None:
    for name in Timing._fields:
        if name in info or name in info.get("final_info", ()):
            raise InputError(
                f'the environment gives info["{name}"] without declaring it; set metadata["{METADATA}"] to '
                f'("{name}",) to learn with it, or to () to ignore it'
            )


def _made(make: str | Callable[[], gymnasium.Env[Any, Any]], rendered: bool) -> gymnasium.Env[Any, Any]:
    if not isinstance(make, str):
        made = make()
    else:
        drawn: Any = {"render_mode": "rgb_array"} if rendered else {}  # some environments do not accept render_mode
        try:
            with warnings.catch_warnings():
                if rendered:  # no warnings, because a failure to render raises an error
                    warnings.simplefilter("ignore")
                made = gymnasium.make(make, **drawn)
        except Exception as problem:  # an environment may raise anything
            said = " ".join(str(problem).split()) or type(problem).__name__
            raise InputError(f"Gymnasium cannot {'render' if rendered else 'make'} '{make}': {said}") from problem
    timing = declared_timing(made.metadata)
    if isinstance(made.observation_space, gymnasium.spaces.Discrete):
        made = gymnasium.wrappers.FlattenObservation(made)  # one-hot
    return _Timed(made, timing) if any(timing) else made
