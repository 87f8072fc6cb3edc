"""Tests policies: changed discounts, saving and loading, and invalid or untrusted input."""

import dataclasses
import json
import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import multihorizon as mh
from multihorizon.files import read_json, write_json
from multihorizon.runs import saved_policy


@pytest.fixture(scope="module")
def policy() -> mh.Policy:
    horizons = mh.design_horizons((0.05, 1.0), heads=3, gamma_max=0.99, t_max=60).horizons
    agent = mh.agent("hyper-dqn", horizons=horizons, warm_up_steps=300, replay_capacity=2_000)
    return mh.train(
        agent, "foraging", steps=800, training_steps=400, evaluation_steps=0, watcher=mh.NoProgress()
    ).policy()


@pytest.mark.parametrize("k", [0.05, 0.2, 1.0])
def test_policy_acts_by_its_new_discount(policy: mh.Policy, k: float) -> None:
    changed = policy.with_discount(mh.discount.hyperbolic(k), t_max=60)
    expected = mh.reweight(policy.horizons, mh.discount.hyperbolic(k), t_max=60)
    np.testing.assert_allclose(changed.horizons.weights, expected.horizons.weights)
    assert changed.horizons.fit(mh.discount.hyperbolic(k), 60).max_error == pytest.approx(expected.max_error)
    rng = np.random.default_rng(0)
    observations = rng.random((20, *policy.observation_shape)) < 0.5
    values = policy.q_values(observations)
    np.testing.assert_array_equal(changed.q_values(observations), values)
    best = np.einsum("h,bha->ba", expected.horizons.weights, values).argmax(axis=1)
    np.testing.assert_array_equal(changed.act(observations), best)


def test_saved_policy_keeps_its_new_discount(policy: mh.Policy, tmp_path: object) -> None:
    patient, hasty = (policy.with_discount(mh.discount.hyperbolic(k), t_max=60) for k in (0.05, 1.0))
    loaded = mh.load(hasty.save(f"{tmp_path}/hasty"))
    np.testing.assert_allclose(loaded.horizons.weights, hasty.horizons.weights)
    assert loaded.saved_discount == str(hasty.reweighting)
    assert loaded.changes == hasty.changes == ["hyperbolic(k=1)"]
    assert mh.load(loaded.save(f"{tmp_path}/again")).changes == hasty.changes
    named = mh.discount.from_function(mh.discount.hyperbolic(1.0), "x" * 2_000 + "\ud800")
    odd = mh.load(policy.with_discount(named, t_max=60).save(f"{tmp_path}/odd"))
    assert odd.saved_discount is not None
    assert odd.saved_discount.endswith("xxx...")
    assert policy.act(np.zeros((0, *policy.observation_shape))).shape == (0,)  # type: ignore[union-attr]
    assert loaded.with_discount(mh.discount.hyperbolic(0.05), t_max=60).changes == ["hyperbolic(k=0.05)"]
    assert not np.allclose(loaded.horizons.weights, patient.horizons.weights)
    returns = [mh.evaluate(one, "foraging", 50, epsilon=0.0, seed=3).values for one in (hasty, loaded)]
    np.testing.assert_array_equal(*returns)


def test_discount_outside_the_tolerance_is_rejected(policy: mh.Policy) -> None:
    with pytest.raises(mh.InputError, match=r"heads"):
        policy.with_discount(mh.discount.none(), t_max=1000)
    rising = lambda t: 1.0 + t  # noqa: E731
    with pytest.raises(mh.InputError):
        policy.with_discount(rising)


