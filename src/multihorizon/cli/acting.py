"""Command-line options that change how a trained agent acts: its discount and its measure of risk."""

import argparse
from typing import TYPE_CHECKING

from multihorizon.cli import choices
from multihorizon.errors import InputError, at_least, one_of, positive

if TYPE_CHECKING:
    from multihorizon.agents.risk import Risk
    from multihorizon.runs.policy import Policy

FITS = {"minimax": "MINIMAX", "least-squares": "LEAST_SQUARES", "signed": "SIGNED_MINIMAX"}
RISKS = ("cvar", "quantile")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    options = parser.add_argument_group("time preference and risk")
    options.add_argument("--discount", metavar="NAME", help="discount to act by, see below (default: the run's)")
    prior = "hazard prior that implies the discount, as in exponential:0.05; repeat for an equal mixture"
    options.add_argument("--prior", metavar="NAME", action="append", help=prior)
    fitted = "with --discount or --prior, last step of the fit; use the length of an episode (default: 1000)"
    options.add_argument("--t-max", type=int, metavar="T", help=fitted)
    how = "with --discount or --prior, criterion for the best weights (default: minimax)"
    options.add_argument("--fit", metavar="|".join(FITS), help=how)
    most = "with --discount or --prior, largest accepted error, as a share of d(0) (default: 0.05)"
    options.add_argument("--tolerance", type=float, metavar="E", help=most)
    risk = "act by the mean of the worst returns, as in cvar:0.25, or by a quantile, as in quantile:0.5"
    options.add_argument("--risk", metavar="RULE", help=risk)
    parser.set_defaults(mix=(), k=None, default_k=0.01)
    parser.epilog = choices.HELP


def changed(policy: "Policy", options: argparse.Namespace) -> "Policy":
    """Returns the policy with the discount and the measure of risk that the options give."""
    from multihorizon.discounting import FitMethod

    if options.risk is not None:
        policy = policy.with_risk(risk(options.risk))
    if not options.discount and not options.prior:
        for name in ("t_max", "fit", "tolerance"):
            if getattr(options, name) is not None:
                raise InputError(f"--{name.replace('_', '-')} needs --discount or --prior")
        return policy
    fit = one_of("fit", options.fit or "minimax", FITS)
    return policy.with_discount(
        choices.discount(options),
        t_max=at_least("--t-max", 1000 if options.t_max is None else options.t_max, 1, 1_000_000),
        method=FitMethod[FITS[fit]],
        tolerance=positive("--tolerance", 0.05 if options.tolerance is None else options.tolerance),
    )


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
    """Returns lines that state the changed discount, its error, and the measure of risk; none if unchanged."""
    lines = [f"acts by {policy.reweighting}"] if policy.reweighting else []
    return lines + ([f"takes the action with the best {policy.risk} of the return"] if policy.risk else [])


def as_json(policy: "Policy") -> dict[str, object]:
    """Returns the changes that `described` states, as JSON."""
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
    if policy.risk:
        found["risk"] = str(policy.risk)
    return found
