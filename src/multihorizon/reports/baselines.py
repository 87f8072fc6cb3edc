"""Published results to compare runs with: the paper's table, human scores, and Dopamine's learning curves.

The paper's table and human scores ship with the package. Users provide Dopamine's curves.
"""

import csv
import json
from dataclasses import dataclass
from enum import Enum
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from multihorizon.envs.atari import GAMES
from multihorizon.errors import InputError
from multihorizon.runs.weights import UNREADABLE

FRAMES_PER_ITERATION = 1e6
# The paper's runs have 200 million frames. Dopamine's curves end about a million frames earlier.
FULL_LENGTH_FRAMES = 198e6
# The agents that the paper builds on, as Dopamine names them.
BASE_AGENTS = ("DQN", "C51", "Rainbow")


class Source(Enum):
    """Who published a baseline."""

    PAPER = "paper's"
    DOPAMINE = "Dopamine's"


@dataclass(frozen=True)
class Baseline:
    """An agent whose scores somebody else published. `agent` is its published name, such as "Rainbow"."""

    source: Source
    agent: str

    @property
    def label(self) -> str:
        """The name in figures and tables."""
        return f"{self.source.value} {self.agent}"


class ReferenceScores(NamedTuple):
    """The scores of a random player and of a human in one game. Their normalised scores are 0 and 1."""

    random: float
    human: float


@cache
def human_scores() -> dict[str, ReferenceScores]:
    """Returns the reference scores by game, for the 57 games that have them."""
    rows = _read_rows("random_human.csv")
    return {row["game"]: ReferenceScores(float(row["random"]), float(row["human"])) for row in rows}


@cache
def paper_table() -> dict[str, dict[str, float]]:
    """Returns the paper's table by game and agent: DQN, C51, Rainbow and Multi-Rainbow in sixty games."""
    return {row.pop("game"): {agent: float(x) for agent, x in row.items()} for row in _read_rows("paper_table.csv")}


@dataclass(frozen=True)
class DopamineCurves:
    """Dopamine's learning curves, by baseline and game. An iteration has a million frames."""

    curves: dict[tuple[Baseline, str], Float[np.ndarray, "S T"]]

    def frames(self, curves: Float[np.ndarray, "S T"]) -> Float[np.ndarray, " T"]:
        """Returns the number of frames played by the end of each iteration."""
        return FRAMES_PER_ITERATION * np.arange(1, curves.shape[1] + 1)

    def select(self, labels: list[str]) -> "DopamineCurves":
        """Returns the curves of the base agents that `find_base_agents` finds."""
        named = find_base_agents(labels)
        return DopamineCurves({key: curves for key, curves in self.curves.items() if key[0].agent in named})


def find_base_agents(labels: list[str]) -> list[str]:
    """Returns the base agents whose names are part of a label, as in "hyper-rainbow". Without any, returns Rainbow."""
    return [base for base in BASE_AGENTS if any(base.lower() in label.lower() for label in labels)] or ["Rainbow"]


def read_dopamine(path: Path) -> DopamineCurves:
    """Reads Dopamine's published learning curves, from an .npz file or from a folder with one GAME.json per game.

    The .npz holds `legacy_scores` [agent game seed iteration], `legacy_agents` and `games`. Each JSON file is a list of
    {Agent, Iteration, Value}. If an agent has several values for an iteration, they belong to seeds 1, 2, ... in order.
    """
    if path.is_dir():
        return _read_folder(path)
    if not path.is_file():
        raise InputError(f"{path} does not exist; give an .npz file or a folder of JSON files with Dopamine's curves")
    names = {game.lower(): game for game in GAMES}
    try:
        with np.load(path, allow_pickle=False) as held:
            scores, agents, games = held["legacy_scores"], list(held["legacy_agents"]), list(held["games"])
        found = {
            (Baseline(Source.DOPAMINE, agent), names[game]): scores[agents.index(agent), position].astype(float)
            for agent in BASE_AGENTS
            if agent in agents
            for position, game in enumerate(games)
            if game in names
        }
    except (*UNREADABLE, OSError):
        found = {}
    return _check_found({key: curves for key, curves in found.items() if curves.ndim == 2}, path)


def _read_folder(folder: Path) -> DopamineCurves:
    found = {}
    for game in GAMES:
        path = folder / f"{game.lower()}.json"
        if not path.is_file():
            continue
        try:
            points = json.loads(path.read_text(encoding="utf-8"))
            for agent in BASE_AGENTS:
                drawn = [(int(p["Iteration"]), float(p["Value"])) for p in points if p["Agent"] == agent]
                if any(iteration < 0 for iteration, _ in drawn):
                    raise ValueError("an Iteration is below 0")
                if drawn:
                    found[Baseline(Source.DOPAMINE, agent), game] = _split_seeds(drawn)
        except (ValueError, KeyError, TypeError) as problem:
            raise InputError(f"{path} does not hold Dopamine's curves: {problem}") from None
    return _check_found(found, folder)


def _split_seeds(points: list[tuple[int, float]]) -> Float[np.ndarray, "S T"]:
    seen: dict[int, int] = {}
    placed = {}
    for iteration, value in points:
        seed = seen.get(iteration, 0)
        seen[iteration] = seed + 1
        placed[seed, iteration] = value
    curves = np.full((max(seen.values()), max(seen) + 1), np.nan)
    for (seed, iteration), value in placed.items():
        curves[seed, iteration] = value
    return curves


def _check_found(curves: dict[tuple[Baseline, str], Float[np.ndarray, "S T"]], path: Path) -> DopamineCurves:
    if not curves:
        raise InputError(
            f"{path} does not hold Dopamine's curves; give an .npz file with legacy_scores, legacy_agents and games, "
            "or a folder with a JSON file for each game, such as pong.json"
        )
    return DopamineCurves(curves)


def _read_rows(name: str) -> list[dict[str, str]]:
    text = (files("multihorizon.reports") / "assets" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
