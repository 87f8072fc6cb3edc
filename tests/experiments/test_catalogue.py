"""The experiments match the paper, and every run can be configured."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from multihorizon.agents.acting import acting_weights
from multihorizon.agents.losses import Priority
from multihorizon.agents.presets import preset
from multihorizon.cli.sweep import EPILOG
from multihorizon.discounting import discount
from multihorizon.envs.atari import GAMES
from multihorizon.errors import InputError
from multihorizon.experiments.catalogue import CATALOGUE, NINETEEN_GAMES, experiment
from multihorizon.experiments.experiment import Experiment, ExperimentRun
from multihorizon.runs.configuration import plain, restored


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_experiment_has_valid_runs_and_pairs(name: str) -> None:
    one = experiment(name)
    assert one.name == name
    assert f"  {name} " in EPILOG
    description = one.description()
    labels = {run["label"] for run in description["runs"]}
    assert one.pairs
    assert {label for pair in one.pairs for label in pair} <= labels
    for environment in {run.environment for run in one.runs}:  # figures compare agents in the same games
        assert {run.label for run in one.runs if run.environment == environment} == labels
    for run in one.runs:
        configuration = run.configuration()
        assert plain(restored(plain(configuration))) == plain(configuration)
        assert run.wanted is not None
    for run in description["runs"]:
        values = np.array(run["wanted"]["values"])
        assert np.all(np.diff(values) < 0)
        assert len(run["wanted"]["times"]) == len(values)


def test_numbers_of_runs_and_steps_match_the_paper() -> None:
    counts = {name: len(experiment(name).runs) for name in ("hyper-vs-multi", "auxiliary", "ablation", "priority")}
    assert counts == {"hyper-vs-multi": 19 * 3, "auxiliary": 60 * 2, "ablation": 10 * 8, "priority": 60 * 3}
    assert len(set(NINETEEN_GAMES)) == 19
    assert set(NINETEEN_GAMES) <= set(GAMES)
    for name in counts:
        for run in experiment(name).runs:
            configuration = run.configuration()
            assert (configuration.seeds, configuration.schedule.steps) == (3, 50_000_000)
            assert configuration.schedule.evaluation_steps == 125_000


def test_agents_of_the_priority_experiment_differ_only_in_their_priority() -> None:
    averaged, largest = experiment("priority").runs[1:3]
    assert (averaged.agent.priority, largest.agent.priority) == (Priority.AVERAGED, Priority.LARGEST_GAMMA)
    alike = replace(largest.agent, name=averaged.agent.name, priority=Priority.AVERAGED)
    assert plain(alike) == plain(averaged.agent)


def test_gauss_and_minimax_grids_fit_better_than_the_papers_grid() -> None:
    errors = {}
    for run in experiment("grids").runs:
        agent = run.configuration().agent
        assert run.wanted is not None
        times, weights = np.arange(200), acting_weights(agent.acting, agent.horizons)
        reached = agent.horizons.gammas ** times[:, None] @ weights
        errors[run.environment, run.label] = np.abs(reached - run.wanted(times)).max()
    for (environment, _), error in errors.items():
        assert error <= errors[environment, "hyper-rainbow-paper"]
    assert errors["foraging/hazard", "hyper-rainbow-minimax"] < 0.01
    assert errors["minatar/breakout", "hyper-rainbow-minimax"] < 0.1 < errors["minatar/breakout", "hyper-rainbow-paper"]


def test_invalid_experiment_raises_an_error() -> None:
    run = ExperimentRun(preset("dqn"), "foraging", wanted=discount.exponential(0.99))
    with pytest.raises(ValueError, match="share the folder foraging/dqn; give their agents different names"):
        Experiment("mine", "", "", [run, run])
    with pytest.raises(ValueError, match=r"unknown label 'dnq' \(did you mean 'dqn'\?\)"):
        Experiment("mine", "", "", [run], pairs=[("dqn", "dnq")])
    with pytest.raises(ValueError, match="needs a name and at least one run"):
        Experiment("mine", "", "", [])
    small = Experiment("mine", "", "", [run]).scaled(seeds=2, steps=6_000).runs[0].configuration()
    assert (small.seeds, small.schedule.steps) == (2, 6_000)


@pytest.mark.parametrize("name", CATALOGUE)
def test_descriptions_do_not_mention_the_size_of_the_runs(name: str) -> None:
    assert not re.search(r"seed|\bsteps\b|minutes", experiment(name).about)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"settings": {"nstep": 2}}, r"unknown setting of dqn 'nstep' \(did you mean 'n_steps'\?\)"),
        ({"settings": {"epsilon": 0.1}}, r"the settings of dqn are invalid: epsilon must be mh\.Epsilon\(.*, got 0\.1"),
        ({"settings": {"loss": 3}}, r"the settings of dqn are invalid: loss must be mh\.Huber\(\) or .*, got 3"),
        (
            {"agent": replace(preset("dqn"), name="")},
            "name must contain a letter or digit, because it names a folder, got ''",
        ),
        ({"agent": replace(preset("dqn"), name="..")}, "name must contain a letter or digit"),
        (
            {"settings": {"n_steps": 1.5}},
            r"settings of dqn are invalid: n_steps must be a whole number .*, got 1\.5",
        ),
    ],
)
def test_invalid_run_raises_an_error(given: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        ExperimentRun(**{"agent": preset("dqn"), "environment": "foraging"} | given).configuration()
