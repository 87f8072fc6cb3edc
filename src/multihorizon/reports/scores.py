"""Scores of each agent in each environment, by seed, and notes for readers of a report."""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from jaxtyping import Float

from multihorizon.reports.baselines import (
    FULL_LENGTH_FRAMES,
    Baseline,
    DopamineCurves,
    Source,
    find_base_agents,
    human_scores,
    paper_table,
)
from multihorizon.reports.data import RunCollection, RunHistory, choose_time_unit, parse_game

LAST_ITERATIONS = 5
# Runs with less than this fraction of the longest run's frames are not compared, because all compared runs are cut to
# the length of the shortest compared run.
MIN_SHARE = 0.5
MAX_NAMED = 6  # a note lists at most this number of names


class Statistic(Enum):
    """How a seed's learning curve becomes one number."""

    BEST = "best iteration"
    LAST = "last five iterations"


SHORT_NAMES = {Statistic.BEST: "best", Statistic.LAST: "last 5"}
DESCRIPTIONS = {
    Statistic.BEST: "mean over seeds of each seed's best iteration, as in the paper's table",
    Statistic.LAST: "mean over seeds of each seed's last five iterations",
}
SeedScores = dict[tuple[str, str], Float[np.ndarray, " S"]]  # by agent and environment


@dataclass(frozen=True)
class Scores:
    """The scores of all agents in all environments, with notes for readers."""

    agents: list[str]  # labels in display order, baselines last
    environments: list[str]  # in display order
    by_seed: dict[Statistic, SeedScores]
    baselines: dict[str, Baseline] = field(default_factory=dict)  # by label
    notes: list[str] = field(default_factory=list)

    def mean(self, statistic: Statistic, agent: str, environment: str) -> float | None:
        """Returns the mean over seeds, or None where there is no score."""
        seeds = self.by_seed[statistic].get((agent, environment))
        return None if seeds is None else float(seeds.mean())

    def find_shared(self, statistic: Statistic, agents: Iterable[str]) -> list[str]:
        """Returns the environments in which all these agents have scores."""
        named = list(agents)
        return [e for e in self.environments if all((a, e) in self.by_seed[statistic] for a in named)]

    def find_comparable(self, full_length: bool) -> list[str]:
        """Returns the agents to rank. Agents of the paper's table are included only if `full_length`."""
        return [agent for agent in self.agents if full_length or not self._is_from_paper(agent)]

    def select(self, statistic: Statistic, agent: str, environments: list[str]) -> list[Float[np.ndarray, " S"]]:
        """Returns an agent's scores, one array of seeds for each environment."""
        return [self.by_seed[statistic][agent, environment] for environment in environments]

    def normalise(self, statistic: Statistic, agent: str, environments: list[str]) -> list[Float[np.ndarray, " S"]]:
        """Returns an agent's human-normalised scores: 0 is a random player's score, and 1 is a human's score."""
        known = human_scores()
        games = [parse_game(environment) for environment in environments]
        return [
            (scores - known[game].random) / (known[game].human - known[game].random)
            for game, scores in zip(games, self.select(statistic, agent, environments), strict=True)
        ]

    def _is_from_paper(self, agent: str) -> bool:
        return agent in self.baselines and self.baselines[agent].source is Source.PAPER


def has_human_score(environment: str) -> bool:
    """Returns whether scores in this environment can be human-normalised."""
    return parse_game(environment) in human_scores()


