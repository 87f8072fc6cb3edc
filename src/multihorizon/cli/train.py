"""multihorizon train: an agent in an environment, on this machine's fastest device."""

import argparse
from pathlib import Path
from typing import Any

from multihorizon.errors import InputError, at_least, one_of

SUMMARY = "trains an agent in an environment: multihorizon train multi-rainbow --env minatar/breakout"
DESCRIPTION = """\
Environment, replay and learner run as one compiled program; several seeds train side by side. The run's folder holds
its whole configuration, a line of metrics for each chunk of training, and the final weights.
"""
ENVIRONMENTS = (
    "pathworld, foraging, minatar/asterix, minatar/breakout, minatar/freeway, minatar/seaquest, minatar/space_invaders"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("agent", metavar="AGENT", help="one of multihorizon agents")
    parser.add_argument("--env", required=True, metavar="ENV", help=ENVIRONMENTS)
    parser.add_argument("--steps", type=int, help="agent steps for each seed (as many as suit the environment)")
    parser.add_argument("--seeds", type=int, default=1, help="how many runs train side by side (1)")
    parser.add_argument("--seed", type=int, default=0, help="of the first run (0)")
    parser.add_argument("--envs", type=int, default=4, help="environments of each run (4)")
    settings = (
        "a setting of the agent, as in n_steps=5 or optimiser.learning_rate=1e-4 (see multihorizon agents --json)"
    )
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=settings)
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (runs/AGENT-ENV-SEED)")
    parser.add_argument("--json", action="store_true", help="the last metrics and the folder")


def run(options: argparse.Namespace) -> None:
    from multihorizon.agents.presets import preset
    from multihorizon.cli.terminal import show, show_json, training_progress
    from multihorizon.files import writable_folder
    from multihorizon.training import memory
    from multihorizon.training.loop import Trainer
    from multihorizon.training.records import Records
    from multihorizon.training.run import Chunk, train
    from multihorizon.training.worlds import world

    at_least("--seed", options.seed, 0)
    chosen = world(options.env)
    agent = chosen.adapt(preset(options.agent))
    for assignment in options.set:
        agent = _changed(agent, assignment)
    steps = chosen.steps if options.steps is None else options.steps
    at_least("the number of steps", steps, agent.warm_up_steps + 1)  # before a folder is made for them
    trainer = Trainer(agent, chosen.make(), chosen.torso, options.seeds, options.envs)
    folder = options.out or Path("runs") / f"{agent.name}-{chosen.name.replace('/', '-')}-{options.seed}"
    said = memory.check(trainer)
    configuration = {
        "agent": agent,
        "environment": chosen.name,
        "torso": chosen.torso,
        "steps": steps,
        "seeds": list(range(options.seed, options.seed + options.seeds)),
        "environments": options.envs,
    }
    records = Records(writable_folder(folder), configuration)
    if not options.json:
        show(f"{agent.name} in {chosen.name}, {options.seeds} seed(s), {steps:,} steps each; {said}")
    last: list[Chunk] = []
    with training_progress(agent.name, steps) as report:

        def keep(chunk: Chunk) -> None:
            last[:] = [chunk]
            report(chunk)

        train(trainer, options.seed, steps, max(1000, steps // 50), records, keep)
    if options.json:
        show_json({"folder": str(folder), "last": last[0].line()})
    else:
        show(f"Written to {folder}: config.json, metrics.jsonl, weights.npz")


def _changed(value: Any, assignment: str) -> Any:
    """The configuration with one setting, given as name.of.setting=value, replaced."""
    from dataclasses import fields, is_dataclass, replace

    path, separator, text = assignment.partition("=")
    if not separator:
        raise InputError(f"--set takes NAME=VALUE, got '{assignment}'")
    name, _, rest = path.partition(".")
    one_of("setting", name, [f.name for f in fields(value)])
    old = getattr(value, name)
    if rest:
        if not is_dataclass(old):
            raise InputError(f"{name} has no settings of its own")
        return replace(value, **{name: _changed(old, f"{rest}={text}")})
    return replace(value, **{name: _parsed(name, old, text)})


def _parsed(name: str, old: Any, text: str) -> Any:
    """`text` as the kind of value that the setting holds."""
    from enum import Enum

    if isinstance(old, Enum):
        return type(old)[one_of(name, text.upper(), [choice.name for choice in type(old)])]
    if isinstance(old, bool):
        return one_of(name, text.lower(), ["true", "false"]) == "true"
    if isinstance(old, str):
        return text
    if isinstance(old, int | float):
        try:
            return type(old)(text)
        except ValueError:
            kind = "number" if isinstance(old, float) else "whole number"
            raise InputError(f"{name} must be a {kind}, got '{text}'") from None
    raise InputError(f"{name} cannot be set on the command line; use Python")
