import argparse
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from multihorizon.cli import choices
from multihorizon.discounting import discount
from multihorizon.discounting.hazard import Gamma, Samples
from multihorizon.errors import InputError

T = np.array([0.0, 1.0, 2.0, 10.0, 365.0])


def test_discounts_match_their_formulas() -> None:
    np.testing.assert_allclose(discount.exponential(0.9)(T), 0.9**T)
    np.testing.assert_allclose(discount.hyperbolic(0.05)(T), 1 / (1 + 0.05 * T))
    np.testing.assert_allclose(discount.generalised_hyperbolic(0.05, 2.5)(T), (1 + 0.05 * T) ** -2.5)
    np.testing.assert_allclose(discount.quasi_hyperbolic(0.7, 0.99)(T), np.where(T == 0, 1, 0.7 * 0.99**T))
    np.testing.assert_allclose(discount.uniform(0.1)(T[1:]), (1 - np.exp(-0.1 * T[1:])) / (0.1 * T[1:]))
    assert discount.none()(T).tolist() == [1] * len(T)
    assert discount.exponential(0.0)(T).tolist() == [1, 0, 0, 0, 0]


def test_discount_from_a_prior_equals_the_survival_function_of_the_prior() -> None:
    for prior in (Gamma(0.1, 0.5), Samples([0.1, 0.2])):
        np.testing.assert_array_equal(discount.from_prior(prior)(T), prior.survival(T))


def test_discount_from_a_function_takes_scalars_and_arrays() -> None:
    d = discount.from_function(lambda t: 1.0 if t < 3 else 0.5)
    assert d(2) == 1.0
    assert d([1, 2, 3]).tolist() == [1, 1, 0.5]
    assert d.prior is None


def test_repr_of_a_discount_is_its_label() -> None:
    assert repr(discount.hyperbolic(np.float64(0.05))) == "hyperbolic(k=0.05)"
    assert repr(discount.from_prior(Gamma(np.float64(0.1), 2.0))) == "survival under Gamma(k=0.1, a=2.0)"


@given(st.sampled_from(["exponential", "quasi", "uniform", "hyperbolic"]), st.integers(0, 2000))
def test_discounts_lie_below_their_exponential_bound(name: str, t: int) -> None:
    d = {
        "exponential": discount.exponential(0.97),
        "quasi": discount.quasi_hyperbolic(0.7, 0.98),
        "uniform": discount.uniform(0.1),
        "hyperbolic": discount.hyperbolic(0.01),
    }[name]
    assert d(t) <= d.bound * d.slowest_gamma**t * (1 + 1e-9)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: discount.hyperbolic(0.0), "k must be a positive number"),
        (lambda: discount.exponential(1.1), r"gamma must lie in \[0, 1\]"),
        (lambda: discount.quasi_hyperbolic(0.0, 0.9), "beta must lie"),
        (lambda: discount.quasi_hyperbolic(0.5, 1.0), "delta must lie"),
        (lambda: discount.uniform(-1.0), "k must be a positive number"),
        (lambda: discount.hyperbolic(1.0)(-2.0), "a time must be at least 0 and finite, got -2"),
        (lambda: discount.from_function(lambda t: t), "must start at a positive number"),
        (lambda: discount.from_function(lambda t: 1 + t)(5.0), r"between 0 and d\(0\) = 1, but d\(5\) = 6"),
        (lambda: discount.from_function(lambda t: math.nan if t else 1)(5.0), "between 0 and"),
        (lambda: discount.from_function(lambda t: discount.none()), "at t = 0 it returns a Discount"),
    ],
)
def test_invalid_input_is_rejected_with_a_message(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]


@pytest.mark.parametrize("name", ["rachlin", "ebert-prelec"])
def test_command_line_suggests_a_python_function_if_the_exponent_s_exceeds_1(name: str) -> None:
    options = argparse.Namespace(discount=f"{name}:0.1,1.5", prior=None, mix=(), k=None, default_k=0.01)
    with pytest.raises(InputError, match=f"the s of {name} .* got 1.5; .* --discount function:FILE.py:NAME$"):
        choices.discount(options)
