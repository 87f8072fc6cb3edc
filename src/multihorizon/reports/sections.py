"""The sections of a report, each with text, figures and tables. `page.py` writes them to files."""

from dataclasses import dataclass, field, replace

import numpy as np

from multihorizon.reports import figures, improvement_figures, tables
from multihorizon.reports.baselines import BASE_AGENTS, FULL_LENGTH_FRAMES, Baseline, DopamineCurves, Source
from multihorizon.reports.comparison import Aggregates, Comparison, aggregate, compare, describe_ties
from multihorizon.reports.data import DiscountGroup, RunCollection
from multihorizon.reports.figure_style import LineStyles, choose_line_styles
from multihorizon.reports.names import make_file_part, number_repeats
from multihorizon.reports.plotting import Figure
from multihorizon.reports.scores import (
    DESCRIPTIONS,
    SHORT_NAMES,
    Scores,
    Statistic,
    describe_sizes,
    score_paper_table,
    score_runs,
)
from multihorizon.reports.statistics import IntervalEstimate
from multihorizon.reports.tables import Table

BOOTSTRAP = (
    "Intervals are 95% percentile bootstrap intervals over seeds, stratified by environment. If an environment has S "
    "seeds, each of 2,000 resamples draws S − 1 of them with replacement. With few seeds, the spread of the scores is "
    "uncertain. Intervals therefore end at more extreme percentiles than 2.5% and 97.5%. Student's t-distribution "
    "determines how much wider the intervals are."
)
MAX_SHARED_ENVIRONMENTS = 12  # with more environments, each comparison has its own figure
BOOTSTRAP_SEED = 0  # fixed, so that reports are reproducible


@dataclass(frozen=True)
class PageFigure:
    """A figure with its text alternative."""

    name: str  # the name of its files, without the extension
    figure: Figure
    alt: str
    # On the HTML page, these smaller figures replace this figure.
    parts: list["PageFigure"] = field(default_factory=list)


@dataclass(frozen=True)
class Section:
    """One section of a report; `name` is its anchor in the HTML page."""

    name: str
    title: str
    about: str
    figures: list[PageFigure] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    has_legend: bool = False


@dataclass(frozen=True)
class ReportContents:
    """The contents of a report."""

    title: str
    about: str
    notes: list[str]
    sections: list[Section]
    csv_tables: list[Table]  # written as CSV only
    styles: LineStyles
    scores: Scores
    comparisons: list[Comparison]
    aggregates: Aggregates


def build_report(collection: RunCollection, dopamine: DopamineCurves | None = None) -> ReportContents:
    """Builds the report of runs. Dopamine's published curves are drawn and scored beside Atari runs."""
    selected = dopamine.select(collection.labels) if dopamine else None
    scores = score_runs(collection, selected)
    baselines = list(scores.baselines)
    styles = choose_line_styles([*collection.labels, *baselines], baselines, collection.pairs)
    started = [run for run in collection.runs if run.has_scores]
    full_length = all(run.frames[-1] >= FULL_LENGTH_FRAMES for run in started)
    pairs = collection.pairs + _pair_with_dopamine(scores)
    about = f"{collection.about} {describe_sizes(collection.runs)}".strip()
    contents = _build(collection.title, about, scores, styles, pairs, collection.panels, full_length)
    table = contents.sections[-1]
    curves = _describe_curves(collection, selected, styles)
    progress = tables.tabulate_progress(collection)
    runs = Section("runs", "Runs", "The state of each agent's runs.", tables=[progress])
    discounts = _describe_discounts(collection.group_by_discount(), styles)
    return replace(
        contents,
        sections=[*contents.sections[:-1], *discounts, curves, table, runs],
        csv_tables=[*contents.csv_tables, tables.list_curves(started, selected)],
    )


def build_paper_report() -> ReportContents:
    """Builds the report of the paper's own table."""
    scores = score_paper_table()
    about = "The table in the paper's appendix: sixty games, with the mean over seeds of each seed's best iteration."
    pairs = [("Rainbow", "Multi-Rainbow")]
    styles = choose_line_styles(scores.agents, [])
    return _build("The paper's table", about, scores, styles, pairs, panels=[], full_length=True)


