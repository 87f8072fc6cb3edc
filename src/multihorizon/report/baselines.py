"""Others' figures to compare with: the paper's table and human scores, which ship with the package, and Dopamine's
published learning curves, which are read from where they lie."""

import csv
import json
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from multihorizon.envs.atari import GAMES
from multihorizon.errors import InputError

FRAMES_PER_ITERATION = 1e6
WHOLE_FRAMES = 198e6  # the paper's scores are of 200 million frames, Dopamine's of a million or so fewer
# Dopamine's names of the agents that the paper builds on; the curves that it calls legacy are the paper's baselines.
AGENTS = ("DQN", "C51", "Rainbow")


class Players(NamedTuple):
    random: float
    human: float


@cache
def human_scores() -> dict[str, Players]:
    """By game; 57 games have them."""
    return {row["game"]: Players(float(row["random"]), float(row["human"])) for row in _rows("random_human.csv")}


@cache
def paper_table() -> dict[str, dict[str, float]]:
    """By game and agent: DQN, C51, Rainbow and Multi-Rainbow on sixty games."""
    return {row.pop("game"): {agent: float(x) for agent, x in row.items()} for row in _rows("paper_table.csv")}


@dataclass(frozen=True)
class DopamineCurves:
    """By agent, as we name it, and game, as the paper does."""

    curves: dict[tuple[str, str], Float[np.ndarray, "S T"]]

    def frames(self, curves: Float[np.ndarray, "S T"]) -> Float[np.ndarray, " T"]:
        return FRAMES_PER_ITERATION * np.arange(1, curves.shape[1] + 1)

    def beside(self, agents: list[str]) -> "DopamineCurves":
        """Those that belong beside these agents."""
        named = [dopamine_name(base) for base in bases(agents)]
        return DopamineCurves({key: held for key, held in self.curves.items() if key[0] in named})


def bases(agents: list[str]) -> list[str]:
    """Those of Dopamine's agents that these are, or are built on; Rainbow if none."""
    return [base for base in AGENTS if any(base.lower() in agent.lower() for agent in agents)] or ["Rainbow"]


def dopamine_name(agent: str) -> str:
    return f"Dopamine's {agent}"


def read_dopamine(path: Path) -> DopamineCurves:
    """An .npz of legacy_scores [agent game seed iteration], legacy_agents and games; or a folder with Dopamine's own
    files, GAME.json each, a list of {Agent, Iteration, Value} in which seeds follow one another."""
    if path.is_dir():
        return _from_folder(path)
    if not path.is_file():
        raise InputError(
            f"{path} is not there; --dopamine takes an .npz of Dopamine's curves or its folder of JSON files"
        )
    named = {game.lower(): game for game in GAMES}
    try:
        with np.load(path, allow_pickle=False) as held:
            scores, agents, games = held["legacy_scores"], list(held["legacy_agents"]), list(held["games"])
        found = {
            (dopamine_name(agent), named[game]): scores[agents.index(agent), position].astype(float)
            for agent in AGENTS
            if agent in agents
            for position, game in enumerate(games)
            if game in named
        }
    except (ValueError, KeyError, IndexError, OSError, EOFError, AttributeError):
        found = {}
    return _found({key: curves for key, curves in found.items() if curves.ndim == 2}, path)


def _from_folder(folder: Path) -> DopamineCurves:
    found = {}
    for game in GAMES:
        path = folder / f"{game.lower()}.json"
        if not path.is_file():
            continue
        try:
            points = json.loads(path.read_text(encoding="utf-8"))
            for agent in AGENTS:
                drawn = [(int(p["Iteration"]), float(p["Value"])) for p in points if p["Agent"] == agent]
                if any(iteration < 0 for iteration, _ in drawn):
                    raise ValueError("an Iteration is below 0")
                if drawn:
                    found[dopamine_name(agent), game] = _by_seed(drawn)
        except (ValueError, KeyError, TypeError) as problem:
            raise InputError(f"{path} does not hold Dopamine's curves: {problem}") from None
    return _found(found, folder)


def _by_seed(points: list[tuple[int, float]]) -> Float[np.ndarray, "S T"]:
    """The first point of an iteration is the first seed's, and so on."""
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


def _found(curves: dict[tuple[str, str], Float[np.ndarray, "S T"]], path: Path) -> DopamineCurves:
    if not curves:
        raise InputError(
            f"{path} does not hold Dopamine's curves: it must have legacy_scores, legacy_agents and games, "
            "or be a folder with a file such as pong.json for each game"
        )
    return DopamineCurves(curves)


def _rows(name: str) -> list[dict[str, str]]:
    text = (files("multihorizon.report") / "data" / name).read_text(encoding="utf-8")
    return list(csv.DictReader(text.splitlines()))
