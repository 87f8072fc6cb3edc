"""Run folders as they lie on disk, finished or not, read into values. Nothing of JAX is needed to read them."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from multihorizon.envs.atari import FRAMES_PER_STEP
from multihorizon.errors import InputError
from multihorizon.report.protocol import check_protocols, check_seeds, unique_labels

Warn = Callable[[str], None]
EXPERIMENT, CONFIGURATION, METRICS, WEIGHTS = "experiment.json", "config.json", "metrics.jsonl", "weights.npz"


@dataclass(frozen=True)
class Discounted:
    """A discount at some times."""

    name: str
    times: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True)
class Recorded:
    """One agent in one environment. A seed's score in an iteration is its evaluation's return where there was one,
    else that of training; NaN where no episode ended."""

    label: str
    environment: str
    folder: str
    frames: Float[np.ndarray, " T"]  # played by the end of each iteration
    scores: Float[np.ndarray, "S T"]
    iterations: int = 0  # that it will have when it is done
    finished: bool = False
    acted_by: Discounted | None = None
    wanted: Discounted | None = None
    configuration: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def begun(self) -> bool:
        return bool(np.isfinite(self.scores).any())


class Acting(NamedTuple):
    """A discount that agents acted by, and the one that they were asked for."""

    agents: list[str]
    environments: list[str]  # where they did, if elsewhere one of them acted by another
    acted_by: Discounted
    wanted: Discounted | None


@dataclass(frozen=True)
class Described:
    """Runs, and which of them are to be compared: (baseline, challenger)."""

    name: str
    title: str
    about: str
    runs: list[Recorded]
    pairs: list[tuple[str, str]]
    panels: list[tuple[str, str]]

    @property
    def labels(self) -> list[str]:
        return list(dict.fromkeys(run.label for run in self.runs))

    def acting(self) -> list[Acting]:
        """Agents with the same discount, and the same wish, together."""
        groups: dict[tuple[Discounted, Discounted | None], list[Recorded]] = {}
        for run in self.runs:
            if run.acted_by:
                groups.setdefault((run.acted_by, run.wanted), []).append(run)
        groupings = [label for runs in groups.values() for label in {run.label for run in runs}]
        found = []
        for (acted_by, wanted), runs in groups.items():
            agents = list(dict.fromkeys(run.label for run in runs))
            several = any(groupings.count(agent) > 1 for agent in agents)
            environments = list(dict.fromkeys(run.environment for run in runs)) if several else []
            found.append(Acting(agents, environments, acted_by, wanted))
        return found


def read_experiment(folder: Path, warn: Warn) -> Described:
    """A sweep with its experiment.json, or any folder that holds runs at whatever depth."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give one that holds runs of multihorizon sweep or train")
    read = _sweep if (folder / EXPERIMENT).is_file() else _loose
    experiment = read(folder, warn)
    if not any(run.begun for run in experiment.runs):
        raise InputError(f"no run in {folder} has finished an iteration with an episode yet; report it again later")
    configured = {run.folder: (run.environment, run.configuration) for run in experiment.runs}
    check_protocols(configured)
    check_seeds(configured, {run.folder: run.label for run in experiment.runs})
    return experiment


def game_of(environment: str) -> str:
    """The Atari game's name, or nothing."""
    family, _, game = environment.partition("/")
    return game if family == "atari" else ""


def unit(environment: str) -> str:
    return "frames" if game_of(environment) else "steps"


def natural_pairs(labels: list[str]) -> list[tuple[str, str]]:
    """What is built on an agent, over it."""
    return [(a, f"{kind}-{a}") for kind in ("multi", "hyper") for a in labels if f"{kind}-{a}" in labels]


def _sweep(folder: Path, warn: Warn) -> Described:
    path = folder / EXPERIMENT
    content = _json(path)
    try:
        runs = [
            replace(
                _run(folder, folder / run["folder"], warn, environment=run["environment"], seeds=int(run["seeds"])),
                label=str(run["label"]),
                wanted=_discounted(run.get("wanted")),
            )
            for run in content["runs"]
        ]
        pairs, panels = ([(str(a), str(b)) for a, b in content[name]] for name in ("pairs", "panels"))
        return Described(content["name"], content["title"], content["about"], runs, pairs, panels)
    except (KeyError, TypeError, ValueError, AttributeError) as problem:
        if isinstance(problem, InputError):
            raise
        raise InputError(
            f"{path} does not describe a sweep: {_said(problem)}; make one by multihorizon sweep"
        ) from None


