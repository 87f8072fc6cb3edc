"""multihorizon watch: a video of an episode, and what every horizon expects in it."""

import argparse
from pathlib import Path

from multihorizon.cli import running
from multihorizon.errors import at_least
from multihorizon.files import writable_folder

SUMMARY = "a video of an episode, with each horizon's Q over time: multihorizon watch RUN"
DESCRIPTION = """\
Plays an episode with the newest weights of a run, finished or not, and writes a video of it: the game, and beside it
each horizon's value of the action taken, with the one that the agent acts by.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="the folder of a run")
    parser.add_argument("--out", type=Path, metavar="FILE", help="an .mp4 or .gif (RUN/episode.mp4)")
    parser.add_argument("--steps", type=running.whole, default=2_000, help="the most that are shown (2,000)")
    parser.add_argument("--seed", type=int, default=1_000_000, help="of the episode (1,000,000)")
    parser.add_argument("--of-seed", type=int, metavar="S", help="which of several runs side by side (the first)")
    parser.add_argument(
        "--weights", type=Path, metavar="FILE", help="others than the newest, as RUN/weights-000010.npz"
    )
    parser.add_argument("--fps", type=int, default=15, help="agent steps a second (15)")
    running.add_arguments(parser, "the file, its steps and the return")


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.cli.terminal import show, show_json, working
    from multihorizon.report.video import check_ending, write_video
    from multihorizon.training.judging import watch_episode
    from multihorizon.training.records import newest_weights, read_configuration

    at_least("--steps", options.steps, 1, 27_000)
    at_least("--seed", options.seed, 0, 2**31 - 1)
    at_least("--fps", options.fps, 1, 120)
    configuration = read_configuration(options.run)
    weights = options.weights or newest_weights(options.run)
    of_seed = configuration.seed if options.of_seed is None else options.of_seed
    path = options.out or options.run / "episode.mp4"
    check_ending(path)
    writable_folder(path.parent)
    with working(f"playing {configuration.environment} with {weights} ..."):
        episode = watch_episode(configuration, weights, of_seed, options.seed, options.steps)
    with working(f"drawing {len(episode.pictures)} frames ..."):
        write_video(episode, path, f"{configuration.agent.name} in {configuration.environment}", options.fps)
    earned, steps = float(episode.rewards.sum()), len(episode.actions)
    if options.json:
        show_json({"video": str(path), "steps": steps, "return": earned})
    else:
        show(f"Written to {path}: {steps:,} steps, return {earned:g}")
