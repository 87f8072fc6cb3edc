"""multihorizon preferences: choices between two rewards, as in the paper's introduction."""

import argparse
from typing import TYPE_CHECKING, Any

from multihorizon.cli import choices
from multihorizon.cli.running import whole
from multihorizon.errors import at_least, positive

if TYPE_CHECKING:
    from multihorizon.discounting import Discount

SUMMARY = "compares a sooner, smaller reward with a later, larger one, and finds when the preference reverses"
DESCRIPTION = """\
Compares a smaller, sooner reward with a larger, later reward: once now, and once after a wait. Under a hyperbolic
discount, the preference can reverse as the wait grows. Under an exponential discount, the preference never reverses.
"""
SEARCHED = 10  # the search for a reversal ends at this multiple of --wait


def add_arguments(parser: argparse.ArgumentParser) -> None:
    choices.add_arguments(parser, k=0.2)
    parser.add_argument("--sooner", type=float, default=1.0, metavar="R", help="smaller, sooner reward (default: 1)")
    parser.add_argument("--later", type=float, default=1.1, metavar="R", help="larger, later reward (default: 1.1)")
    parser.add_argument(
        "--delay", type=float, default=1.0, metavar="T", help="time between the two rewards (default: 1)"
    )
    parser.add_argument(
        "--wait",
        type=whole,
        default=365,
        metavar="T",
        help="wait before both rewards in the second offer (default: 365)",
    )
    parser.add_argument("--unit", default="day", help="name of the unit of time (default: day)")
    parser.add_argument(
        "--json",
        action="store_true",
        help="print the offers, and the wait after which the preference reverses, as JSON",
    )


def run(options: argparse.Namespace) -> None:
    from multihorizon.cli.terminal import show, show_json, table
    from multihorizon.discounting import discount
    from multihorizon.discounting.sources import sampled

    at_least("--wait", options.wait, 1, 100_000)
    for flag in ("sooner", "later", "delay"):
        positive(f"--{flag}", getattr(options, flag))
    wanted = choices.discount(options)
    sampled(wanted, SEARCHED * options.wait)  # refuses a rising discount
    first_step = min(1.0, float(wanted(options.delay) / wanted(0)) ** (1 / options.delay))
    asked = [_judge(d, options) for d in (wanted, discount.exponential(first_step))]
    if options.json:
        show_json(asked[0])
        return
    for result, title in zip(
        asked, (wanted.label, f"exponential discount with the same d({options.delay:g})"), strict=True
    ):
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
        columns = ["offer, with present values", "sooner", "later", "taken"]
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
        return "The preference reverses as soon as neither reward is immediate."
    return f"The preference reverses beyond a wait of {_amount(round(result['reverses_at'], 3), unit)}."
