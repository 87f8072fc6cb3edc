import math
import time
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special

from multihorizon.discounting import Horizons, discount, gauss_grid, minimax_grid, paper_grid
from multihorizon.discounting.hazard import (
    Density,
    Dirac,
    Exponential,
    Gamma,
    MittagLeffler,
    Mixture,
    Prior,
    Stable,
)
from multihorizon.errors import InputError
from multihorizon.mdp import HazardousMDP, action_values

T = np.array([0.0, 0.01, 1.0, 10.0, 365.0])
RATES = np.geomspace(1e-10, 1e10, 81)
priors = st.builds(
    lambda make, k, s: make(k, s), st.sampled_from([Stable, MittagLeffler]), st.floats(1e-3, 10), st.floats(0.25, 0.9)
)


def test_priors_with_exponent_one_half_match_their_closed_forms() -> None:
    """For s = ½, the stable prior is the Lévy distribution, and the Mittag-Leffler cdf is 1 - e^x erfc(√x)."""
    levy = Stable(1.0, 0.5)
    np.testing.assert_allclose(levy.cdf(RATES), special.erfc(np.sqrt(1 / (4 * RATES))), atol=1e-14)
    x = RATES[RATES > 1e-2]
    np.testing.assert_allclose(levy.density(x), np.exp(-1 / (4 * x)) / (2 * np.sqrt(np.pi) * x**1.5), rtol=1e-12)
    mixed = MittagLeffler(1.0, 0.5)
    np.testing.assert_allclose(mixed.cdf(RATES), 1 - special.erfcx(np.sqrt(RATES)), atol=1e-14)
    x = RATES[RATES < 10]
    np.testing.assert_allclose(mixed.density(x), 1 / np.sqrt(np.pi * x) - special.erfcx(np.sqrt(x)), rtol=1e-12)


@pytest.mark.parametrize("make", [Stable, MittagLeffler])
@pytest.mark.parametrize("s", [0.01, 0.1, 0.5, 0.95, 0.99])
def test_the_laplace_transform_of_a_prior_is_its_discount(make: Callable[..., Prior], s: float) -> None:
    """Integrates s(t) = ∫ t e^{-λt} F(λ) dλ by the trapezoidal rule in ln λ, where F is the cdf."""
    prior, t = make(0.3, s), 2.0
    narrow = make is Stable and s > 0.9  # F rises steeply around λ = k, which needs a finer grid
    log_rate = np.linspace(math.log(0.3 * t) - 0.5, 4.2, 1000) if narrow else np.linspace(-36, 4.2, 500)
    mass = np.exp(log_rate - np.exp(log_rate))  # t λ e^{-λt} d ln λ
    total = np.trapezoid(mass * np.asarray(prior.cdf(np.exp(log_rate) / t)), log_rate)
    assert total == pytest.approx(float(prior.survival(t)), abs=1e-11)


@settings(max_examples=6)
@given(priors)
def test_density_and_quantiles_match_the_cdf(prior: Prior) -> None:
    u = np.array([1e-6, 0.01, 0.3, 0.7, 0.99])
    x = np.asarray(prior.quantile(u))
    np.testing.assert_allclose(prior.cdf(x), u, rtol=1e-10)
    h = 1e-4
    slope = (np.asarray(prior.cdf(x * math.exp(h))) - np.asarray(prior.cdf(x * math.exp(-h)))) / (2 * h * x)
    np.testing.assert_allclose(prior.density(x), slope, rtol=1e-5)
    assert prior.quantile([0.0, 1.0]).tolist() == [0, math.inf]
    assert prior.cdf([0.0, math.inf]).tolist() == [0, 1]
    drawn = np.exp(-np.multiply.outer(prior.sample(np.random.default_rng(0), 20_000), T))
    np.testing.assert_allclose(drawn.mean(axis=0), prior.survival(T), atol=0.02)


def by_bisection(prior: Prior, u: np.ndarray) -> np.ndarray:
    """Returns quantiles by bisection in ln λ, without the splines."""
    low, high = np.full(u.shape, -700.0), np.full(u.shape, 700.0)
    for _ in range(60):
        middle = (low + high) / 2
        inner, outer, _ = prior._integrals(prior._log_y(np.exp(middle)))
        below, above = (outer, inner) if isinstance(prior, MittagLeffler) else (inner, outer)
        enough = np.where(u < 0.5, below >= u, above <= 1 - u)
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.exp(high)


