"""multihorizon watch: writes a video of an episode."""

import argparse
from pathlib import Path

from multihorizon.cli import acting, running

SUMMARY = "writes a video of an episode, with each horizon's Q over time: multihorizon watch RUN"
DESCRIPTION = """\
Plays an episode with a saved policy, or with the newest weights of a run, and writes a video. The run may be
unfinished. The game is on the left. On the right are each horizon's Q-value of the chosen action, and the weighted sum
of these values. If the agent has three or more horizons, another panel shows the times of expected rewards.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, metavar="FILE", help=".mp4 or .gif file (default: RUN/episode.mp4)")
    parser.add_argument(
        "--steps", type=running.whole, default=2_000, help="largest number of steps to show (default: 2,000)"
    )
    seed = "seed of the episode (default: 1,000,000)"
    parser.add_argument("--seed", type=running.whole, default=1_000_000, help=seed)
    of_seed = "training seed of the agent to watch (default: the first seed of RUN)"
    parser.add_argument("--of-seed", type=running.whole, metavar="S", help=of_seed)
    rate = "agent steps per second of video (default: depends on ENV)"
    parser.add_argument("--fps", type=running.whole, help=rate)
    acting.add_arguments(parser)
    running.add_arguments(parser, "print the file, its steps and the return as JSON")


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.api import watch
    from multihorizon.cli.terminal import counted, show, show_json, working
    from multihorizon.reports.video import check_writer
    from multihorizon.runs.policy import Policy

    path = options.out or options.run / "episode.mp4"
    check_writer(path)
    source = acting.opened(options)
    trained = source if isinstance(source, Policy) else source.policy(options.of_seed, options.weights)
    policy = acting.changed(trained, options)
    if not options.json:
        show(*acting.described(policy))
    with working(f"playing {options.env or policy.environment} ..."):
        video = watch(policy, options.env, path, seed=options.seed, max_steps=options.steps, fps=options.fps)
    if options.json:
        found = {"video": str(video.path), "steps": video.steps, "return": video.earned}
        show_json(found | acting.as_json(policy))
    else:
        show(f"Written to {video.path}: {counted(video.steps, 'step')}, return {video.earned:g}")
