"""Tests that accepted settings become Python values that can be stored and read back."""

import json
import math
from collections.abc import Iterator
from dataclasses import fields, replace
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multihorizon as mh
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.networks import OwnNetwork
from multihorizon.discounting import Horizons
from multihorizon.errors import InputError
from multihorizon.files import read_json, write_json
from multihorizon.runs.configuration import KINDS, Configuration, plain, restored
from multihorizon.runs.configure import configured
from multihorizon.runs.records import Records
from multihorizon.training.schedule import Schedule
from multihorizon.training.worlds import world

ODD: list[Any] = [
    None,
    True,
    "no",
    "",
    b"no",
    1,
    1.0,
    50.0,
    -0.0,
    0.3,
    1.5,
    math.nan,
    math.inf,
    10**400,
    2**70,
    1e-320,
    1e308,
    Fraction(1, 2),
    Fraction(4),
    np.int64(1),
    np.int8(3),
    np.uint64(5),
    np.float32(0.1),
    np.float64(2.0),
    np.bool_(True),
    np.str_("float32"),
    np.zeros((2, 2)),
    np.array([8, 8]),
    np.array([]),
    [np.int64(8), 4.0],
    [[8, 3.0, np.int64(1)]],
    (("a", 1, 1),),
    {"a": 1},
    object(),
    int,
    mh.Huber,
    type("Adam2", (mh.Adam,), {})(1e-3),
    type("Mlp2", (mh.MlpTorso,), {})((8,)),
]
AGENT = mh.agent("dqn", acting=0.99)
VALID = [
    Configuration(AGENT, "foraging", mh.MlpTorso((8,)), Schedule(2, 300, 0), 0, 1, 4),
    AGENT,
    Schedule(),
    mh.Adam(1e-3),
    mh.RmsProp(1e-3),
    mh.Huber(),
    mh.Categorical(),
    mh.Epsilon(),
    mh.ConvTorso(((8, 3, 1),), 8),
    mh.MlpTorso((8,)),
    OwnNetwork("mine"),
]


pytestmark = pytest.mark.usefixtures("no_type_checks")


def same(a: Any, b: Any) -> bool:
    """Returns whether two values are equal and have the same type."""
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, Enum | Horizons | str) or not hasattr(a, "__dataclass_fields__"):
        return (type(a) is type(b) or isinstance(a, str)) and a == b
    return type(a) is type(b) and all(same(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))


def changed(valid: Any) -> Iterator[tuple[str, Any]]:
    """Yields every accepted change of a single field."""
    for field in fields(valid):
        for value in ODD:
            try:
                yield f"{field.name}={value!r}", replace(valid, **{field.name: value})
            except InputError as problem:
                assert "\n" not in str(problem)  # noqa: PT017
                assert len(str(problem)) < 300  # noqa: PT017


@pytest.mark.parametrize("valid", VALID, ids=lambda valid: type(valid).__name__)
def test_accepted_settings_can_be_read_back(valid: Any, tmp_path: Path) -> None:
    for what, accepted in [("unchanged", valid), *changed(valid)]:
        stored = json.loads(json.dumps(plain(accepted), allow_nan=False))
        assert same(restored(stored), accepted), what
    write_json(tmp_path / "c.json", plain(accepted), checked=True)
    assert read_json(tmp_path / "c.json") == stored


def test_every_stored_type_is_tested() -> None:
    assert {type(valid) for valid in VALID} == set(KINDS.values())


def test_settings_of_an_agent_may_be_numpy_numbers() -> None:
    agent = mh.agent(
        "rainbow",
        batch=np.int64(32),
        n_steps=5.0,
        double_q=np.bool_(True),
        horizons=np.float32(0.5),
        acting=np.float32(0.5),
        **{"optimiser.learning_rate": np.float32(0.5), "loss.atoms": np.int8(5), "epsilon.final": 0},
    )
    assert same(restored(json.loads(json.dumps(plain(agent)))), agent)
    assert type(agent.batch) is type(agent.n_steps) is int


@pytest.mark.parametrize("name", ["optimiser.learning_rate", "optimiser.epsilon", "loss.v_max"])
@pytest.mark.parametrize("value", [1e-320, 1e-40, 1e39, 1e308])
def test_numbers_outside_the_range_of_float32_are_refused(name: str, value: float) -> None:
    with pytest.raises(InputError, match=r"must lie in \[1e-30, 1e\+30\], got "):
        mh.agent("rainbow", **{name: value})
    assert isinstance(mh.agent("rainbow", **{name: 1e-30}), AgentConfig)


ODD_COUNTS: dict[str, Any] = {
    "evaluation_steps": 50.0,
    "num_evaluation_envs": np.int64(4),
    "checkpoint_minutes": np.float32(1),
    "checkpoint_replay": np.bool_(False),
    "weights_every": 5.0,
}


@pytest.fixture
def run(tmp_path: Path) -> mh.Run:
    """Returns a finished run whose arguments had unusual types."""
    agent = mh.agent("dqn", warm_up_steps=np.int64(300), batch=np.int64(8))
    configuration = configured(
        world("foraging"),
        agent,
        network=mh.MlpTorso((np.int64(8),)),
        steps=np.float64(400),  # type: ignore[arg-type]
        training_steps=200.0,  # type: ignore[arg-type]
        seed=np.int64(1),  # type: ignore[arg-type]
        seeds=1.0,  # type: ignore[arg-type]
        environments=np.int64(4),  # type: ignore[arg-type]
        evaluation_environments=4.0,  # type: ignore[arg-type]
        evaluation_steps=50.0,  # type: ignore[arg-type]
        checkpoint_minutes=np.float32(1),  # type: ignore[arg-type]
        checkpoint_replay=np.bool_(False),  # type: ignore[arg-type]
    )
    Records(tmp_path, configuration).close()
    (tmp_path / "weights.npz").touch()
    assert same(mh.load_run(tmp_path).configuration, configuration)
    return mh.load_run(tmp_path)


def test_extended_run_stores_its_new_length_when_training_begins(run: mh.Run) -> None:
    before = (run.folder / "config.json").read_bytes()
    longer = replace(run.configuration, schedule=Schedule(4, 200, 60.0))  # type: ignore[arg-type]
    records = Records(run.folder, longer, replaces=run.configuration)
    records.refuse_if_finished()
    assert (run.folder / "config.json").read_bytes() == before
    assert run.finished
    records.begin()
    records.close()
    assert same(mh.load_run(run.folder).configuration, longer)
    assert not run.finished


@pytest.mark.parametrize("changes", [*({name: value} for name, value in ODD_COUNTS.items()), {}, {"steps": 400.0}])
def test_refused_change_leaves_a_finished_run_unchanged(run: mh.Run, changes: Any) -> None:
    before = {path: path.read_bytes() for path in run.folder.glob("*") if path.is_file() and path.name != ".lock"}
    with pytest.raises(InputError, match="is finished; to extend it"):
        run.resume(**changes)
    for path, content in before.items():
        assert path.read_bytes() == content
    with pytest.raises(InputError, match=r"evaluation_steps must be|checkpoint_minutes must be"):
        run.resume(steps=600, **{"checkpoint_minutes": 10**400})
    assert run.finished


@pytest.mark.parametrize("name", ODD_COUNTS)
def test_resume_refuses_a_setting_of_the_wrong_type(run: mh.Run, name: str) -> None:
    for value in (None, "", "a", math.nan, -1, 10**400, np.zeros(2), [True]):
        with pytest.raises(InputError, match=rf"^{name} must be [^\n]+$"):
            run.resume(**{name: value})