def _loose(folder: Path, warn: Warn) -> Described:
    found = sorted(path.parent for path in folder.rglob(CONFIGURATION) if (path.parent / METRICS).is_file())
    if not found:
        raise InputError(
            f"{folder} holds no runs: a run is a folder with {CONFIGURATION} and {METRICS}, as multihorizon train makes"
        )
    runs = [_run(folder, place, warn) for place in found]
    labels = unique_labels({run.folder: (run.environment, run.configuration) for run in runs})
    runs = [replace(run, label=labels[run.folder]) for run in runs]
    name = folder.resolve().name
    order = sorted(set(labels.values()))
    return Described(name, name, "", sorted(runs, key=lambda run: run.label), natural_pairs(order), [])


def _run(root: Path, place: Path, warn: Warn, environment: str = "", seeds: int = 1) -> Recorded:
    """One folder; it may not be there yet, where `environment` and `seeds` say what will be."""
    shown = str(place.relative_to(root)) if place != root else place.resolve().name
    none = np.empty((seeds, 0))
    if not (place / CONFIGURATION).is_file():
        return Recorded("", environment, shown, np.empty(0), none)
    configuration = _json(place / CONFIGURATION)
    try:
        name, environment = str(configuration["agent"]["name"]), str(configuration["environment"])
        seeds, iterations = int(configuration["seeds"]), int(configuration["schedule"]["iterations"])
    except (KeyError, TypeError, ValueError) as problem:
        raise InputError(f"{place / CONFIGURATION} is not the configuration of a run: {_said(problem)}") from None
    lines = _lines(place / METRICS, seeds, warn)
    frames_per_step = FRAMES_PER_STEP if game_of(environment) else 1
    return Recorded(
        label=name,
        environment=environment,
        folder=shown,
        frames=np.array([line["step"] * frames_per_step for line in lines], float),
        scores=np.array([_scores(line, seeds) for line in lines], float).reshape(len(lines), seeds).T,
        iterations=iterations,
        finished=(place / WEIGHTS).is_file() or len(lines) >= iterations,
        acted_by=_acted_by(lines[-1]) if lines else None,
        configuration=configuration,
    )


def _json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as problem:
        raise InputError(f"{path} cannot be read: {problem}") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} cannot be read: it must hold a JSON object")
    return content


def _lines(path: Path, seeds: int, warn: Warn) -> list[dict[str, Any]]:
    """The lines that are whole. Training that was stopped and went on may have written one twice: the later holds."""
    whole: dict[int, dict[str, Any]] = {}
    broken = []
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    for number, written in enumerate(text.splitlines(), start=1):
        try:
            line = json.loads(written)
            _scores(line, seeds)
            _acted_by(line)
            whole[int(line["iteration"])] = line | {"step": int(line["step"])}
        except (ValueError, KeyError, TypeError, IndexError):
            broken.append(str(number))
    if broken:
        lines = f"line {broken[0]} is" if len(broken) == 1 else f"lines {', '.join(broken)} are"
        warn(f"{path}: {lines} not whole, and left out")
    return [whole[iteration] for iteration in sorted(whole)]


def _scores(line: dict[str, Any], seeds: int) -> list[float]:
    evaluated, trained = line["evaluation_returns"], line["returns"]
    by_seed = [evaluated[s] if evaluated[s] is not None else trained[s] for s in range(seeds)]
    known = [np.nan if score is None else float(score) for score in by_seed]
    return [score if np.isfinite(score) else np.nan for score in known]


def _acted_by(line: dict[str, Any]) -> Discounted | None:
    """What the metrics say that the agent's heads add up to, as it weighs them."""
    held = line.get("discount")
    if not isinstance(held, dict) or not held:
        return None
    ordered = sorted((float(t), float(value)) for t, value in held.items())
    return Discounted("acted by", tuple(t for t, _ in ordered), tuple(value for _, value in ordered))


def _discounted(content: Any) -> Discounted | None:
    if content is None:
        return None
    return Discounted(str(content["name"]), tuple(map(float, content["times"])), tuple(map(float, content["values"])))


def _said(problem: Exception) -> str:
    return f"{problem} is missing" if isinstance(problem, KeyError) else str(problem)
