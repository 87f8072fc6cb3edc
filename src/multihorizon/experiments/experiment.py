"""Experiments: lists of runs, and the pairs of agents that figures compare."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from multihorizon.agents.config import AgentConfig
from multihorizon.discounting import Discount
from multihorizon.errors import InputError, at_least, instance, one_of, short_text, shown, store
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.configure import configured
from multihorizon.training.worlds import world

TIMES = np.unique(np.geomspace(1, 1000, 61).round())  # times t at which experiment.json holds the wanted discount
LONGEST_TEXT = 10_000  # characters


@dataclass(frozen=True)
class ExperimentRun:
    """One agent in one environment, trained with several seeds.

    Args:
        agent: The agent. Its name is the label of the run.
        environment: The name of the environment.
        seeds: The number of seeds.
        wanted: The discount that the agent is configured for. Reports compare it with the discount of the horizons.
        steps: Training steps of each seed; None for the environment's default.
        training_steps: Training steps of each iteration. With None, all iterations have the same length, which is at
            most the environment's default.
        evaluation_steps: Evaluation steps of each iteration; None for the environment's default.
        environments: The number of environments of each seed; None for the environment's default.
        settings: Agent settings that override `agent` and the environment's defaults.

    Raises:
        InputError: If an argument has the wrong type or a setting does not exist.
    """

    agent: AgentConfig
    environment: str
    seeds: int = 3
    wanted: Discount | None = None
    steps: int | None = None
    training_steps: int | None = None
    evaluation_steps: int | None = None
    environments: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        instance("the agent of a run", self.agent, AgentConfig, "an AgentConfig, such as mh.agent('dqn')")
        short_text("the environment of a run", self.environment)
        if not _plain(self.label):
            raise InputError(
                f"an agent's name must contain a letter or digit, because it names a folder, got {shown(self.label)}"
            )
        if not isinstance(self.wanted, Discount | None):
            raise InputError(
                f"wanted of {self.label} must be None or a Discount, such as discount.exponential(0.99) or "
                f"discount.from_function(...), got {shown(self.wanted)}"
            )
        optional = (("steps", 1), ("training_steps", 1), ("evaluation_steps", 0), ("environments", 1))
        given = {name: (getattr(self, name), least) for name, least in optional}
        counts = {name: at_least(name, value, least) for name, (value, least) in given.items() if value is not None}
        store(self, seeds=at_least("seeds", self.seeds, 1), **counts)
        instance("settings", self.settings, Mapping, "a dictionary of settings")  # type: ignore[type-abstract]
        for name in self.settings:
            one_of(f"setting of {self.label}", name, [field.name for field in fields(AgentConfig)])
        try:
            replace(self.agent, **self.settings)
        except InputError as problem:
            raise InputError(f"the settings of {self.label} are invalid: {problem}") from None

    @property
    def label(self) -> str:
        """The name of the agent."""
        return self.agent.name

    @property
    def folder(self) -> str:
        """The folder of the run within the experiment's folder."""
        return f"{_plain(self.environment)}/{_plain(self.label)}"

    def configuration(self, checkpoint_minutes: float = 10.0) -> Configuration:
        """Returns the complete configuration of the run.

        Args:
            checkpoint_minutes: The minimum number of minutes between two checkpoints.
        """
        chosen = world(self.environment)
        agent = replace(chosen.adapt(self.agent), **self.settings)
        return configured(
            chosen,
            agent,
            seeds=self.seeds,
            steps=self.steps,
            training_steps=self.training_steps,
            evaluation_steps=self.evaluation_steps,
            environments=self.environments,
            checkpoint_minutes=checkpoint_minutes,
        )


@dataclass(frozen=True)
class Experiment:
    """A list of runs and how to compare them.

    Args:
        name: The name of the experiment, which also names its folder.
        title: The title of its report.
        about: One paragraph about the experiment, for its report.
        runs: The runs.
        pairs: Pairs of labels (baseline, challenger) to compare in each environment.
        panels: Pairs of labels (baseline, challenger) to draw side by side in one figure.

    Raises:
        InputError: If there are no runs, two runs share a folder, or a pair names an unknown label.
    """

    name: str
    title: str
    about: str
    runs: Sequence[ExperimentRun]
    pairs: Sequence[tuple[str, str]] = ()
    panels: Sequence[tuple[str, str]] = ()

    def __post_init__(self) -> None:
        for name in ("name", "title", "about"):
            short_text(f"the {name} of an experiment", getattr(self, name), LONGEST_TEXT)
        for name in ("runs", "pairs", "panels"):
            instance(f"{name} of an experiment", getattr(self, name), Sequence, "a list")  # type: ignore[type-abstract]
        if not self.name or not self.runs:
            raise InputError("an experiment needs a name and at least one run")
        for run in self.runs:
            instance("a run of an experiment", run, ExperimentRun, "an ExperimentRun")
        folders = [run.folder for run in self.runs]
        twice = sorted({folder for folder in folders if folders.count(folder) > 1})
        if twice:
            raise InputError(f"two runs of {self.name} share the folder {twice[0]}; give their agents different names")
        labels = sorted({run.label for run in self.runs})
        for pair in (*self.pairs, *self.panels):
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise InputError(
                    f"an entry of pairs or panels must be two labels (baseline, challenger), got {shown(pair)}"
                )
            for label in pair:
                one_of("label", label, labels)

    def scaled(self, seeds: int | None = None, steps: int | None = None) -> "Experiment":
        """Returns the experiment with different numbers of seeds and steps.

        Args:
            seeds: The number of seeds of each run; None for no change.
            steps: The training steps of each seed; None for no change.
        """
        runs = [
            replace(run, seeds=run.seeds if seeds is None else seeds, steps=run.steps if steps is None else steps)
            for run in self.runs
        ]
        return replace(self, runs=runs)

    def description(self) -> dict[str, Any]:
        """Returns the contents of experiment.json."""
        return {
            "name": self.name,
            "title": self.title,
            "about": self.about,
            "pairs": [list(pair) for pair in self.pairs],
            "panels": [list(panel) for panel in self.panels],
            "runs": [
                {
                    "label": run.label,
                    "environment": run.environment,
                    "folder": run.folder,
                    "seeds": run.seeds,
                    "steps": run.configuration().schedule.steps,
                    "wanted": _values(run.wanted),
                }
                for run in self.runs
            ],
        }


def _plain(name: str) -> str:
    return re.sub(r"[^\w.-]+", "-", name).strip(".-")


def _values(wanted: Discount | None) -> dict[str, Any] | None:
    if wanted is None:
        return None
    name = wanted.label.replace("(", ", ").replace("=", " = ").removesuffix(")")
    values = np.asarray(wanted(TIMES), float)
    return {"name": name, "times": [int(t) for t in TIMES], "values": values.tolist()}
