"""multihorizon preferences: the paper's opening example, for any discount."""

import argparse
from typing import TYPE_CHECKING, Any

from multihorizon.cli import choices
from multihorizon.errors import at_least

if TYPE_CHECKING:
    from multihorizon.discounting import Discount

SUMMARY = "1M now or 1.1M tomorrow? In 365 days or 366? Which is taken, and where that reverses"
DESCRIPTION = """\
A smaller reward sooner or a larger one later: which does a discount take now, and which after a wait? Hyperbolic
discounters change their mind as both recede; exponential ones never do.
"""
SEARCHED = 10  # times the wait


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices.add_arguments(parser, k=0.2)
    parser.add_argument("--sooner", type=float, default=1.0, metavar="R", help="the smaller, sooner reward (1)")
    parser.add_argument("--later", type=float, default=1.1, metavar="R", help="the larger, later reward (1.1)")
    parser.add_argument("--delay", type=float, default=1.0, metavar="T", help="how much later it comes (1)")
    parser.add_argument(
        "--wait", type=int, default=365, metavar="T", help="the wait before both, in the second offer (365)"
    )
    parser.add_argument("--unit", default="day", help="what a step of time is called (day)")
    parser.add_argument("--json", action="store_true", help="the offers and where the preference reverses")


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import show, show_json, table
    from multihorizon.discounting import discount

    at_least("--wait", options.wait, 1, 100_000)
    wanted = choices.discount(options)
    first_step = min(1.0, float(wanted(options.delay) / wanted(0)) ** (1 / options.delay)) if options.delay > 0 else 1.0
    asked = [_judge(d, options) for d in (wanted, discount.exponential(first_step))]
    if options.json:
        show_json(asked[0])
        return
    for result, title in zip(asked, (wanted.label, "an exponential discounter as impatient now"), strict=True):
        rows = [
            [
                f"{options.sooner:g} {_when(wait, options.unit)}, "
                f"or {options.later:g} {_when(wait + options.delay, options.unit)}",
                f"{result['offers'][str(wait)]['sooner']:.4g}",
                f"{result['offers'][str(wait)]['later']:.4g}",
                result["offers"][str(wait)]["taken"],
            ]
            for wait in (0, options.wait)
        ]
        label = f"{title}: {result['discount']}" if title != result["discount"] else title
        columns = ["offer, and what each is worth now", "sooner", "later", "taken"]
        show(table(label, columns, rows, _reversal(result, options.unit)))


def _judge(wanted: "Discount", options: argparse.Namespace) -> dict[str, Any]:
    from multihorizon.discounting.preferences import Offer

    offer = Offer(options.sooner, options.later, options.delay)
    judged = {}
    for wait in (0, options.wait):
        sooner, later = offer.values(wanted, wait)
        judged[str(wait)] = {"sooner": sooner, "later": later, "taken": offer.taken(wanted, wait)}
    searched = SEARCHED * options.wait
    reverses_at = offer.reversal(wanted, searched)
    return {"discount": wanted.label, "offers": judged, "reverses_at": reverses_at, "searched_to": searched}


def _when(wait: float, unit: str) -> str:
    return "now" if wait == 0 else f"in {_amount(wait, unit)}"


def _amount(wait: float, unit: str) -> str:
    return f"{wait:g} {unit}{'' if wait == 1 else 's'}"


def _reversal(result: dict[str, Any], unit: str) -> str:
    if result["reverses_at"] is None:
        return f"The preference does not reverse (waits up to {_amount(result['searched_to'], unit)})."
    if result["reverses_at"] == 0:
        return "The preference reverses as soon as neither reward is now."
    return f"The preference reverses beyond a wait of {_amount(round(result['reverses_at'], 3), unit)}."
