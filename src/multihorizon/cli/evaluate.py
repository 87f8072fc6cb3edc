"""multihorizon evaluate: plays episodes with a trained agent."""

import argparse

from multihorizon import interrupts
from multihorizon.cli import acting, choices, running
from multihorizon.errors import at_least

SUMMARY = "plays episodes with a trained agent and prints its returns: multihorizon evaluate RUN"
DESCRIPTION = """\
Plays whole episodes with a saved policy, or with the newest weights of a run. The run may be unfinished. --hazard puts
the environment under hazard; foraging/hazard and similar environments are already under hazard. Returns are
undiscounted. Intervals are over episodes, not over seeds. --discount, --prior and --risk change how the agent acts.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--episodes", type=running.whole, default=100, help="episodes of each seed (default: 100)")
    hazard = "hazard prior of the environment, such as exponential:0.01 (default: the environment's own hazard, if any)"
    parser.add_argument("--hazard", metavar="PRIOR", help=hazard)
    seed = "seed of the episodes (default: 1,000,000)"
    parser.add_argument("--seed", type=running.whole, default=1_000_000, help=seed)
    acting.add_arguments(parser)
    running.add_arguments(parser, "print the returns, lengths, mean and interval of each seed as JSON")


def run(options: argparse.Namespace) -> None:
    running.use_device(options.device)
    from multihorizon.cli.terminal import counted, show, show_json, table, working
    from multihorizon.runs.episodes import Returns, evaluate
    from multihorizon.runs.folder import newest_weights
    from multihorizon.runs.policy import Policy

    at_least("--episodes", options.episodes, 1, 1_000_000)
    at_least("--seed", options.seed, 0, 2**31 - 1)
    hazard = choices.prior(options.hazard) if options.hazard else None
    source = acting.opened(options)
    policies: dict[int | None, Policy]  # by seed; the key of a saved policy is None
    if isinstance(source, Policy):
        weights, policies = options.run, {None: source}
    else:
        weights = options.weights or newest_weights(options.run)
        policies = {seed: source.policy(seed, weights) for seed in source.seeds}
    policies = {seed: acting.changed(policy, options) for seed, policy in policies.items()}
    first = next(iter(policies.values()))
    environment = options.env or first.environment
    if not options.json:
        show(*acting.described(first))
    found: dict[int | None, Returns] = {}
    with working(f"playing {environment} with {weights} ...") as tell:
        for seed, policy in policies.items():
            interrupts.check()

            def told(ended: int, steps: int, seed: int | None = seed) -> None:
                whose = "" if seed is None else f"seed {seed}: "
                tell(f"{whose}{counted(ended, 'episode')}, {steps:,} steps")

            found[seed] = evaluate(policy, options.env, options.episodes, hazard=hazard, seed=options.seed, told=told)
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
            *([] if seed is None else [str(seed)]),
            str(len(one)),
            f"{one.mean:.2f}",
            f"{one.interval[0]:.2f} to {one.interval[1]:.2f}" if len(one) > 1 else "-",
            f"{one.std:.2f}",
            f"{one.lengths.mean():.1f}",
        ]
        for seed, one in found.items()
    ]
    columns = ["seed"] if None not in found else []
    columns += ["episodes", "mean return", "95% interval", "std", "mean length"]
    under = f", hazard {options.hazard}" if options.hazard else ""
    show(table(f"{first.agent.name} in {environment}{under}", columns, rows))
