import pytest
from hypothesis import given
from hypothesis import strategies as st

from multihorizon.discounting import discount
from multihorizon.discounting.preferences import Offer


@given(st.floats(0.11, 5))
def test_hyperbolic_preferences_reverse_at_the_analytic_wait(k: float) -> None:
    # After a wait of T = 10 - 1/k, both rewards have the same value: 1 / (1 + kT) = 1.1 / (1 + k(T + 1)).
    assert Offer().taken(discount.hyperbolic(k), 0) == "sooner"
    assert Offer().taken(discount.hyperbolic(k), 365) == "later"
    assert Offer().reversal(discount.hyperbolic(k), 1000) == pytest.approx(10 - 1 / k, abs=1e-6)


@given(st.floats(0.2, 0.999))
def test_exponential_preferences_never_reverse(gamma: float) -> None:
    assert Offer().reversal(discount.exponential(gamma), 700) is None
    assert Offer().taken(discount.exponential(gamma), 0) == Offer().taken(discount.exponential(gamma), 365)


def test_quasi_hyperbolic_preferences_reverse_at_once() -> None:
    d = discount.quasi_hyperbolic(0.7, 0.99)
    assert Offer().taken(d, 0) == "sooner"
    assert Offer().taken(d, 1) == "later"
    assert Offer().reversal(d, 100) == pytest.approx(0, abs=1e-9)


def test_two_rewards_with_the_same_value_are_equally_preferred() -> None:
    assert Offer(1.0, 1.25, 1.0).taken(discount.exponential(0.8), 0) == "either"


def test_rewards_with_a_present_value_of_0_are_compared() -> None:
    assert Offer().taken(discount.exponential(0.0), 5) == "either"
    assert Offer().taken(discount.from_function(lambda t: 1.0 if t < 3 else 0.0), 2) == "sooner"
    assert Offer().reversal(discount.exponential(0.0), 10) is None


def test_very_large_and_very_small_rewards_are_compared() -> None:
    assert Offer().taken(discount.hyperbolic(1.7e308), 365) == "later"
    assert Offer().reversal(discount.hyperbolic(1.7e308), 100) == pytest.approx(10)
    assert Offer(sooner=1e308, later=1e-308).taken(discount.none(), 0) == "sooner"


def test_invalid_input_is_rejected_with_a_message() -> None:
    with pytest.raises(ValueError, match="sooner must be a positive number"):
        Offer(sooner=0.0)
    with pytest.raises(ValueError, match=r"wait must lie in \[0, 1e\+300\], got -1"):
        Offer().taken(discount.none(), -1.0)
