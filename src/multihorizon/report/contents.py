"""What a report says: its sections, each with words, figures and tables. How it is written down is another matter."""

from dataclasses import dataclass, field, replace

import numpy as np
from matplotlib.figure import Figure

from multihorizon.report import bars, curves, intervals, listings
from multihorizon.report.baselines import AGENTS, WHOLE_FRAMES, DopamineCurves, dopamine_name
from multihorizon.report.comparison import Aggregates, Pair, aggregate, compare
from multihorizon.report.looks import Looks, looks
from multihorizon.report.notes import sizes
from multihorizon.report.runs import Described
from multihorizon.report.scores import ABOUT, Scores, Statistic, paper_scores, score
from multihorizon.report.statistics import Estimate
from multihorizon.report.tables import Table

BOOTSTRAP = (
    "Intervals are 95% percentile bootstraps over seeds, stratified by environment: each environment's S seeds are "
    "drawn anew, S − 1 at a time, 2,000 times, and the percentiles lie further out the fewer seeds there are."
)
FEW_ENVIRONMENTS = 12  # that pairs can share a figure with
SEED = 0  # of the bootstrap, so that a report made twice is the same


@dataclass(frozen=True)
class Drawn:
    """A figure and the words for those who cannot see it. `parts` are the same in small pieces, for narrow pages."""

    name: str
    figure: Figure
    alt: str
    parts: list["Drawn"] = field(default_factory=list)


@dataclass(frozen=True)
class Section:
    name: str
    title: str
    about: str
    figures: list[Drawn] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    has_legend: bool = False


@dataclass(frozen=True)
class Report:
    title: str
    about: str
    notes: list[str]
    sections: list[Section]
    data: list[Table]  # for machines alone
    looks: Looks
    scores: Scores
    pairs: list[Pair]
    aggregates: Aggregates


def report(experiment: Described, dopamine: DopamineCurves | None = None) -> Report:
    beside = dopamine.beside(experiment.labels) if dopamine else None
    scores = score(experiment, beside)
    look = looks([*experiment.labels, *scores.baselines], scores.baselines, experiment.pairs)
    begun = [run for run in experiment.runs if run.begun]
    whole = all(run.frames[-1] >= WHOLE_FRAMES for run in begun)
    pairs = experiment.pairs + _over_dopamine(scores)
    drawn = [*_discounts(experiment, look), _curves(experiment, beside, look)]
    runs = Section("runs", "Runs", "How far each agent has come.", tables=[listings.progress(experiment)])
    about = f"{experiment.about} {sizes(experiment.runs)}".strip()
    made = _report(experiment.title, about, scores, look, pairs, experiment.panels, drawn, whole)
    return replace(made, sections=[*made.sections, runs], data=[*made.data, listings.curves(begun, beside)])


def paper_report() -> Report:
    """The paper's own table, put through what runs are put through."""
    scores = paper_scores()
    about = "The table of the paper's appendix: sixty games, mean over seeds of each seed's best iteration."
    pairs = [("Rainbow", "Multi-Rainbow")]
    look = looks(scores.agents, [])
    return _report("The paper's table", about, scores, look, pairs, [], [], whole=True)


def _report(
    title: str,
    about: str,
    scores: Scores,
    look: Looks,
    pairs: list[tuple[str, str]],
    panels: list[tuple[str, str]],
    drawn: list[Section],
    whole: bool,
) -> Report:
    rng = np.random.default_rng(SEED)
    both = list(dict.fromkeys([*pairs, *panels]))
    compared = [found for pair in both for s in Statistic if (found := compare(scores, pair, s, rng))]
    best = {(pair.baseline, pair.challenger): pair for pair in compared if pair.statistic is Statistic.BEST}
    aggregates = aggregate(scores, rng, whole)
    sections = [
        *_improvement([best[pair] for pair in pairs if pair in best and pair not in panels]),
        *_ablation([best[pair] for pair in panels if pair in best]),
        *_aggregates(aggregates, look),
        *_probabilities(compared),
        *drawn,
        _table(scores, whole),
    ]
    data = [listings.by_seed(scores), listings.changes(compared), listings.estimates(aggregates)]
    return Report(title, about, scores.notes, sections, data, look, scores, compared, aggregates)


def _over_dopamine(scores: Scores) -> list[tuple[str, str]]:
    """Where the agent that one is built on is not among ours, Dopamine's stands in."""
    ours = [agent for agent in scores.agents if agent not in scores.baselines]
    return [
        (dopamine_name(base), agent)
        for base in AGENTS
        for agent in ours
        if agent.split("-")[-1] == base.lower() and base.lower() not in ours and dopamine_name(base) in scores.baselines
    ]


