"""The tables of a report, as plain data. `page.py` writes them as CSV, Markdown and HTML."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from multihorizon.envs.atari import FRAMES_PER_STEP
from multihorizon.reports.baselines import DopamineCurves
from multihorizon.reports.comparison import Aggregates, Comparison, Measure
from multihorizon.reports.data import (
    DiscountCurve,
    DiscountGroup,
    RunCollection,
    RunHistory,
    merge_seeds,
    parse_game,
)
from multihorizon.reports.figure_style import shorten_names
from multihorizon.reports.scores import SHORT_NAMES, Scores, Statistic, has_human_score
from multihorizon.reports.statistics import IntervalEstimate

LARGEST_WRITTEN_OUT = 1e15  # larger numbers are shown with three digits and an exponent
SHOWN_TIMES = (1, 10, 100, 1000)  # the times t in the table of discounts


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str  # in Markdown and HTML
    value: float | str | None = None  # in CSV files and for sorting; the text by default
    bold: bool = False  # marks the best value


EMPTY = Cell("–")


@dataclass(frozen=True)
class Table:
    """A table whose first column holds labels.

    `groups` are headings above the other columns. Each group has a name and a number of columns.
    """

    name: str  # the name of its file, without the extension
    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    groups: Sequence[tuple[str, int]] = field(default=())
    csv_table: "Table | None" = None  # replaces this table in the CSV file

    @property
    def full_columns(self) -> list[str]:
        """The headings of the columns. Each heading begins with the name of the column's group."""
        over = ["", *(f"{name}, " if name else "" for name, span in self.groups for _ in range(span))]
        return [a + b for a, b in zip(over, self.columns, strict=True)] if self.groups else list(self.columns)


def format_number(value: float | None, bold: bool = False, places: int | None = None) -> Cell:
    """Makes a cell from a number. The default is two decimals below 100, one below 10,000 and none above."""
    if value is None or not math.isfinite(value):
        return EMPTY
    if abs(value) >= LARGEST_WRITTEN_OUT:
        return Cell(f"{value:.3g}".replace("-", "−"), value, bold)
    if places is None:
        places = 0 if abs(value) >= 10_000 else 1 if abs(value) >= 100 else 2
    return Cell(f"{value:,.{places}f}".replace("-", "−"), value, bold)


def tabulate_progress(collection: RunCollection) -> Table:
    """Counts each agent's environments and seeds, and its finished and unfinished runs."""
    rows = []
    for label in collection.labels:
        runs = [run for run in collection.runs if run.label == label]
        unfinished = [run for run in runs if run.has_scores and not run.finished]
        seeds = [len(run.scores) for run in runs]
        counts = f"{min(seeds)}" if min(seeds) == max(seeds) else f"{min(seeds)} to {max(seeds)}"
        rows.append(
            [
                Cell(label, label),
                _format_count(len({run.environment for run in runs})),
                Cell(counts, float(max(seeds))),
                _format_count(sum(run.finished for run in runs)),
                _format_count(len(unfinished)),
                _format_count(sum(not run.has_scores and not run.finished for run in runs)),
            ]
        )
    columns = ["agent", "environments", "seeds", "runs finished", "unfinished", "no scores yet"]
    return Table("progress", columns, rows)


def tabulate_scores(scores: Scores, full_length: bool) -> Table:
    """Lists each agent's mean scores in each environment. The best score under each statistic is bold."""
    names = shorten_names(scores.environments)
    shown = {agent: [s for s in Statistic if any(a == agent for a, _ in scores.by_seed[s])] for agent in scores.agents}
    ranked = scores.find_comparable(full_length)
    rows = []
    for environment in scores.environments:
        row = [Cell(names[environment], environment)]
        best = {
            s: max((x for a in ranked if (x := scores.mean(s, a, environment)) is not None), default=None)
            for s in Statistic
        }
        for agent, statistics in shown.items():
            for s in statistics:
                mean = scores.mean(s, agent, environment)
                row.append(format_number(mean, bold=mean is not None and mean == best[s]))
        rows.append(row)
    columns = ["environment", *(SHORT_NAMES[s] for statistics in shown.values() for s in statistics)]
    return Table("scores", columns, rows, [(agent, len(statistics)) for agent, statistics in shown.items()])


def tabulate_aggregates(found: Aggregates) -> Table:
    """Lists each agent's aggregates with their intervals. The best value of each measure is bold."""
    by_agent = {(entry.agent, entry.statistic): entry for entry in found.entries}
    rows = []
    for agent in found.agents:
        row = [Cell(agent, agent)]
        for s in found.statistics:
            for measure in Measure:
                values = [entry.measures[measure].value for entry in found.entries if entry.statistic is s]
                best = min(values) if measure.lower_is_better else max(values)
                entry = by_agent.get((agent, s))
                row.append(_format_estimate(entry.measures[measure], best) if entry else EMPTY)
        rows.append(row)
    columns = ["agent", *(measure.value for _ in found.statistics for measure in Measure)]
    return Table("aggregates", columns, rows, [(s.value, len(Measure)) for s in found.statistics])


