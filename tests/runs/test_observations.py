"""Tests that observations are converted to the type of the policy, or rejected."""

from typing import Any

import numpy as np
import pytest

from multihorizon.errors import InputError
from multihorizon.runs.observations import as_batch


@pytest.mark.parametrize("dtype", ["float32", "uint8", "bool"])
@pytest.mark.parametrize("given", [np.eye(4)[2], np.eye(4, dtype=bool), np.eye(4, dtype=int)[1:3], [0, 0, 1, 0]])
def test_one_hot_observations_may_have_any_type(given: Any, dtype: str) -> None:
    batch, is_single = as_batch(given, (4,), dtype)
    assert batch.dtype == dtype
    assert is_single == (np.ndim(given) == 1)
    np.testing.assert_array_equal(batch, np.atleast_2d(given))


@pytest.mark.parametrize(
    ("given", "dtype", "words"),
    [
        (3, "float32", r"got \[\]; give the states of a Discrete space as one-hot vectors, np.eye\(4\)\[obs\]"),
        (np.array([0, 3]), "float32", r"got \[2\]; give the states of a Discrete space as one-hot"),
        (np.zeros(3), "float32", r"must have shape \[4\], or \[B, 4\] for a batch, got \[3\]$"),
        (np.full(4, 0.3), "bool", "the type bool and hold 0 and 1, but this one contains 0.3"),
        (np.full(4, 0.3), "uint8", "have the type uint8 and hold whole numbers, .* contains 0.3"),
        (np.array([0, 1, 0, 256]), "uint8", "contains 256"),
        (np.full(4, np.nan), "uint8", "must be finite"),
        ([1e300, 0.0, 0.0, 0.0], "float32", "must be finite in float32"),
        ([None] * 4, "float32", "must be an array of numbers, got"),
        ([[1.0], [1.0, 2.0]], "float32", "must be an array of numbers, got"),
        (np.full(4, 1j), "float32", "must be an array of numbers, got"),
        ("text", "float32", "must be an array of numbers, got 'text'"),
    ],
)
def test_invalid_observations_are_rejected(given: Any, dtype: str, words: str) -> None:
    with pytest.raises(InputError, match=words) as refused:
        as_batch(given, (4,), dtype)
    assert "\n" not in str(refused.value)
