"""Reads and writes the metrics of a run, one line of JSON for each iteration. Needs no JAX."""

import io
import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from multihorizon.errors import InputError
from multihorizon.files import CHECKSUM, json_checksum, open_inside
from multihorizon.runs.folder import METRICS, RUN, identity_checksum, other_run

Line = dict[str, Any]
Warn = Callable[[str], None]

BY_SEED = ("episodes", "returns", "evaluation_episodes", "evaluation_returns")
LENGTHS = ("lengths", "evaluation_lengths")  # lists by seed; missing in runs of older versions
BY_HEAD = ("losses", "values")  # lists by seed and head; empty if an iteration has no updates
COUNTS = ("iteration", "step", "updates")
RATES = ("steps_per_second", "seconds")
FIELDS = {*COUNTS, *RATES, *BY_SEED, *LENGTHS, *BY_HEAD, "discount", RUN}

# Limits on the memory and time that a hostile file can cost.
MOST_BYTES, MOST_LINE, MOST_DAMAGED = 2**30, 2**24, 10_000
# Limits of the field `discount`: the number of keys, and the number of characters in a key.
MOST_TIMES, LONGEST_TIME = 1_000, 40
MOST_NAMED = 5  # a message lists at most this number of lines or iterations


def read_metrics(
    folder: Path, warn: Warn | None = None, num_seeds: int | None = None, iterations: int = 0
) -> list[Line]:
    """Returns the metrics of each iteration of a run, in order. Damaged lines are skipped.

    Args:
        folder: The folder of the run.
        warn: Receives warnings about damaged lines and missing iterations.
        num_seeds: The number of seeds of the run. Lines with another number of seeds count as damaged.
        iterations: The number of iterations that the run is known to have completed.
    """
    path, identity = folder / METRICS, identity_checksum(folder)
    found: dict[int, Line] = {}
    damaged = []
    for number, written in enumerate(_lines(path), start=1):
        try:
            line = parse_line(written, num_seeds)
        except (ValueError, RecursionError):
            damaged.append(number)
            if len(damaged) > MOST_DAMAGED:
                raise InputError(
                    f"{path} has more than {MOST_DAMAGED:,} damaged lines; restore or remove the file"
                ) from None
        else:
            if None not in (identity, line.get(RUN)) and line[RUN] != identity:
                raise InputError(f"{path} does not hold the metrics of this run: {other_run(folder)}")
            found[line["iteration"]] = line  # a resumed run may have written an iteration twice
    if warn is not None and damaged:
        warn(f"{path}: {_listed('line', damaged, len(damaged))} damaged and skipped")
    known = max(iterations, max(found, default=-1) + 1)
    if warn is not None and len(found) < known:
        missing = (iteration + 1 for iteration in range(known) if iteration not in found)
        warn(f"{path}: {_listed('iteration', missing, known - len(found))} missing")
    return [found[iteration] for iteration in sorted(found)]


