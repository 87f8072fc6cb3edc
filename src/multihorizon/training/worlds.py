"""Environments by name, each with the torso, the pace and the settings that suit its size."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from multihorizon.agents.acting import Epsilon
from multihorizon.agents.losses import Categorical
from multihorizon.agents.networks import MLP, NATURE, SMALL, ConvTorso, MlpTorso
from multihorizon.agents.presets import Adam, Agent
from multihorizon.envs import atari, minatar
from multihorizon.envs.environment import Environment
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.pathworld import Pathworld
from multihorizon.envs.vector import VectorEnvironment
from multihorizon.errors import InputError, one_of
from multihorizon.training.configuration import Configuration
from multihorizon.training.device_loop import DeviceTrainer
from multihorizon.training.host_loop import HostTrainer
from multihorizon.training.iterations import Schedule


@dataclass(frozen=True)
class World:
    """`settings` take the place of the preset's, which are Atari's; `v_max` is the support that its returns need. It
    lives on the device or on the host, and so has one of the two ways to be made."""

    name: str
    torso: ConvTorso | MlpTorso
    schedule: Schedule
    v_max: float
    settings: dict[str, Any] = field(default_factory=dict)
    environments: int = 4
    on_device: Callable[[], Environment] | None = None
    on_host: Callable[[int], VectorEnvironment] | None = None
    frames_per_step: int = 1
    pictures: Callable[[], VectorEnvironment] | None = None  # one that goes the same way, and whose frames are pictures

    def adapt(self, agent: Agent) -> Agent:
        loss = agent.loss
        if isinstance(loss, Categorical):
            loss = replace(loss, v_max=self.v_max)
        return replace(agent, loss=loss, **self.settings)


TABULAR = {
    "replay_capacity": 20_000,
    "warm_up_steps": 2_000,
    "target_period_steps": 400,
    "epsilon": Epsilon(final=0.1, decay_steps=5_000),
    "optimiser": Adam(5e-4, epsilon=1e-5),
    "clip_rewards": False,
}
# A random walk sees every path alike. The maximum over equal actions makes noise look like value, and does so again at
# every step of a path, so values are exact only as far as learning is slow.
PATHS = TABULAR | {
    "target_period_steps": 200,
    "epsilon": Epsilon(final=1.0),
    "optimiser": Adam(1e-4, epsilon=1e-5),
}
SMALL_GAMES = {
    "replay_capacity": 100_000,
    "warm_up_steps": 5_000,
    "target_period_steps": 4_000,
    "epsilon": Epsilon(final=0.01, decay_steps=100_000),
    "optimiser": Adam(2.5e-4, epsilon=1.5e-4),
}

# Rewards within [-1, 1] and γ ≤ 0.99 keep returns within [-100, 100].
CLASSIC = {
    "replay_capacity": 100_000,
    "warm_up_steps": 1_000,
    "target_period_steps": 1_000,
    "epsilon": Epsilon(final=0.01, decay_steps=10_000),
    "optimiser": Adam(1e-3, epsilon=1e-5),
    "batch": 64,
}


def _on_device(
    name: str, make: Callable[[], Environment], torso: Any, steps: int, v_max: float, settings: Any
) -> World:
    schedule = Schedule(iterations=50, training_steps=steps // 50, evaluation_steps=0)
    return World(name, torso, schedule, v_max, settings, on_device=make)


ON_DEVICE = {
    world.name: world
    for world in (
        _on_device("pathworld", lambda: Pathworld(5).environment(), MLP, 60_000, 6.0, PATHS),
        _on_device("foraging", lambda: Foraging().environment(), MLP, 15_000, 10.0, TABULAR),
        *(
            _on_device(f"minatar/{game}", lambda game=game: minatar.MinAtar(game), SMALL, 1_000_000, 10.0, SMALL_GAMES)  # type: ignore[misc]
            for game in minatar.GAMES
        ),
    )
}


def world(name: str) -> World:
    """pathworld, foraging, minatar/GAME, atari/GAME, or gym/ID of any that Gymnasium knows."""
    family, _, which = name.partition("/")
    if family == "atari":
        one_of("Atari game", which, atari.GAMES)
        return World(
            name,
            NATURE,
            Schedule(),
            10.0,
            environments=40,
            on_host=lambda count: atari.Atari(which, count),
            frames_per_step=atari.FRAMES_PER_STEP,
            pictures=lambda: atari.Atari(which, 1, in_colour=True),
        )
    if family == "gym" and which:
        return _gymnasium(name, which)
    if family not in ("pathworld", "foraging", "minatar"):
        one_of("environment", name, [*ON_DEVICE, "atari/GAME", "gym/ID"])
    return ON_DEVICE[one_of("environment", name, ON_DEVICE)]


def _gymnasium(name: str, which: str) -> World:
    from multihorizon.envs.gymnasium_vector import Gymnasium

    looked_at = Gymnasium(which, 1)
    shape = looked_at.frame_shape
    looked_at.close()
    is_image = len(shape) == 3
    schedule = Schedule(iterations=10, training_steps=10_000, evaluation_steps=5_000)
    torso: Any = (NATURE if min(shape[:2]) >= 36 else SMALL) if is_image else MLP
    return World(
        name,
        torso,
        schedule,
        100.0,
        CLASSIC,
        on_host=lambda count: Gymnasium(which, count),
        pictures=lambda: Gymnasium(which, 1, rendered=True),
    )


def trainer_of(configuration: Configuration) -> DeviceTrainer | HostTrainer:
    chosen = world(configuration.environment)
    given = (configuration.torso, configuration.schedule, configuration.seeds, configuration.environments)
    if chosen.on_device:
        return DeviceTrainer(configuration.agent, chosen.on_device(), *given)
    if chosen.on_host:
        return HostTrainer(configuration.agent, chosen.on_host, *given, configuration.evaluation_environments)
    raise InputError(f"{chosen.name} lives neither on the device nor on the host")
