import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from multihorizon.discounting import gauss_grid, hazard
from multihorizon.discounting.hazard import Density, Dirac, Exponential, Gamma, Mixture, Samples, Uniform

rates = st.floats(1e-3, 2.0)
shapes = st.floats(0.7, 5.0)
dirac = st.builds(Dirac, rates)
exponential = st.builds(Exponential, rates)
gamma = st.builds(Gamma, rates, shapes)
uniform = st.builds(lambda k, low: Uniform(k, low * k), rates, st.floats(0, 0.9))
samples = st.builds(Samples, st.lists(rates, min_size=1, max_size=8))
simple = dirac | exponential | gamma | uniform | samples
continuous = exponential | gamma | uniform


def _bump(k: float) -> Density:
    """Returns a triangular density on [0, 2k]."""
    return Density(lambda x: max(0.0, 1 - abs(x / k - 1)) / k, (0.0, 2 * k))


density = st.builds(_bump, rates)


@st.composite
def mixtures(draw: st.DrawFn) -> Mixture:
    parts = draw(st.lists(simple | density, min_size=1, max_size=3))
    weights = np.array(draw(st.lists(st.floats(0.1, 1), min_size=len(parts), max_size=len(parts))))
    return Mixture(parts, tuple(weights / weights.sum()))


priors = simple | mixtures() | density
times = st.floats(0, 200)


@given(priors)
def test_survival_starts_at_one_and_falls(prior: hazard.Prior) -> None:
    t = np.linspace(0, 100, 401)
    s = prior.survival(t)
    assert s[0] == pytest.approx(1, abs=1e-12)
    assert np.all(np.diff(s) < 0)
    assert np.all(s > 0)


@given(priors, times)
def test_survival_matches_the_average_over_sampled_hazards(prior: hazard.Prior, t: float) -> None:
    drawn = np.exp(-prior.sample(np.random.default_rng(1), 20_000) * t)
    standard_error = drawn.std() / math.sqrt(len(drawn))
    assert prior.survival(t) == pytest.approx(drawn.mean(), abs=5 * standard_error + 1e-4)


@given(priors)
def test_mean_matches_the_average_of_sampled_hazards(prior: hazard.Prior) -> None:
    drawn = prior.sample(np.random.default_rng(2), 20_000)
    assert prior.mean == pytest.approx(drawn.mean(), abs=5 * drawn.std() / math.sqrt(len(drawn)) + 1e-9)


def _integral_over_gamma(prior: hazard.Prior, t: float) -> float:
    """Returns ∫ w(γ) γ^t dγ plus the point masses. Integrates over ln λ, to resolve priors of any scale."""
    atoms = prior.atoms

    def integrand(log_rate: float) -> float:
        rate = math.exp(log_rate)
        gamma = math.exp(-rate)
        return float(prior.weighting(gamma)) * gamma**t * gamma * rate  # dγ = γ λ d(ln λ)

    ends = {math.log(x) for p in getattr(prior, "components", [prior]) for x in p.support if 0 < x < math.inf}
    edges = sorted({-34.0, math.log(300), *ends, *np.linspace(-20, 5, 26)})
    smooth = sum(integrate.quad(integrand, a, b, limit=200)[0] for a, b in pairwise(edges))
    return smooth + float(np.sum(atoms.masses * np.exp(-atoms.rates * t)))


@settings(max_examples=20)
@given(priors, st.floats(0, 30))
def test_survival_is_the_integral_of_gamma_to_the_t_times_the_weighting(prior: hazard.Prior, t: float) -> None:
    assert _integral_over_gamma(prior, t) == pytest.approx(float(prior.survival(t)), abs=2e-6)


@given(priors, st.floats(0.01, 50))
def test_hazard_rate_is_minus_the_slope_of_log_survival(prior: hazard.Prior, t: float) -> None:
    h = 1e-4 * max(t, 1)
    slope = -(prior.log_survival(t + h / 2) - prior.log_survival(t - h / 2)) / h
    assert float(prior.hazard_rate(t)) == pytest.approx(float(slope), rel=1e-5, abs=1e-8)


@given(priors)
def test_hazard_rate_at_time_0_is_the_mean(prior: hazard.Prior) -> None:
    assert float(prior.hazard_rate(0.0)) == pytest.approx(prior.mean, rel=1e-6)


