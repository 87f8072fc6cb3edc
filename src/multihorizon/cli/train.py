"""multihorizon train: trains an agent in an environment."""

import argparse
import re
import shlex
from pathlib import Path

from multihorizon.cli import running
from multihorizon.errors import InputError

SUMMARY = "trains an agent in an environment: multihorizon train multi-rainbow --env atari/Seaquest"
DESCRIPTION = """\
Trains in iterations. An iteration is a number of training steps, followed by an evaluation with frozen weights. Several
seeds train in parallel. The run's folder holds the complete configuration, a line of metrics for each iteration,
TensorBoard events, weights, and checkpoints. You can stop a run at any time; `multihorizon resume` continues it.
"""
EPILOG = """\
environments:
  pathworld, foraging, shortcut       small worlds with exact solutions, which run on the device
  dilemma/NAME                        small worlds, which run on the device. Naive and precommitted agents act
                                      differently in 'temptation', 'chore' and 'crossroads', but not in 'control'.
  minatar/GAME                        the games of MinAtar, which run on the device
  pathworld/hazard, foraging/hazard, shortcut/hazard
                                      training without hazard, evaluation under hazard
  atari/GAME                          the sixty games of the paper; `multihorizon games` lists them
  gym/ID                              any Gymnasium environment with discrete actions, such as gym/CartPole-v1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("agent", metavar="AGENT", help="name of an agent; `multihorizon agents` lists all agents")
    parser.add_argument("--env", required=True, metavar="ENV", help="environment, see below")
    steps = "training steps of each seed, rounded up to whole iterations (default: depends on ENV)"
    parser.add_argument("--steps", type=running.whole, help=steps)
    parser.add_argument(
        "--training-steps",
        type=running.whole,
        metavar="N",
        help="training steps of each iteration (default for Atari: 250,000)",
    )
    evaluation = (
        "evaluation steps of each iteration, after which the current episodes are finished "
        "(default for Atari: 125,000; 0: none)"
    )
    parser.add_argument("--evaluation-steps", type=running.whole, metavar="N", help=evaluation)
    parser.add_argument(
        "--seeds", type=running.whole, default=1, help="number of seeds that train in parallel (default: 1)"
    )
    parser.add_argument("--seed", type=running.whole, default=0, help="first seed (default: 0)")
    parser.add_argument(
        "--envs",
        type=running.whole,
        help="parallel environments of each seed (default: 4; Atari: 80 with a GPU, 8 without)",
    )
    evaluation = "parallel environments in evaluation (default: 10; Atari with a GPU: 40)"
    parser.add_argument("--evaluation-envs", type=running.whole, metavar="N", help=evaluation)
    parser.add_argument(
        "--horizons",
        type=Path,
        metavar="FILE",
        help="discount.json, written by `multihorizon discount --out` (default: the agent's horizons)",
    )
    settings = (
        "setting of the agent, such as n_steps=5 or optimiser.learning_rate=1e-4; "
        "`multihorizon agents --json` lists all settings"
    )
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=settings)
    between = "minimum minutes between two checkpoints (default: 10; 0: a checkpoint after every iteration)"
    parser.add_argument("--checkpoint-minutes", type=float, default=10.0, metavar="M", help=between)
    parser.add_argument(
        "--no-checkpoint-replay",
        action="store_true",
        help="leave the replay buffer out of checkpoints; `multihorizon resume` must then refill the buffer",
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="folder of the run (default: runs/AGENT-ENV-SEED)")
    running.add_arguments(parser)


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.agents.presets import preset
    from multihorizon.cli.settings import horizons_from, parsed
    from multihorizon.runs.configuration import read_configuration
    from multihorizon.runs.folder import CONFIGURATION, is_finished
    from multihorizon.runs.run import train
    from multihorizon.training.worlds import world

    chosen = world(options.env)
    agent = preset(options.agent)
    if options.horizons:
        agent = agent.with_settings(horizons=horizons_from(options.horizons))
    resolved = chosen.adapt(agent)  # before --set, which may change only a part of a setting
    for assignment in options.set:
        resolved = resolved.with_settings(**parsed(resolved, assignment))
    named_after = re.sub(r"[^\w.-]+", "-", f"{agent.name}-{chosen.name}-{options.seed}").lstrip(".")
    folder = options.out or Path("runs") / named_after
    if (folder / CONFIGURATION).exists():
        held = read_configuration(folder)
        quoted = shlex.quote(str(folder))
        more = f"extend the run with `multihorizon resume {quoted} --steps N`"
        advice = more if is_finished(folder) else f"continue the run with `multihorizon resume {quoted}`"
        raise InputError(
            f"{folder} already holds a run, {held.agent.name} in {held.environment}; {advice}, or choose another "
            "folder with --out"
        )
    watcher = running.Terminal(options.json)
    done = train(
        resolved,
        options.env,
        steps=options.steps,
        seeds=options.seeds,
        seed=options.seed,
        out=folder,
        num_envs=options.envs,
        num_evaluation_envs=options.evaluation_envs,
        training_steps=options.training_steps,
        evaluation_steps=options.evaluation_steps,
        checkpoint_minutes=options.checkpoint_minutes,
        checkpoint_replay=not options.no_checkpoint_replay,
        watcher=watcher,
    )
    watcher.show_end(done)
