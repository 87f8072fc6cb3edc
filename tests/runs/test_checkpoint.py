"""Tests that checkpoints restore the same state, and that damage is detected."""

import random
import struct
import tracemalloc
import zipfile
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scripted import small, trainer_of

from multihorizon.errors import InputError
from multihorizon.runs import checkpoint
from multihorizon.runs.checkpoint import Checkpoints

IDENTITY = {"agent": {"n_steps": 3}}


def nothing(*_: object) -> None:
    pass


def lasting(training: Any) -> Any:
    """Removes the counters that checkpoints do not store."""
    return training._replace(tally=None, episodes=None)


def equal(a: Any, b: Any) -> bool:
    def data(x: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)

    return all(np.array_equal(data(x), data(y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_checkpoint_written_in_pieces_restores_the_same_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoint, "PIECE_BYTES", 1_000)
    agent = small("multi-rainbow", compute_dtype="bfloat16")
    trainer = trainer_of(agent, steps=200, seeds=2)
    training, _ = trainer.iterate(trainer.init(0), 0, 0, nothing)
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    for done in (1, 2, 3):
        kept.save(training, done)
    assert [path.name[:16] for path in kept.paths()] == ["iteration-000003", "iteration-000002"]
    back, done = kept.restore(lambda: trainer.init(7), pytest.fail)
    assert done == 3
    assert equal(lasting(training), lasting(back))


def test_unknown_counters_in_a_checkpoint_are_ignored_but_other_unknown_arrays_are_rejected(tmp_path: Path) -> None:
    trainer = trainer_of(small(), steps=200)
    training, _ = trainer.iterate(trainer.init(0), 0, 0, nothing)
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    for extra, problem in (
        (".tally.counted", None),
        (".learner.extra", "cannot read it .*arrays do not match this run"),
    ):
        for path in kept.paths():
            path.unlink()
        kept.save(training, 1)
        path = kept.paths()[0]
        with zipfile.ZipFile(path, "a") as file:
            file.writestr(extra, b"0")
        path.rename(path.with_name(f"iteration-000001-{zlib.crc32(path.read_bytes()):08x}.npz"))
        if problem is None:
            back, _ = kept.restore(lambda: trainer.init(7), pytest.fail)
            assert equal(lasting(training), lasting(back))
            trainer.iterate(back, 1, 0, nothing)
        else:
            with pytest.raises(ValueError, match=problem):
                kept.restore(lambda: trainer.init(7), pytest.fail)


def test_damaged_checkpoint_is_reported_and_the_previous_one_is_used(tmp_path: Path) -> None:
    trainer = trainer_of(small(), steps=200)
    first, _ = trainer.iterate(trainer.init(0), 0, 0, nothing)
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    kept.save(first, 1)
    second = first._replace(keys=trainer.init(1).keys)
    kept.save(second, 2)
    newest = kept.paths()[0]
    whole = newest.read_bytes()
    rng = random.Random(0)
    damaged = [whole[: rng.randrange(len(whole))] for _ in range(6)] + [b""]
    for _ in range(25):
        flipped = bytearray(whole)
        flipped[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        damaged.append(bytes(flipped))
    for content in damaged:
        newest.write_bytes(content)
        newest.with_name(f"damaged-{newest.name}").unlink(missing_ok=True)
        warnings: list[str] = []
        back, done = kept.restore(lambda: trainer.init(0), warnings.append)
        assert done == 1
        assert equal(lasting(back), lasting(first))
        assert "is damaged" in warnings[0]
    kept.paths()[0].write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"no checkpoint in .* can be used; to start from the beginning, remove"):
        kept.restore(lambda: trainer.init(0), warnings.append)
    kept.paths()[0].unlink()
    back, done = kept.restore(lambda: trainer.init(0), pytest.fail)
    assert done == 0
    assert equal(back, trainer.init(0))


def test_checkpoint_with_another_replay_capacity_is_not_reported_as_damaged(tmp_path: Path) -> None:
    trainer, other = (trainer_of(small(replay_capacity=capacity)) for capacity in (1_200, 800))
    Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY).save(trainer.init(0), 1)
    with pytest.raises(ValueError, match=r"cannot read it \(an array does not have the shape .* start again in"):
        Checkpoints(tmp_path, other.shape, with_replay=True, identity=IDENTITY).restore(
            lambda: other.init(0), pytest.fail
        )


def test_checkpoint_with_other_settings_or_another_iteration_number_is_refused(tmp_path: Path) -> None:
    trainer = trainer_of(small())
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity={"agent": {"n_steps": 3, "batch": 32}})
    kept.save(trainer.init(0), 1)
    changed = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity={"agent": {"n_steps": 2, "batch": 32}})
    with pytest.raises(InputError, match=r"config\.json, agent\.n_steps is 2, not 3 as in the checkpoint"):
        changed.restore(lambda: trainer.init(0), pytest.fail)
    path = kept.paths()[0]
    path.rename(path.with_name(path.name.replace("000001", "000002")))
    with pytest.raises(InputError, match="written after iteration 1, but its name says 2"):
        kept.restore(lambda: trainer.init(0), pytest.fail)


