"""Opens a trained agent for a command, with options that change how it acts: discount, consistency, risk."""

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
    parser.add_argument("--env", metavar="ENV", help="environment to play in (default: that of RUN)")
    weights = "weights file of a run to load, such as RUN/weights-000010.npz (default: the newest in RUN)"
    parser.add_argument("--weights", type=Path, metavar="FILE", help=weights)
    running.add_trust(parser)
    options = parser.add_argument_group("time preference and risk")
    options.add_argument("--discount", metavar="NAME", help="discount to act by, see below (default: that of RUN)")
    prior = "hazard prior that implies the discount, as in exponential:0.05; repeat for an equal mixture"
    options.add_argument("--prior", metavar="NAME", action="append", help=prior)
    fitted = "with --discount or --prior, last step of the fit; use the length of an episode (default: 1000)"
    options.add_argument("--t-max", type=running.whole, metavar="T", help=fitted)
    how = "with --discount or --prior, criterion for the best weights (default: minimax)"
    options.add_argument("--fit", metavar="|".join(FITS), help=how)
    most = "with --discount or --prior, largest accepted error, as a share of d(0) (default: 0.05)"
    options.add_argument("--tolerance", type=float, metavar="E", help=most)
    plans = "whether to keep the plan made at the start of an episode: naive or precommitted (default: that of RUN)"
    options.add_argument("--consistency", metavar="RULE", help=plans)
    risk = "act by the mean of the worst returns, as in cvar:0.25, or by a quantile, as in quantile:0.5"
    options.add_argument("--risk", metavar="RULE", help=risk)
    parser.set_defaults(mix=(), k=None, default_k=0.01)
    parser.epilog = choices.HELP


def opened(options: argparse.Namespace) -> "Run | Policy":
    """Opens the run or saved policy in the folder RUN. --weights and --of-seed are errors for a saved policy."""
    from multihorizon.runs.folder import CONFIGURATION
    from multihorizon.runs.loading import load, load_run
    from multihorizon.training.worlds import OWN

    folder: Path = options.run
    if (folder / CONFIGURATION).is_file():
        run = load_run(folder, trust=options.trust)
        if options.env and run.configuration.environment.startswith(OWN):  # the folder does not store it
            run = load_run(folder, env=options.env)
        return run
    policy = load(folder, trust=options.trust)
    for name in ("weights", "of_seed"):
        if getattr(options, name, None) is not None:
            raise InputError(f"--{name.replace('_', '-')} needs the folder of a run, but {folder} holds a saved policy")
    return policy


def changed(policy: "Policy", options: argparse.Namespace) -> "Policy":
    """Returns the policy with the discount, the consistency and the measure of risk that the options give."""
    from multihorizon.discounting import FitMethod

    if options.risk is not None:
        policy = policy.with_risk(risk(options.risk))
    if options.consistency == "naive":  # a naive agent accepts weights that a precommitted one refuses
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
    """Returns a measure of risk from its name and level, as in cvar:0.25."""
    from multihorizon.agents.risk import CVaR, Quantile

    name, _, level = text.partition(":")
    kinds: dict[str, type[CVaR] | type[Quantile]] = {"cvar": CVaR, "quantile": Quantile}
    kind = kinds[one_of("risk", name.lower(), RISKS)]
    try:
        return kind(float(level))
    except ValueError as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(f"--risk takes a rule and its level, as in {name}:0.25, got '{text}'") from None


def described(policy: "Policy") -> list[str]:
    """Returns lines that state the changed discount, its error, precommitment, and the measure of risk."""
    from multihorizon.agents.acting import Consistency

    discount = policy.reweighting or policy.saved_discount
    lines = [f"acts by {discount}"] if discount else []
    if policy.agent.consistency is Consistency.PRECOMMITTED:
        lines.append(f"precommitted: {policy.agent.consistency.value}")
    return lines + ([f"takes the action whose return has the largest {policy.risk}"] if policy.risk else [])


def as_json(policy: "Policy") -> dict[str, object]:
    """Returns the changes that `described` states, as JSON."""
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