def tabulate_probabilities(comparisons: list[Comparison]) -> Table:
    """Lists the probability of improvement of each challenger over its baseline."""
    rows = [
        [
            Cell(comparison.title, comparison.challenger),
            Cell(SHORT_NAMES[comparison.statistic], SHORT_NAMES[comparison.statistic]),
            _format_estimate(comparison.win_probability),
            Cell(comparison.tally, float(comparison.num_better)),
        ]
        for comparison in comparisons
    ]
    csv_rows = [
        [
            Cell(comparison.challenger),
            Cell(comparison.baseline),
            Cell(comparison.statistic.value),
            *_list_interval(comparison.win_probability),
            *(Cell(str(n)) for n in (comparison.num_better, comparison.num_ties, len(comparison.changes))),
        ]
        for comparison in comparisons
    ]
    name = "probability-of-improvement"
    columns = ["agents", "statistic", "probability", "better in"]
    csv_columns = ["agent", "baseline", "statistic", "probability", "low", "high", "better", "ties", "environments"]
    return Table(name, columns, rows, csv_table=Table(name, csv_columns, csv_rows))


def tabulate_discounts(groups: list[DiscountGroup]) -> Table:
    """Lists two discounts at a few times: the discount that agents act by, and the wanted discount."""
    rows = []
    for agents, environments, acting, wanted in groups:
        named = ", ".join(agents) + (f" in {', '.join(environments)}" if environments else "")
        row = [Cell(named, named), Cell(wanted.name if wanted else "–", wanted.name if wanted else "")]
        for t in SHOWN_TIMES:
            row += [_format_discount(acting, t), _format_discount(wanted, t) if wanted else EMPTY]
        rows.append(row)
    columns = ["agents", "wanted", *(name for _ in SHOWN_TIMES for name in ("agent", "wanted"))]
    return Table("discounts", columns, rows, [("", 1), *((f"t = {t}", 2) for t in SHOWN_TIMES)])


def list_seed_scores(scores: Scores) -> Table:
    """Lists every number that the statistics are computed from."""
    rows = []
    for statistic, by_agent in scores.by_seed.items():
        for (agent, environment), seeds in by_agent.items():
            human = scores.normalise(statistic, agent, [environment])[0] if has_human_score(environment) else None
            for s, score in enumerate(seeds):
                normalised = EMPTY if human is None else Cell("", float(human[s]))
                cells = (Cell(environment), Cell(agent), Cell(statistic.value), Cell(str(s)))
                rows.append([*cells, Cell("", float(score)), normalised])
    columns = ["environment", "agent", "statistic", "seed", "score", "human_normalised"]
    return Table("scores-by-seed", columns, rows)


def list_changes(comparisons: list[Comparison]) -> Table:
    """Lists the improvement of every challenger over its baseline in every environment."""
    rows = [
        [
            Cell(change.environment),
            Cell(comparison.challenger),
            Cell(comparison.baseline),
            Cell(comparison.statistic.value),
            Cell("", change.challenger),
            Cell("", change.baseline),
            EMPTY if change.percent is None or not math.isfinite(change.percent) else Cell("", change.percent),
        ]
        for comparison in comparisons
        for change in comparison.changes
    ]
    columns = ["environment", "agent", "baseline", "statistic", "score", "baseline_score", "improvement_percent"]
    return Table("improvements", columns, rows)


def list_aggregates(found: Aggregates) -> Table:
    """Lists every aggregate and its interval."""
    rows = [
        [
            Cell(entry.agent),
            Cell(entry.statistic.value),
            Cell(measure.value),
            *_list_interval(estimate),
            Cell(str(len(found.environments[entry.statistic]))),
        ]
        for entry in found.entries
        for measure, estimate in entry.measures.items()
    ]
    return Table("aggregate-intervals", ["agent", "statistic", "measure", "value", "low", "high", "games"], rows)


def list_curves(runs: list[RunHistory], dopamine: DopamineCurves | None) -> Table:
    """Lists every point of the learning curves."""
    drawn = {}
    for key in dict.fromkeys((run.label, run.environment) for run in runs):
        drawn[key] = merge_seeds([run for run in runs if (run.label, run.environment) == key])
    games = {parse_game(run.environment) for run in runs}
    if dopamine:
        for (baseline, game), curves in dopamine.curves.items():
            if game in games:
                drawn[baseline.label, f"atari/{game}"] = (dopamine.frames(curves), curves)
    rows = []
    for (agent, environment), (frames, scores) in drawn.items():
        for t in np.flatnonzero(np.isfinite(scores).any(axis=0)):
            seen = scores[np.isfinite(scores[:, t]), t]
            summary = (float(seen.mean()), float(seen.min()), float(seen.max()))
            is_atari = bool(parse_game(environment))
            steps = frames[t] / FRAMES_PER_STEP if is_atari else frames[t]
            played = [Cell(f"{steps:.0f}"), Cell(f"{frames[t]:.0f}") if is_atari else EMPTY]
            cells = [Cell(environment), Cell(agent), *played, *(Cell("", x) for x in summary)]
            rows.append([*cells, Cell(str(len(seen)))])
    columns = ["environment", "agent", "steps", "frames", "mean", "lowest", "highest", "seeds"]
    return Table("learning-curves", columns, rows)


def _format_count(count: int) -> Cell:
    return Cell(f"{count:,}", float(count))


def _format_estimate(estimate: IntervalEstimate, best: float | None = None) -> Cell:
    text = format_number(estimate.value, places=2).text
    if estimate.low is not None and estimate.high is not None:
        low, high = (format_number(end, places=2).text for end in (estimate.low, estimate.high))
        text += f" ({low} to {high})"
    return Cell(text, estimate.value, estimate.value == best)


def _format_discount(discount: DiscountCurve, t: float) -> Cell:
    return format_number(discount.values[discount.times.index(t)], places=3) if t in discount.times else EMPTY


def _list_interval(estimate: IntervalEstimate) -> list[Cell]:
    return [EMPTY if x is None else Cell("", x) for x in (estimate.value, estimate.low, estimate.high)]
