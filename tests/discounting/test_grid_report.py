import pytest

import multihorizon as mh


def test_report_suggests_a_larger_cap() -> None:
    report = mh.report_grid(mh.discount.hyperbolic(0.01), "minimax")
    assert len(report.horizons) == 10
    assert report.fit == report.horizons.fit(report.discount, 1000)
    assert report.limit is not None
    better_cap = report.limit.better_gamma_max
    assert better_cap > 0.99
    better = mh.minimax_grid(report.discount, report.limit.better_heads, gamma_max=better_cap)
    assert better.fit(report.discount, 1000).max_error == pytest.approx(report.limit.better_error)
    assert set(report.others) == {"minimax, 3 heads, γ ≤ 0.99", "minimax, 3 heads, γ ≤ 0.999", "gauss, 3 heads, no cap"}


def test_prior_and_its_discount_give_the_same_report() -> None:
    by_prior = mh.report_grid(mh.hazard.Exponential(0.01), "gauss", 4, compare=False)
    assert by_prior.fit == mh.report_grid(mh.discount.hyperbolic(0.01), "gauss", 4, compare=False).fit
    assert by_prior.limit is None
    assert by_prior.others == {}


def test_unknown_grid_and_missing_prior_are_rejected() -> None:
    with pytest.raises(mh.InputError, match=r"unknown grid 'gaus' .did you mean 'gauss'"):
        mh.report_grid(mh.discount.hyperbolic(0.01), "gaus")
    with pytest.raises(mh.InputError, match=r"the paper grid needs a discount with a prior, .* use the minimax grid"):
        mh.report_grid(mh.discount.from_function(lambda t: 1 / (1 + t) ** 2))