def sealed(path: Path) -> Path:
    """Renames a changed checkpoint, so that its name holds the right checksum."""
    return path.rename(path.with_name(f"{path.stem[:16]}-{zlib.crc32(path.read_bytes()):08x}.npz"))


def rewritten(path: Path, about: bytes, compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path) as file:
        held = {name: file.read(name) for name in file.namelist() if name != checkpoint.ABOUT} | {
            checkpoint.ABOUT: about
        }
    with zipfile.ZipFile(path, "w") as file:
        for name, content in held.items():
            file.writestr(name, content, compression if name == checkpoint.ABOUT else zipfile.ZIP_STORED)
    return sealed(path)


def test_error_names_a_checkpoint_with_a_broken_description(tmp_path: Path) -> None:
    trainer = trainer_of(small())
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    kept.save(trainer.init(0), 1)
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        path = rewritten(kept.paths()[0], b"[" * 2_000, method)
        content = path.read_bytes()
        at = content.index(checkpoint.ABOUT.encode()) + len(checkpoint.ABOUT)
        path.write_bytes(content[:at] + b"\xff" * 16 + content[at + 16 :])
        with pytest.raises(InputError, match=rf"{sealed(path).name[:16]}.* cannot read it .*is compressed"):
            kept.restore(lambda: trainer.init(0), pytest.fail)
    for about in (b"[" * 100_000, b"\xff", b"[]", b"{}"):
        rewritten(kept.paths()[0], about)
        with pytest.raises(InputError, match=r"iteration-000001-.* cannot read it"):
            kept.restore(lambda: trainer.init(0), pytest.fail)


def test_error_names_a_checkpoint_with_a_wrong_offset(tmp_path: Path) -> None:
    """The offset of the run's description lies beyond the end of the file."""
    trainer = trainer_of(small())
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    kept.save(trainer.init(0), 1)
    path = kept.paths()[0]
    content = path.read_bytes()
    entry = content.index(b"PK\x01\x02")
    path.write_bytes(content[: entry + 42] + struct.pack("<I", 2**31) + content[entry + 46 :])
    sealed(path)
    with pytest.raises(InputError, match=r"iteration-000001-.* cannot read it"):
        kept.restore(lambda: trainer.init(0), pytest.fail)


def test_an_oversized_checkpoint_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = trainer_of(small(replay_capacity=800))
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    kept.save(trainer.init(0), 1)
    with (tmp_path / "iteration-000004-00000000.npz").open("wb") as file:  # a sparse file
        file.seek(2**30)
        file.write(struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, 2**30 - 100, 100, 0))
    said: list[str] = []
    tracemalloc.start()
    try:
        assert kept.restore(lambda: trainer.init(0), said.append)[1] == 1
        assert "iteration-000004-00000000.npz is damaged (it is larger than" in said[0]
        assert tracemalloc.get_traced_memory()[1] < 2**26
    finally:
        tracemalloc.stop()


def test_checkpoint_1000000_is_newer_than_checkpoint_999999(tmp_path: Path) -> None:
    trainer = trainer_of(small())
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    for done in (999_998, 999_999, 1_000_000):
        kept.save(trainer.init(0), done)
    assert [path.name.split("-")[1] for path in kept.paths()] == ["1000000", "999999"]


def test_links_and_folders_with_checkpoint_names_are_reported_and_renamed(tmp_path: Path) -> None:
    trainer = trainer_of(small())
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    kept.save(trainer.init(0), 1)
    odd = ["iteration-000000-x.npz", "iteration-000002-00000000.npz", "iteration-00000x-00000000.npz"]
    (tmp_path / odd[0]).mkdir()
    (tmp_path / odd[1]).symlink_to(kept.paths()[0])
    (tmp_path / odd[2]).touch()
    said: list[str] = []
    assert kept.restore(lambda: trainer.init(0), said.append)[1] == 1
    assert [message.split(" is damaged ")[-1] for message in said[:3]] == [
        "(it is not a file)",
        "(it is a symbolic link, which is not followed; replace the link by its target)",
        "(its name contains no iteration number)",
    ]
    assert {f"damaged-{name}" for name in odd} < {path.name for path in tmp_path.iterdir()}
    kept.save(trainer.init(0), 2)


def test_error_shortens_a_long_setting_of_another_run(tmp_path: Path) -> None:
    trainer = trainer_of(small())
    Checkpoints(tmp_path, trainer.shape, True, {"agent": "x" * 10_000, "y" * 10_000: 1}).save(trainer.init(0), 1)
    for identity in (IDENTITY, {"agent": "x" * 10_000}):
        with pytest.raises(InputError, match="does not belong to this run") as caught:
            Checkpoints(tmp_path, trainer.shape, True, identity).restore(lambda: trainer.init(0), pytest.fail)
        assert len(str(caught.value)) < 600 + len(str(tmp_path))
