"""Atari with the paper's protocol.

Only this file imports ale-py, which is an optional dependency because of its licence, the GPL-2.0.
"""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Int, UInt8

from multihorizon.envs.timing import TimingFields
from multihorizon.envs.vector import Moves, check_actions
from multihorizon.errors import InputError, inside, is_on, one_of

GAMES = """
AirRaid Alien Amidar Assault Asterix Asteroids Atlantis BankHeist BattleZone BeamRider Berzerk Bowling Boxing Breakout
Carnival Centipede ChopperCommand CrazyClimber DemonAttack DoubleDunk ElevatorAction Enduro FishingDerby Freeway
Frostbite Gopher Gravitar Hero IceHockey Jamesbond JourneyEscape Kangaroo Krull KungFuMaster MontezumaRevenge MsPacman
NameThisGame Phoenix Pitfall Pong Pooyan PrivateEye Qbert Riverraid RoadRunner Robotank Seaquest Skiing Solaris
SpaceInvaders StarGunner Tennis TimePilot Tutankham UpNDown Venture VideoPinball WizardOfWor YarsRevenge Zaxxon
""".split()  # noqa: SIM905 - the sixty games of the paper's table, with the names used there

FRAMES_PER_STEP = 4
MAX_EPISODE_FRAMES = 108_000  # 27,000 agent steps
STICKY = 0.25
STACK = 4


def rom_name(game: str) -> str:
    """Returns the name of a game in ale-py, such as "space_invaders"."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", game).lower()


def free_cores() -> int:
    """Returns the number of cores for emulators. With eight or more cores, two are reserved for feeding the device."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores - 2 if cores >= 8 else cores


SWITCH = "MULTIHORIZON_GIVE_WAY"


def give_way() -> None:
    """Gives this thread and its child threads the lowest scheduling priority (SCHED_IDLE), if there is a GPU.

    While emulators keep all cores busy, the low priority shortens the launch of GPU work from 1.6 to 0.9 ms. On a
    shared machine, emulators also give way to the processes of other users. The environment variable
    `MULTIHORIZON_GIVE_WAY=off` keeps the normal priority.
    """
    import jax  # imported here because reports use this module without JAX

    if is_on(SWITCH) and hasattr(os, "SCHED_IDLE") and jax.default_backend() != "cpu":
        with suppress(OSError):  # not permitted or not supported: keep the normal priority
            os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))


class Atari:
    """`count` copies of one game. An episode ends when the game is over, not when a life is lost."""

    frame_dtype = "uint8"
    stack = STACK
    timing = TimingFields()

    def __init__(
        self,
        game: str,
        count: int,
        sticky: float = STICKY,
        threads: int = 0,
        max_episode_frames: int = MAX_EPISODE_FRAMES,
        in_colour: bool = False,
    ) -> None:
        one_of("Atari game", game, GAMES, "multihorizon games")
        if sticky:
            inside("the probability of a sticky action", sticky, 0, 1)
        try:
            from ale_py import ALEInterface, LoggerMode
            from ale_py.vector_env import AtariVectorEnv
        except ImportError:
            raise InputError("Atari needs ale-py: pip install ale-py") from None
        ALEInterface.setLoggerMode(LoggerMode.Error)
        self.count, self.most_steps = count, max_episode_frames // FRAMES_PER_STEP
        self.frame_shape = (210, 160, 3) if in_colour else (84, 84, 1)  # colour is for videos
        make = partial(
            AtariVectorEnv,
            game=rom_name(game),
            num_envs=count,
            batch_size=count,
            num_threads=threads or min(count, free_cores()),
            thread_affinity_offset=-1,
            max_num_frames_per_episode=max_episode_frames,
            repeat_action_probability=sticky,
            full_action_space=False,
            continuous=False,
            autoreset_mode="SameStep",
            img_height=self.frame_shape[0],
            img_width=self.frame_shape[1],
            grayscale=not in_colour,
            stack_num=1,
            frameskip=FRAMES_PER_STEP,
            maxpool=True,
            noop_max=0,
            episodic_life=False,
            life_loss_info=False,
            reward_clipping=False,
            use_fire_reset=False,
        )
        # Emulator threads inherit the priority of the thread that makes them.
        with ThreadPoolExecutor(1, initializer=give_way) as maker:
            environments: Any = maker.submit(make).result()
        self._environments = environments
        self.actions = int(environments.single_action_space.n)

    def reset(self, seeds: Int[np.ndarray, " M"]) -> UInt8[np.ndarray, "M h w c"]:
        frames, _ = self._environments.reset(seed=np.asarray(seeds, np.int64))
        return frames.reshape(-1, *self.frame_shape)

    def send(self, actions: Int[np.ndarray, " M"]) -> None:
        check_actions(actions, self.actions)  # ale-py would hang on an invalid action
        self._environments.send(np.ascontiguousarray(actions, np.int64))

    def receive(self) -> Moves:
        frames, rewards, terminated, truncated, info = self._environments.recv()
        finals = info.get("final_obs")
        return Moves(
            frames.reshape(-1, *self.frame_shape),
            rewards.astype(np.float32),
            terminated,
            truncated & ~terminated,
            None if finals is None else finals.reshape(-1, *self.frame_shape),
        )

    def close(self) -> None:
        self._environments.close()