def test_saving_over_a_policy_is_atomic(policy: mh.Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = policy.save(tmp_path / "policy")
    other = dataclasses.replace(policy, parameters={name: 2 * value for name, value in policy.parameters.items()})

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(saved_policy, "write_json", killed)
        with pytest.raises(KeyboardInterrupt):
            other.save(folder)
    assert len(list(folder.glob("*.safetensors"))) == 2  # old and new weights
    assert_same_weights(mh.load(folder), policy)
    other.save(folder)
    assert len(list(folder.glob("*.safetensors"))) == 1
    assert_same_weights(mh.load(folder), other)


def test_policy_can_be_loaded_if_its_weights_file_has_the_old_name(policy: mh.Policy, tmp_path: Path) -> None:
    folder = policy.save(tmp_path / "policy")
    (weights,) = folder.glob("*.safetensors")
    weights.rename(folder / "weights.safetensors")
    assert_same_weights(mh.load(folder), policy)
    policy.save(folder)
    assert [path.name for path in folder.glob("*.safetensors")] == [weights.name]


def test_repr_names_the_new_discount(policy: mh.Policy) -> None:
    changed = policy.with_discount(mh.discount.hyperbolic(0.2), t_max=60)
    assert repr(policy) == "Policy(hyper-dqn in foraging, 3 horizons)"
    assert repr(changed) == "Policy(hyper-dqn in foraging, 3 horizons, by hyperbolic(k=0.2))"


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"epsilon": 2}, r"epsilon must lie in \[0, 1\], got 2"),
        ({"epsilon": "a"}, r"epsilon must lie in \[0, 1\], got 'a'"),
        ({"rng": 0}, "rng must be a NumPy generator"),
        ({"elapsed": -1}, "elapsed must be 0 or more"),
    ],
)
def test_invalid_arguments_of_the_method_act_are_refused(policy: mh.Policy, given: dict[str, Any], words: str) -> None:
    with pytest.raises(mh.InputError, match=words):
        policy.act(np.zeros(policy.observation_shape), **given)


@pytest.mark.parametrize(
    ("given", "words"), [({"epsilon": "a"}, "epsilon must lie in"), ({"told": None}, "told must be a function")]
)
def test_invalid_arguments_of_the_function_evaluate_are_refused(
    policy: mh.Policy, given: dict[str, Any], words: str
) -> None:
    with pytest.raises(mh.InputError, match=words):
        mh.evaluate(policy, episodes=1, **given)


def test_repr_of_one_episode_shows_no_interval(policy: mh.Policy) -> None:
    assert repr(mh.evaluate(policy, episodes=1)).startswith("Returns(1 episode: ")


def test_saving_a_policy_keeps_unrelated_files(policy: mh.Policy, tmp_path: Path) -> None:
    names = ["weights.safetensors", "weights-final.safetensors", "weights-0123abcd.safetensors"]
    for name in names:
        (tmp_path / name).write_text("precious")
    policy.save(tmp_path)
    assert [(tmp_path / name).read_text() for name in names] == ["precious"] * 3


def test_saved_bfloat16_weights_are_refused(policy: mh.Policy, tmp_path: Path) -> None:
    folder = policy.save(tmp_path / "policy")
    (path,) = folder.glob("*.safetensors")
    length = int.from_bytes(path.read_bytes()[:8], "little")
    content = path.read_bytes()
    header = json.loads(content[8 : 8 + length])
    start = 0
    for name, entry in header.items():
        count = int(np.prod(entry["shape"]))
        header[name] = {"dtype": "BF16", "shape": entry["shape"], "data_offsets": [start, start + 2 * count]}
        start += 2 * count
    words = json.dumps(header).encode()
    path.write_bytes(len(words).to_bytes(8, "little") + words + bytes(start))
    checksum = f"{zlib.crc32(path.read_bytes()):08x}"
    path.rename(folder / f"weights-{checksum}.safetensors")
    write_json(folder / "policy.json", read_json(folder / "policy.json") | {"weights_checksum": checksum})
    with pytest.raises(mh.InputError, match="cannot be read: it holds the type 'BF16', but weights are float32"):
        mh.load(folder)


