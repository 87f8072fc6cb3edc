"""Checks that the runs of a report share a protocol."""

import math
from typing import Any

from multihorizon.errors import InputError, is_number, shown
from multihorizon.reports.names import cut

# For each run folder: the environment, and the content of config.json (empty if the run has not started).
Configured = dict[str, tuple[str, dict[str, Any]]]

# Settings that may differ between runs: agents, networks, seeds, lengths, and settings that do not change scores.
NOT_PROTOCOL = {
    "type",
    "agent",
    "torso",
    "environment",
    "seed",
    "seeds",
    "evaluation_environments",
    "checkpoint_minutes",
    "checkpoint_replay",
    "weights_every",
    "versions",
    "schedule.type",
    "schedule.iterations",
}
# Agent settings that must be equal, because they change what a score means.
AGENT_PROTOCOL = ("clip_rewards", "epsilon.evaluation")
# Without evaluation, scores are training returns. The final training ε must then be equal too.
TRAINING_PROTOCOL = ("epsilon.final",)

# Fields of an agent that only repeat other settings.
NOT_SETTINGS = ("base", "chosen")
GAMMAS, WEIGHTS = "horizons.gammas", "horizons.weights"

# Families whose games are aggregated. All runs of such a family must share a protocol.
FAMILIES = ("atari", "minatar")
MAY_DIFFER_BY_GAME = ("environments",)

MOST_LEVELS = 10  # the largest depth of nested settings
LONGEST_SETTING = 60  # labels and messages show at most this number of characters of a setting and its value
LONGEST_TEXT = 1_000  # a text value has at most this number of characters


def check_settings(configuration: dict[str, Any]) -> None:
    """Raises a ValueError if settings are nested too deeply, or if an agent's settings have unexpected types."""
    _check_levels(configuration, MOST_LEVELS)
    for name, value in _flatten(configuration["agent"]).items():
        values = value if isinstance(value, list) else [value]
        if name in (GAMMAS, WEIGHTS):
            if not isinstance(value, list) or not all(map(_is_finite, values)):
                raise ValueError(f"agent.{name} must be a list of numbers, got {shown(value)}")
        elif not all(_is_finite(one) or one is None or isinstance(one, bool) or _is_short(one) for one in values):
            allowed = f"a number, a text of at most {LONGEST_TEXT:,} characters, or a list of them"
            raise ValueError(f"agent.{cut(name, LONGEST_SETTING)} must be {allowed}, got {shown(value)}")


def _check_levels(value: Any, levels: int) -> None:
    if not levels:
        raise ValueError(f"settings must be nested at most {MOST_LEVELS} levels deep")
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            _check_levels(part, levels - 1)


def _is_finite(value: Any) -> bool:
    return is_number(value) and math.isfinite(value)


def _is_short(value: Any) -> bool:
    return isinstance(value, str) and len(value) <= LONGEST_TEXT


def check_protocols(configured: Configured) -> None:
    """Raises an InputError if runs of one environment or of one family have different protocols."""
    first: dict[str, tuple[str, dict[str, Any]]] = {}
    for folder, (environment, configuration) in configured.items():
        if not configuration:
            continue
        protocol = _extract_protocol(configuration)
        _check_same(environment, first.setdefault(environment, (folder, protocol)), (folder, protocol))
        family = environment.partition("/")[0]
        if family in FAMILIES:
            shared = {setting: value for setting, value in protocol.items() if setting not in MAY_DIFFER_BY_GAME}
            _check_same(family, first.setdefault(family, (folder, shared)), (folder, shared))


def _check_same(where: str, one: tuple[str, dict[str, Any]], another: tuple[str, dict[str, Any]]) -> None:
    for setting in sorted(one[1].keys() | another[1].keys()):
        its, mine = (protocol.get(setting) for _, protocol in (one, another))
        if mine != its:
            raise InputError(
                f"runs of {where} differ in protocol: {setting} is {_format_value(its)} in {one[0]} and "
                f"{_format_value(mine)} in {another[0]}; report them from separate folders"
            )