def _build(
    title: str,
    about: str,
    scores: Scores,
    styles: LineStyles,
    pairs: list[tuple[str, str]],
    panels: list[tuple[str, str]],
    full_length: bool,
) -> ReportContents:
    """Builds the sections that need only scores. The last section is the table of scores."""
    rng = np.random.default_rng(BOOTSTRAP_SEED)
    all_pairs = list(dict.fromkeys([*pairs, *panels]))
    compared = [found for pair in all_pairs for s in Statistic if (found := compare(scores, pair, s, rng))]
    best = {(one.baseline, one.challenger): one for one in compared if one.statistic is Statistic.BEST}
    aggregates = aggregate(scores, rng, full_length)
    sections = [
        *_describe_improvement([best[pair] for pair in pairs if pair in best and pair not in panels]),
        *_describe_ablation([best[pair] for pair in panels if pair in best]),
        *_describe_aggregates(aggregates, styles),
        *_describe_probabilities(compared),
        _describe_scores(scores, full_length),
    ]
    csv_tables = [tables.list_seed_scores(scores), tables.list_changes(compared), tables.list_aggregates(aggregates)]
    notes = [*scores.notes, *dict.fromkeys(filter(None, (aggregates.warning, describe_ties(compared))))]
    return ReportContents(title, about, notes, sections, csv_tables, styles, scores, compared, aggregates)


def _pair_with_dopamine(scores: Scores) -> list[tuple[str, str]]:
    """Pairs each agent with Dopamine's version of its base agent, such as Rainbow, if no run trains the base agent."""
    ours = [agent for agent in scores.agents if agent not in scores.baselines]
    found = []
    for base in BASE_AGENTS:
        label = Baseline(Source.DOPAMINE, base).label
        if label in scores.baselines and base.lower() not in ours:
            found += [(label, agent) for agent in ours if agent.split("-")[-1] == base.lower()]
    return found


def _describe_curves(collection: RunCollection, dopamine: DopamineCurves | None, styles: LineStyles) -> Section:
    environments = list(dict.fromkeys(run.environment for run in collection.runs if run.has_scores))
    parts = [
        PageFigure(
            f"curve-{number}",
            figures.draw_curve(environment, collection.runs, dopamine, styles),
            f"Learning curves in {environment}",
        )
        for number, environment in enumerate(environments)
    ]
    figure = figures.draw_curves(collection.runs, dopamine, styles)
    about = (
        "Each line is the mean over seeds, and its band reaches from the lowest seed to the highest. A seed's score is "
        "its evaluation return, or its training return if there was no evaluation."
    )
    drawn = [PageFigure("curves", figure, "Learning curves in every environment", parts)]
    return Section("learning", "Learning curves", about, drawn, has_legend=True)


def _describe_improvement(comparisons: list[Comparison]) -> list[Section]:
    if not comparisons:
        return []
    about = (
        "The change in score, in percent of the absolute value of the baseline's score. A score is the "
        f"{DESCRIPTIONS[Statistic.BEST]}. {_describe_wins(comparisons)}"
    )
    widest = max(len(one.changes) for one in comparisons)
    if len(comparisons) > 1 and widest <= MAX_SHARED_ENVIRONMENTS:
        draw = (
            improvement_figures.draw_improvement_by_pair if widest == 1 else improvement_figures.draw_improvement_panels
        )
        drawn = [PageFigure("improvement", draw(comparisons), f"Improvement. {_describe_wins(comparisons)}")]
    else:
        names = [f"improvement-{make_file_part(c.challenger)}-over-{make_file_part(c.baseline)}" for c in comparisons]
        drawn = [
            PageFigure(
                name,
                improvement_figures.draw_improvement(one),
                f"Improvement of {one.title}. {_describe_wins([one])}",
            )
            for name, one in zip(number_repeats(names, "{}-{}"), comparisons, strict=True)
        ]
    return [Section("improvement", "Improvement in each environment", about, drawn)]


def _describe_ablation(comparisons: list[Comparison]) -> list[Section]:
    if not comparisons:
        return []
    about = _describe_wins(comparisons)
    figure = improvement_figures.draw_improvement_panels(comparisons)
    drawn = [PageFigure("ablation", figure, f"Ablation. {about}")]
    return [Section("parts", "Ablation", about, drawn)]


