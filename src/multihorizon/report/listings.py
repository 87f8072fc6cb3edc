"""The tables of a report."""

import numpy as np

from multihorizon.envs.atari import FRAMES_PER_STEP
from multihorizon.report.baselines import DopamineCurves
from multihorizon.report.comparison import MEASURES, Aggregates, Pair
from multihorizon.report.looks import short_names
from multihorizon.report.runs import Acting, Described, Discounted, Recorded, game_of
from multihorizon.report.scores import Scores, Statistic, has_human_score, merged
from multihorizon.report.statistics import Estimate
from multihorizon.report.tables import EMPTY, Cell, Table, number

SHORT = {Statistic.BEST: "best", Statistic.LAST: "last 5"}
SHOWN_TIMES = (1, 10, 100, 1000)


def progress(experiment: Described) -> Table:
    rows = []
    for label in experiment.labels:
        runs = [run for run in experiment.runs if run.label == label]
        going = [run for run in runs if run.begun and not run.finished]
        seeds = [len(run.scores) for run in runs]
        counts = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
        rows.append(
            [
                Cell(label, label),
                _count(len({run.environment for run in runs})),
                Cell(counts, float(max(seeds))),
                _count(sum(run.finished for run in runs)),
                _count(len(going)),
                _count(sum(not run.begun and not run.finished for run in runs)),
            ]
        )
    columns = ["agent", "environments", "seeds", "runs finished", "half-way", "no scores yet"]
    return Table("progress", columns, rows)


def scores(held: Scores, whole: bool) -> Table:
    """Every environment and agent under both statistics."""
    names = short_names(held.environments)
    shown = {agent: [s for s in Statistic if any(a == agent for a, _ in held.by_seed[s])] for agent in held.agents}
    rows = []
    for environment in held.environments:
        row = [Cell(names[environment], environment)]
        best = {
            s: max(
                (
                    x
                    for a in held.agents
                    if (whole or not a.startswith("paper's")) and (x := held.mean(s, a, environment)) is not None
                ),
                default=None,
            )
            for s in Statistic
        }
        for agent, statistics in shown.items():
            for s in statistics:
                mean = held.mean(s, agent, environment)
                row.append(number(mean, bold=mean is not None and mean == best[s]))
        rows.append(row)
    columns = ["environment", *(SHORT[s] for statistics in shown.values() for s in statistics)]
    return Table("scores", columns, rows, [(agent, len(statistics)) for agent, statistics in shown.items()])


def aggregates(found: Aggregates) -> Table:
    statistics = [s for s in Statistic if any(one.statistic is s for one in found.of)]
    agents = list(dict.fromkeys(one.agent for one in found.of))
    by = {(one.agent, one.statistic): one for one in found.of}
    rows = []
    for agent in agents:
        row = [Cell(agent, agent)]
        for s in statistics:
            for measure in MEASURES:
                rivals = [one.measures[measure].value for one in found.of if one.statistic is s]
                best = min(rivals) if measure == "optimality gap" else max(rivals)
                mine = by.get((agent, s))
                row.append(_estimated(mine.measures[measure], best) if mine else EMPTY)
        rows.append(row)
    columns = ["agent", *(measure for _ in statistics for measure in MEASURES)]
    return Table("aggregates", columns, rows, [(s.value, len(MEASURES)) for s in statistics])


def probabilities(pairs: list[Pair]) -> Table:
    rows = [
        [
            Cell(f"{pair.challenger} over {pair.baseline}", pair.challenger),
            Cell(SHORT[pair.statistic], SHORT[pair.statistic]),
            _estimated(pair.wins),
            Cell(pair.counted, float(pair.better)),
        ]
        for pair in pairs
    ]
    data = [
        [
            Cell(pair.challenger),
            Cell(pair.baseline),
            Cell(pair.statistic.value),
            *_ends(pair.wins),
            *(Cell(str(count)) for count in (pair.better, pair.ties, len(pair.changes))),
        ]
        for pair in pairs
    ]
    name = "probability-of-improvement"
    columns = ["agent", "baseline", "statistic", "probability", "low", "high", "better", "ties", "environments"]
    shown = ["agents", "statistic", "probability", "better in"]
    return Table(name, shown, rows, data=Table(name, columns, data))