@pytest.mark.parametrize("make", [Stable, MittagLeffler])
@pytest.mark.parametrize("s", [0.05, 0.3, 0.5, 0.8, 0.99])
def test_quantiles_match_bisection(make: Callable[..., Prior], s: float) -> None:
    prior, rng = make(0.3, s), np.random.default_rng(0)
    u = np.concatenate(
        [rng.uniform(size=20), 10 ** rng.uniform(-12, 0, size=10), 1 - 10 ** rng.uniform(-4, 0, size=10)]
    )
    x = np.asarray(prior.quantile(u))
    # A relative error of 1e-11 in a tail probability becomes an error of 1e-11 / s in the logarithm of the quantile.
    np.testing.assert_allclose(x, by_bisection(prior, u), rtol=1e-10 / s)
    np.testing.assert_allclose(prior.cdf(x), u, rtol=1e-10)


def test_quantiles_of_very_small_probabilities_follow_a_power_law() -> None:
    """For small λ, the cdf of the Mittag-Leffler prior is nearly λ^s / (k Γ(1 + s))."""
    u = np.array([1e-20, 1e-40, 1e-80])
    found = np.asarray(MittagLeffler(0.3, 0.5).quantile(u))
    np.testing.assert_allclose(found, (0.3 * special.gamma(1.5) * u) ** 2, rtol=1e-10)
    np.testing.assert_allclose(MittagLeffler(0.3, 0.5).cdf(found), u, rtol=1e-10)


@pytest.mark.parametrize(
    "prior",
    [
        Stable(0.1, 0.5),
        Stable(0.1, 0.99),
        MittagLeffler(0.1, 0.02),
        MittagLeffler(0.1, 0.9),
        Mixture([Stable(0.1, 0.6), MittagLeffler(0.2, 0.8), Dirac(0.01)]),
        Mixture([Density(lambda x: 20 * math.exp(-20 * x)), Gamma(0.1, 2.0)]),
    ],
    ids=repr,
)
def test_65536_quantiles_are_computed_within_8_seconds(prior: Prior) -> None:
    began = time.process_time()
    quantiles = np.asarray(prior.quantile((np.arange(65_536) + 0.5) / 65_536))
    assert time.process_time() - began < 8
    assert np.all(quantiles[1:] >= quantiles[:-1] * (1 - 1e-12))
    # The mean of e^{-λt} over the quantiles is nearly s(t).
    np.testing.assert_allclose(np.exp(-np.multiply.outer(quantiles, T)).mean(axis=0), prior.survival(T), atol=2e-5)


@settings(max_examples=5)
@given(st.floats(0.1, 3), st.floats(0.2, 0.75))
def test_rachlin_prior_is_an_exponential_mixture_of_ebert_prelec_priors(k: float, s: float) -> None:
    """1 / (1 + k t^s) = ∫ e^{-u} exp(-u k t^s) du, and the cdfs of the priors mix in the same way."""
    x = np.array([0.05, 0.5, 5.0])
    v = np.linspace(-36, 4, 400)  # ln u
    stable = np.asarray(Stable(1.0, s).cdf(np.multiply.outer(np.exp(-v / s) * k ** (-1 / s), x)))
    mixed = np.trapezoid(np.exp(v - np.exp(v))[:, None] * stable, v, axis=0)
    np.testing.assert_allclose(MittagLeffler(k, s).cdf(x), mixed, atol=1e-9)


def test_discounts_match_their_formulas() -> None:
    np.testing.assert_allclose(discount.rachlin(0.2, 0.6)(T), 1 / (1 + 0.2 * T**0.6))
    np.testing.assert_allclose(discount.ebert_prelec(0.2, 0.6)(T), np.exp(-((0.2 * T) ** 0.6)))
    prior = Stable(0.2, 0.6)
    np.testing.assert_allclose(prior.hazard_rate([1.0, 8.0]), 0.6 * 0.2**0.6 * np.array([1.0, 8.0]) ** -0.4)
    assert prior.hazard_rate(0.0) == prior.mean == math.inf
    h = 1e-4
    rachlin = MittagLeffler(0.2, 0.6)
    slope = (rachlin.log_survival(3 - h) - rachlin.log_survival(3 + h)) / (2 * h)
    assert rachlin.hazard_rate(3.0) == pytest.approx(slope, rel=1e-6)


