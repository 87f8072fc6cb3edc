"""What whoever reads scores must know of the runs behind them: how large they are, and what is missing."""

from collections.abc import Collection

from multihorizon.report.baselines import WHOLE_FRAMES
from multihorizon.report.runs import Recorded, game_of, unit

MOST_NAMED = 6


def sizes(runs: list[Recorded]) -> str:
    """How many seeds and steps there really are, family by family."""
    families: dict[str, list[Recorded]] = {}
    for run in runs:
        if run.begun:
            families.setdefault(run.environment.partition("/")[0], []).append(run)
    return f"As run: {'; '.join(_size(family, several) for family, several in families.items())}."


def notes(runs: list[Recorded], compared: list[Recorded], ends: dict[str, float], last: int) -> list[str]:
    """Of all runs, of those compared, each environment's over so many frames; `last` iterations are averaged over."""
    return [*_behind(runs, compared), *_cut(compared, ends), *_few(compared, ends, last), *_missing(runs)]


def shorter_than_the_papers(ends: dict[str, float]) -> bool:
    return any(end < WHOLE_FRAMES and game_of(environment) for environment, end in ends.items())


def _size(family: str, runs: list[Recorded]) -> str:
    seeds: dict[tuple[str, str], int] = {}
    for run in runs:
        seeds[run.label, run.environment] = seeds.get((run.label, run.environment), 0) + len(run.scores)
    played = [int(run.frames[-1]) for run in runs]
    environments = {run.environment for run in runs}
    where = f"{len(environments)} environments of {family}" if len(environments) > 1 else runs[0].environment
    return f"{where}, {_span(seeds.values(), 'seed')}, {_span(played, unit(runs[0].environment)[:-1])}"


def _behind(runs: list[Recorded], compared: list[Recorded]) -> list[str]:
    kept = {run.folder for run in compared}
    late = [f"{run.label} in {run.environment}" for run in runs if run.begun and run.folder not in kept]
    said = "Not compared yet, with less than half of the longest run's iterations"
    return [f"{said}: {_listed(late)}."] if late else []


def _cut(compared: list[Recorded], ends: dict[str, float]) -> list[str]:
    """One for each length."""
    cut: dict[str, list[str]] = {}
    for environment, end in ends.items():
        if any(run.environment == environment and run.frames[-1] > end for run in compared):
            cut.setdefault(f"{end:,.0f} {unit(environment)}", []).append(environment)
    said = []
    for length, environments in cut.items():
        last = [run for run in compared if run.environment in environments and run.frames[-1] == ends[run.environment]]
        named = list(dict.fromkeys(run.label for run in last))
        have = "has" if len(named) == 1 else "have"
        where, who = _listed(environments), _listed(named)
        said.append(f"{where}: compared over the first {length}, as far as {who} {have} come.")
    return said


def _few(compared: list[Recorded], ends: dict[str, float], last: int) -> list[str]:
    few = [r.environment for r in compared if (r.frames <= ends[r.environment]).sum() < last]
    said = f"Runs have fewer than {last} iterations, and all of them count as the last {last}"
    return [f"{said}: {_listed(list(dict.fromkeys(few)))}."] if few else []


def _missing(runs: list[Recorded]) -> list[str]:
    waiting = [f"{run.label} in {run.environment}" for run in runs if not run.begun]
    alone = sorted({run.label for run in runs if run.begun and len(run.scores) == 1})
    said = [f"No scores yet: {_listed(waiting)}."] if waiting else []
    return said + ([f"With a single seed there are no bands and no intervals: {_listed(alone)}."] if alone else [])


def _listed(names: list[str]) -> str:
    more = f", and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _span(counts: Collection[int], word: str) -> str:
    low, high = min(counts), max(counts)
    many = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{many} {word}{'' if high == 1 else 's'}"
