"""Environments, each with a default network, schedule and settings."""

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import jax

from multihorizon.agents.acting import Epsilon
from multihorizon.agents.config import AgentConfig, resolve
from multihorizon.agents.losses import Categorical
from multihorizon.agents.networks import MLP, NATURE, SMALL, ConvTorso, MlpTorso
from multihorizon.agents.optimisers import Adam
from multihorizon.discounting.hazard import Prior
from multihorizon.envs import atari, foraging, gymnax, minatar, pathworld
from multihorizon.envs.dilemmas import DILEMMAS
from multihorizon.envs.environment import Environment, check_shapes
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.hazard import Hazard, Lethal
from multihorizon.envs.pathworld import Pathworld
from multihorizon.envs.shortcut import Shortcut
from multihorizon.envs.vector import VectorEnvironment
from multihorizon.errors import InputError, needs_no_arguments, one_of, shown
from multihorizon.training.schedule import Schedule

OWN = "own/"  # prefix of the names of user-defined environments


@dataclass(frozen=True)
class World:
    """An environment and its defaults. Either `on_device` or `on_host` makes the environment.

    `settings` replace values of a preset, because presets are made for Atari. All returns should lie within ±`v_max`.
    """

    name: str
    torso: ConvTorso | MlpTorso
    schedule: Schedule
    v_max: float
    settings: dict[str, Any] = field(default_factory=dict)
    environments: int = 4
    evaluation_environments: int = 10
    on_device: Callable[[], Environment] | None = None
    judged_in: Callable[[], Environment] | None = None  # evaluation environment; None for the training environment
    on_host: Callable[[int], VectorEnvironment] | None = None
    frames_per_step: int = 1
    pictures: Callable[[], VectorEnvironment] | None = None  # the environment with rendered frames

    def spaces(self) -> tuple[tuple[int, ...], int]:
        """Returns the shape of an observation, and the number of actions."""
        if self.on_device:
            environment = self.on_device()
            return tuple(environment.observation_shape), environment.actions
        assert self.on_host is not None
        one = self.on_host(1)
        one.close()
        return (*one.frame_shape[:-1], one.frame_shape[-1] * one.stack), one.actions

    def for_evaluation(self) -> "World":
        """Returns the world for evaluation, which may differ from the world for training."""
        return self if self.judged_in is None else replace(self, on_device=self.judged_in, judged_in=None)

    def make_for_evaluation(self, hazard: Prior | None = None) -> Environment:
        """Makes the evaluation environment, or the training environment under `hazard` if a hazard is given."""
        assert self.on_device is not None
        if hazard is not None:
            return Hazard(self.on_device(), hazard)
        return (self.judged_in or self.on_device)()

    def defaults(self, agent: AgentConfig) -> Mapping[str, Any]:
        """Returns the environment's default settings. The user's own settings override them."""
        if isinstance(agent.loss, Categorical):
            return {"loss": replace(agent.loss, v_max=self.v_max), **self.settings}
        return self.settings

    def adapt(self, agent: AgentConfig) -> AgentConfig:
        return resolve(agent, self.defaults(agent)).agent


TABULAR = {
    "replay_capacity": 20_000,
    "warm_up_steps": 2_000,
    "target_period_steps": 400,
    "epsilon": Epsilon(final=0.1, decay_steps=5_000),
    "optimiser": Adam(5e-4, epsilon=1e-5),
    "clip_rewards": False,
}
# On a path, all actions have the same value, so the maximum over noisy estimates is too large. This error accumulates
# over the steps of a path. Slow learning keeps the error small.
PATHS = TABULAR | {
    "target_period_steps": 200,
    "epsilon": Epsilon(final=1.0),
    "optimiser": Adam(1e-4, epsilon=1e-5),
}
# A dilemma has few states, but their values may differ by only a few hundredths.
DILEMMA = TABULAR | {
    "target_period_steps": 100,
    "epsilon": Epsilon(final=0.2, decay_steps=5_000),
    "optimiser": Adam(3e-4, epsilon=1e-5),
}
SMALL_GAMES = {
    "replay_capacity": 100_000,
    "warm_up_steps": 5_000,
    "target_period_steps": 4_000,
    "epsilon": Epsilon(final=0.01, decay_steps=100_000),
    "optimiser": Adam(2.5e-4, epsilon=1.5e-4),
    "clip_rewards": False,
}

CLASSIC_V_MAX = 100.0  # rewards of 1 a step and γ = 0.99 give returns of up to 100
CLASSIC = {
    "replay_capacity": 100_000,
    "warm_up_steps": 1_000,
    "target_period_steps": 1_000,
    "epsilon": Epsilon(final=0.01, decay_steps=10_000),
    "optimiser": Adam(1e-3, epsilon=1e-5),
    "batch": 64,
    "clip_rewards": False,
}


