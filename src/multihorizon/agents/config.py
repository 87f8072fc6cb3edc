"""The configuration of an agent.

A preset provides all values. The environment's defaults replace some of them. The user's own values override both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from numbers import Integral
from typing import Any, Literal

from multihorizon.agents.acting import MOST_STEPS, Acting, Consistency, Epsilon, acting_weights, check_consistency
from multihorizon.agents.losses import Bootstrap, Categorical, Huber, Loss, Priority
from multihorizon.agents.networks import Initial
from multihorizon.agents.optimisers import Adam, Optimiser, RmsProp
from multihorizon.discounting import Discount, Horizons, single
from multihorizon.discounting.hazard import Prior
from multihorizon.errors import (
    InputError,
    at_least,
    instance,
    is_number,
    member,
    one_of,
    short_text,
    shown,
    store,
    true_or_false,
)

Origin = Literal["preset", "environment", "user"]
CHOICES: dict[str, type[Enum]] = {
    "bootstrap": Bootstrap,
    "consistency": Consistency,
    "priority": Priority,
    "initial": Initial,
}
MOST_UPDATE_PERIOD_STEPS = 2**20  # limits the number of steps between two updates
LABELS = ("name", "base", "chosen")  # fields that are not settings


@dataclass(frozen=True)
class AgentConfig:
    """The complete configuration of an agent. Steps are agent steps. In Atari, an agent step has four frames.

    Args:
        name: Label of the agent in files and figures.
        horizons: Discount factors γ with their weights. Each γ has one head. `mh.agent` also accepts a single γ, as in
            `horizons=0.9`.
        acting: The values by which the agent chooses its actions: a member of `Acting`, or the γ of one head.
        loss: `Huber` to learn mean returns, or `Categorical` to learn distributions of returns.
        optimiser: `Adam` or `RmsProp`.
        n_steps: Length of n-step returns.
        priority: How often each transition is replayed.
        bootstrap: The next action that a head's target assumes.
        consistency: How the agent deals with time inconsistency. `PRECOMMITTED` needs `bootstrap=OWN`. `SOPHISTICATED`
            needs `bootstrap=ACTING`, which `with_settings` chooses unless you set `bootstrap` yourself.
        double_q: Whether the online network chooses the next action in a target (double Q-learning).
        batch: Number of transitions in an update.
        replay_capacity: Largest number of steps in the replay buffer.
        warm_up_steps: Number of random steps before the first update.
        update_period_steps: Number of steps between two updates, counted over all environments.
        target_period_steps: Number of steps between two updates of the target network.
        epsilon: Probability of a random action.
        clip_rewards: Whether rewards are clipped to [-1, 1] in training.
        compute_dtype: `float32` or `bfloat16`. Weights and optimiser state are always float32.
        initial: How weights are initialised.
        base: Name of the preset that the agent is based on.
        chosen: Names of the settings that the user set. An environment's defaults do not override these settings.
    """

    name: str
    horizons: Horizons
    acting: Acting | float
    loss: Loss
    optimiser: Optimiser
    n_steps: int
    priority: Priority
    bootstrap: Bootstrap = Bootstrap.OWN
    consistency: Consistency = Consistency.NAIVE
    double_q: bool = False
    batch: int = 32
    replay_capacity: int = 1_000_000
    warm_up_steps: int = 20_000
    update_period_steps: int = 4
    target_period_steps: int = 8_000
    epsilon: Epsilon = Epsilon()
    clip_rewards: bool = True
    compute_dtype: str = "float32"
    initial: Initial = Initial.FAN_IN
    base: str = ""
    chosen: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_types(self)
        counts = ("n_steps", "batch", "target_period_steps", "replay_capacity")
        flags = ("double_q", "clip_rewards")
        store(
            self,
            name=short_text("an agent's name", self.name),
            acting=self.acting if isinstance(self.acting, Acting) else float(self.acting),
            **{name: at_least(name, getattr(self, name), 1, MOST_STEPS) for name in counts},
            update_period_steps=at_least("update_period_steps", self.update_period_steps, 1, MOST_UPDATE_PERIOD_STEPS),
            warm_up_steps=at_least("warm_up_steps", self.warm_up_steps, 0, MOST_STEPS),
            compute_dtype=one_of("compute_dtype", self.compute_dtype, ["float32", "bfloat16"]),
            **{name: true_or_false(name, getattr(self, name)) for name in flags},
            base=short_text("base", self.base),
            chosen=tuple(short_text("a name in chosen", name) for name in self.chosen),
        )
        acting_weights(self.acting, self.horizons)
        check_consistency(self.consistency, self.acting, self.horizons)
        _check_bootstrap(self.consistency, self.bootstrap)

    def with_settings(self, **settings: Any) -> "AgentConfig":
        """Returns a copy with new settings.

        Args:
            **settings: Fields of this class. A part of a field has a dotted name, as in
                `**{"optimiser.learning_rate": 1e-4}`. Choices may be given by name, as in `acting="weighted"`.

        Raises:
            InputError: If a name is unknown or a value has the wrong type.
        """
        changed: dict[str, Any] = {}
        named = {*self.chosen, *settings} - {*LABELS}
        for path, value in settings.items():
            name, _, part = path.partition(".")
            self.check_setting(name, part)
            current = changed.get(name, getattr(self, name))
            changed[name] = replace(current, **{part: value}) if part else _accepted(name, value)
        before, after = self.consistency, changed.get("consistency", self.consistency)
        was, is_now = before is Consistency.SOPHISTICATED, after is Consistency.SOPHISTICATED
        if was != is_now and "bootstrap" not in named:
            changed["bootstrap"] = Bootstrap.ACTING if is_now else Bootstrap.OWN
        return replace(self, **changed, chosen=tuple(sorted(named)))

    def check_setting(self, name: str, part: str = "") -> None:
        """Checks that a setting exists.

        Args:
            name: The name of the setting.
            part: The name of a part of the setting; empty for the whole setting.

        Raises:
            InputError: If the setting or its part does not exist.
        """
        _check_name(name)
        parts = parts_of(getattr(self, name)) if part else []
        if part and not parts:
            raise InputError(f"{name} has no parts")
        if part:
            one_of(f"part of {name}", part, parts)

    def resolved(self, env: Any) -> "Resolution":
        """Returns the agent's configuration for an environment, with the origin of each setting.

        Args:
            env: Anything that `multihorizon.train` accepts as an environment.
        """
        from multihorizon.training.worlds import world

        return resolve(self, world(env).defaults(self))


def setting_names() -> list[str]:
    """Returns the names of all settings of an agent."""
    return [f.name for f in fields(AgentConfig) if f.name not in LABELS]


def parts_of(value: Any) -> list[str]:
    """Returns the names of the parts of a setting."""
    return [] if isinstance(value, Horizons) or not is_dataclass(value) else [f.name for f in fields(value)]


def _check_name(name: str) -> None:
    names = setting_names()
    if name in (*names, "name"):
        return
    kinds: dict[Any, str] = {Adam: "optimiser", RmsProp: "optimiser", Epsilon: "epsilon", Categorical: "loss"}
    owners = {part: owner for kind, owner in kinds.items() for part in parts_of(kind)}
    if name in owners:
        raise InputError(f"{name} is a part of {owners[name]}; set {owners[name]}.{name}")
    if name in ("gamma", "gammas"):
        raise InputError(
            f"{name} is not a setting; use horizons=0.9 for one γ, or horizons=mh.minimax_grid(...) for several"
        )
    one_of("setting", name, names)


def _accepted(name: str, value: Any) -> Any:
    """Converts a γ to horizons and a name to a choice. Returns other values unchanged."""
    if name == "horizons" and is_number(value) and not isinstance(value, Integral):
        return single(float(value))
    kinds = {"acting": Acting, **CHOICES}
    if name in kinds and isinstance(value, str):
        kind: Any = kinds[name]
        names = [choice.name.lower() for choice in kind]
        return kind[one_of(name, value.lower().replace("-", "_"), names).upper()]
    return value


def _check_types(config: AgentConfig) -> None:
    given = config.horizons
    if not isinstance(given, Horizons):
        how = "horizons must be Horizons, such as mh.minimax_grid(discount, heads=4)"
        what = f"the {type(given).__name__} {given}" if isinstance(given, Discount | Prior) else shown(given)
        raise InputError(f"{how}, got {what}")
    # A run stores the names of these types, so subclasses are not accepted.
    if type(config.optimiser) not in (Adam, RmsProp):
        raise InputError(f"optimiser must be mh.Adam(...) or mh.RmsProp(...), got {type(config.optimiser).__name__}")
    if type(config.loss) not in (Huber, Categorical):
        raise InputError(f"loss must be mh.Huber() or mh.Categorical(...), got {shown(config.loss)}")
    if type(config.epsilon) is not Epsilon:
        raise InputError(f"epsilon must be mh.Epsilon(final=..., decay_steps=...), got {shown(config.epsilon)}")
    if not isinstance(config.acting, Acting) and not is_number(config.acting):
        raise InputError(f"acting must be a rule ({_names(Acting)}) or the γ of a head, got {shown(config.acting)}")
    for name, kind in CHOICES.items():
        member(name, getattr(config, name), kind)
    instance("chosen", config.chosen, tuple, "a tuple of the names of settings")


def _check_bootstrap(consistency: Consistency, bootstrap: Bootstrap) -> None:
    if consistency is Consistency.SOPHISTICATED and bootstrap is Bootstrap.OWN:
        raise InputError(
            "consistency=sophisticated needs bootstrap=acting, got own; heads must evaluate the agent's policy"
        )
    if consistency is Consistency.PRECOMMITTED and bootstrap is Bootstrap.ACTING:
        raise InputError(
            "consistency=precommitted needs bootstrap=own, got acting; the agent's actions depend on the time in the "
            "episode, which the heads do not observe"
        )


def _names(kind: type[Enum]) -> str:
    return ", ".join(choice.name.lower() for choice in kind)


@dataclass(frozen=True)
class Resolution:
    """An agent's configuration for one environment, with the origin of each setting."""

    agent: AgentConfig
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def __str__(self) -> str:
        values = {name: getattr(self.agent, name) for name in setting_names()}
        shown = {name: value.name.lower() if isinstance(value, Enum) else value for name, value in values.items()}
        return "\n".join(f"{name} = {value}  ({self.origins[name]})" for name, value in shown.items())


