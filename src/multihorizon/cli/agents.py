"""multihorizon agents: compares the presets."""

import argparse

from multihorizon.errors import one_of

SUMMARY = "lists the agents, or the settings of an agent in an environment"
DESCRIPTION = """\
Lists the paper's agents, and any-rainbow. The horizons of any-rainbow are designed for a change of discount after
training (`multihorizon evaluate --discount`). A Multi agent has ten horizons and acts by the largest γ. A Hyper agent
has the same horizons and acts by the weighted sum of their Q-values. An asterisk marks a difference from a simpler
agent: multi-rainbow is compared with rainbow, rainbow with c51, and c51 with dqn.
"""
PARENTS = {"c51": "dqn", "rainbow": "c51", "c51-nstep": "c51", "c51-priority": "c51"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    which = "agent to show with --env (default: rainbow)"
    parser.add_argument("agent", metavar="AGENT", nargs="?", default="rainbow", help=which)
    where = "environment in which to show all settings of AGENT, with the origin of each setting"
    parser.add_argument("--env", metavar="ENV", help=where)
    as_json = "print the configurations of all agents as JSON, or with --env the settings of AGENT"
    parser.add_argument("--json", action="store_true", help=as_json)


def _short(rate: float) -> str:
    """Formats a learning rate as 2.5e-4 instead of 0.00025."""
    digits, exponent = f"{rate:.2e}".split("e")
    return f"{float(digits):g}e{int(exponent)}"


def run(options: argparse.Namespace) -> None:
    from multihorizon.agents.acting import Acting
    from multihorizon.agents.config import AgentConfig
    from multihorizon.agents.losses import Categorical
    from multihorizon.agents.presets import PRESETS
    from multihorizon.cli.terminal import show, show_json, table
    from multihorizon.runs.configuration import plain

    if options.agent is not None:
        one_of("agent", options.agent, PRESETS)
    if options.env:
        _show_resolved(options.agent, options.env, options.json)
        return
    if options.json:
        show_json({name: plain(agent) for name, agent in PRESETS.items()})
        return

    def described(agent: AgentConfig) -> list[str]:
        horizons, optimiser = agent.horizons, plain(agent.optimiser)
        return [
            f"{len(horizons)}",
            "largest" if agent.acting is Acting.LARGEST_GAMMA else "weighted",
            "C51" if isinstance(agent.loss, Categorical) else "Huber",
            f"{optimiser['type']} {_short(optimiser['learning_rate'])}",
            f"{agent.n_steps}",
            agent.priority.name.lower(),
        ]

    rows = []
    for name, agent in PRESETS.items():
        parent = PRESETS.get(PARENTS.get(name) or name.partition("-")[2] or name, agent)
        pairs = zip(described(agent), described(parent), strict=True)
        rows.append([name, *(f"{value}{'' if value == old else '*'}" for value, old in pairs)])
    columns = ["agent", "heads", "acts by", "loss", "optimiser", "n", "priority"]
    show(table("agents", columns, rows))
    one = next(iter(PRESETS.values()))
    ten, eight = (PRESETS[name].horizons.gammas.max() for name in ("multi-rainbow", "any-rainbow"))
    show(
        f"Agents with one head have γ = {one.horizons.gammas[0]:g}. Ten heads use the paper's grid with γ ≤ {ten:.5f}. "
        f"Eight heads with γ ≤ {eight:g} approximate all mixtures of exponentials with γ from 0.5 to 0.998.\n"
        f"All agents: batch {one.batch}, replay buffer {one.replay_capacity:,}, warm-up {one.warm_up_steps:,} steps, "
        f"an update every {one.update_period_steps} steps, "
        f"target network copied every {one.target_period_steps:,} steps, "
        f"ε 1 → {one.epsilon.final:g} over {one.epsilon.decay_steps:,} steps, rewards clipped, "
        "each head bootstraps from its own best action.\n"
        "Small environments have other settings. The config.json of a run contains the complete configuration."
    )


def _show_resolved(name: str, env: str, as_json: bool) -> None:
    from multihorizon.agents.config import setting_names
    from multihorizon.agents.presets import preset
    from multihorizon.cli.terminal import show, show_json, table
    from multihorizon.runs.configuration import plain

    resolution = preset(name).resolved(env)
    values = {setting: plain(getattr(resolution.agent, setting)) for setting in setting_names()}
    if as_json:
        show_json({s: {"value": value, "origin": resolution.origins[s]} for s, value in values.items()})
        return
    rows = [[setting, _described(value), resolution.origins[setting]] for setting, value in values.items()]
    show(table(f"{name} in {env}", ["setting", "value", "from"], rows))


def _described(value: object) -> str:
    if isinstance(value, dict) and "gammas" in value:
        return f"{len(value['gammas'])} γ, the largest {max(value['gammas']):.5g}"
    if isinstance(value, dict):
        parts = ", ".join(f"{name} {part}" for name, part in value.items() if name != "type")
        return f"{value.get('type', '')} {parts}".strip()
    return str(value)
