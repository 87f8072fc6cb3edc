"""Tests that arguments of the wrong type raise one-line errors."""

import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest

import multihorizon as mh
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import as_torso
from multihorizon.experiments.experiment import Experiment, ExperimentRun
from multihorizon.runs.configure import MOST_ON_DEVICE
from multihorizon.training.evaluation import Evaluation
from multihorizon.training.schedule import MOST_EVALUATION_STEPS, Schedule, make_pace, total_steps

AGENT: Any = mh.agent("hyper-dqn", consistency=mh.Consistency.PRECOMMITTED, warm_up_steps=300)
RUN = ExperimentRun(AGENT, "foraging")
EXPERIMENT = Experiment("a", "", "", [RUN])
MLP = mh.MlpTorso((4,))
pytestmark = pytest.mark.usefixtures("no_type_checks")


@pytest.fixture(scope="module")
def policy() -> mh.Policy:
    learner = Learner(AGENT, 4, (13, 33, 1), as_torso(MLP))
    parameters = learner.init(jax.random.key(0)).parameters
    return mh.Policy(AGENT, "foraging", 4, (13, 33, 1), "float32", MLP, parameters)


WRONG: dict[str, Callable[[], Any]] = {
    "a torso of nothing": lambda: mh.ConvTorso(layers=None, hidden=3),  # type: ignore[arg-type]
    "layers that are numbers": lambda: mh.ConvTorso(layers=(3, 4), hidden=3),  # type: ignore[arg-type]
    "layers of two numbers": lambda: mh.ConvTorso(layers=((3, 4),), hidden=3),  # type: ignore[arg-type]
    "widths of nothing": lambda: mh.MlpTorso(widths=None),  # type: ignore[arg-type]
    "a huge acting": lambda: mh.agent("rainbow", acting=10**400),
    "a huge learning rate": lambda: mh.agent("rainbow", **{"optimiser.learning_rate": 10**400}),
    "an array as a choice": lambda: mh.agent("rainbow", consistency=np.zeros((2, 2))),
    "an array as horizons": lambda: mh.agent("rainbow", horizons=np.zeros((2, 2))),
    "an array as loss": lambda: mh.agent("rainbow", loss=np.zeros((2, 2))),
    "a class as loss": lambda: mh.agent("rainbow", loss=mh.Huber),
    "an array as agent": lambda: mh.train(np.zeros((2, 2)), "foraging"),  # type: ignore[arg-type]
    "an array as environment": lambda: mh.train(AGENT, np.zeros((2, 2))),
    "an environment with an argument": lambda: mh.train(AGENT, lambda t: t),
    "a class as network": lambda: mh.train(AGENT, "foraging", network=int),
    "no checkpoint_minutes": lambda: mh.train(AGENT, "foraging", checkpoint_minutes=None),  # type: ignore[arg-type]
    "empty checkpoint_minutes": lambda: mh.train(AGENT, "foraging", checkpoint_minutes=""),  # type: ignore[arg-type]
    "too many steps": lambda: mh.train(AGENT, "foraging", steps=2**53, training_steps=2**53),
    "a long cycle": lambda: mh.train(mh.agent("dqn", update_period_steps=2**20 - 1), "foraging", num_envs=4096),
    "no settings": lambda: ExperimentRun(AGENT, "foraging", settings=None),  # type: ignore[arg-type]
    "settings that are numbers": lambda: ExperimentRun(AGENT, "foraging", settings={3: 4}),  # type: ignore[dict-item]
    "a number as environment": lambda: ExperimentRun(AGENT, 3),  # type: ignore[arg-type]
    "no seeds": lambda: ExperimentRun(AGENT, "foraging", seeds=None),  # type: ignore[arg-type]
    "runs that are NaN": lambda: Experiment("a", "", "", runs=math.nan),  # type: ignore[arg-type]
    "runs that are text": lambda: Experiment("a", "", "", runs="x"),  # type: ignore[arg-type]
    "no pairs": lambda: Experiment("a", "", "", [RUN], pairs=None),  # type: ignore[arg-type]
    "pairs of numbers": lambda: Experiment("a", "", "", [RUN], pairs=[3]),  # type: ignore[list-item]
    "a number as name": lambda: Experiment(3, "", "", [RUN]),  # type: ignore[arg-type]
    "no experiment": lambda: mh.sweep(None),  # type: ignore[arg-type]
    "only NaN": lambda: mh.sweep(EXPERIMENT, only=math.nan),  # type: ignore[arg-type]
    "train_all NaN": lambda: mh.sweep(EXPERIMENT, train_all=math.nan),  # type: ignore[arg-type]
    "warn NaN": lambda: mh.sweep(EXPERIMENT, warn=math.nan),  # type: ignore[arg-type]
    "progress NaN": lambda: mh.forage(progress=math.nan),  # type: ignore[arg-type]
}
PATHS: Any = (3, math.nan, b"bytes", "a\0b", "\ud800", [], True)
TAKE_PATHS: dict[str, Callable[[Any, mh.Policy], Any]] = {
    "load": lambda path, policy: mh.load(path),
    "load_run": lambda path, policy: mh.load_run(path),
    "Policy.save": lambda path, policy: policy.save(path),
    "train": lambda path, policy: mh.train(AGENT, "foraging", out=path),
    "sweep": lambda path, policy: mh.sweep(EXPERIMENT, out=path),
    "pathworld": lambda path, policy: mh.pathworld(out=path),
    "forage": lambda path, policy: mh.forage(out=path),
    "watch": lambda path, policy: mh.watch(policy, out=path),
    "report": lambda path, policy: mh.report(path),
    "report's out": lambda path, policy: mh.report(out=path),
    "dopamine": lambda path, policy: mh.report("runs", dopamine=path),
}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_argument_raises_a_one_line_error(name: str) -> None:
    with pytest.raises(mh.InputError, match=r"^[^\n]{10,300}$"):
        WRONG[name]()