def discounts(groups: list[Acting]) -> Table:
    rows = []
    for agents, environments, acted_by, wanted in groups:
        named = ", ".join(agents) + (f" in {', '.join(environments)}" if environments else "")
        row = [Cell(named, named), Cell(wanted.name if wanted else "–", wanted.name if wanted else "")]
        for t in SHOWN_TIMES:
            row += [_at(acted_by, t), _at(wanted, t) if wanted else EMPTY]
        rows.append(row)
    columns = ["agents", "asked for", *(name for _ in SHOWN_TIMES for name in ("acted by", "asked for"))]
    return Table("discounts", columns, rows, [("", 1), *((f"t = {t}", 2) for t in SHOWN_TIMES)])


def by_seed(held: Scores) -> Table:
    """Every number that the statistics are made of."""
    rows = []
    for statistic, table in held.by_seed.items():
        for (agent, environment), seeds in table.items():
            human = held.normalised(statistic, agent, [environment])[0] if has_human_score(environment) else None
            for s, score in enumerate(seeds):
                normalised = EMPTY if human is None else Cell("", float(human[s]))
                cells = (Cell(environment), Cell(agent), Cell(statistic.value), Cell(str(s)))
                rows.append([*cells, Cell("", float(score)), normalised])
    columns = ["environment", "agent", "statistic", "seed", "score", "human_normalised"]
    return Table("scores-by-seed", columns, rows)


def changes(pairs: list[Pair]) -> Table:
    rows = [
        [
            Cell(change.environment),
            Cell(pair.challenger),
            Cell(pair.baseline),
            Cell(pair.statistic.value),
            Cell("", change.challenger),
            Cell("", change.baseline),
            EMPTY if change.percent is None else Cell("", change.percent),
        ]
        for pair in pairs
        for change in pair.changes
    ]
    columns = ["environment", "agent", "baseline", "statistic", "score", "baseline_score", "improvement_percent"]
    return Table("improvements", columns, rows)


def estimates(found: Aggregates) -> Table:
    rows = [
        [
            Cell(one.agent),
            Cell(one.statistic.value),
            Cell(measure),
            *_ends(estimate),
            Cell(str(len(found.environments[one.statistic]))),
        ]
        for one in found.of
        for measure, estimate in one.measures.items()
    ]
    return Table("aggregate-intervals", ["agent", "statistic", "measure", "value", "low", "high", "games"], rows)


def curves(runs: list[Recorded], dopamine: DopamineCurves | None) -> Table:
    """What the learning curves are drawn from."""
    drawn = {}
    for key in dict.fromkeys((run.label, run.environment) for run in runs):
        drawn[key] = merged([run for run in runs if (run.label, run.environment) == key])
    games = {game_of(run.environment) for run in runs}
    for (agent, game), held in dopamine.curves.items() if dopamine else ():
        if game in games:
            drawn[agent, f"atari/{game}"] = (dopamine.frames(held) if dopamine else held[0], held)
    rows = []
    for (agent, environment), (frames, scores) in drawn.items():
        for t in np.flatnonzero(np.isfinite(scores).any(axis=0)):
            seen = scores[np.isfinite(scores[:, t]), t]
            ends = (float(seen.mean()), float(seen.min()), float(seen.max()))
            is_atari = bool(game_of(environment))
            steps = frames[t] / FRAMES_PER_STEP if is_atari else frames[t]
            played = [Cell(f"{steps:.0f}"), Cell(f"{frames[t]:.0f}") if is_atari else EMPTY]
            rows.append([Cell(environment), Cell(agent), *played, *(Cell("", x) for x in ends), Cell(str(len(seen)))])
    columns = ["environment", "agent", "steps", "frames", "mean", "lowest", "highest", "seeds"]
    return Table("learning-curves", columns, rows)


def _count(value: int) -> Cell:
    return Cell(f"{value:,}", float(value))


def _estimated(estimate: Estimate, best: float | None = None) -> Cell:
    text = f"{estimate.value:.2f}"
    if estimate.low is not None and estimate.high is not None:
        text += f" ({estimate.low:.2f} to {estimate.high:.2f})"
    return Cell(text.replace("-", "−"), estimate.value, estimate.value == best)


def _ends(estimate: Estimate) -> list[Cell]:
    return [EMPTY if x is None else Cell("", x) for x in (estimate.value, estimate.low, estimate.high)]


def _at(discount: Discounted, t: float) -> Cell:
    return number(discount.values[discount.times.index(t)], places=3) if t in discount.times else EMPTY
