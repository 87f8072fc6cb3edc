"""Tests the horizons of `any-rainbow`, whose discount can be changed after training."""

import numpy as np
import pytest

import multihorizon as mh
from multihorizon.agents.presets import ANY_HORIZONS, ATARI_HORIZONS
from multihorizon.discounting.reweighting import least_error, sampled

CAP, T_MAX = 0.998, 1000


def test_any_rainbow_acts_by_the_papers_discount_by_default() -> None:
    agent = mh.agent("any-rainbow")
    assert agent.acting is mh.Acting.WEIGHTED
    fitted = mh.reweight(agent.horizons, mh.discount.hyperbolic(0.01), t_max=T_MAX)
    np.testing.assert_allclose(agent.horizons.weights, fitted.horizons.weights, atol=1e-3)
    assert agent.horizons.fit(mh.discount.hyperbolic(0.01), T_MAX).max_error < 0.0245


@pytest.mark.parametrize("k", [0.01, 0.03, 0.1, 0.3, 1.0])
def test_more_heads_hardly_reduce_the_error_of_hyperbolic_discounts(k: float) -> None:
    discount = mh.discount.hyperbolic(k)
    floor = least_error(sampled(discount, T_MAX), CAP)
    assert mh.reweight(ANY_HORIZONS, discount, t_max=T_MAX).max_error < floor + 5e-4


@pytest.mark.parametrize("gamma", [0.5, 0.6, 0.75, 0.85, 0.93, 0.97, 0.99, 0.996, 0.998])
def test_horizons_of_any_rainbow_fit_exponential_discounts(gamma: float) -> None:
    assert mh.reweight(ANY_HORIZONS, mh.discount.exponential(gamma), t_max=T_MAX).max_error < 0.035


def test_the_papers_grid_cannot_express_a_steeper_hyperbolic_discount() -> None:
    with pytest.raises(mh.InputError, match="cannot express the discount 'hyperbolic"):
        mh.reweight(ATARI_HORIZONS, mh.discount.hyperbolic(0.1), t_max=T_MAX)


def test_horizons_of_any_rainbow_are_nearly_as_good_as_a_new_design() -> None:
    """For each discount, the new design reduces the error by less than 5e-4."""
    design = mh.design_horizons((0.01, 1.0), len(ANY_HORIZONS), gamma_max=CAP, t_max=T_MAX)
    for fit in design.fits:
        assert mh.reweight(ANY_HORIZONS, fit.target, t_max=T_MAX).max_error < fit.max_error + 5e-4