def resolve(agent: AgentConfig, defaults: Mapping[str, Any]) -> Resolution:
    """Fills in an environment's defaults for all settings that the user did not set."""
    from multihorizon.agents.presets import PRESETS

    base = PRESETS.get(agent.base)
    parts = {name: _chosen_parts(agent, name) for name in setting_names()}
    users = {name for name in agent.chosen if "." not in name}
    for name in setting_names():
        if base is None or getattr(agent, name) != _with_parts(getattr(base, name), parts[name]):
            users.add(name)
    filled = {name: _with_parts(value, parts[name]) for name, value in defaults.items() if name not in users}
    origins: dict[str, Origin] = {
        name: "user" if name in users or parts[name] else "environment" if name in filled else "preset"
        for name in setting_names()
    }
    return Resolution(replace(agent, **filled, chosen=tuple(sorted({*agent.chosen, *users}))), origins)


def _chosen_parts(agent: AgentConfig, name: str) -> dict[str, Any]:
    """Returns the parts of a setting that the user set one by one, such as optimiser.learning_rate."""
    parts = [path.partition(".")[2] for path in agent.chosen if path.startswith(f"{name}.")]
    value = getattr(agent, name)
    return {part: getattr(value, part) for part in parts if hasattr(value, part)}


def _with_parts(value: Any, parts: dict[str, Any]) -> Any:
    """Returns a setting with some parts replaced, and ignores unknown parts."""
    known = {part: given for part, given in parts.items() if part in parts_of(value)}
    return replace(value, **known) if known else value