@pytest.mark.parametrize("name", TAKE_PATHS)
def test_invalid_path_is_refused(name: str, policy: mh.Policy) -> None:
    for path in PATHS:
        with pytest.raises(mh.InputError, match=r"^(path|out|folder|dopamine) must be a path[^\n]*, got [^\n]+$"):
            TAKE_PATHS[name](path, policy)


def test_a_missing_path_is_refused_when_loading() -> None:
    for load in (mh.load, mh.load_run):
        with pytest.raises(mh.InputError, match=r"^path must be a path, got None$"):
            load(None)  # type: ignore[arg-type]


@pytest.mark.parametrize("count", [None, -1, 2**63, 1.5, "a"])
def test_an_invalid_number_of_steps_for_the_weights_is_refused(policy: mh.Policy, count: Any) -> None:
    with pytest.raises(mh.InputError, match=r"^count must be [^\n]+$"):
        policy.weights_after(0, count=count)
    assert policy.weights_after(0, count=np.int64(2)).shape == (2, 10)  # type: ignore[arg-type]


@pytest.mark.parametrize("elapsed", [10**400, "a", [1, [2]], [0, 1], -1, math.inf])
def test_an_invalid_elapsed_time_is_refused(policy: mh.Policy, elapsed: Any) -> None:
    with pytest.raises(mh.InputError, match=r"^elapsed must be [^\n]+$"):
        policy.act(np.zeros(policy.observation_shape), elapsed=elapsed)


def test_evaluation_accepts_numbers_of_any_type(policy: mh.Policy) -> None:
    given: Any = {"seed": -0.0, "epsilon": Fraction(1, 2), "max_steps": np.float64(3), "episodes": np.int64(2)}
    assert mh.evaluate(policy, "foraging", **given).lengths.max() <= 3


@pytest.mark.parametrize("seed", [np.array([]), "a", None, 1.5])
def test_an_invalid_seed_of_a_policy_is_refused(seed: Any, tmp_path: Path) -> None:
    run = mh.Run(tmp_path, RUN.configuration())
    with pytest.raises(mh.InputError, match=r"^(seed must be a whole number|.* has no weights)[^\n]*$"):
        run.policy(seed=seed)


def test_runs_of_an_experiment_store_python_numbers() -> None:
    run = ExperimentRun(AGENT, "foraging", settings={"batch": np.int64(8)}, seeds=np.int64(1))  # type: ignore[arg-type]
    assert type(run.seeds) is type(run.configuration().agent.batch) is int
    assert type(Experiment("a", "", "", [RUN]).scaled(seeds=np.int64(3)).runs[0].seeds) is int  # type: ignore[arg-type]


def test_step_counts_beyond_int32_are_refused() -> None:
    assert total_steps(AGENT, Schedule(1, 2**31 - 4, 0), 1) == 2**31 - 4
    with pytest.raises(mh.InputError, match=r"^the number of training steps, .* must be at most 2,147,483,647, got"):
        total_steps(AGENT, Schedule(1, 2**31 - 3, 0), 1)  # rounded up to whole cycles
    with pytest.raises(mh.InputError, match=r"^update_period_steps=1,048,575 and 4,096 environments need cycles of"):
        make_pace(mh.agent("dqn", update_period_steps=2**20 - 1, warm_up_steps=10**6), 4_096)


def test_count_of_evaluation_steps_does_not_overflow() -> None:
    _, played = Evaluation.begin(2).add(np.zeros(2), np.zeros(2, bool), np.int32(2**31 - 1), MOST_EVALUATION_STEPS, 100)  # type: ignore[arg-type]
    assert int(played) == MOST_EVALUATION_STEPS + 2
    assert MOST_EVALUATION_STEPS + MOST_ON_DEVICE < 2**31