def _describe_wins(comparisons: list[Comparison]) -> str:
    """States in how many environments each challenger is better than its baseline, and in how many it is equal."""
    sentences = []
    for one in comparisons:
        count = len(one.changes)
        equal = f" and equal in {one.num_ties}" if one.num_ties else ""
        where = f"{one.num_better} of {count} environment{'' if count == 1 else 's'}"
        sentences.append(f"{one.challenger} is better than {one.baseline} in {where}{equal}.")
    return " ".join(sentences)


def _describe_scores(scores: Scores, full_length: bool) -> Section:
    kept = [statistic for statistic in Statistic if scores.by_seed[statistic]]
    meanings = [f"{SHORT_NAMES[s].capitalize()}: {DESCRIPTIONS[s]}." for s in kept]
    about = " ".join([*meanings, "The best score of each kind is bold."])
    return Section("scores", "Scores", about, tables=[tables.tabulate_scores(scores, full_length)])


def _describe_aggregates(found: Aggregates, styles: LineStyles) -> list[Section]:
    title = "Human-normalised aggregates"
    excluded = f" Excluded for lack of a human score: {', '.join(found.excluded)}." if found.excluded else ""
    if not found.entries:
        said = f"There are no aggregates: no game with a human score was played by all agents.{excluded}"
        return [Section("aggregate", title, said)]
    games = sorted({len(played) for played in found.environments.values() if played})
    estimates = [estimate for entry in found.entries for estimate in entry.measures.values()]
    warning = f" {found.warning}" if found.warning else ""
    varies = ", depending on the statistic" if len(games) > 1 else ""
    about = (
        f"The aggregates cover {' or '.join(map(str, games))} game{'' if games == [1] else 's'} that all agents have "
        f"played{varies}. A random player scores 0, and a human scores 1. IQM is the mean of the middle half of all "
        "runs. The optimality gap is the mean shortfall from the human score."
        f"{excluded}{_describe_intervals(estimates)}{warning}"
    )
    profile = "The share of runs that score above each threshold; higher is better."
    if any(entry.profile_low is not None for entry in found.entries):
        profile += f" Bands are pointwise 95% intervals.{warning}"
    alt = f"Median, IQM, mean and optimality gap of each agent.{warning}"
    aggregates = PageFigure("aggregates", figures.draw_aggregates(found, styles), alt)
    alt = f"Share of runs above each human-normalised score.{warning}"
    profiles = PageFigure("profiles", figures.draw_profiles(found, styles), alt)
    return [
        Section("aggregate", title, about, [aggregates], [tables.tabulate_aggregates(found)]),
        Section("profile", "Performance profiles", profile, [profiles]),
    ]


def _describe_probabilities(comparisons: list[Comparison]) -> list[Section]:
    if not comparisons:
        return []
    ties = describe_ties(comparisons)
    warning = f" {ties}" if ties else ""
    about = (
        "The probability that a run of the first agent beats a run of the second in a random environment. A tie "
        f"counts as half a win.{_describe_intervals([one.win_probability for one in comparisons])}{warning}"
    )
    if any(one.win_probability.low is None for one in comparisons):
        about += (
            " There is no interval if an environment has a single seed, or if all resamples give the same probability."
        )
    figure = figures.draw_probabilities(comparisons)
    drawn = [PageFigure("probability-of-improvement", figure, f"Probability of improvement.{warning}")]
    table = tables.tabulate_probabilities(comparisons)
    return [Section("probability", "Probability of improvement", about, drawn, [table])]


def _describe_discounts(groups: list[DiscountGroup], styles: LineStyles) -> list[Section]:
    if not groups:
        return []
    about = (
        "Agent: the weight that the agent gives to a reward t steps ahead, computed from its horizons. "
        "Wanted: the discount that the agent was configured to approximate."
    )
    drawn = [PageFigure("discounts", figures.draw_discounts(groups, styles), "The discount that each agent acts by")]
    return [Section("discount", "The discount that agents act by", about, drawn, [tables.tabulate_discounts(groups)])]


def _describe_intervals(estimates: list[IntervalEstimate]) -> str:
    return f" {BOOTSTRAP}" if any(estimate.low is not None for estimate in estimates) else ""
