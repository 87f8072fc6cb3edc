"""What each agent earned in each environment, by seed, under both statistics; and the same in units of a human's."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from jaxtyping import Float

from multihorizon.report.baselines import DopamineCurves, bases, human_scores, paper_table
from multihorizon.report.notes import notes, shorter_than_the_papers
from multihorizon.report.runs import Described, Recorded, game_of

LAST = 5  # iterations
HALF = 0.5  # of the longest run's frames; with fewer, a run would cut short what is said of all others


class Statistic(Enum):
    """How a seed's learning curve becomes one number."""

    BEST = "best iteration"
    LAST = "last five iterations"


ABOUT = {
    Statistic.BEST: "mean over seeds of each seed's best iteration, as in the paper's table",
    Statistic.LAST: "mean over seeds of each seed's last five iterations",
}
BySeed = dict[tuple[str, str], Float[np.ndarray, " S"]]  # by agent and environment


@dataclass(frozen=True)
class Scores:
    """All agents and environments that there are scores of, in the order to show them."""

    agents: list[str]
    environments: list[str]
    by_seed: dict[Statistic, BySeed]
    baselines: list[str] = field(default_factory=list)  # agents that are others' figures
    notes: list[str] = field(default_factory=list)  # for whoever reads them

    def mean(self, statistic: Statistic, agent: str, environment: str) -> float | None:
        seeds = self.by_seed[statistic].get((agent, environment))
        return None if seeds is None else float(seeds.mean())

    def shared(self, statistic: Statistic, agents: Iterable[str]) -> list[str]:
        """The environments that all these agents have scores of."""
        named = list(agents)
        return [e for e in self.environments if all((a, e) in self.by_seed[statistic] for a in named)]

    def strata(self, statistic: Statistic, agent: str, environments: list[str]) -> list[Float[np.ndarray, " S"]]:
        return [self.by_seed[statistic][agent, environment] for environment in environments]

    def normalised(self, statistic: Statistic, agent: str, environments: list[str]) -> list[Float[np.ndarray, " S"]]:
        """0 is a random player's score, 1 a human's."""
        known = human_scores()
        games = [game_of(environment) for environment in environments]
        return [
            (scores - known[game].random) / (known[game].human - known[game].random)
            for game, scores in zip(games, self.strata(statistic, agent, environments), strict=True)
        ]


def has_human_score(environment: str) -> bool:
    return game_of(environment) in human_scores()


def of_seeds(
    frames: Float[np.ndarray, " T"], scores: Float[np.ndarray, "S T"], until: float
) -> dict[Statistic, Float[np.ndarray, " S"]]:
    """Both statistics of each seed over the iterations that end within `until` frames; without the seeds that have
    none."""
    within = scores[:, frames <= until]
    seen = within[np.isfinite(within).any(axis=1)]
    last = seen[:, -LAST:]
    settled = last[np.isfinite(last).any(axis=1)]
    return {
        Statistic.BEST: np.nanmax(seen, axis=1) if seen.size else np.empty(0),
        Statistic.LAST: np.nanmean(settled, axis=1) if settled.size else np.empty(0),
    }


def score(experiment: Described, dopamine: DopamineCurves | None = None) -> Scores:
    """All runs of an environment over the iterations that all of them have, but for those that have only begun; beside
    them the paper's figures, and Dopamine's as far as ours go."""
    begun = [run for run in experiment.runs if run.begun]
    environments = list(dict.fromkeys(run.environment for run in begun))
    furthest = {e: max(run.frames[-1] for run in begun if run.environment == e) for e in environments}
    compared = [run for run in begun if run.frames[-1] >= HALF * furthest[run.environment]]
    ends = {e: min(run.frames[-1] for run in compared if run.environment == e) for e in environments}
    parts: dict[Statistic, dict[tuple[str, str], list[Float[np.ndarray, " S"]]]] = {s: {} for s in Statistic}
    for run in compared:
        for statistic, seeds in of_seeds(run.frames, run.scores, ends[run.environment]).items():
            if seeds.size:
                parts[statistic].setdefault((run.label, run.environment), []).append(seeds)
    by_seed = {s: {key: np.concatenate(several) for key, several in parts[s].items()} for s in Statistic}
    baselines = _add_dopamine(by_seed, dopamine, ends) + _add_paper(by_seed, environments, experiment.labels)
    scored = {agent for agent, _ in by_seed[Statistic.BEST]}
    agents = [agent for agent in experiment.labels if agent in scored] + baselines
    said = notes(experiment.runs, compared, ends, LAST)
    if shorter_than_the_papers(ends) and any(name.startswith("paper's") for name in baselines):
        said.append("The paper's scores are of 200 million frames; these runs are shorter.")
    return Scores(agents, environments, by_seed, baselines, said)


def paper_scores() -> Scores:
    """The paper's own table: one figure a game, the mean over its seeds of their best iterations."""
    held = paper_table()
    best = {(agent, f"atari/{game}"): np.array([x]) for game, row in held.items() for agent, x in row.items()}
    agents = list(next(iter(held.values())))
    notes = ["The table has one figure a game and no seeds, so there are no intervals."]
    return Scores(agents, [f"atari/{game}" for game in held], {Statistic.BEST: best, Statistic.LAST: {}}, notes=notes)


def _add_dopamine(
    by_seed: dict[Statistic, BySeed], dopamine: DopamineCurves | None, ends: dict[str, float]
) -> list[str]:
    if dopamine is None:
        return []
    added = []
    for (agent, game), curves in dopamine.curves.items():
        environment = f"atari/{game}"
        if environment in ends:
            for statistic, seeds in of_seeds(dopamine.frames(curves), curves, ends[environment]).items():
                if seeds.size:
                    by_seed[statistic][agent, environment] = seeds
                    added.append(agent)
    return list(dict.fromkeys(added))


def _add_paper(by_seed: dict[Statistic, BySeed], environments: list[str], agents: list[str]) -> list[str]:
    """What the paper reports of the agents that these are built on, and its own."""
    held = paper_table()
    shown = [*bases(agents), "Multi-Rainbow"]
    added = []
    for environment in environments:
        for agent in shown:
            if game_of(environment) in held:
                name = f"paper's {agent}"
                by_seed[Statistic.BEST][name, environment] = np.array([held[game_of(environment)][agent]])
                added.append(name)
    return list(dict.fromkeys(added))


def merged(runs: list[Recorded]) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, "S T"]]:
    """Runs of one agent in one environment as one, on the iterations that any of them has."""
    frames = np.unique(np.concatenate([run.frames for run in runs]))
    together = np.full((sum(len(run.scores) for run in runs), len(frames)), np.nan)
    seed = 0
    for run in runs:
        together[seed : seed + len(run.scores), np.searchsorted(frames, run.frames)] = run.scores
        seed += len(run.scores)
    return frames, together
