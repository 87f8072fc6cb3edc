"""Opens a trained agent for a command, and applies the options that change how the agent acts."""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from multihorizon.cli import choices, running
from multihorizon.errors import InputError, at_least, one_of, positive

if TYPE_CHECKING:
    from multihorizon.agents.risk import Risk
    from multihorizon.runs.policy import Policy
    from multihorizon.runs.run import Run

FITS = {
    "minimax": "MINIMAX",
    "least-squares": "LEAST_SQUARES",
    "signed-minimax": "SIGNED_MINIMAX",
    "signed-least-squares": "SIGNED_LEAST_SQUARES",
}
RISKS = ("cvar", "quantile")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", type=Path, metavar="RUN", help="folder of a run, or of a policy saved by Policy.save")
    parser.add_argument("--env", metavar="ENV", help="environment to play in (default: RUN's environment)")
    weights = "weights file to load, such as RUN/weights-000010.npz (default: the newest in RUN)"
    parser.add_argument("--weights", type=Path, metavar="FILE", help=weights)
    running.add_trust(parser)
    options = parser.add_argument_group("time preference and risk")
    options.add_argument("--discount", metavar="NAME", help="discount to act by; see below (default: RUN's discount)")
    prior = "hazard prior that implies the discount, such as exponential:0.05; several priors form an equal mixture"
    options.add_argument("--prior", metavar="NAME", action="append", help=prior)
    fitted = "with --discount or --prior: the weights are fitted for times up to this step (default: 1000)"
    options.add_argument("--t-max", type=running.whole, metavar="T", help=fitted)
    how = "with --discount or --prior: criterion of the fit (default: minimax)"
    options.add_argument("--fit", metavar="|".join(FITS), help=how)
    most = "with --discount or --prior: largest accepted error of the fit, as a share of d(0) (default: 0.05)"
    options.add_argument("--tolerance", type=float, metavar="E", help=most)
    plans = "naive: plan again at each step; precommitted: keep the first plan of the episode (default: RUN's rule)"
    options.add_argument("--consistency", metavar="RULE", help=plans)
    risk = "risk measure to act by: cvar:0.25 is the mean of the worst quarter of returns, quantile:0.5 is the median"
    options.add_argument("--risk", metavar="RULE", help=risk)
    parser.set_defaults(mix=(), k=None, default_k=0.01)
    parser.epilog = choices.HELP


def opened(options: argparse.Namespace) -> "Run | Policy":
    from multihorizon.runs.folder import CONFIGURATION
    from multihorizon.runs.loading import load, load_run
    from multihorizon.training.worlds import OWN

    folder: Path = options.run
    if (folder / CONFIGURATION).is_file():
        run = load_run(folder, trust=options.trust)
        # The folder of a run does not store the user's own environment.
        if options.env and run.configuration.environment.startswith(OWN):
            run = load_run(folder, env=options.env)
        return run
    policy = load(folder, trust=options.trust)
    for name in ("weights", "of_seed"):
        if getattr(options, name, None) is not None:
            raise InputError(f"--{name.replace('_', '-')} needs the folder of a run, but {folder} holds a saved policy")
    return policy


def changed(policy: "Policy", options: argparse.Namespace) -> "Policy":
    from multihorizon.discounting import FitMethod

    if options.risk is not None:
        policy = policy.with_risk(risk(options.risk))
    if options.consistency == "naive":  # a precommitted agent would refuse some horizon weights
        policy = policy.with_consistency("naive")
    if options.discount or options.prior:
        fit = one_of("fit", options.fit or "minimax", FITS)
        policy = policy.with_discount(
            choices.discount(options),
            t_max=at_least("--t-max", 1000 if options.t_max is None else options.t_max, 1, 1_000_000),
            method=FitMethod[FITS[fit]],
            tolerance=positive("--tolerance", 0.05 if options.tolerance is None else options.tolerance),
        )
    else:
        for name in ("t_max", "fit", "tolerance"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name.replace('_', '-')} needs --discount or --prior")
    return policy if options.consistency is None else policy.with_consistency(options.consistency)


def risk(text: str) -> "Risk":
    """Parses a risk measure, such as cvar:0.25."""
    from multihorizon.agents.risk import CVaR, Quantile

    name, _, level = text.partition(":")
    kinds: dict[str, type[CVaR] | type[Quantile]] = {"cvar": CVaR, "quantile": Quantile}
    kind = kinds[one_of("risk", name.lower(), RISKS)]
    try:
        return kind(float(level))
    except ValueError as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"--risk must be a rule with a level, such as {name}:0.25, got '{text}'") from None


def described(policy: "Policy") -> list[str]:
    """Describes the changes to a policy: its discount, precommitment and risk measure."""
    from multihorizon.agents.acting import Consistency

    discount = policy.reweighting or policy.saved_discount
    lines = [f"acts by {discount}"] if discount else []
    if policy.agent.consistency is Consistency.PRECOMMITTED:
        lines.append(f"precommitted: {policy.agent.consistency.value}")
    return lines + ([f"takes the action whose return has the largest {policy.risk}"] if policy.risk else [])


def as_json(policy: "Policy") -> dict[str, object]:
    from multihorizon.agents.acting import Consistency

    found: dict[str, object] = {}
    if policy.reweighting:
        fit = policy.reweighting
        found["discount"] = {
            "target": str(fit.target),
            "gammas": fit.horizons.gammas.tolist(),
            "weights": fit.horizons.weights.tolist(),
            "t_max": fit.t_max,
            "max_error": fit.max_error,
            "max_error_at": fit.max_error_at,
        }
    elif policy.saved_discount:
        found["discount"] = {"text": policy.saved_discount}
    if policy.agent.consistency is Consistency.PRECOMMITTED:
        found["consistency"] = "precommitted"
    if policy.risk:
        found["risk"] = str(policy.risk)
    return found
