"""Which runs may stand in one figure: the protocol must be the same, what is compared may differ."""

from typing import Any

from multihorizon.errors import InputError

# By folder: the environment, and the configuration as it lies on disk (empty where the run has not begun).
Configured = dict[str, tuple[str, dict[str, Any]]]

# The agent and its network are what is compared, seeds are what is averaged over, and the rest is housekeeping. How
# many iterations there are is no matter: runs are compared as far as all of them have come.
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
# Settings of the agent that decide what a score means.
PROTOCOL_OF_AGENT = ("clip_rewards", "epsilon.evaluation")
# Without evaluation the scores are those of training, which depend on how much is explored.
PROTOCOL_OF_TRAINING = ("epsilon.final",)

# Games that stand in the same aggregates and figures, so that what differs between them must not be the protocol.
FAMILIES = ("atari", "minatar")
MAY_SUIT_THE_GAME = ("environments",)


def check_protocols(configured: Configured) -> None:
    """Refuses runs of one environment, or of one family, whose protocols differ, and names the setting."""
    first: dict[str, tuple[str, dict[str, Any]]] = {}
    for folder, (environment, configuration) in configured.items():
        if not configuration:
            continue
        protocol = _protocol(configuration)
        _check(environment, first.setdefault(environment, (folder, protocol)), (folder, protocol))
        family = environment.partition("/")[0]
        if family in FAMILIES:
            shared = {setting: value for setting, value in protocol.items() if setting not in MAY_SUIT_THE_GAME}
            _check(family, first.setdefault(family, (folder, shared)), (folder, shared))


def _check(where: str, one: tuple[str, dict[str, Any]], another: tuple[str, dict[str, Any]]) -> None:
    for setting in sorted(one[1].keys() | another[1].keys()):
        its, mine = (protocol.get(setting) for _, protocol in (one, another))
        if mine != its:
            raise InputError(
                f"runs of {where} differ in protocol: {setting} is {_shown(its)} in {one[0]} and "
                f"{_shown(mine)} in {another[0]}; report them from separate folders"
            )


def unique_labels(configured: Configured) -> dict[str, str]:
    """Agents' names by folder. Where agents of one name differ in an environment, the settings that do are added."""
    agents = {folder: _flat(configuration["agent"]) for folder, (_, configuration) in configured.items()}
    names = {folder: str(agent["name"]) for folder, agent in agents.items()}
    differing: dict[str, set[str]] = {}
    for a in configured:
        for b in configured:
            if a < b and names[a] == names[b] and configured[a][0] == configured[b][0]:
                both = agents[a].keys() | agents[b].keys()
                differing.setdefault(names[a], set()).update(
                    setting for setting in both if agents[a].get(setting) != agents[b].get(setting)
                )
    labels = {
        folder: ", ".join([name, *(_setting(s, agents[folder].get(s)) for s in sorted(differing.get(name, ())))])
        for folder, name in names.items()
    }
    alike: dict[tuple[str, str], set[str]] = {}
    for folder, label in labels.items():
        alike.setdefault((configured[folder][0], label), set()).add(str(agents[folder]))
    unclear = {label for (_, label), kinds in alike.items() if len(kinds) > 1}
    return {folder: f"{label} ({folder})" if label in unclear else label for folder, label in labels.items()}


def check_seeds(configured: Configured, labels: dict[str, str]) -> None:
    """Refuses a seed that is there twice: it would look like two, and everything surer than it is."""
    holds: dict[tuple[str, str, int], str] = {}
    for folder, (environment, configuration) in configured.items():
        first = int(configuration.get("seed", 0))
        for seed in range(first, first + int(configuration.get("seeds", 0))):
            other = holds.setdefault((environment, labels[folder], seed), folder)
            if other != folder:
                raise InputError(
                    f"{other} and {folder} are the same run: {labels[folder]} in {environment} with seed {seed}; "
                    "take one of them away"
                )


def _protocol(configuration: dict[str, Any]) -> dict[str, Any]:
    settings = _flat({k: v for k, v in configuration.items() if k not in NOT_PROTOCOL})
    agent = _flat(configuration["agent"])
    named = PROTOCOL_OF_AGENT + (PROTOCOL_OF_TRAINING if not settings.get("schedule.evaluation_steps") else ())
    return {k: v for k, v in settings.items() if k not in NOT_PROTOCOL} | {f"agent.{k}": agent.get(k) for k in named}


def _flat(content: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Nested settings by their dotted names."""
    flat: dict[str, Any] = {}
    for name, value in content.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{before}{name}.")
        else:
            flat[before + name] = value
    return flat


def _setting(name: str, value: Any) -> str:
    if isinstance(value, list):  # the γ's, or their weights
        listed = ", ".join(f"{v:.4g}" if isinstance(v, float) else str(v) for v in value)
        short = name.rpartition(".")[2]
        return f"{short} {listed}" if len(value) < 4 else f"{len(value)} {short} to {max(value):.5g}"
    return f"{name}={_shown(value)}"


def _shown(value: Any) -> str:
    if value is None:
        return "not set"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:,}" if isinstance(value, int) else str(value)
