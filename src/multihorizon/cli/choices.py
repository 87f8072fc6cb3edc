"""Parses discounts and priors on the command line: NAME or NAME:VALUES."""

import argparse
import os
import runpy
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, TypeVar

from multihorizon.errors import InputError, one_of, shown
from multihorizon.files import read_text

if TYPE_CHECKING:
    from multihorizon.discounting import Discount
    from multihorizon.discounting.hazard import Prior

Made = TypeVar("Made")

# The parameters of each discount or prior, with their defaults. Each command has its own default for k.
DISCOUNTS: dict[str, dict[str, float]] = {
    "hyperbolic": {"k": 0.01},
    "generalised-hyperbolic": {"k": 0.01, "a": 2.0},
    "quasi-hyperbolic": {"beta": 0.7, "delta": 0.99},
    "exponential": {"gamma": 0.99},
    "uniform": {"k": 0.01},
    "rachlin": {"k": 0.01, "s": 0.7},
    "ebert-prelec": {"k": 0.01, "s": 0.7},
    "deadline": {"last": 100.0},
    "none": {},
}
PRIORS: dict[str, dict[str, float]] = {
    "dirac": {"k": 0.01},
    "exponential": {"k": 0.01},
    "gamma": {"k": 0.01, "a": 2.0},
    "uniform": {"k": 0.01, "low": 0.0},
    "mittag-leffler": {"k": 0.01, "s": 0.7},
    "stable": {"k": 0.01, "s": 0.7},
}

HELP = """\
discounts (NAME or NAME:VALUES, as in quasi-hyperbolic:0.7,0.99 or quasi-hyperbolic:beta=0.7,delta=0.99):
  hyperbolic              k       1 / (1 + kt)
  generalised-hyperbolic  k,a     (1 + kt)^-a
  quasi-hyperbolic    beta,delta  1, then beta * delta^t
  exponential             gamma   gamma^t
  uniform                 k       (1 - e^-kt) / kt
  rachlin                 k,s     1 / (1 + k t^s), s at most 1
  ebert-prelec            k,s     e^-(kt)^s, s at most 1
  deadline                last    1 up to the step `last`, then 0
  none                            1
  function:FILE.py:NAME           a Python function of t

priors over the hazard, each of which implies a discount (give --prior more than once for a mixture):
  exponential             k       mean k; implies the hyperbolic discount
  gamma                   k,a     scale k, shape a; implies the generalised hyperbolic discount
  uniform                 k,low   between low (default 0) and k
  mittag-leffler          k,s     implies Rachlin's discount
  stable                  k,s     implies the Ebert-Prelec discount
  dirac                   k       known hazard k; implies the exponential discount
  samples:FILE                    observed hazards: a text file of rates per step
  density:FILE.py:NAME            density of the hazard: a Python function or a Prior
"""


def add_arguments(parser: argparse.ArgumentParser, k: float) -> None:
    parser.add_argument("--discount", metavar="NAME", help="discount; see below (default: hyperbolic)")
    parser.add_argument(
        "--prior",
        metavar="NAME",
        action="append",
        help="hazard prior that implies the discount, instead of --discount; see below",
    )
    parser.add_argument(
        "--mix",
        metavar="W",
        type=float,
        nargs="+",
        default=(),
        help="weights of several --prior options (default: equal weights)",
    )
    parser.add_argument("--k", type=float, help=f"k of the discount or prior (default: {k:g})")
    parser.set_defaults(default_k=k)
    parser.epilog = HELP


def discount(options: argparse.Namespace) -> "Discount":
    from multihorizon.discounting import discount as discounts

    if options.prior and options.discount:
        raise InputError("give either --discount or --prior, not both")
    if options.prior:
        return discounts.from_prior(_mixed([_prior(text, options) for text in options.prior], options.mix))
    if len(options.mix):
        raise InputError("--mix gives the weights of several priors, but no --prior is given")
    name, values = _parted(options.discount or "hyperbolic")
    if one_of("discount", name, [*DISCOUNTS, "function"]) == "function":
        found = _function(values, _from_file("function", values))
        return discounts.from_function(found, found.__name__)
    make: Callable[..., Discount] = getattr(discounts, name.replace("-", "_"))
    return _made(make, name, values, DISCOUNTS[name], options)


def _mixed(priors: "list[Prior]", weights: "tuple[float, ...] | list[float]") -> "Prior":
    from multihorizon.discounting import hazard

    if len(priors) == 1 and len(weights) == 0:
        return priors[0]
    return hazard.Mixture(priors, weights)


def prior(text: str) -> "Prior":
    return _prior(text, argparse.Namespace(k=None, default_k=0.01))


