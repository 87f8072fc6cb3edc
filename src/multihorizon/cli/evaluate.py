"""multihorizon evaluate: plays episodes with the frozen weights of a run."""

import argparse
from pathlib import Path

from multihorizon import interrupts
from multihorizon.cli import acting, choices, running
from multihorizon.errors import at_least

SUMMARY = "plays episodes with a run's agent and prints its returns: multihorizon evaluate RUN"
DESCRIPTION = """\
Plays whole episodes with the newest weights of a run, finished or not, in its environment or in another one, with or
without hazard. Returns are undiscounted. Intervals are over episodes, not over seeds. With --discount, --prior or
--risk, the agent acts by another time preference or by a measure of risk, without further training.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run")
    parser.add_argument("--episodes", type=running.whole, default=100, help="episodes of each seed (default: 100)")
    parser.add_argument("--env", metavar="ENV", help="environment to play in (default: the run's)")
    hazard = "prior over the hazard of an episode, as in exponential:0.01 (default: no hazard)"
    parser.add_argument("--hazard", metavar="PRIOR", help=hazard)
    parser.add_argument("--seed", type=int, default=1_000_000, help="seed of the episodes (default: 1,000,000)")
    weights = "weights file to load, such as RUN/weights-000010.npz (default: the newest in RUN)"
    parser.add_argument("--weights", type=Path, metavar="FILE", help=weights)
    acting.add_arguments(parser)
    running.add_trust(parser)
    running.add_arguments(parser, "print returns, lengths, means and intervals by seed as JSON")


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.cli.terminal import counted, show, show_json, table, working
    from multihorizon.runs.episodes import evaluate
    from multihorizon.runs.folder import newest_weights
    from multihorizon.runs.run import load_run

    at_least("--episodes", options.episodes, 1, 1_000_000)
    at_least("--seed", options.seed, 0, 2**31 - 1)
    hazard = choices.prior(options.hazard) if options.hazard else None
    done = load_run(options.run, trust=options.trust)
    weights = options.weights or newest_weights(options.run)
    environment = options.env or done.configuration.environment
    policies = {seed: acting.changed(done.policy(seed, weights), options) for seed in done.seeds}
    first = next(iter(policies.values()))
    if not options.json:
        show(*acting.described(first))
    found = {}
    with working(f"playing {environment} with {weights} ...") as tell:
        for seed in done.seeds:
            interrupts.check()

            def told(ended: int, steps: int, seed: int = seed) -> None:
                tell(f"seed {seed}: {counted(ended, 'episode')}, {steps:,} steps")

            found[seed] = evaluate(
                policies[seed],
                options.env or done.own.env,
                options.episodes,
                hazard=hazard,
                seed=options.seed,
                told=told,
            )
    if options.json:
        listed = [
            {
                "seed": seed,
                "episodes": len(one),
                "mean": one.mean,
                "interval": list(one.interval) if len(one) > 1 else None,
                "std": one.std,
                "returns": one.values.tolist(),
                "lengths": one.lengths.tolist(),
            }
            for seed, one in found.items()
        ]
        show_json({"weights": str(weights), "environment": environment, **acting.as_json(first), "seeds": listed})
        return
    rows = [
        [
            str(seed),
            str(len(one)),
            f"{one.mean:.2f}",
            f"{one.interval[0]:.2f} to {one.interval[1]:.2f}" if len(one) > 1 else "-",
            f"{one.std:.2f}",
            f"{one.lengths.mean():.1f}",
        ]
        for seed, one in found.items()
    ]
    columns = ["seed", "episodes", "mean return", "95% interval", "std", "mean length"]
    under = f", hazard {options.hazard}" if options.hazard else ""
    show(table(f"{done.configuration.agent.name} in {environment}{under}", columns, rows))
