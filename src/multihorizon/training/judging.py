"""A run's agent with its weights frozen: what it earns, and an episode to look at."""

import zipfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PyTree, Shaped, UInt8

from multihorizon.envs.environment import Environment
from multihorizon.envs.vector import Moves, VectorEnvironment
from multihorizon.errors import InputError, one_of
from multihorizon.training.configuration import Configuration
from multihorizon.training.host_loop import HostTrainer
from multihorizon.training.iterations import Report, Trainer
from multihorizon.training.records import load_weights
from multihorizon.training.streams import follow
from multihorizon.training.worlds import made, trainer_of, world


def evaluate_run(
    configuration: Configuration, weights: Path, seed: int, steps: int, report: Report = lambda progress: None
) -> tuple[list[int], list[float]]:
    """Episodes and their mean return, by seed of the run."""
    with made(replace(configuration, environments=1)) as trainer:
        given = (_parameters(trainer, weights), 0, seed, steps)
        if isinstance(trainer, HostTrainer):
            played: Any = trainer.evaluate(*given, report)
        else:  # in one program, which has nothing to tell before its end
            played = trainer.evaluate(*given)
    ended = np.asarray(played.ended)
    return ended.tolist(), (np.asarray(played.returns) / np.maximum(ended, 1)).tolist()


def _parameters(trainer: Trainer, weights: Path) -> PyTree[Array]:
    like = jax.eval_shape(jax.vmap(trainer.learner.init), jax.random.split(jax.random.key(0), trainer.seeds)).parameters
    try:
        return load_weights(weights, like)
    except FileNotFoundError:
        raise
    except (KeyError, ValueError, OSError, EOFError, AttributeError, zipfile.BadZipFile) as problem:
        why = "it is no .npz file" if "pickle" in str(problem) else problem  # NumPy would advise to trust it
        raise InputError(f"{weights} does not hold the weights of this run: {why}") from None


@dataclass(frozen=True)
class Watched:
    """An episode, step by step; the last picture is what it ended with."""

    pictures: list[UInt8[np.ndarray, "h w 3"]]
    values: Float[np.ndarray, "T H A"]
    actions: Int[np.ndarray, " T"]
    rewards: Float[np.ndarray, " T"]
    gammas: Float[np.ndarray, " H"]
    acting_weights: Float[np.ndarray, " H"]


def watch_episode(configuration: Configuration, weights: Path, of_seed: int, seed: int, most_steps: int) -> Watched:
    """One episode of the agent that run `of_seed` trained."""
    runs = range(configuration.seed, configuration.seed + configuration.seeds)
    one_of("seed of the run", str(of_seed), [str(s) for s in runs])
    chosen, trainer = world(configuration.environment), trainer_of(replace(configuration, environments=1))
    learner = trainer.learner
    parameters = jax.tree.map(lambda x: x[of_seed - configuration.seed], _parameters(trainer, weights))
    played: VectorEnvironment = chosen.on_host(1) if chosen.on_host else Lifted(chosen.on_device())  # type: ignore[misc]
    shown = chosen.pictures() if chosen.pictures else None

    @jax.jit
    def act(stack: Array, key: Array) -> tuple[Array, Array]:
        epsilon = jnp.asarray(configuration.agent.epsilon.evaluation)
        return learner.values(parameters, stack), learner.act(parameters, key, stack, epsilon)

    advance = jax.jit(follow)
    seeds, key = np.array([seed]), jax.random.key(seed)
    frame = played.reset(seeds)[0]
    pictures = [_picture(shown.reset(seeds)[0] if shown else frame)]
    blank = jnp.zeros((*frame.shape[:-1], frame.shape[-1] * played.stack), frame.dtype)
    stack = advance(blank, frame, jnp.asarray(True))
    values, actions, rewards = [], [], []
    for step in range(most_steps):
        value, action = act(stack, jax.random.fold_in(key, step))
        moves, picture = _step(played, np.asarray(action)[None]), None
        values.append(np.asarray(value))
        actions.append(int(action))
        rewards.append(float(moves.rewards[0]))
        over = bool(moves.terminated[0] | moves.truncated[0])
        if shown:
            seen = _step(shown, np.asarray(action)[None])
            picture = seen.frames[0]
            if over:  # one that cannot show how it ended shows the next episode already
                picture = pictures[-1] if seen.finals is None else seen.finals[0]
        last = moves.finals[0] if over and moves.finals is not None else moves.frames[0]
        pictures.append(_picture(last if picture is None else picture))
        if over:
            break
        stack = advance(stack, moves.frames[0], jnp.asarray(False))
    for environments in filter(None, (played, shown)):
        environments.close()
    return Watched(
        pictures,
        np.stack(values),
        np.array(actions),
        np.array(rewards),
        configuration.agent.horizons.gammas,
        np.asarray(learner.acting_weights, float),
    )


def _step(environments: VectorEnvironment, actions: Int[np.ndarray, " M"]) -> Moves:
    environments.send(actions)
    return environments.receive()


class Lifted:
    """One environment of the device, stepped from the host."""

    count, stack, most_steps = 1, 1, 0

    def __init__(self, environment: Environment) -> None:
        self.actions = environment.actions
        self.frame_shape, self.frame_dtype = tuple(environment.observation_shape), environment.observation_dtype
        self._reset, self._step = jax.jit(environment.reset), jax.jit(environment.step)
        self._state: Any = None
        self._key: Any = None
        self._sent: Any = None

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


CHANNELS = np.array(  # Okabe & Ito's colours, for the kinds of things that an observation tells apart
    [(0, 114, 178), (230, 159, 0), (0, 158, 115), (213, 94, 0), (204, 121, 167), (86, 180, 233), (240, 228, 66)]
    + [(153, 153, 153), (255, 255, 255), (120, 80, 40)],
    np.uint8,
)


def _picture(frame: Shaped[np.ndarray, "..."]) -> UInt8[np.ndarray, "h w 3"]:
    """Of a frame: an image as it is, channels as colours, anything else blank."""
    if frame.dtype == np.uint8 and frame.ndim == 3 and frame.shape[-1] in (1, 3):
        return np.broadcast_to(frame, (*frame.shape[:2], 3)).copy()
    if frame.ndim == 2:
        frame = frame[..., None]
    if frame.ndim != 3:
        return np.full((64, 64, 3), 255, np.uint8)
    picture = np.zeros((*frame.shape[:2], 3), np.uint8)
    for channel in range(frame.shape[-1]):
        picture[frame[..., channel] > 0] = CHANNELS[channel % len(CHANNELS)]
    return picture