def _lines(path: Path) -> Iterator[str]:
    try:
        with io.TextIOWrapper(open_inside(path, MOST_BYTES), encoding="utf-8", errors="replace") as file:
            while line := file.readline(MOST_LINE):
                yield line
    except FileNotFoundError:
        return
    except OSError as problem:
        raise InputError(f"{path} cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise InputError(f"{path} cannot be read: {problem}; restore or remove the file") from None


def _listed(what: str, numbers: Iterable[int], count: int) -> str:
    named = ", ".join(map(str, islice(numbers, MOST_NAMED)))
    more = f" and {count - MOST_NAMED:,} more" if count > MOST_NAMED else ""
    return f"{what} {named} is" if count == 1 else f"{what}s {named}{more} are"


def format_line(line: Line) -> str:
    """Returns the metrics of one iteration as JSON, with a checksum."""
    return json.dumps(line | {CHECKSUM: json_checksum(line)}, allow_nan=False)


def parse_line(text: str, num_seeds: int | None = None) -> Line:
    """Returns the metrics of one iteration. The checksum is optional, since older runs have none."""
    line = json.loads(text, parse_constant=_refuse)
    if not isinstance(line, dict):
        raise ValueError("a line must be a JSON object")
    if line.pop(CHECKSUM, None) not in (None, json_checksum(line)):
        raise ValueError("checksum mismatch")
    if unknown := set(line) - FIELDS:
        raise ValueError(f"unknown fields: {', '.join(sorted(unknown))}")
    _check_fields(line, num_seeds)
    return line


def _check_fields(line: Line, num_seeds: int | None) -> None:
    for name in COUNTS:
        _check_whole(name, line.get(name))
    for name in RATES:
        _check_number(name, line.get(name))
    count = len(line["returns"]) if num_seeds is None and isinstance(line.get("returns"), list) else num_seeds
    for name in (*BY_SEED, *(name for name in LENGTHS if name in line)):
        check = _check_whole if name.endswith("episodes") else _check_score
        for value in _check_list(name, line.get(name), count):
            check(name, value)
    for name in BY_HEAD:
        by_seed = line.get(name)
        if by_seed != []:
            for heads in _check_list(name, by_seed, count):
                for value in _check_list(name, heads, None):
                    _check_number(name, value)
    discount = line.get("discount", {})
    if (
        not isinstance(discount, dict)
        or len(discount) > MOST_TIMES
        or max(map(len, discount), default=0) > LONGEST_TIME
    ):
        raise ValueError(f"discount must be an object with at most {MOST_TIMES:,} times")
    for time, value in discount.items():
        _check_number("a time of discount", float(time))
        _check_number("discount", value)
    if RUN in line and not (isinstance(line[RUN], str) and re.fullmatch("[0-9a-f]{8}", line[RUN])):
        raise ValueError(f"{RUN} must be eight hexadecimal digits")


def _refuse(name: str) -> None:
    raise ValueError(f"{name} is not JSON")


def _check_list(name: str, value: Any, count: int | None) -> list[Any]:
    if not isinstance(value, list) or not value or (count is not None and len(value) != count):
        raise ValueError(f"{name} must be a list of {count or 'one or more'} values")
    return value


def _check_whole(name: str, value: Any) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise ValueError(f"{name} must be a whole number of at least 0")


def _check_number(name: str, value: Any) -> None:
    if not isinstance(value, int | float) or isinstance(value, bool) or abs(value) > 1e300 or not math.isfinite(value):
        raise ValueError(f"{name} must be a finite number")


def _check_score(name: str, value: Any) -> None:
    if value is not None:
        _check_number(name, value)


def rows_of(line: Mapping[str, Any], first_seed: int) -> list[dict[str, Any]]:
    """Returns the metrics of an iteration as table rows, one for each seed."""
    rows = []
    for s in range(len(line["returns"])):
        losses, values = (line[name][s] if line[name] else [] for name in BY_HEAD)
        rows.append(
            {
                "iteration": line["iteration"],
                "step": line["step"],
                "seed": first_seed + s,
                "episodes": line["episodes"][s],
                "return": line["returns"][s],
                "length": line["lengths"][s] if "lengths" in line else None,
                "evaluation_episodes": line["evaluation_episodes"][s],
                "evaluation_return": line["evaluation_returns"][s],
                "evaluation_length": line["evaluation_lengths"][s] if "evaluation_lengths" in line else None,
                "updates": line["updates"],
                "loss": _mean(losses),
                "value": _mean(values),
                "losses_by_horizon": list(losses),
                "values_by_horizon": list(values),
                "steps_per_second": line["steps_per_second"],
                "seconds": line["seconds"],
            }
        )
    return rows


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


BY_EPISODE = (
    ("returns", "return/training"),
    ("evaluation_returns", "return/evaluation"),
    ("lengths", "length/training"),
    ("evaluation_lengths", "length/evaluation"),
)


def scalars_of(line: Mapping[str, Any], first_seed: int, gammas: Iterable[float]) -> dict[str, float]:
    """Returns the metrics of an iteration by name, for loggers. Names may contain a seed and a γ."""
    named: dict[str, float] = {}
    gammas = list(gammas)
    for s in range(len(line["returns"])):
        seed = f"seed-{first_seed + s}"
        for name, tag in BY_EPISODE:
            mean = line[name][s] if name in line else None
            if mean is not None:
                named[f"{tag}/{seed}"] = mean
        for name, tag in (("losses", "loss"), ("values", "value")):
            if line[name]:
                for gamma, value in zip(gammas, line[name][s], strict=True):
                    named[f"{tag}/gamma-{gamma:.5f}/{seed}"] = value
    return {**named, "steps_per_second": line["steps_per_second"]}