def score_runs(collection: RunCollection, dopamine: DopamineCurves | None = None) -> Scores:
    """Scores the runs of each environment over the iterations that all of them have.

    Runs with less than half of the longest run's frames are not compared. The published scores of the paper and of
    Dopamine are added as baselines. Dopamine's curves are cut to the length of the runs.
    """
    started = [run for run in collection.runs if run.has_scores]
    environments = list(dict.fromkeys(run.environment for run in started))
    longest = {e: max(run.frames[-1] for run in started if run.environment == e) for e in environments}
    compared = [run for run in started if run.frames[-1] >= MIN_SHARE * longest[run.environment]]
    ends = {e: min(run.frames[-1] for run in compared if run.environment == e) for e in environments}
    parts: dict[Statistic, dict[tuple[str, str], list[Float[np.ndarray, " S"]]]] = {s: {} for s in Statistic}
    for run in compared:
        for statistic, seeds in _score_seeds(run.frames, run.scores, ends[run.environment]).items():
            if seeds.size:
                parts[statistic].setdefault((run.label, run.environment), []).append(seeds)
    by_seed = {s: {key: np.concatenate(several) for key, several in parts[s].items()} for s in Statistic}
    added = _add_dopamine(by_seed, dopamine, ends, collection.labels)
    added += _add_paper(by_seed, environments, collection.labels)
    baselines = {baseline.label: baseline for baseline in added}
    scored = {agent for agent, _ in by_seed[Statistic.BEST]}
    agents = [agent for agent in collection.labels if agent in scored]
    notes = _write_notes(collection.runs, compared, ends)
    shorter = any(end < FULL_LENGTH_FRAMES and parse_game(environment) for environment, end in ends.items())
    if shorter and any(baseline.source is Source.PAPER for baseline in added):
        notes.append("The paper's agents trained for 200 million frames; these runs are shorter.")
    return Scores([*agents, *baselines], environments, by_seed, baselines, notes)


def score_paper_table() -> Scores:
    """Returns the scores in the paper's table. Each number is treated as one seed."""
    table = paper_table()
    best = {(agent, f"atari/{game}"): np.array([x]) for game, row in table.items() for agent, x in row.items()}
    agents = list(next(iter(table.values())))
    notes = ["The table has one number per game and no seeds, so there are no intervals."]
    return Scores(agents, [f"atari/{game}" for game in table], {Statistic.BEST: best, Statistic.LAST: {}}, notes=notes)


def describe_sizes(runs: list[RunHistory]) -> str:
    """Returns one sentence on the number of seeds and the length of the runs."""
    families: dict[str, list[RunHistory]] = {}
    for run in runs:
        if run.has_scores:
            families.setdefault(run.environment.partition("/")[0], []).append(run)
    return f"Size of the runs: {'; '.join(_describe_family(family, several) for family, several in families.items())}."


def _score_seeds(
    frames: Float[np.ndarray, " T"], scores: Float[np.ndarray, "S T"], end: float
) -> dict[Statistic, Float[np.ndarray, " S"]]:
    """Scores each seed over the iterations that end within `end` frames. Seeds without any score are left out."""
    within = scores[:, frames <= end]
    seen = within[np.isfinite(within).any(axis=1)]
    last = seen[:, -LAST_ITERATIONS:]
    settled = last[np.isfinite(last).any(axis=1)]
    return {
        Statistic.BEST: np.nanmax(seen, axis=1) if seen.size else np.empty(0),
        Statistic.LAST: np.nanmean(settled, axis=1) if settled.size else np.empty(0),
    }


def _add_dopamine(
    by_seed: dict[Statistic, SeedScores], dopamine: DopamineCurves | None, ends: dict[str, float], labels: list[str]
) -> list[Baseline]:
    """Adds Dopamine's scores over as many frames as the runs have. Runs with the same label take precedence."""
    if dopamine is None:
        return []
    added = []
    for (baseline, game), curves in dopamine.curves.items():
        environment = f"atari/{game}"
        if environment in ends and baseline.label not in labels:
            for statistic, seeds in _score_seeds(dopamine.frames(curves), curves, ends[environment]).items():
                if seeds.size:
                    by_seed[statistic][baseline.label, environment] = seeds
                    added.append(baseline)
    return list(dict.fromkeys(added))


def _add_paper(by_seed: dict[Statistic, SeedScores], environments: list[str], labels: list[str]) -> list[Baseline]:
    """Adds the paper's scores of Multi-Rainbow and of the base agents that `find_base_agents` returns."""
    table = paper_table()
    shown = [Baseline(Source.PAPER, agent) for agent in (*find_base_agents(labels), "Multi-Rainbow")]
    added = []
    for environment in environments:
        for baseline in shown:
            if parse_game(environment) in table and baseline.label not in labels:
                score = table[parse_game(environment)][baseline.agent]
                by_seed[Statistic.BEST][baseline.label, environment] = np.array([score])
                added.append(baseline)
    return list(dict.fromkeys(added))


