"""The configuration of an agent, as one frozen value.

Values come from three places. A preset holds the values of one of the paper's agents, or of `any-rainbow`. An
environment replaces those that do not suit it. The user's own values take precedence over both.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from enum import Enum
from typing import Any, Literal

from multihorizon.agents.acting import Acting, Consistency, Epsilon, acting_weights, check_consistency
from multihorizon.agents.losses import Bootstrap, Categorical, Loss, Priority
from multihorizon.agents.networks import Initial
from multihorizon.agents.optimisers import Adam, Optimiser, RmsProp
from multihorizon.discounting import Discount, Horizons, single
from multihorizon.discounting.hazard import Prior
from multihorizon.errors import InputError, at_least, member, one_of, short_text

Origin = Literal["preset", "environment", "user"]
CHOICES: dict[str, type[Enum]] = {
    "bootstrap": Bootstrap,
    "consistency": Consistency,
    "priority": Priority,
    "initial": Initial,
}
LABELS = ("name", "base", "chosen")  # fields that are not settings


@dataclass(frozen=True)
class AgentConfig:
    """The complete configuration of an agent. A step is an agent step, which is four frames in Atari.

    Args:
        name: Label of the agent in files and figures.
        horizons: Discount factors γ, with one head for each, and their weights in the discount that the agent acts by.
            `mh.agent` also accepts one γ, as in `horizons=0.9`.
        acting: Which values the agent acts by: a rule, or the γ of one head.
        loss: Meaning of a head's output, and its loss: `Huber` or `Categorical`.
        optimiser: `Adam` or `RmsProp`.
        n_steps: Length of n-step returns.
        priority: How often a transition is replayed.
        bootstrap: Which next action a head's target assumes.
        consistency: What the agent does about plans that it will not keep. `SOPHISTICATED` sets `bootstrap` to
            `ACTING`; `PRECOMMITTED` needs `OWN`.
        double_q: Whether the online network chooses the next action of a target.
        batch: Transitions in an update.
        replay_capacity: Steps that the replay buffer holds.
        warm_up_steps: Random steps before the first update.
        update_period_steps: Steps between two updates, counted over all environments.
        target_period_steps: Steps between two updates of the target network.
        epsilon: Exploration.
        clip_rewards: Whether rewards are clipped to [-1, 1] in training.
        compute_dtype: `float32` or `bfloat16`; weights and optimiser state are float32 in both.
        initial: How weights are initialised.
        base: Preset that the agent was made from.
        chosen: Settings, or parts of settings, that the user named; an environment does not replace them.
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
        short_text("an agent's name", self.name)
        for name in ("n_steps", "batch", "update_period_steps", "target_period_steps", "replay_capacity"):
            at_least(name, getattr(self, name), 1)
        at_least("warm_up_steps", self.warm_up_steps, 0)
        one_of("compute_dtype", self.compute_dtype, ["float32", "bfloat16"])
        acting_weights(self.acting, self.horizons)
        check_consistency(self.consistency, self.acting, self.horizons)
        _check_bootstrap(self.consistency, self.bootstrap)

    def with_settings(self, **settings: Any) -> "AgentConfig":
        """Returns a copy with settings changed.

        Args:
            **settings: Fields of this class. A part of a field has a dotted name, as in
                `**{"optimiser.learning_rate": 1e-4}`. Choices may be given by name, as in `acting="weighted"`.

        Raises:
            InputError: A name is unknown (the message suggests the nearest), or a value has the wrong type.
        """
        changed: dict[str, Any] = {}
        named = {*self.chosen, *settings} - {*LABELS}
        for path, value in settings.items():
            name, _, part = path.partition(".")
            self.check_setting(name, part)
            current = changed.get(name, getattr(self, name))
            changed[name] = _with_part(name, current, part, value) if part else _accepted(name, current, value)
        before, after = self.consistency, changed.get("consistency", self.consistency)
        if Consistency.SOPHISTICATED in (before, after) and before is not after and "bootstrap" not in named:
            changed["bootstrap"] = Bootstrap.ACTING if after is Consistency.SOPHISTICATED else Bootstrap.OWN
        return replace(self, **changed, chosen=tuple(sorted(named)))

    def check_setting(self, name: str, part: str = "") -> None:
        """Checks that a setting exists.

        Args:
            name: The name of the setting.
            part: The name of a part of the setting; empty for the whole setting.

        Raises:
            InputError: If it does not exist. The message suggests the nearest name.
        """
        _check_name(name)
        parts = parts_of(getattr(self, name)) if part else []
        if part and not parts:
            raise InputError(f"{name} has no settings of its own")
        if part:
            one_of(f"part of {name}", part, parts)

    def resolved(self, env: Any) -> "Resolution":
        """Returns this agent as it trains in an environment, and where each value comes from.

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
    """Raises an error if `name` is unknown. It suggests the nearest setting, or the one that `name` is a part of."""
    names = setting_names()
    if name in (*names, "name"):
        return
    kinds: dict[Any, str] = {Adam: "optimiser", RmsProp: "optimiser", Epsilon: "epsilon", Categorical: "loss"}
    owners = {part: owner for kind, owner in kinds.items() for part in parts_of(kind)}
    if name in owners:
        raise InputError(f"{name} is a part of {owners[name]}; set {owners[name]}.{name}")
    if name in ("gamma", "gammas"):
        raise InputError(
            f"{name} is set by horizons: horizons=0.9 for one γ, horizons=mh.minimax_grid(...) for several"
        )
    one_of("setting", name, names)


def _with_part(name: str, current: Any, part: str, value: Any) -> Any:
    old = getattr(current, part)
    if isinstance(old, float) and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, type(old)):
        raise InputError(f"{name}.{part} must be {type(old).__name__}, got {value!r}")
    return replace(current, **{part: value})


def _accepted(name: str, old: Any, value: Any) -> Any:
    """Converts a value to the type of the field, if the conversion is unambiguous."""
    if name == "horizons" and isinstance(value, float):
        return single(value)
    kinds = {"acting": Acting, **CHOICES}
    if name in kinds and isinstance(value, str):
        kind: Any = kinds[name]
        return kind[one_of(name, value.upper().replace("-", "_"), [choice.name for choice in kind])]
    return value


def _check_types(config: AgentConfig) -> None:
    """Raises an InputError for a value of the wrong type."""
    given = config.horizons
    if not isinstance(given, Horizons):
        how = "horizons must be Horizons, such as mh.minimax_grid(discount, heads=4)"
        what = f"the {type(given).__name__} {given}" if isinstance(given, Discount | Prior) else repr(given)
        raise InputError(f"{how}, got {what}")
    if not isinstance(config.optimiser, Adam | RmsProp):
        raise InputError(
            f"optimiser must be mh.Adam(...) or mh.RmsProp(...), whose settings a run can store, "
            f"got {type(config.optimiser).__name__}"
        )
    if not isinstance(config.loss, Loss):
        raise InputError(f"loss must be mh.Huber() or mh.Categorical(...), got {config.loss!r}")
    if not isinstance(config.acting, Acting | float | int):
        raise InputError(f"acting must be a rule ({_names(Acting)}) or the γ of a head, got {config.acting!r}")
    for name, kind in CHOICES.items():
        member(name, getattr(config, name), kind)
    if not isinstance(config.epsilon, Epsilon):
        raise InputError(f"epsilon must be mh.Epsilon(final=..., decay_steps=...), got {config.epsilon!r}")
    for name in ("double_q", "clip_rewards"):
        if not isinstance(getattr(config, name), bool):
            raise InputError(f"{name} must be True or False, got {getattr(config, name)!r}")


def _check_bootstrap(consistency: Consistency, bootstrap: Bootstrap) -> None:
    """Raises an error if the consistency rule cannot be used with this bootstrap."""
    if consistency is Consistency.SOPHISTICATED and bootstrap is Bootstrap.OWN:
        raise InputError(
            "consistency=sophisticated needs bootstrap=acting, got own: heads must value what the later selves will do"
        )
    if consistency is Consistency.PRECOMMITTED and bootstrap is Bootstrap.ACTING:
        raise InputError(
            "consistency=precommitted needs bootstrap=own, got acting: what the agent does next depends on the time "
            "since the episode's start, which the heads do not see"
        )


def _names(kind: type[Enum]) -> str:
    return ", ".join(choice.name.lower() for choice in kind)


@dataclass(frozen=True)
class Resolution:
    """An agent in an environment: the resolved configuration, and the origin of each setting."""

    agent: AgentConfig
    origins: Mapping[str, Origin] = field(default_factory=dict)

    def __str__(self) -> str:
        values = {name: getattr(self.agent, name) for name in setting_names()}
        shown = {name: value.name.lower() if isinstance(value, Enum) else value for name, value in values.items()}
        return "\n".join(f"{name} = {value}  ({self.origins[name]})" for name, value in shown.items())


def resolve(agent: AgentConfig, defaults: Mapping[str, Any]) -> Resolution:
    """Fills in an environment's defaults where neither the user nor the code that made the agent set a value."""
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
    """Returns the parts of a setting that the user set individually, such as optimiser.learning_rate."""
    parts = [path.partition(".")[2] for path in agent.chosen if path.startswith(f"{name}.")]
    value = getattr(agent, name)
    return {part: getattr(value, part) for part in parts if hasattr(value, part)}


def _with_parts(value: Any, parts: dict[str, Any]) -> Any:
    """Returns a setting with some of its parts replaced. Parts that it does not have are ignored."""
    known = {part: given for part, given in parts.items() if part in parts_of(value)}
    return replace(value, **known) if known else value
