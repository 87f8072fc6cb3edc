"""Checkpoints restore the same state, damage is detected, and other versions' files are not reported as damaged."""

import random
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
    """Removes the counts of one iteration, which checkpoints do not store."""
    return training._replace(tally=None, episodes=None)


def equal(a: Any, b: Any) -> bool:
    def data(x: Any) -> np.ndarray:
        return np.asarray(jax.random.key_data(x) if jnp.issubdtype(x.dtype, jax.dtypes.prng_key) else x)

    return all(np.array_equal(data(x), data(y)) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


def test_checkpoint_restores_the_same_state_in_pieces_and_in_any_dtype(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_restore_ignores_the_counts_of_an_iteration(tmp_path: Path) -> None:
    """Another version may count other things. All other arrays must match, and a mismatch is not reported as damage."""
    trainer = trainer_of(small(), steps=200)
    training, _ = trainer.iterate(trainer.init(0), 0, 0, nothing)
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY)
    for extra, problem in (
        (".tally.counted", None),
        (".learner.extra", "cannot read it .*arrays are not those of this run"),
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


def test_damaged_checkpoint_is_reported_and_previous_one_used(tmp_path: Path) -> None:
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


def test_checkpoint_of_another_shape_is_not_reported_as_damaged(tmp_path: Path) -> None:
    trainer, other = (trainer_of(small(replay_capacity=capacity)) for capacity in (1_200, 800))
    Checkpoints(tmp_path, trainer.shape, with_replay=True, identity=IDENTITY).save(trainer.init(0), 1)
    with pytest.raises(ValueError, match=r"cannot read it \(an array does not have the shape .* start again in"):
        Checkpoints(tmp_path, other.shape, with_replay=True, identity=IDENTITY).restore(
            lambda: other.init(0), pytest.fail
        )


def test_checkpoint_of_other_settings_or_another_iteration_is_refused(tmp_path: Path) -> None:
    trainer = trainer_of(small())
    kept = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity={"agent": {"n_steps": 3, "batch": 32}})
    kept.save(trainer.init(0), 1)
    changed = Checkpoints(tmp_path, trainer.shape, with_replay=True, identity={"agent": {"n_steps": 2, "batch": 32}})
    with pytest.raises(InputError, match=r"config\.json agent\.n_steps is 2, not 3 as in the checkpoint"):
        changed.restore(lambda: trainer.init(0), pytest.fail)
    path = kept.paths()[0]
    path.rename(path.with_name(path.name.replace("000001", "000002")))
    with pytest.raises(InputError, match="written after iteration 1, but its name says 2"):
        kept.restore(lambda: trainer.init(0), pytest.fail)
