"""Tests that weights and metrics must belong to the run in their folder."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from test_damaged_metrics import LINE

import multihorizon as mh
from multihorizon.errors import InputError
from multihorizon.files import read_json, write_json
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.configure import configured
from multihorizon.runs.folder import identity_checksum
from multihorizon.runs.loggers import Csv
from multihorizon.runs.metrics import format_line, read_metrics
from multihorizon.runs.records import Records
from multihorizon.runs.weights import belonging, load_weights, save_weights
from multihorizon.training.worlds import world

WEIGHTS = {"heads": np.ones(3, np.float32)}
CONFIGURATION = configured(world("foraging"), mh.agent("dqn"), steps=4_000)
OTHERS = {
    "seed": replace(CONFIGURATION, seed=1),
    "n_steps": replace(CONFIGURATION, agent=replace(CONFIGURATION.agent, n_steps=7)),
}


def written(folder: Path, configuration: Configuration = CONFIGURATION) -> Path:
    Records(folder, configuration).close()
    identity = identity_checksum(folder)
    save_weights(folder / "weights.npz", belonging(WEIGHTS, identity))
    (folder / "metrics.jsonl").write_text(format_line(LINE | {"run": identity}) + "\n")
    return folder


def used(folder: Path) -> None:
    assert set(load_weights(folder / "weights.npz", WEIGHTS, folder)) == set(WEIGHTS)
    assert len(read_metrics(folder)) == 1


@pytest.mark.parametrize("name", ["config.json", "metrics.jsonl", "weights.npz"])
@pytest.mark.parametrize("other", list(OTHERS))
def test_file_of_a_run_with_other_settings_is_refused(name: str, other: str, tmp_path: Path) -> None:
    mine, others = written(tmp_path / "mine"), written(tmp_path / "others", OTHERS[other])
    used(mine)
    shutil.copy(others / name, mine / name)
    for file, read in (
        ("weights.npz", lambda: load_weights(mine / "weights.npz", WEIGHTS, mine)),
        ("metrics.jsonl", lambda: read_metrics(mine)),
    ):
        if name in (file, "config.json"):
            with pytest.raises(
                InputError,
                match=rf"{file} does not hold the .* other settings than .* belongs to another run",
            ):
                read()


def test_files_of_a_moved_and_extended_run_are_accepted(tmp_path: Path) -> None:
    folder = written(tmp_path / "run").rename(tmp_path / "moved")
    longer = replace(CONFIGURATION.schedule, iterations=900, evaluation_steps=7)
    changed = replace(CONFIGURATION, schedule=longer, checkpoint_minutes=3.0, weights_every=2)
    records = Records(folder, changed, replaces=CONFIGURATION)
    records.begin()
    records.close()
    (folder / "weights-latest.npz").rename(folder / "weights.npz")
    used(folder)


def test_files_of_older_versions_and_an_edited_configuration_are_accepted(tmp_path: Path) -> None:
    folder = written(tmp_path / "run", OTHERS["seed"])
    save_weights(folder / "weights.npz", WEIGHTS)
    (folder / "metrics.jsonl").write_text(json.dumps(LINE) + "\n")
    used(folder)
    used(written(tmp_path / "new"))
    content = read_json(tmp_path / "new/config.json") | {"environment": "mine"}
    write_json(tmp_path / "new/config.json", content)  # without a checksum, as after an edit by the user
    used(tmp_path / "new")


def test_trained_run_stores_its_identity(tmp_path: Path) -> None:
    agent = mh.agent("dqn", warm_up_steps=100, batch=8, replay_capacity=1_000)
    given = {"training_steps": 200, "evaluation_steps": 0}
    run = mh.train(agent, "foraging", steps=200, out=tmp_path / "run", **given)
    identity = identity_checksum(run.folder)
    assert [line["run"] for line in read_metrics(run.folder)] == [identity]
    write_json(run.folder / "config.json", read_json(run.folder / "config.json") | {"seed": 5}, checked=True)
    with pytest.raises(InputError, match=r"weights\.npz does not hold the weights of this run: .* other settings"):
        mh.load_run(run.folder).policy()
    with pytest.raises(InputError, match=r"metrics\.jsonl does not hold the metrics of this run"):
        mh.load_run(run.folder).metrics  # noqa: B018


def test_resumed_run_of_an_older_version_keeps_its_identity(tmp_path: Path) -> None:
    """Resuming does not add missing settings to the stored configuration."""
    Records(tmp_path, CONFIGURATION).close()
    content = read_json(tmp_path / "config.json")
    del content["agent"]["consistency"]
    write_json(tmp_path / "config.json", content, checked=True)
    identity = identity_checksum(tmp_path)
    save_weights(tmp_path / "weights.npz", belonging(WEIGHTS, identity))
    (tmp_path / "metrics.jsonl").write_text(format_line(LINE | {"run": identity}) + "\n")
    extended = replace(CONFIGURATION, schedule=replace(CONFIGURATION.schedule, iterations=50), checkpoint_minutes=3.0)
    records = Records(tmp_path, extended, [], CONFIGURATION)
    records.begin()
    records.close()
    stored = read_json(tmp_path / "config.json")
    assert (stored["schedule"]["iterations"], stored["checkpoint_minutes"]) == (50, 3.0)
    assert identity_checksum(tmp_path) == identity
    (tmp_path / "weights-latest.npz").rename(tmp_path / "weights.npz")
    used(tmp_path)


def test_rejected_extension_leaves_a_finished_run_unchanged(tmp_path: Path) -> None:
    agent = mh.agent("dqn", warm_up_steps=100)
    run = mh.train(agent, "foraging", steps=200, training_steps=100, evaluation_steps=0, out=tmp_path / "run")
    (run.folder / "metrics.csv").write_text("damaged")
    before = (run.folder / "config.json").read_bytes()
    with pytest.raises(InputError, match=r"metrics.csv"):
        run.resume(steps=400, loggers=[Csv()])
    assert run.finished
    assert (run.folder / "config.json").read_bytes() == before


def test_a_symbolic_link_to_weights_is_refused_only_if_the_link_is_in_the_run_folder(tmp_path: Path) -> None:
    agent = mh.agent("dqn", warm_up_steps=100)
    run = mh.train(agent, "foraging", steps=200, training_steps=100, evaluation_steps=0, out=tmp_path / "run")
    best, inside = tmp_path / "best.npz", run.folder / "weights-000001.npz"
    for link in (best, inside):
        link.symlink_to(run.folder / "weights.npz")
    observations = np.zeros((2, *run.policy().observation_shape))
    values = run.policy(weights=best).q_values(observations)
    np.testing.assert_array_equal(values, run.policy().q_values(observations))
    with pytest.raises(InputError, match="symbolic link"):
        run.policy(weights=inside)