def _curves(experiment: Described, dopamine: DopamineCurves | None, look: Looks) -> Section:
    environments = list(dict.fromkeys(run.environment for run in experiment.runs if run.begun))
    parts = [
        Drawn(
            f"curve-{number}",
            curves.one_curve(environment, experiment.runs, dopamine, look),
            f"Learning curves in {environment}",
        )
        for number, environment in enumerate(environments)
    ]
    whole = curves.all_curves(experiment.runs, dopamine, look)
    about = (
        "Each line is the mean over seeds, and its band reaches from the lowest seed to the highest. A seed's score is "
        "its return in evaluation where there was one, else in training."
    )
    drawn = [Drawn("curves", whole, "Learning curves in every environment", parts)]
    return Section("learning", "Learning curves", about, drawn, has_legend=True)


def _improvement(pairs: list[Pair]) -> list[Section]:
    if not pairs:
        return []
    said = " ".join(f"{p.challenger} is above {p.baseline} in {p.counted}." for p in pairs)
    about = f"In per cent of the size of the baseline's score; of the {ABOUT[Statistic.BEST]}. {said}"
    widest = max(len(pair.changes) for pair in pairs)
    if len(pairs) > 1 and widest <= FEW_ENVIRONMENTS:
        figure = bars.by_pair(pairs) if widest == 1 else bars.panels(pairs)
        drawn = [Drawn("improvement", figure, f"Improvement. {said}")]
    else:
        drawn = [
            Drawn(
                f"improvement-{_slug(pair.challenger)}-over-{_slug(pair.baseline)}",
                bars.improvement(pair),
                f"Improvement of {pair.challenger} over {pair.baseline}, better in {pair.counted} environments",
            )
            for pair in pairs
        ]
    return [Section("improvement", "Improvement in each environment", about, drawn)]


def _ablation(pairs: list[Pair]) -> list[Section]:
    if not pairs:
        return []
    said = "; ".join(f"{pair.challenger} over {pair.baseline} in {pair.counted}" for pair in pairs)
    drawn = [Drawn("ablation", bars.panels(pairs), f"Improvement by each challenger of the ablation: {said}")]
    return [Section("parts", "Ablation", f"What many horizons add to each agent. Better: {said}.", drawn)]


def _table(scores: Scores, whole: bool) -> Section:
    kept = [statistic for statistic in Statistic if scores.by_seed[statistic]]
    about = " ".join([*(f"{listings.SHORT[s].capitalize()}: {ABOUT[s]}." for s in kept), "The best of each is bold."])
    return Section("scores", "Scores", about, tables=[listings.scores(scores, whole)])


def _aggregates(found: Aggregates, look: Looks) -> list[Section]:
    title = "Human-normalised aggregates"
    left_out = f" Left out for want of a human score: {', '.join(found.left_out)}." if found.left_out else ""
    if not found.of:
        said = f"No environment that all agents have played has a human score, so there are none.{left_out}"
        return [Section("aggregate", title, said)]
    games = sorted({len(played) for played in found.environments.values() if played})
    about = (
        f"Over {' or '.join(map(str, games))} games that all agents have played; 0 is a random player's score and 1 a "
        "human's. IQM is the mean of the middle half of all runs, the optimality gap how far runs fall short of a "
        f"human.{left_out}{_bootstrap([e for one in found.of for e in one.measures.values()])}"
    )
    bands = any(one.profile_low is not None for one in found.of)
    profile = "The share of runs that score above each threshold; higher is better."
    profile += " Bands are 95% intervals, point by point." if bands else ""
    return [
        Section(
            "aggregate",
            title,
            about,
            [
                Drawn(
                    "aggregates",
                    intervals.aggregates(found, look),
                    "Median, IQM, mean and optimality gap of each agent",
                )
            ],
            [listings.aggregates(found)],
        ),
        Section(
            "profile",
            "Performance profiles",
            profile,
            [Drawn("profiles", intervals.profiles(found, look), "Share of runs above each human-normalised score")],
        ),
    ]


def _probabilities(pairs: list[Pair]) -> list[Section]:
    if not pairs:
        return []
    about = (
        "The chance that a run of the one agent earns more than a run of the other in an environment drawn at random; "
        f"a tie counts half.{_bootstrap([pair.wins for pair in pairs])}"
    )
    if any(pair.wins.low is None for pair in pairs):
        about += " There is no interval where an environment has a single seed, or where all seeds of one agent win."
    drawn = [Drawn("probability-of-improvement", intervals.probabilities(pairs), "Probability of improvement")]
    return [Section("probability", "Probability of improvement", about, drawn, [listings.probabilities(pairs)])]


def _discounts(experiment: Described, look: Looks) -> list[Section]:
    groups = experiment.acting()
    if not groups:
        return []
    about = (
        "What a reward t steps away is worth to the agent as it really acts, from its heads and their weights; beside "
        "it, the discount that it was asked for, where one was."
    )
    drawn = [Drawn("discounts", intervals.discounts(groups, look), "The discount each agent acted by")]
    return [Section("discount", "The discount acted by", about, drawn, [listings.discounts(groups)])]


def _bootstrap(estimates: list[Estimate]) -> str:
    """How intervals came about, where there are any."""
    return f" {BOOTSTRAP}" if any(estimate.low is not None for estimate in estimates) else ""


def _slug(name: str) -> str:
    return "".join(c if c.isalnum() or c in "-." else "-" for c in name).strip("-").lower()
