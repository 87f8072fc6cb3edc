"""Environments by name, each with the torso, the pace and the settings that suit its size."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from multihorizon.agents.acting import Epsilon
from multihorizon.agents.losses import Categorical
from multihorizon.agents.networks import MLP, NATURE, SMALL, ConvTorso, MlpTorso
from multihorizon.agents.optimisers import Adam
from multihorizon.agents.presets import Agent
from multihorizon.discounting.hazard import Prior
from multihorizon.envs import atari, foraging, minatar, pathworld
from multihorizon.envs.environment import Environment
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.hazard import Hazard
from multihorizon.envs.pathworld import Pathworld
from multihorizon.envs.vector import VectorEnvironment
from multihorizon.errors import InputError, at_least, one_of
from multihorizon.training.configuration import Configuration
from multihorizon.training.device_loop import DeviceTrainer
from multihorizon.training.host_loop import HostTrainer
from multihorizon.training.iterations import Schedule
from multihorizon.training.judged import JudgedElsewhere


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
    evaluation_environments: int = 10
    on_device: Callable[[], Environment] | None = None
    judged_in: Callable[[], Environment] | None = None  # on the device: another to be evaluated in
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


def _under_hazard(world: World, prior: Prior) -> World:
    """Learned in without hazard, as in the paper, and judged under it."""
    make = world.on_device
    assert make is not None
    schedule = Schedule(iterations=15, training_steps=world.schedule.steps // 15, evaluation_steps=10_000)
    name = f"{world.name}/hazard"
    return replace(world, name=name, schedule=schedule, judged_in=lambda: Hazard(make(), prior))


PATHWORLD = _on_device("pathworld", lambda: Pathworld(5).environment(), MLP, 60_000, 6.0, PATHS)
FORAGING = _on_device("foraging", lambda: Foraging().environment(), MLP, 15_000, 10.0, TABULAR)
ON_DEVICE = {
    world.name: world
    for world in (
        PATHWORLD,
        _under_hazard(PATHWORLD, pathworld.HAZARD),
        FORAGING,
        _under_hazard(FORAGING, foraging.HAZARD),
        *(
            _on_device(f"minatar/{game}", lambda game=game: minatar.MinAtar(game), SMALL, 1_000_000, 10.0, SMALL_GAMES)  # type: ignore[misc]
            for game in minatar.GAMES
        ),
    )
}


# In training, where 160 are a little faster, but further from the paper's one and checkpointed half as often; and in
# evaluation, where all of them have to finish what they begin.
ATARI_ENVIRONMENTS = {"gpu": (80, 40), "cpu": (8, 10)}

# On a GPU bfloat16 is twice as fast as float32, and all results in Atari were made with it.
ATARI_SETTINGS: dict[str, dict[str, Any]] = {"gpu": {"compute_dtype": "bfloat16"}, "cpu": {}}


def world(name: str) -> World:
    """pathworld or foraging, either with /hazard, minatar/GAME, atari/GAME, or gym/ID of any that Gymnasium knows."""
    family, _, which = name.partition("/")
    if family == "atari":
        one_of("Atari game", which, atari.GAMES, "multihorizon games")
        device = "gpu" if jax.default_backend() == "gpu" else "cpu"
        training, evaluation = ATARI_ENVIRONMENTS[device]
        return World(
            name,
            NATURE,
            Schedule(),
            10.0,
            ATARI_SETTINGS[device],
            environments=training,
            evaluation_environments=evaluation,
            on_host=lambda count: atari.Atari(which, count),
            frames_per_step=atari.FRAMES_PER_STEP,
            pictures=lambda: atari.Atari(which, 1, in_colour=True),
        )
    if family == "gym" and which:
        return _gymnasium(name, which)
    if name in atari.GAMES:
        raise InputError(f"unknown environment '{name}' (did you mean 'atari/{name}'?)")
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


def configured(
    chosen: World,
    agent: Agent,
    *,
    seeds: int = 1,
    seed: int = 0,
    steps: int | None = None,
    training_steps: int | None = None,
    evaluation_steps: int | None = None,
    environments: int | None = None,
    evaluation_environments: int | None = None,
    checkpoint_minutes: float = 10.0,
    checkpoint_replay: bool = True,
) -> Configuration:
    """A run of an agent that is adapted to its world already; what is None is as suits the world."""
    default = chosen.schedule
    steps = default.steps if steps is None else steps
    if steps <= agent.warm_up_steps:  # before a folder is made for them
        raise InputError(
            f"--steps must be more than the {agent.warm_up_steps:,} steps of the warm-up, got {steps:,}; "
            "for a shorter one --set warm_up_steps=N"
        )
    if environments is not None:
        at_least("--envs", environments, 1)
    if evaluation_environments is not None:
        at_least("--evaluation-envs", evaluation_environments, 1)
    if evaluation_steps is not None:
        at_least("--evaluation-steps", evaluation_steps, 0)
    if training_steps is None:  # as many as are usual, or a little fewer where that makes no remainder
        a_time = -(-steps // -(-steps // default.training_steps))
    else:
        a_time = at_least("--training-steps", training_steps, 1)
    return Configuration(
        agent=agent,
        environment=chosen.name,
        torso=chosen.torso,
        schedule=Schedule(
            iterations=-(-steps // a_time),
            training_steps=min(a_time, steps),
            evaluation_steps=default.evaluation_steps if evaluation_steps is None else evaluation_steps,
        ),
        seed=seed,
        seeds=seeds,
        environments=chosen.environments if environments is None else environments,
        evaluation_environments=(
            chosen.evaluation_environments if evaluation_environments is None else evaluation_environments
        ),
        checkpoint_minutes=checkpoint_minutes,
        checkpoint_replay=checkpoint_replay,
    )


def trainer_of(configuration: Configuration) -> DeviceTrainer | HostTrainer | JudgedElsewhere:
    chosen = world(configuration.environment)
    counts = (configuration.seeds, configuration.environments, configuration.evaluation_environments)
    given = (configuration.torso, configuration.schedule, *counts)
    if chosen.on_device and chosen.judged_in:
        torso, schedule, *rest = given
        training = DeviceTrainer(
            configuration.agent, chosen.on_device(), torso, replace(schedule, evaluation_steps=0), *rest
        )
        return JudgedElsewhere(training, DeviceTrainer(configuration.agent, chosen.judged_in(), *given), schedule)
    if chosen.on_device:
        return DeviceTrainer(configuration.agent, chosen.on_device(), *given)
    if chosen.on_host:
        whole_every = 1 if configuration.checkpoint_minutes == 0 else None  # for a checkpoint after every iteration
        return HostTrainer(configuration.agent, chosen.on_host, *given, whole_every=whole_every)
    raise InputError(f"{chosen.name} lives neither on the device nor on the host")


@contextmanager
def made(configuration: Configuration) -> Iterator[DeviceTrainer | HostTrainer | JudgedElsewhere]:
    """A trainer for as long as it is needed."""
    trainer = trainer_of(configuration)
    try:
        yield trainer
    finally:
        if isinstance(trainer, HostTrainer):
            trainer.close()
