"""Environments by name, each with the torso and the settings that suit its size."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from multihorizon.agents.acting import Epsilon
from multihorizon.agents.losses import Categorical
from multihorizon.agents.networks import MLP, SMALL, Torso
from multihorizon.agents.presets import Adam, Agent
from multihorizon.envs.environment import Environment
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.minatar import GAMES, MinAtar
from multihorizon.envs.pathworld import Pathworld
from multihorizon.errors import one_of


@dataclass(frozen=True)
class World:
    """`settings` take the place of the preset's, which are Atari's; `v_max` is the support that its returns need."""

    name: str
    make: Callable[[], Environment]
    torso: Torso
    steps: int
    v_max: float
    settings: dict[str, Any]

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

WORLDS = {
    world.name: world
    for world in (
        World("pathworld", lambda: Pathworld(5).environment(), MLP, 60_000, 6.0, PATHS),
        World("foraging", lambda: Foraging().environment(), MLP, 15_000, 10.0, TABULAR),
        *(
            World(f"minatar/{game}", lambda game=game: MinAtar(game), SMALL, 1_000_000, 10.0, SMALL_GAMES)  # type: ignore[misc]
            for game in GAMES
        ),
    )
}


def world(name: str) -> World:
    return WORLDS[one_of("environment", name, WORLDS)]