def make_labels(configured: Configured) -> dict[str, str]:
    """Returns a label for each folder: the agent's name and, if agents share a name, the settings that differ."""
    agents = {folder: _list_settings(configuration["agent"]) for folder, (_, configuration) in configured.items()}
    names = {folder: str(agent["name"]) for folder, agent in agents.items()}
    differing: dict[str, set[str]] = {}
    for a in configured:
        for b in configured:
            if a < b and names[a] == names[b] and configured[a][0] == configured[b][0]:
                both = agents[a].keys() | agents[b].keys()
                differing.setdefault(names[a], set()).update(
                    setting for setting in both if agents[a].get(setting) != agents[b].get(setting)
                )
    shown = {name: _select_shown(differing.get(name, set())) for name in names.values()}
    labels = {
        folder: ", ".join([name, *(_format_setting(s, agents[folder][s]) for s in shown[name] if s in agents[folder])])
        for folder, name in names.items()
    }
    alike: dict[tuple[str, str], set[str]] = {}
    for folder, label in labels.items():
        alike.setdefault((configured[folder][0], label), set()).add(str(agents[folder]))
    unclear = {label for (_, label), kinds in alike.items() if len(kinds) > 1}
    return {folder: f"{label} ({folder})" if label in unclear else label for folder, label in labels.items()}


def _list_settings(agent: dict[str, Any]) -> dict[str, Any]:
    """Returns an agent's settings by dotted name. The type of the loss is named `loss`, not `loss.type`."""
    settings = _flatten({name: value for name, value in agent.items() if name not in NOT_SETTINGS})
    return {name.removesuffix(".type"): value for name, value in settings.items()}


def _select_shown(differing: set[str]) -> list[str]:
    """Sorts the differing settings, and leaves out the weights if the γ's differ too."""
    return sorted(differing - {WEIGHTS} if GAMMAS in differing else differing)


def check_seeds(configured: Configured, labels: dict[str, str]) -> None:
    """Raises an InputError if a seed of an agent occurs twice, because intervals would then be too narrow."""
    holds: dict[tuple[str, str, int], str] = {}
    for folder, (environment, configuration) in configured.items():
        first = int(configuration.get("seed", 0))
        for seed in range(first, first + int(configuration.get("seeds", 0))):
            other = holds.setdefault((environment, labels[folder], seed), folder)
            if other != folder:
                raise InputError(
                    f"{other} and {folder} are the same run: {labels[folder]} in {environment} with seed {seed}; "
                    "remove one of them"
                )


def _extract_protocol(configuration: dict[str, Any]) -> dict[str, Any]:
    settings = _flatten({k: v for k, v in configuration.items() if k not in NOT_PROTOCOL})
    agent = _flatten(configuration["agent"])
    named = AGENT_PROTOCOL + (TRAINING_PROTOCOL if not settings.get("schedule.evaluation_steps") else ())
    return {k: v for k, v in settings.items() if k not in NOT_PROTOCOL} | {f"agent.{k}": agent.get(k) for k in named}


def _flatten(content: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Returns nested settings by dotted name."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= _flatten(value, f"{before}{name}.")
        else:
            flat[before + name] = value
    return flat


def _format_setting(name: str, value: Any) -> str:
    if isinstance(value, list) and value and all(map(_is_finite, value)):  # the γ's, or their weights
        listed = ", ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in value[:4])
        if name == GAMMAS:
            return f"γ = {listed}" if len(value) < 4 else f"{len(value)} heads with γ ≤ {max(value):.5g}"
        short = name.rpartition(".")[2]
        return cut(
            f"{short} {listed}" if len(value) < 4 else f"{len(value)} {short} to {max(value):.5g}", LONGEST_SETTING
        )
    if isinstance(value, str) and value.isupper():  # a choice, such as SOPHISTICATED
        value = value.lower()
    return cut(f"{name}={_format_value(value)}", LONGEST_SETTING)


def _format_value(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else cut(str(value), LONGEST_SETTING)
