"""Reads run folders, without importing JAX."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from multihorizon.envs.atari import FRAMES_PER_STEP
from multihorizon.errors import InputError, short_text
from multihorizon.files import read_json
from multihorizon.reports.escaping import replace_controls, show_controls
from multihorizon.reports.names import show_names
from multihorizon.reports.protocol import check_protocols, check_seeds, check_settings, make_labels
from multihorizon.runs.folder import CONFIGURATION, EXPERIMENT, METRICS, inside, is_finished
from multihorizon.runs.metrics import Line, Warn, read_metrics

LONGEST_ABOUT = 10_000  # characters
MOST_SEEDS = 10_000
LATEST, LARGEST = 1e9, 1e35  # a plot of a discount accepts times up to LATEST and absolute values up to LARGEST


@dataclass(frozen=True)
class DiscountCurve:
    """A discount's values at some times."""

    name: str
    times: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class RunHistory:
    """The scores of one agent in one environment, iteration by iteration.

    A score is the evaluation return or, if there is none, the training return. A score is NaN if no episode ended.
    """

    label: str  # the label of the agent
    environment: str
    folder: str
    frames: Float[np.ndarray, " T"]  # number of frames played by the end of each iteration
    scores: Float[np.ndarray, "S T"]
    iterations: int = 0  # number of planned iterations
    finished: bool = False
    acting_discount: DiscountCurve | None = None
    wanted_discount: DiscountCurve | None = None
    configuration: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def has_scores(self) -> bool:
        return bool(np.isfinite(self.scores).any())


class DiscountGroup(NamedTuple):
    """Agents that act by the same discount and were configured for the same discount."""

    agents: list[str]
    environments: list[str]  # listed only if an agent is in several groups
    acting: DiscountCurve  # the discount that the agents act by
    wanted: DiscountCurve | None  # the discount that the agents were configured for


@dataclass(frozen=True)
class RunCollection:
    """The runs of one report, and the pairs (baseline, challenger) of agents to compare."""

    name: str
    title: str
    about: str
    runs: list[RunHistory]
    pairs: list[tuple[str, str]]
    panels: list[tuple[str, str]]  # pairs that share one figure

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(run.label for run in self.runs))

    def group_by_discount(self) -> list[DiscountGroup]:
        """Groups agents by two discounts: the discount that they act by, and the wanted discount."""
        groups: dict[tuple[DiscountCurve, DiscountCurve | None], list[RunHistory]] = {}
        for run in self.runs:
            if run.acting_discount:
                groups.setdefault((run.acting_discount, run.wanted_discount), []).append(run)
        memberships = [label for runs in groups.values() for label in {run.label for run in runs}]
        found = []
        for (acting, wanted), runs in groups.items():
            agents = list(dict.fromkeys(run.label for run in runs))
            ambiguous = any(memberships.count(agent) > 1 for agent in agents)
            environments = list(dict.fromkeys(run.environment for run in runs)) if ambiguous else []
            found.append(DiscountGroup(agents, environments, acting, wanted))
        return found


def read_runs(folder: Path, warn: Warn) -> RunCollection:
    """Reads the runs of a sweep, or of any folder that contains runs at any depth.

    `warn` receives messages about damaged lines and missing iterations.
    """
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give a folder with runs of multihorizon sweep or train")
    read = _read_sweep if (folder / EXPERIMENT).is_file() else _read_loose_runs
    collection = _show_names(read(folder, lambda message: warn(show_controls(message))))
    if not any(run.has_scores for run in collection.runs):
        raise InputError(f"no run in {folder} has scores yet; try again after an iteration in which an episode ends")
    configured = {run.folder: (run.environment, run.configuration) for run in collection.runs}
    check_protocols(configured)
    check_seeds(configured, {run.folder: run.label for run in collection.runs})
    return collection


def parse_game(environment: str) -> str:
    """Returns the name of the Atari game, or "" for other environments."""
    family, _, game = environment.partition("/")
    return game if family == "atari" else ""


def choose_time_unit(environment: str) -> str:
    """Returns "frames" for Atari and "steps" for other environments."""
    return "frames" if parse_game(environment) else "steps"


def pair_by_name(labels: list[str]) -> list[tuple[str, str]]:
    """Pairs each label X with the labels multi-X and hyper-X, if they exist."""
    return [(a, f"{kind}-{a}") for kind in ("multi", "hyper") for a in labels if f"{kind}-{a}" in labels]


def merge_seeds(runs: list[RunHistory]) -> tuple[Float[np.ndarray, " T"], Float[np.ndarray, "S T"]]:
    """Merges runs of one agent in one environment, and returns the frames and scores of all iterations.

    If a run does not have an iteration, the score is NaN.
    """
    frames = np.unique(np.concatenate([run.frames for run in runs]))
    together = np.full((sum(len(run.scores) for run in runs), len(frames)), np.nan)
    seed = 0
    for run in runs:
        together[seed : seed + len(run.scores), np.searchsorted(frames, run.frames)] = run.scores
        seed += len(run.scores)
    return frames, together


def _read_sweep(folder: Path, warn: Warn) -> RunCollection:
    path = folder / EXPERIMENT
    content = read_json(path)
    try:
        runs = [
            replace(
                _read_run(folder, place, warn, _name(run["environment"]), _count(run, "seeds", 1, MOST_SEEDS)),
                label=_name(run["label"]),
                wanted_discount=_parse_wanted_discount(run.get("wanted")),
            )
            for run, place in zip(content["runs"], _find_places(folder, content["runs"]), strict=True)
        ]
        pairs, panels = ([(_name(a), _name(b)) for a, b in content[name]] for name in ("pairs", "panels"))
        name, title = (replace_controls(_name(content[key])) for key in ("name", "title"))
        about = replace_controls(short_text("about", content["about"], LONGEST_ABOUT))
        return RunCollection(name, title, about, runs, pairs, panels)
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            f"{path} does not describe a sweep: {_describe(problem)}; recreate it with multihorizon sweep"
        ) from None


