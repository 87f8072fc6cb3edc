"""Metrics of an iteration: one line for each in a run's file, as rows by seed, and as numbers by name."""

from collections.abc import Mapping, Sequence
from typing import Any


def rows_of(line: Mapping[str, Any], first_seed: int) -> list[dict[str, Any]]:
    """One row for each seed of one iteration: plain numbers and lists by head, for a table."""
    rows = []
    for s in range(len(line["returns"])):
        losses, values = (line[name][s] if line[name] else [] for name in ("losses", "values"))
        rows.append(
            {
                "iteration": line["iteration"],
                "step": line["step"],
                "seed": first_seed + s,
                "episodes": line["episodes"][s],
                "return": line["returns"][s],
                "evaluation_episodes": line["evaluation_episodes"][s],
                "evaluation_return": line["evaluation_returns"][s],
                "updates": line["updates"],
                "loss": sum(losses) / len(losses) if losses else None,
                "value": sum(values) / len(values) if values else None,
                "losses_by_horizon": list(losses),
                "values_by_horizon": list(values),
                "steps_per_second": line["steps_per_second"],
                "seconds": line["seconds"],
            }
        )
    return rows


def scalars_of(line: Mapping[str, Any], first_seed: int, gammas: Sequence[float]) -> dict[str, float]:
    """Numbers of one iteration by name: by seed, and by horizon where there is one for each."""
    named: dict[str, float] = {}
    for s in range(len(line["returns"])):
        seed = f"seed-{first_seed + s}"
        for name, tag in (("returns", "return/training"), ("evaluation_returns", "return/evaluation")):
            if line[name][s] is not None:
                named[f"{tag}/{seed}"] = line[name][s]
        for name, tag in (("losses", "loss"), ("values", "value")):
            if line[name]:
                for gamma, value in zip(gammas, line[name][s], strict=True):
                    named[f"{tag}/gamma-{gamma:.5f}/{seed}"] = value
    return {**named, "steps_per_second": line["steps_per_second"]}
