"""multihorizon watch: writes a video of an episode, with the Q-values of every horizon."""

import argparse
from pathlib import Path

from multihorizon.cli import acting, running

SUMMARY = "writes a video of an episode, with each horizon's Q over time: multihorizon watch RUN"
DESCRIPTION = """\
Plays an episode with the newest weights of a run, finished or not, and writes a video of it. The game is on the left;
on the right are each horizon's Q-value of the action taken and the weighted value that the agent acts by. For agents
with three or more horizons, a panel shows when the agent expects reward.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--out", type=Path, metavar="FILE", help=".mp4 or .gif file (default: RUN/episode.mp4)")
    parser.add_argument("--env", metavar="ENV", help="environment to play in (default: the run's)")
    parser.add_argument(
        "--steps", type=running.whole, default=2_000, help="largest number of steps to show (default: 2,000)"
    )
    parser.add_argument("--seed", type=int, default=1_000_000, help="seed of the episode (default: 1,000,000)")
    parser.add_argument("--of-seed", type=int, metavar="S", help="seed of the run to watch (default: its first)")
    weights = "weights file to load, such as RUN/weights-000010.npz (default: the newest in RUN)"
    parser.add_argument("--weights", type=Path, metavar="FILE", help=weights)
    parser.add_argument("--fps", type=int, help="agent steps per second of video (default: the environment's)")
    acting.add_arguments(parser)
    running.add_trust(parser)
    running.add_arguments(parser, "print the file, its steps and the return as JSON")


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.api import watch
    from multihorizon.cli.terminal import show, show_json, working
    from multihorizon.reports.video import check_writer
    from multihorizon.runs.run import load_run

    path = options.out or options.run / "episode.mp4"
    check_writer(path)
    done = load_run(options.run, trust=options.trust)
    policy = acting.changed(done.policy(options.of_seed, options.weights), options)
    if not options.json:
        show(*acting.described(policy))
    with working(f"playing {options.env or done.configuration.environment} ..."):
        video = watch(
            policy,
            options.env or done.own.env,
            path,
            seed=options.seed,
            max_steps=options.steps,
            fps=options.fps,
        )
    if options.json:
        found = {"video": str(video.path), "steps": video.steps, "return": video.earned}
        show_json(found | acting.as_json(policy))
    else:
        show(f"Written to {video.path}: {video.steps:,} steps, return {video.earned:g}")