def _find_places(folder: Path, runs: Any) -> list[Path]:
    """Returns the folder of each run. Rejects a folder that is listed twice, because its seeds would count twice."""
    places: dict[Path, Path] = {}
    for run in runs:
        place = inside(folder, run["folder"])
        if place.resolve() in places:
            raise ValueError(f"it lists the folder {run['folder']} twice")
        places[place.resolve()] = place
    return list(places.values())


def _show_names(collection: RunCollection) -> RunCollection:
    """Replaces the names of agents and environments by the names that reports show."""
    named = [label for pair in collection.pairs + collection.panels for label in pair]
    labels = show_names([*collection.labels, *named])
    environments = show_names(run.environment for run in collection.runs)
    return replace(
        collection,
        runs=[replace(r, label=labels[r.label], environment=environments[r.environment]) for r in collection.runs],
        pairs=[(labels[a], labels[b]) for a, b in collection.pairs],
        panels=[(labels[a], labels[b]) for a, b in collection.panels],
    )


def _read_loose_runs(folder: Path, warn: Warn) -> RunCollection:
    found = sorted(
        path.parent for path in folder.rglob(CONFIGURATION) if path.is_file() and (path.parent / METRICS).is_file()
    )
    if not found:
        raise InputError(
            f"{folder} contains no runs; give a folder with runs of multihorizon train, which have {CONFIGURATION} and "
            f"{METRICS}"
        )
    runs = [_read_run(folder, place, warn) for place in found]
    labels = make_labels({run.folder: (run.environment, run.configuration) for run in runs})
    runs = [replace(run, label=labels[run.folder]) for run in runs]
    name = replace_controls(folder.resolve().name)
    order = sorted({run.label for run in runs})
    return RunCollection(name, name, "", sorted(runs, key=lambda run: run.label), pair_by_name(order), [])


def _read_run(root: Path, place: Path, warn: Warn, environment: str = "", num_seeds: int = 1) -> RunHistory:
    """Reads one run. If its folder does not exist yet, `environment` and `num_seeds` describe the planned run."""
    shown = str(place.relative_to(root)) if place != root else place.resolve().name
    if not (place / CONFIGURATION).is_file():
        return RunHistory("", environment, shown, np.empty(0), np.empty((num_seeds, 0)))
    configuration = read_json(place / CONFIGURATION)
    try:
        name, environment = _name(configuration["agent"]["name"]), _name(configuration["environment"])
        num_seeds, iterations = (
            _count(configuration, "seeds", 1, MOST_SEEDS),
            _count(configuration["schedule"], "iterations", 1),
        )
        _count({"seed": 0} | configuration, "seed", 0)
        check_settings(configuration)
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(f"{place / CONFIGURATION} is not the configuration of a run: {_describe(problem)}") from None
    lines = read_metrics(place, warn, num_seeds, iterations if is_finished(place) else 0)
    frames_per_step = FRAMES_PER_STEP if parse_game(environment) else 1
    return RunHistory(
        label=name,
        environment=environment,
        folder=shown,
        frames=np.array([line["step"] * frames_per_step for line in lines], float),
        scores=np.array([_parse_scores(line, num_seeds) for line in lines], float).reshape(len(lines), num_seeds).T,
        iterations=iterations,
        finished=is_finished(place) or len(lines) >= iterations,
        acting_discount=_parse_acting_discount(place, lines[-1]) if lines else None,
        configuration=configuration,
    )


def _name(value: Any) -> str:
    """Returns a name unchanged. Rejects long names, which take very long to plot."""
    return short_text("a name", value)


def _count(holder: Any, name: str, least: int, most: int = 2**31 - 1) -> int:
    value = holder[name]
    if type(value) is not int or not least <= value <= most:
        raise ValueError(f"{name} must be a whole number from {least} to {most:,}")
    return value


def _parse_scores(line: Line, num_seeds: int) -> list[float]:
    evaluated, trained = line["evaluation_returns"], line["returns"]
    by_seed = [evaluated[s] if evaluated[s] is not None else trained[s] for s in range(num_seeds)]
    return [np.nan if score is None else float(score) for score in by_seed]


def _parse_acting_discount(place: Path, line: Line) -> DiscountCurve | None:
    held = line.get("discount")
    if not held:
        return None
    try:
        return _curve("agent", ((float(t), float(value)) for t, value in held.items()))
    except ValueError as problem:
        raise InputError(
            f"{place / METRICS} has a discount that cannot be plotted: {problem}; correct the file"
        ) from None


def _parse_wanted_discount(content: Any) -> DiscountCurve | None:
    if content is None:
        return None
    times, values = (tuple(map(float, content[key])) for key in ("times", "values"))
    if not times or len(times) != len(values):
        raise ValueError("times and values must be lists of the same number of finite numbers")
    return _curve(replace_controls(_name(content["name"])), zip(times, values, strict=True))


def _curve(name: str, points: Iterable[tuple[float, float]]) -> DiscountCurve:
    ordered = sorted(points)
    if not all(0 <= t <= LATEST and abs(value) <= LARGEST for t, value in ordered):
        raise ValueError(f"times must be numbers from 0 to {LATEST:g}, and values from {-LARGEST:g} to {LARGEST:g}")
    return DiscountCurve(name, tuple(t for t, _ in ordered), tuple(value for _, value in ordered))


def _describe(problem: Exception) -> str:
    return f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