def _write_notes(runs: list[RunHistory], compared: list[RunHistory], ends: dict[str, float]) -> list[str]:
    return [*_note_behind(runs, compared), *_note_cut(compared, ends), *_note_few(compared, ends), *_note_missing(runs)]


def _note_behind(runs: list[RunHistory], compared: list[RunHistory]) -> list[str]:
    kept = {run.folder for run in compared}
    late = [f"{run.label} in {run.environment}" for run in runs if run.has_scores and run.folder not in kept]
    said = "Not compared yet, because they have less than half of the longest run's steps"
    return [f"{said}: {_enumerate(late)}."] if late else []


def _note_cut(compared: list[RunHistory], ends: dict[str, float]) -> list[str]:
    """Returns one note for each length that runs are cut to."""
    cut: dict[str, list[str]] = {}
    for environment, end in ends.items():
        if any(run.environment == environment and run.frames[-1] > end for run in compared):
            cut.setdefault(f"{end:,.0f} {choose_time_unit(environment)}", []).append(environment)
    notes = []
    for length, environments in cut.items():
        last = [run for run in compared if run.environment in environments and run.frames[-1] == ends[run.environment]]
        named = list(dict.fromkeys(run.label for run in last))
        have = "has" if len(named) == 1 else "have"
        where, who = _enumerate(environments), _enumerate(named)
        notes.append(f"{where}: compared over the first {length}, which is all that {who} {have}.")
    return notes


def _note_few(compared: list[RunHistory], ends: dict[str, float]) -> list[str]:
    few = [r.environment for r in compared if (r.frames <= ends[r.environment]).sum() < LAST_ITERATIONS]
    reason = (
        f"have fewer than {LAST_ITERATIONS} iterations, so the score of the last {LAST_ITERATIONS} covers all "
        "iterations"
    )
    return [f"Runs in {_enumerate(list(dict.fromkeys(few)))} {reason}."] if few else []


def _note_missing(runs: list[RunHistory]) -> list[str]:
    waiting = [f"{run.label} in {run.environment}" for run in runs if not run.has_scores]
    seeds = _count_seeds(runs)
    enough = {label for (label, _), count in seeds.items() if count > 1}
    single = [(label, environment) for (label, environment), count in seeds.items() if count == 1]
    alone = sorted({f"{label} in {environment}" if label in enough else label for label, environment in single})
    notes = [f"No scores yet: {_enumerate(waiting)}."] if waiting else []
    return notes + ([f"Runs with a single seed have no bands and no intervals: {_enumerate(alone)}."] if alone else [])


def _count_seeds(runs: list[RunHistory]) -> dict[tuple[str, str], int]:
    """Counts the seeds that have scores, by agent and environment."""
    seeds: dict[tuple[str, str], int] = {}
    for run in runs:
        if run.has_scores:
            seeds[run.label, run.environment] = seeds.get((run.label, run.environment), 0) + len(run.scores)
    return seeds


def _describe_family(family: str, runs: list[RunHistory]) -> str:
    seeds = _count_seeds(runs)
    played = [int(run.frames[-1]) for run in runs]
    environments = {run.environment for run in runs}
    where = f"{len(environments)} environments of {family}" if len(environments) > 1 else runs[0].environment
    unit = choose_time_unit(runs[0].environment).removesuffix("s")
    return f"{where}, {_format_range(seeds.values(), 'seed')}, {_format_range(played, unit)}"


def _enumerate(names: list[str]) -> str:
    more = f", and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(names[:MAX_NAMED]) + more


def _format_range(counts: Collection[int], word: str) -> str:
    low, high = min(counts), max(counts)
    many = f"{low:,}" if low == high else f"{low:,} to {high:,}"
    return f"{many} {word}{'' if high == 1 else 's'}"
