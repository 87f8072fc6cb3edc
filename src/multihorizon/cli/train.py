"""multihorizon train: an agent in an environment, on this machine's fastest device."""

import argparse
import re
import shlex
from pathlib import Path

from multihorizon.cli import running
from multihorizon.errors import InputError

SUMMARY = "trains an agent in an environment: multihorizon train multi-rainbow --env atari/Seaquest"
DESCRIPTION = """\
Trains in iterations: some steps of training, then of evaluation with the weights frozen. Several seeds train side by
side. The run's folder holds its whole configuration, a line of metrics for each iteration, TensorBoard events, weights,
and checkpoints from which `multihorizon resume` goes on if the run is stopped, at whatever moment.
"""
EPILOG = """\
environments:
  pathworld, foraging, shortcut       small worlds that are solved exactly; they live on the device with the agent
  dilemma/NAME                        small worlds in which plans change: temptation, chore, crossroads, control
  minatar/GAME                        on the device too
  pathworld/hazard, foraging/hazard, shortcut/hazard
                                      trained in without hazard, evaluated under it
  atari/GAME                          the sixty games of the paper: multihorizon games
  gym/ID                              any of Gymnasium's with discrete actions, as gym/CartPole-v1
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EPILOG
    parser.add_argument("agent", metavar="AGENT", help="one of multihorizon agents")
    parser.add_argument("--env", required=True, metavar="ENV", help="an environment: see below")
    parser.add_argument(
        "--steps", type=running.whole, help="agent steps of training for each seed, in whole iterations (as suits ENV)"
    )
    parser.add_argument("--training-steps", type=running.whole, metavar="N", help="of one iteration (Atari: 250,000)")
    evaluation = "of one iteration; episodes that begin are finished; 0: none (Atari: 125,000)"
    parser.add_argument("--evaluation-steps", type=running.whole, metavar="N", help=evaluation)
    parser.add_argument("--seeds", type=int, default=1, help="how many runs train side by side (1)")
    parser.add_argument("--seed", type=int, default=0, help="of the first run (0)")
    parser.add_argument("--envs", type=int, help="environments of each run (Atari: 80 with a GPU, 8 without; else 4)")
    evaluation = "environments of an evaluation (Atari: 40 with a GPU; else 10)"
    parser.add_argument("--evaluation-envs", type=int, metavar="N", help=evaluation)
    parser.add_argument("--horizons", type=Path, metavar="FILE", help="discount.json of multihorizon discount --out")
    settings = (
        "a setting of the agent, as in n_steps=5 or optimiser.learning_rate=1e-4 (see multihorizon agents --json)"
    )
    parser.add_argument("--set", metavar="NAME=VALUE", action="append", default=[], help=settings)
    between = "least minutes between two checkpoints (10; 0: one after every iteration)"
    parser.add_argument("--checkpoint-minutes", type=float, default=10.0, metavar="M", help=between)
    parser.add_argument("--no-checkpoint-replay", action="store_true", help="saves disk; replay is then filled anew")
    parser.add_argument("--out", type=Path, metavar="DIR", help="the run's folder (runs/AGENT-ENV-SEED)")
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
    resolved = chosen.adapt(agent)  # a part of a setting is set in what the environment made of the whole
    for assignment in options.set:
        resolved = resolved.with_settings(**parsed(resolved, assignment))
    named_after = re.sub(r"[^\w.-]+", "-", f"{agent.name}-{chosen.name}-{options.seed}").lstrip(".")
    folder = options.out or Path("runs") / named_after
    if (folder / CONFIGURATION).exists():
        held = read_configuration(folder)
        quoted = shlex.quote(str(folder))
        more = f"extend it with multihorizon resume {quoted} --steps N"
        advice = more if is_finished(folder) else f"continue it with multihorizon resume {quoted}"
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