@settings(max_examples=8)
@given(continuous)
def test_closed_forms_agree_with_numerical_integration(prior: hazard.Prior) -> None:
    numerical = Density(lambda x: float(prior.density(x)), prior.support)
    t = np.array([0, 0.1, 1, 10, 100, 1000])
    np.testing.assert_allclose(numerical.log_survival(t), prior.log_survival(t), rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(numerical.hazard_rate(t), prior.hazard_rate(t), rtol=1e-4)
    assert numerical.mean == pytest.approx(prior.mean, rel=1e-8)
    u = np.array([0.01, 0.2, 0.5, 0.9, 0.999])
    np.testing.assert_allclose(numerical.quantile(u), prior.quantile(u), rtol=1e-6)
    np.testing.assert_allclose(numerical.cdf(prior.quantile(u)), u, atol=1e-9)
    assert numerical.quantile([0.0, 1.0]).tolist() == list(prior.support)


SINGULAR = [
    (lambda x: 1 / (math.pi * math.sqrt(x * (1 - x))), (0.0, 1.0), stats.arcsine),
    (lambda x: 0.5 / math.sqrt(1 - x), (0.0, 1.0), stats.beta(1, 0.5)),
    (lambda x: 0.5 / math.sqrt(x - 2), (2.0, 3.0), stats.beta(0.5, 1, loc=2)),
]


@pytest.mark.parametrize(("function", "support", "exact"), SINGULAR, ids=["arcsine", "upper end", "lower end"])
def test_a_density_may_be_infinite_at_an_end_of_its_support(
    function: Any, support: tuple[float, float], exact: Any
) -> None:
    prior = Density(function, support)
    u = np.linspace(0, 1, 101)
    np.testing.assert_allclose(prior.quantile(u), exact.ppf(u), atol=1e-7)
    np.testing.assert_allclose(prior.cdf(exact.ppf(u)), u, atol=1e-7)
    drawn = prior.sample(np.random.default_rng(0), 2000)
    assert stats.kstest(drawn, exact.cdf).pvalue > 0.01
    grid = gauss_grid(prior, 40)
    t = np.array([0.0, 1.0, 5.0])
    np.testing.assert_allclose(grid.discount(t), prior.survival(t), atol=1e-4)
    assert prior.density(support[1] if function is not SINGULAR[2][0] else support[0]) == math.inf


def test_density_at_an_end_of_its_support_equals_its_limit() -> None:
    prior = Density(lambda x: 0.5 / np.sqrt(1 - (x - 0.1) / 0.2) / 0.2, (0.1, 0.3))
    assert prior.density([0.1, 0.3]) == pytest.approx([2.5, math.inf])
    assert Density(lambda x: -math.log(1 - x), (0.0, 1.0)).density(1.0) == math.inf
    assert Density(lambda x: 2 * x, (0.0, 1.0)).density([0.0, 1.0]).tolist() == [0, 2]


def test_cdf_of_a_density_is_exact_outside_its_support() -> None:
    low, high = 0.05056378869683274, 0.16543866067250895
    prior = Density(lambda x: 1 / (high - low), (low, high))
    assert prior.cdf([0, 0.01, low, high, 0.2, math.inf]).tolist() == [0, 0, 0, 1, 1, 1]


@pytest.mark.parametrize("width", [0.3, 0.05, 0.01, 2e-3])
def test_narrow_densities_have_an_accurate_cdf_and_quantiles(width: float) -> None:
    exact = stats.lognorm(width, scale=0.1)
    prior = Density(
        lambda x: float(np.exp(-(np.log(x / 0.1) ** 2) / (2 * width**2)) / (x * width * 2.5066282746310002))
    )
    x = 0.1 * np.exp(width * np.linspace(-6, 6, 3001))
    np.testing.assert_allclose(prior.cdf(x), exact.cdf(x), atol=1e-9)
    u = np.linspace(0.001, 0.999, 999)
    np.testing.assert_allclose(prior.quantile(u), exact.ppf(u), rtol=1e-7)


@given(continuous | mixtures() | density, st.floats(0.001, 0.999))
def test_quantile_inverts_the_cdf(prior: hazard.Prior, u: float) -> None:
    rate = float(prior.quantile(u))
    assert prior.cdf(rate * (1 + 1e-6) + 1e-12) >= u - 1e-6
    assert prior.cdf(max(rate * (1 - 1e-6) - 1e-12, 0)) <= u + 1e-6


def test_quantiles_of_mixtures_match_bisection() -> None:
    rng = np.random.default_rng(0)
    u = np.concatenate([rng.uniform(size=100), 10 ** rng.uniform(-40, 0, size=30)])
    for mixture in (
        Mixture([Exponential(0.1), Dirac(0.02)], [0.4, 0.6]),
        Mixture([Dirac(math.inf), Gamma(0.1, 2.0)], [0.3, 0.7]),
        Mixture([Uniform(0.1), Uniform(3.0, 2.0)]),
        Mixture([Exponential(1e-6), Dirac(0.0), Samples([0.1, 0.2, 5.0]), Exponential(1e6)]),
        Mixture([Uniform(1e-9), Gamma(1e6, 0.2)]),
    ):
        low, high = np.full(u.shape, 1e-308), np.full(u.shape, 1e308)
        for _ in range(80):
            middle = np.sqrt(low) * np.sqrt(high)
            enough = mixture.cdf(middle) >= u
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        found = np.asarray(mixture.quantile(u))
        expected = np.where(mixture.cdf(0.0) >= u, 0.0, np.where(high == 1e308, np.inf, high))
        np.testing.assert_allclose(found, expected, rtol=1e-10)
        assert np.all(np.asarray(mixture.cdf(found)) >= u * (1 - 1e-13))


@given(rates, times)
def test_priors_match_table_1_of_the_paper(k: float, t: float) -> None:
    assert Dirac(k).survival(t) == pytest.approx(math.exp(-k * t))
    assert Exponential(k).survival(t) == pytest.approx(1 / (1 + k * t))
    assert Uniform(k).survival(t) == pytest.approx(-math.expm1(-k * t) / (k * t) if t > 1e-12 else 1)
    g = math.exp(-k / 2)
    assert Exponential(k).weighting(g) == pytest.approx(g ** (1 / k - 1) / k)
    assert Uniform(k).weighting(g) == pytest.approx(1 / (k * g))
    assert Uniform(k).weighting(g**3) == 0
    assert Dirac(k).atoms.rates.tolist() == [k]


@given(rates, st.floats(0.2, 5))
def test_gamma_prior_gives_the_generalised_hyperbolic_discount(k: float, a: float) -> None:
    t = np.array([0.0, 1, 10, 1000])
    np.testing.assert_allclose(Gamma(k, a).survival(t), (1 + k * t) ** -a)
    np.testing.assert_allclose(Gamma(k, 1.0).survival(t), Exponential(k).survival(t))
    np.testing.assert_allclose(Gamma(k, 1.0).quantile([0.1, 0.9]), Exponential(k).quantile([0.1, 0.9]))


def test_infinite_hazard_gives_survival_0_after_the_first_step() -> None:
    assert Dirac(math.inf).survival([0.0, 1.0, 5.0]).tolist() == [1, 0, 0]
    mixed = Mixture([Dirac(math.inf), Dirac(0.5)], [0.25, 0.75])
    np.testing.assert_allclose(mixed.survival([0.0, 1.0, 2.0]), [1, 0.75 * math.exp(-0.5), 0.75 * math.exp(-1)])
    assert mixed.hazard_rate(1.0) == pytest.approx(0.5)


def test_quantiles_0_and_1_are_the_ends_of_the_support() -> None:
    mixed = Mixture([Exponential(0.01), Dirac(0.001)])
    assert mixed.quantile(1.0) == math.inf
    assert mixed.quantile(0.0) == 0
    assert Samples([0.3, 0.1]).quantile([0.0, 1.0]).tolist() == [0.1, 0.3]


def test_reprs_of_samples_and_mixtures_are_short() -> None:
    assert str(Samples(np.linspace(0, 1, 500))) == "Samples(500 hazards with mean 0.5)"
    assert str(Mixture([Exponential(0.1), Dirac(0.2)], [0.25, 0.75])) == "0.25 Exponential(k=0.1) + 0.75 Dirac(k=0.2)"


@pytest.mark.parametrize(("shape", "mean"), [(0.8, math.inf), (1.0, math.inf), (1.05, 20.0), (1.2, 5.0), (3.0, 0.5)])
def test_mean_of_a_density_includes_its_tail(shape: float, mean: float) -> None:
    """The Lomax density falls as λ^{-shape - 1}, and its mean is 1 / (shape - 1)."""
    prior = Density(lambda x: shape * (1 + x) ** (-shape - 1))
    assert prior.mean == pytest.approx(mean, rel=1e-8)
    assert prior.hazard_rate(0.0) == prior.mean


@pytest.mark.parametrize(
    ("prior", "shown"),
    [
        (Dirac(np.float64(0.2)), "Dirac(k=0.2)"),
        (Exponential(np.float64(0.2)), "Exponential(k=0.2)"),
        (Gamma(np.float64(0.2), np.float64(2)), "Gamma(k=0.2, a=2.0)"),
        (Uniform(np.float64(0.2), np.float64(0.1)), "Uniform(k=0.2, low=0.1)"),
        (Samples(np.array([0.1, 0.2])), "Samples(0.1, 0.2)"),
        (Mixture([Dirac(np.float64(0.2))], np.array([1.0])), "1 Dirac(k=0.2)"),
    ],
)
def test_prior_reprs_show_numpy_numbers_as_python_numbers(prior: hazard.Prior, shown: str) -> None:
    assert repr(prior) == shown


@pytest.mark.parametrize("k", [1e-320, 1e200, 1.7e308])
def test_survival_is_accurate_for_hazards_of_any_scale(k: float) -> None:
    t = np.array([0.0, 1, 7, 1e300])
    exact = [-np.logaddexp(0, math.log(k) + math.log(x)) if x else 0 for x in t]  # -ln(1 + kt)
    np.testing.assert_allclose(Exponential(k).log_survival(t), exact, rtol=1e-9, atol=1e-300)
    np.testing.assert_allclose(Gamma(k, 2.0).log_survival(t), np.multiply(2, exact), rtol=1e-9, atol=1e-300)
    for prior in (Dirac(k), Uniform(k), Uniform(k, k / 2)):
        assert np.all(np.diff(prior.log_survival(t)[np.isfinite(prior.log_survival(t))]) <= 0)


def test_samples_equal_a_mixture_of_dirac_priors() -> None:
    observed, weights = [0.5, 0.1, 0.3], (0.2, 0.3, 0.5)
    t = np.array([0.0, 1, 7, 90])
    mixture = Mixture([Dirac(x) for x in observed], weights)
    np.testing.assert_allclose(Samples(observed, weights).survival(t), mixture.survival(t))
    np.testing.assert_allclose(Samples(observed, weights).hazard_rate(t), mixture.hazard_rate(t))
    np.testing.assert_allclose(Samples(observed, weights).quantile([0.29, 0.31, 0.9]), [0.1, 0.3, 0.5])


def test_computing_in_chunks_does_not_change_the_results(
    monkeypatch: pytest.MonkeyPatch, rng: np.random.Generator
) -> None:
    observed = Samples(rng.exponential(size=300))
    t = np.arange(500.0)
    at_once = observed.log_survival(t), observed.hazard_rate(t)
    monkeypatch.setattr("multihorizon.discounting.hazard.mixed.CHUNK", 1000)
    np.testing.assert_array_equal(observed.log_survival(t), at_once[0])
    np.testing.assert_array_equal(observed.hazard_rate(t), at_once[1])


def test_hazard_rate_is_accurate_where_survival_underflows() -> None:
    prior = Mixture([Dirac(1.0), Dirac(2.0)])
    assert prior.hazard_rate(5000.0) == pytest.approx(1.0)
    assert Samples([1.0, 2.0]).hazard_rate(5000.0) == pytest.approx(1.0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Exponential(0.0), "k must be a positive number, got 0"),
        (lambda: Exponential(-1.0), "k must be a positive number"),
        (lambda: Gamma(0.1, math.nan), "a must be a positive number"),
        (lambda: Uniform(0.1, 0.2), r"low must lie in \[0, k\)"),
        (lambda: Dirac(-0.1), "at least 0"),
        (lambda: Mixture([]), "one or more priors"),
        (lambda: Mixture([Dirac(1.0)], [0.5]), "add up to 1"),
        (lambda: Samples([]), "one or more"),
        (lambda: Samples([0.1, -0.1]), "at least 0"),
        (lambda: Density(lambda x: math.exp(-x) / 2), "must integrate to 1 .* but integrates to 0.5"),
        (
            lambda: Density(lambda x: 0.1 * (1 - x) ** -0.9, (0.0, 1.0)),
            "grows without bound near λ = 1",
        ),
        (lambda: Density(lambda x: 0.5, (0.0, 1.0)), "on which it is positive$"),
        (lambda: Exponential(1.0).quantile(1.0000001), r"lie in \[0, 1\], got 1.0000001"),
        (lambda: Density(lambda x: 1.0 - x, (0.0, 2.0)), "finite and at least 0"),
        (lambda: Density(lambda x: 1.0, (2.0, 1.0)), "support must be"),
        (lambda: Exponential(1.0).survival(-1.0), "a time must be at least 0 and finite, got -1"),
        (lambda: Exponential(1.0).hazard_rate([0.0, math.nan]), "a time must be at least 0"),
        (lambda: Exponential(1.0).density(-1.0), "a hazard must be at least 0"),
        (lambda: Gamma(1.0, 2.0).cdf(-1.0), "a hazard must be at least 0"),
        (lambda: Uniform(1.0).quantile(2.0), "a probability must lie in"),
        (lambda: Exponential(1.0).survival(math.inf), "finite"),
        (lambda: Exponential(1.0).weighting(1.5), r"gamma must lie in \[0, 1\]"),
    ],
)
def test_invalid_input_is_rejected_with_a_message(make: object, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make()  # type: ignore[operator]


@pytest.mark.parametrize(("k", "high"), [(1e-3, 500.0), (1e-3, 1_000.0), (1.0, 1e9), (1e3, math.inf)])
def test_a_bounded_density_is_finite_at_the_lower_end_of_its_support(k: float, high: float) -> None:
    """The support may be far wider than the range of likely hazards."""
    prior = Density(lambda rate: math.exp(-rate / k) / k, (0.0, high))
    assert prior.density(0.0) == pytest.approx(1 / k)
    assert prior.weighting(1.0) == pytest.approx(1 / k)
