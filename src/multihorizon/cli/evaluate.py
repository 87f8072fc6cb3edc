"""multihorizon evaluate: what a run's agent earns with its weights frozen."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from multihorizon.cli import running
from multihorizon.errors import at_least

if TYPE_CHECKING:
    from multihorizon.training.iterations import Progress

SUMMARY = "what a run's agent earns with its weights frozen: multihorizon evaluate RUN"
DESCRIPTION = """\
Plays with the newest weights of a run, finished or not. Episodes begin until the steps asked for are played, and all
that began are finished.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument("--steps", type=running.whole, default=125_000, help="of all environments together (125,000)")
    parser.add_argument("--seed", type=int, default=1_000_000, help="of the episodes (1,000,000)")
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help="others than the newest, as RUN/weights-000010.npz"
    )
    running.add_arguments(parser, "episodes and mean return, by seed")


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.cli.progress import mean
    from multihorizon.cli.terminal import counted, show, show_json, table, working
    from multihorizon.training.judging import evaluate_run
    from multihorizon.training.records import newest_weights, read_configuration

    at_least("--steps", options.steps, 0)
    at_least("--seed", options.seed, 0, 2**31 - 1)
    configuration = read_configuration(options.run)
    weights = options.weights or newest_weights(options.run)
    with working(f"playing {configuration.environment} with {weights} ...") as tell:

        def report(progress: "Progress") -> None:
            steps, episodes = progress.evaluated or (0, 0)
            so_far = f"{steps:,} steps, {counted(episodes, 'episode')}, return {mean(progress.returns)}"
            tell(f"{so_far}, {progress.steps_per_second:,.0f} steps/s")

        episodes, returns = evaluate_run(configuration, weights, options.seed, options.steps, report)
    seeds = range(configuration.seed, configuration.seed + configuration.seeds)
    if options.json:
        show_json({"weights": str(weights), "seeds": list(seeds), "episodes": episodes, "returns": returns})
        return
    rows = [[str(s), str(n), f"{r:.2f}"] for s, n, r in zip(seeds, episodes, returns, strict=True)]
    show(table(f"{configuration.agent.name} in {configuration.environment}", ["seed", "episodes", "mean return"], rows))