def test_a_seed_is_refused_when_a_saved_policy_is_loaded(policy: mh.Policy, tmp_path: Path) -> None:
    with pytest.raises(mh.InputError, match="holds a saved policy, which has no seeds"):
        mh.load(policy.save(tmp_path / "policy"), seed=1)


def assert_same_weights(one: mh.Policy, other: mh.Policy) -> None:
    assert one.parameters.keys() == other.parameters.keys()
    for name, value in one.parameters.items():
        np.testing.assert_array_equal(value, other.parameters[name])


def edited(policy: mh.Policy, folder: Path, **changes: Any) -> Path:
    """Saves a policy with changed values in policy.json."""
    content = read_json(policy.save(folder) / "policy.json") | changes
    write_json(folder / "policy.json", content)
    return folder


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"observation_dtype": "M8"}, "unknown type of an observation"),
        ({"observation_dtype": {}}, "type of an observation must be a name"),
        ({"observation_shape": [2**40, 2**40]}, "values of an observation must be at most"),
        ({"network": {"type": "MlpTorso", "widths": [2**20, 2**20]}}, "the network needs .* of memory, but only"),
        ({"num_actions": 2**50}, "weights of a layer must be at most"),
        ({"network": "abc"}, "network is not the configuration of a network"),
        ({"network": None}, "network is not the configuration of a network"),
        ({"num_actions": 2**53}, "weights of a layer must be at most"),
        ({"observation_shape": [2**53]}, "values of an observation must be at most"),
        ({"environment": "x" * 201}, "must have at most 200 characters"),
        ({"discount": 3}, "the discount must be a string, got 3"),
        ({"discount": "x" * 1_001}, "the discount must have at most 1,000 characters"),
    ],
)
def test_sizes_and_types_of_an_untrusted_policy_are_checked(
    changes: dict[str, Any], message: str, policy: mh.Policy, tmp_path: Path
) -> None:
    with pytest.raises(mh.InputError, match=rf"policy/policy\.json cannot be .*{message}"):
        mh.load(edited(policy, tmp_path / "policy", **changes))


def test_oversized_weights_and_pipes_are_not_read(policy: mh.Policy, tmp_path: Path) -> None:
    folder = edited(policy, tmp_path / "policy", weights_checksum=None)
    (weights,) = folder.glob("weights-*.safetensors")
    with weights.rename(folder / "weights.safetensors").open("rb+") as file:
        mh.load(folder)
        file.truncate(2**40)  # a sparse file
    with pytest.raises(mh.InputError, match="it is larger than"):
        mh.load(folder)
    (folder / "weights.safetensors").unlink()
    os.mkfifo(folder / "weights.safetensors")
    with pytest.raises(mh.InputError, match="it is not a file"):
        mh.load(folder)


@pytest.mark.parametrize("name", ["policy.json", "weights-*.safetensors"])
def test_linked_file_of_a_policy_is_not_read(name: str, policy: mh.Policy, tmp_path: Path) -> None:
    (path,) = policy.save(tmp_path / "policy").glob(name)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(mh.InputError, match=rf"{path.name} cannot be read: it is a symbolic link"):
        mh.load(tmp_path / "policy")
    (tmp_path / "policy").rename(tmp_path / "moved")
    path = tmp_path / "moved" / path.name
    path.unlink()
    (tmp_path / "elsewhere").rename(path)
    (tmp_path / "policy").symlink_to("moved")  # the user chose this link
    mh.load(tmp_path / "policy")


def test_failed_save_raises_an_input_error(policy: mh.Policy, tmp_path: Path) -> None:
    (tmp_path / "policy/policy.json").mkdir(parents=True)
    with pytest.raises(mh.InputError, match=r"policy\.json could not be written .*; move it elsewhere"):
        policy.save(tmp_path / "policy")
    (tmp_path / "file").touch()
    for folder in (tmp_path / "file", tmp_path / "file/inner", tmp_path / ("x" * 300)):
        with pytest.raises(mh.InputError, match=folder.name[:99]):
            policy.save(folder)