def _on_device(
    name: str, make: Callable[[], Environment], torso: Any, steps: int, v_max: float, settings: Any
) -> World:
    schedule = Schedule(iterations=50, training_steps=steps // 50, evaluation_steps=0)
    return World(name, torso, schedule, v_max, settings, on_device=make)


def _under_hazard(world: World, endanger: Callable[[Environment], Environment]) -> World:
    """Returns a world for training without hazard and evaluation under hazard, as in the paper."""
    make = world.on_device
    assert make is not None
    schedule = Schedule(iterations=15, training_steps=world.schedule.steps // 15, evaluation_steps=10_000)
    name = f"{world.name}/hazard"
    return replace(world, name=name, schedule=schedule, judged_in=lambda: endanger(make()))


PATHWORLD = _on_device("pathworld", lambda: Pathworld(5).environment(), MLP, 60_000, 6.0, PATHS)
FORAGING = _on_device("foraging", lambda: Foraging().environment(), MLP, 15_000, 10.0, TABULAR)
SHORTCUT = _on_device("shortcut", lambda: Shortcut().environment(), MLP, 30_000, 2.0, TABULAR)
ON_DEVICE = {
    world.name: world
    for world in (
        PATHWORLD,
        _under_hazard(PATHWORLD, lambda environment: Hazard(environment, pathworld.HAZARD)),
        FORAGING,
        _under_hazard(FORAGING, lambda environment: Hazard(environment, foraging.HAZARD)),
        SHORTCUT,
        _under_hazard(SHORTCUT, Lethal),
        *(
            _on_device(f"dilemma/{name}", dilemma.environment, MLP, 20_000, 10.0, DILEMMA)
            for name, dilemma in DILEMMAS.items()
        ),
        *(
            _on_device(f"minatar/{game}", lambda game=game: minatar.MinAtar(game), SMALL, 1_000_000, 10.0, SMALL_GAMES)  # type: ignore[misc]
            for game in minatar.GAMES
        ),
    )
}


# The numbers of environments for training and for evaluation. On a GPU, 160 environments for training would be slightly
# faster, but checkpoints would be half as frequent. Evaluation on a GPU uses fewer environments than training, because
# evaluation waits for every episode to end.
ATARI_ENVIRONMENTS = {"gpu": (80, 40), "cpu": (8, 10)}

# On a GPU, a bfloat16 update takes 0.65 times as long as a float32 update.
ATARI_SETTINGS: dict[str, dict[str, Any]] = {"gpu": {"compute_dtype": "bfloat16"}, "cpu": {}}


def world(env: Any) -> World:
    """Returns an environment with its defaults.

    Args:
        env: A name, an environment, or a class or function that makes an environment. Names are `pathworld[/hazard]`,
            `foraging[/hazard]`, `shortcut[/hazard]`, `dilemma/NAME`, `minatar/GAME`, `atari/GAME` and Gymnasium ids
            with or without `gym/`. Environments have the interface of Gymnasium, of `envs.environment.Environment` or
            of gymnax. A gymnax environment may be a pair (environment, params).

    Raises:
        InputError: If `env` is none of these, or its actions are not discrete.
    """
    if isinstance(env, World):
        return env
    if isinstance(env, str):
        return _by_name(env)
    own = _own(env)
    if own is None and callable(env):
        needs_no_arguments("a function that makes an environment", env)
        made = env()
        own = _own(made, env)
        if own is None:
            raise InputError(f"the function returned {type(made).__name__}, which is not an environment; {ALLOWED}")
    if own is None:
        lacks = [name for name in JAX_INTERFACE if not hasattr(env, name)]
        if len(lacks) <= len(JAX_INTERFACE) // 2:
            raise InputError(f"this {type(env).__name__} is not a JAX environment: it has no {' and no '.join(lacks)}")
        raise InputError(f"{shown(env)} is not an environment; {ALLOWED}")
    return own


def names_module(name: str) -> bool:
    """Returns whether Gymnasium would import a module for this name, as for `gym/module:Name-v0`."""
    return ":" in name


def stored_world(name: str) -> World:
    """Returns the environment of a stored run or policy, without importing a module.

    Gymnasium imports a module for an id such as `module:Name-v0`, so an untrusted folder could run arbitrary code. Such
    an id is used only if the environment is already registered.

    Raises:
        InputError: If the id contains a module and the environment is not registered.
    """
    if not names_module(name):
        return world(name)
    import gymnasium

    module, _, registered = name.removeprefix("gym/").partition(":")

    if registered not in gymnasium.registry:
        raise InputError(
            f"the environment {registered} would import the Python module {module}, which may run arbitrary code; if "
            "you trust the module, load with trust=True, or pass the environment with env="
        )
    return replace(world(f"gym/{registered}"), name=name)


JAX_INTERFACE = ("actions", "observation_shape", "observation_dtype", "reset", "step")
ALLOWED = "allowed: a name, a Gymnasium environment or a function that makes one, or a JAX environment"


def _own(env: Any, make: Any = None) -> World | None:
    """Returns the world of a user's own environment, which the function `make` may have made."""
    import gymnasium

    if isinstance(env, gymnasium.Env):
        name = type(env.unwrapped).__name__
        if make is not None:
            can_draw = env.render_mode == "rgb_array"
            env.close()
            return _gymnasium(OWN + name, make, make if can_draw else None)
        spec, kind = env.spec, type(env).__name__
        if spec is None or any(wrapper.kwargs is None for wrapper in spec.additional_wrappers):
            raise InputError(
                f"this {kind} cannot be copied, because it has no complete Gymnasium spec; pass a function that makes "
                f"it, as in env=lambda: {kind}(...)"
            )
        can_draw = "rgb_array" in env.metadata.get("render_modes", ())
        drawn = (lambda: gymnasium.make(spec, render_mode="rgb_array")) if can_draw else None
        return _gymnasium(OWN + name, lambda: gymnasium.make(spec), drawn)
    if not isinstance(env, type) and isinstance(env, Environment):
        return _own_on_device(env, type(env).__name__)
    if not isinstance(env, type) and gymnax.is_like(env):
        adapted = gymnax.Gymnax.of(env)
        return _own_on_device(adapted, type(adapted.environment).__name__)
    return None


def _by_name(name: str) -> World:
    family, _, which = name.partition("/")
    if family == "atari":
        return _atari(name, which)
    if family == "gym" and which:
        return _gymnasium(name, which, which)
    if name in atari.GAMES:
        raise InputError(f"unknown environment '{name}' (did you mean 'atari/{name}'?)")
    if name.startswith(OWN):
        raise InputError(f"the environment {which} is user-defined and was not stored; pass it with env=")
    if name in ON_DEVICE:
        return ON_DEVICE[name]
    if family not in ("pathworld", "foraging", "shortcut", "dilemma", "minatar"):
        import gymnasium

        if name in gymnasium.registry or ":" in name:
            return _gymnasium(f"gym/{name}", name, name)
        near = [known for known in gymnasium.registry if known.startswith(f"{name}-v")][-1:]
        near = near or difflib.get_close_matches(name, gymnasium.registry, n=1, cutoff=0.8)
        if near:
            raise InputError(f"unknown environment '{name}' (did you mean '{near[0]}'?)")
        one_of("environment", name, [*ON_DEVICE, "atari/GAME", "gym/ID"])
    return ON_DEVICE[one_of("environment", name, ON_DEVICE)]


def _atari(name: str, game: str) -> World:
    one_of("Atari game", game, atari.GAMES, "multihorizon games")
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
        on_host=lambda count: atari.Atari(game, count),
        frames_per_step=atari.FRAMES_PER_STEP,
        pictures=lambda: atari.Atari(game, 1, in_colour=True),
    )


def _gymnasium(name: str, make: Any, drawn: Any = None) -> World:
    """Returns a Gymnasium world. `make` is an id or a function; `drawn` makes environments that can be rendered."""
    from multihorizon.envs.gymnasium_vector import Gymnasium

    one = Gymnasium(make, 1)
    shape = one.frame_shape
    one.check_observation()
    one.close()
    if isinstance(drawn, str) and not one.can_render:
        drawn = None
    kind = name.rpartition("/")[2].partition("-v")[0]
    return World(
        name,
        _network_for(shape),
        LONGER_SCHEDULES.get(kind, CLASSIC_SCHEDULE),
        CLASSIC_V_MAX,
        CLASSIC,
        on_host=lambda count: Gymnasium(make, count),
        pictures=None if drawn is None else lambda: Gymnasium(drawn, 1, rendered=True),
    )


def _own_on_device(environment: Environment, name: str) -> World:
    check_shapes(environment, name)
    return World(
        OWN + name,
        _network_for(tuple(environment.observation_shape)),
        CLASSIC_SCHEDULE,
        CLASSIC_V_MAX,
        CLASSIC,
        on_device=lambda: environment,
    )


CLASSIC_SCHEDULE = Schedule(iterations=10, training_steps=10_000, evaluation_steps=5_000)
# CLASSIC_SCHEDULE is too short to solve these Gymnasium environments.
LONGER_SCHEDULES = {"LunarLander": replace(CLASSIC_SCHEDULE, iterations=30)}


def _network_for(shape: tuple[int, ...]) -> ConvTorso | MlpTorso:
    """Returns the default network for observations of a shape."""
    if len(shape) != 3:
        return MLP
    return NATURE if min(shape[:2]) >= 36 else SMALL
