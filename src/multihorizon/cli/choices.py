"""Discounts, priors and grids by name, as they are written on the command line: NAME or NAME:VALUES."""

import argparse
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multihorizon.errors import InputError, one_of

if TYPE_CHECKING:
    from multihorizon.discounting import Discount
    from multihorizon.discounting.hazard import Prior

# What each name takes, and what it is when nothing is said; k is also an option of its own.
DISCOUNTS: dict[str, dict[str, float]] = {
    "hyperbolic": {"k": 0.01},
    "generalised-hyperbolic": {"k": 0.01, "a": 2.0},
    "quasi-hyperbolic": {"beta": 0.7, "delta": 0.99},
    "exponential": {"gamma": 0.99},
    "uniform": {"k": 0.01},
    "none": {},
}
PRIORS: dict[str, dict[str, float]] = {
    "dirac": {"k": 0.01},
    "exponential": {"k": 0.01},
    "gamma": {"k": 0.01, "a": 2.0},
    "uniform": {"k": 0.01, "low": 0.0},
}

HELP = """\
discounts (NAME or NAME:VALUES, as in quasi-hyperbolic:0.7,0.99 or quasi-hyperbolic:beta=0.7,delta=0.99):
  hyperbolic              k       1 / (1 + kt)
  generalised-hyperbolic  k,a     (1 + kt)^-a
  quasi-hyperbolic    beta,delta  1, then beta * delta^t
  exponential             gamma   gamma^t
  uniform                 k       (1 - e^-kt) / kt
  none                            1
  function:FILE.py:NAME           a Python function of t

priors over the hazard, each of which implies a discount (give --prior more than once for a mixture):
  exponential             k       mean k; implies the hyperbolic discount
  gamma                   k,a     scale k, shape a; implies the generalised hyperbolic discount
  uniform                 k,low   between low (0) and k
  dirac                   k       known; implies the exponential discount
  samples:FILE                    observed hazards, numbers in a text file
  density:FILE.py:NAME            a Python function of the hazard that integrates to 1 (or a Prior)
"""


def add_arguments(parser: argparse.ArgumentParser, k: float) -> None:
    parser.add_argument("--discount", metavar="NAME", help="the discount wanted (hyperbolic)")
    parser.add_argument("--prior", metavar="NAME", action="append", help="or the belief about risk that implies it")
    parser.add_argument(
        "--mix", metavar="W", type=float, nargs="+", default=(), help="weights of several --prior (all alike)"
    )
    parser.add_argument("--k", type=float, help=f"the k of the discount or prior ({k:g})")
    parser.set_defaults(default_k=k)
    parser.epilog = HELP


def discount(options: argparse.Namespace) -> "Discount":
    """The discount that the options ask for."""
    from multihorizon.discounting import discount as discounts

    if options.prior and options.discount:
        raise InputError("give either --discount or --prior, not both")
    if options.prior:
        return discounts.from_prior(_mixed([_prior(text, options) for text in options.prior], options.mix))
    if len(options.mix):
        raise InputError("--mix weighs several --prior; there are none")
    name, values = _parted(options.discount or "hyperbolic")
    if one_of("discount", name, [*DISCOUNTS, "function"]) == "function":
        found = _function(values, _from_file("function", values))
        return discounts.from_function(found, found.__name__)
    make: Callable[..., Discount] = getattr(discounts, name.replace("-", "_"))
    return make(**_numbers(name, values, DISCOUNTS[name], options))


def _mixed(priors: "list[Prior]", weights: "tuple[float, ...] | list[float]") -> "Prior":
    from multihorizon.discounting import hazard

    if len(priors) == 1 and len(weights) == 0:
        return priors[0]
    return hazard.Mixture(priors, weights)


def _prior(text: str, options: argparse.Namespace) -> "Prior":
    from multihorizon.discounting import hazard

    name, values = _parted(text)
    one_of("prior", name, [*PRIORS, "samples", "density"])
    if name == "samples":
        return hazard.Samples(_observed(values))
    if name == "density":
        found = _from_file("density", values)
        return found if isinstance(found, hazard.Prior) else hazard.Density(_function(values, found))
    make: Callable[..., Prior] = getattr(hazard, name.capitalize())
    return make(**_numbers(name, values, PRIORS[name], options))


def _parted(text: str) -> tuple[str, str]:
    name, _, values = text.partition(":")
    return name.replace("_", "-").replace("generalized", "generalised"), values


def _numbers(name: str, text: str, defaults: dict[str, float], options: argparse.Namespace) -> dict[str, float]:
    """'0.7,0.99' or 'beta=0.7,delta=0.99' over the defaults, with --k where there is a k."""
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
            raise InputError(f"--k means nothing to {name}; it takes {takes}")
        if "k" in said:
            raise InputError(f"the k of {name} is given twice: {said['k']:g}, and --k {options.k:g}")
        said["k"] = options.k
    return {**defaults, **({"k": options.default_k} if "k" in defaults else {}), **said}


def _observed(file: str) -> list[float]:
    if not file:
        raise InputError("samples needs a file of observed hazards, as in --prior samples:hazards.txt")
    try:
        return [float(word) for word in Path(file).read_text().replace(",", " ").split()]
    except ValueError as problem:
        raise InputError(f"{file} must hold numbers alone: {problem}") from None


def _from_file(what: str, place: str) -> Any:
    """What a Python file of the user's calls by that name."""
    file, _, name = place.rpartition(":")
    if not file:
        raise InputError(f"a {what} of your own is given by its file and name, as in {what}:mine.py:my_{what}")
    defined = guarded(file, runpy.run_path, file)
    if name not in defined:
        raise InputError(f"{file} has no {name}; it has {', '.join(n for n in defined if not n.startswith('_'))}")
    return defined[name]


def _function(place: str, found: Any) -> Callable[[float], float]:
    """A function whose failures are the user's to read, in one line."""
    if not callable(found):
        raise InputError(f"{place} is not a function of one number, but {found!r}")

    def of_one(x: float) -> float:
        return float(guarded(f"{place} at {x:g}", lambda: float(found(x))))

    of_one.__name__ = place.rpartition(":")[2]
    return of_one


def guarded(place: str, call: Callable[..., Any], *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except OSError:
        raise
    except (Exception, SystemExit) as problem:  # noqa: BLE001 - whatever the user's own code may do
        how = "" if isinstance(problem, InputError) else f" failed with {type(problem).__name__}"
        said = str(problem).replace("\n", " ")
        raise InputError(f"{place}{how}: {said}") from None