def _prior(text: str, options: argparse.Namespace) -> "Prior":
    from multihorizon.discounting import hazard

    name, values = _parted(text)
    one_of("prior", name, [*PRIORS, "samples", "density"])
    if name == "samples":
        return hazard.Samples(_observed_rates(values))
    if name == "density":
        found = _from_file("density", values)
        return found if isinstance(found, hazard.Prior) else hazard.Density(_function(values, found))
    make: Callable[..., Prior] = getattr(hazard, name.title().replace("-", ""))
    return _made(make, name, values, PRIORS[name], options)


def _parted(text: str) -> tuple[str, str]:
    name, _, values = text.partition(":")
    return name.replace("_", "-").replace("generalized", "generalised"), values


def _made(
    make: Callable[..., Made], name: str, text: str, defaults: dict[str, float], options: argparse.Namespace
) -> Made:
    from multihorizon.cli.terminal import note

    given = _given(name, text, defaults, options)
    values = {**defaults, **({"k": options.default_k} if "k" in defaults else {}), **given}
    if name in DISCOUNTS and values.get("s", 0) > 1:
        raise InputError(
            f"the s of {name} must be at most 1, got {shown(values['s'])}; for a larger s, use a Python function: "
            "--discount function:FILE.py:NAME"
        )
    made = make(**values)
    if 0 < len(given) < len(values):
        parts = (f"{key} = {value:g}{'' if key in given else ' (default)'}" for key, value in values.items())
        note(f"{name}: {', '.join(parts)}")
    return made


def _given(name: str, text: str, defaults: dict[str, float], options: argparse.Namespace) -> dict[str, float]:
    """Parses values such as '0.7,0.99' or 'beta=0.7,delta=0.99', and --k."""
    takes = ", ".join(defaults) or "no values"
    said: dict[str, float] = {}
    for position, word in enumerate(text.split(",") if text else []):
        if position >= len(defaults):
            raise InputError(f"{name} takes {takes}; got {text}")
        key, _, number = word.rpartition("=")
        key = one_of(f"value of {name}", key, defaults) if key else list(defaults)[position]
        if key in said:
            raise InputError(f"the {key} of {name} is given twice in {text}")
        try:
            said[key] = float(number)
        except ValueError:
            raise InputError(f"the {key} of {name} must be a number, got '{number}'") from None
    if options.k is not None:
        if "k" not in defaults:
            raise InputError(f"{name} takes {takes}, so --k cannot be used")
        if "k" in said:
            raise InputError(f"the k of {name} is given twice: {said['k']:g} and --k {options.k:g}")
        said["k"] = options.k
    return said


def _observed_rates(file: str) -> list[float]:
    """Reads hazards from a file, and refuses values that look like times."""
    if not file:
        raise InputError("samples needs a file of observed hazards, as in --prior samples:hazards.txt")
    text = read_text(Path(file))
    try:
        rates = [float(word) for word in text.replace(",", " ").split()]
    except ValueError as problem:
        raise InputError(f"{file} must contain only numbers: {problem}") from None
    if rates and median(rates) >= 1:
        raise InputError(
            f"{file} seems to contain times, not hazard rates per step: its median is {median(rates):g}; "
            "convert each time to a rate, 1/time"
        )
    return rates


def _from_file(what: str, place: str) -> Any:
    file, _, name = place.rpartition(":")
    if not file:
        raise InputError(f"{what} needs a file and a name, such as {what}:mine.py:my_{what}")
    defined = guarded(file, runpy.run_path, file)
    if name not in defined:
        raise InputError(f"{file} has no {name}; it defines {', '.join(n for n in defined if not n.startswith('_'))}")
    return defined[name]


def _function(place: str, found: Any) -> Callable[[float], float]:
    """Wraps the user's function, so that its exceptions become one-line errors."""
    if not callable(found):
        raise InputError(f"{place} must be a function of one number, got {found!r}")

    def of_one(x: float) -> float:
        return float(guarded(f"{place} at {x:g}", lambda: float(found(x))))

    of_one.__name__ = place.rpartition(":")[2]
    return of_one


def guarded(place: str, call: Callable[..., Any], *arguments: Any) -> Any:
    """Calls the user's code. Its exceptions become one-line errors that start with `place`."""
    try:
        return call(*arguments)
    except (Exception, SystemExit, GeneratorExit) as problem:  # the user's code may raise anything
        if isinstance(problem, OSError) and str(problem.filename) in (place, os.path.abspath(place)):
            raise  # the file itself cannot be read
        how = "" if isinstance(problem, InputError) else f" failed with {type(problem).__name__}"
        said = str(problem).replace("\n", " ")
        raise InputError(f"{place}{how}{said and ': '}{said}") from None