def test_discounts_with_exponent_one_are_hyperbolic_or_exponential() -> None:
    assert discount.rachlin(0.2, 1.0).prior == Exponential(0.2)
    assert discount.ebert_prelec(0.2, 1.0).prior == Dirac(0.2)
    # With an exponent of 0.99, the discount is nearly the same as with an exponent of 1.
    np.testing.assert_allclose(discount.rachlin(0.2, 0.99)(T), discount.hyperbolic(0.2)(T), atol=0.01)
    np.testing.assert_allclose(MittagLeffler(0.2, 0.99).quantile(0.5), Exponential(0.2).quantile(0.5), rtol=0.03)


@pytest.mark.parametrize(
    ("wanted", "cap"), [(discount.rachlin(0.1, 0.6), 0.999), (discount.ebert_prelec(0.05, 0.5), 0.99)], ids=repr
)
def test_all_grids_fit_rachlin_and_ebert_prelec_discounts(wanted: discount.Discount, cap: float) -> None:
    t_max = 200
    grids: dict[str, Horizons] = {
        "paper": paper_grid(wanted, 40, gamma_max=cap),
        "gauss": gauss_grid(wanted, 12),
        "minimax": minimax_grid(wanted, 4, gamma_max=0.9999, t_max=t_max),
    }
    errors = {name: grid.fit(wanted, t_max).max_error for name, grid in grids.items()}
    assert errors["paper"] < 0.03
    assert errors["gauss"] < 0.01
    assert errors["minimax"] < 2e-3


def test_endless_task_has_values_only_if_discounted_survival_has_a_finite_sum() -> None:
    mdp = HazardousMDP(np.ones((1, 1, 1)), np.ones((1, 1)), discount=discount.ebert_prelec(0.3, 0.5))
    direct = np.exp(-np.sqrt(0.3 * np.arange(20_000))).sum()
    assert action_values(mdp, np.ones((1, 1)))[0, 0] == pytest.approx(direct, rel=1e-12)
    with pytest.raises(InputError, match="not known to be finite"):
        action_values(HazardousMDP(mdp.transitions, mdp.rewards, MittagLeffler(0.3, 0.5)), np.ones((1, 1)))
    both = HazardousMDP(mdp.transitions, mdp.rewards, MittagLeffler(1.0, 0.5), discount.hyperbolic(1.0))
    t = np.arange(1, 2_000_001, dtype=float)  # all later terms sum to about 2 / √t[-1]
    direct = 1 + float((1 / ((1 + np.sqrt(t)) * (1 + t))).sum()) + 2 / math.sqrt(t[-1])
    assert action_values(both, np.ones((1, 1)))[0, 0] == pytest.approx(direct, rel=1e-5)


def test_deadline_discount_is_1_up_to_the_deadline_and_0_after_it() -> None:
    d = discount.deadline(3)
    assert d([0, 3, 3.5, 4]).tolist() == [1, 1, 0, 0]
    assert d.prior is None
    t = np.arange(30)
    assert np.all(d(t) <= d.bound * d.slowest_gamma**t)
    endless = HazardousMDP(np.ones((1, 1, 1)), np.ones((1, 1)), discount=d)
    assert action_values(endless, np.ones((1, 1)))[0, 0] == pytest.approx(4)
    at_risk = HazardousMDP(np.ones((1, 1, 1)), np.ones((1, 1)), Gamma(0.1, 0.5), d)
    assert action_values(at_risk, np.ones((1, 1)))[0, 0] == pytest.approx(Gamma(0.1, 0.5).survival([0, 1, 2, 3]).sum())


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: discount.rachlin(0.1, 1.2), r"s must be at most 1, got 1.2.*minimax_grid\(discount.from_function"),
        (lambda: discount.ebert_prelec(0.1, 2.0), "not a mixture of exponentials"),
        (lambda: discount.rachlin(0.1, 0.0), r"s must lie in \[0.01, 0.99\] or be 1, got 0"),
        (lambda: discount.ebert_prelec(0.1, 0.995), "or be 1, got 0.995"),
        (lambda: MittagLeffler(0.1, 0.0), r"s must lie in \[0.01, 0.99\], got 0; for s = 1 use Exponential\(0.1\)"),
        (lambda: Stable(0.1, 0.995), r"for s = 1 use Dirac\(0.1\)"),
        (lambda: discount.rachlin(-0.1, 1.0), "k must be a positive number"),
        (lambda: discount.ebert_prelec(0.0, 1.0), "k must be a positive number"),
        (lambda: Stable(0.0, 0.5), "k must be a positive number"),
        (lambda: discount.deadline(-1.0), r"last must lie in \[0, 1e\+300\], got -1"),
        (lambda: discount.deadline(math.inf), "got inf"),
    ],
)
def test_invalid_input_is_rejected_with_a_message(make: Callable[[], object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        make()
