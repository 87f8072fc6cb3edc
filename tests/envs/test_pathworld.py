import numpy as np
import pytest

from multihorizon.discounting import discount, hazard
from multihorizon.envs.pathworld import Pathworld
from multihorizon.mdp import action_values


@pytest.mark.parametrize(
    ("prior", "d"),
    [
        (hazard.Dirac(0.0), discount.hyperbolic(0.05)),
        (hazard.Exponential(0.05), discount.none()),
        (hazard.Uniform(0.1), discount.none()),
        (hazard.Dirac(0.0), discount.exponential(0.975)),
        (hazard.Gamma(0.05, 2.0), discount.quasi_hyperbolic(0.7, 0.99)),
    ],
)
def test_mdp_values_match_the_closed_form(prior: hazard.Prior, d: discount.Discount) -> None:
    world = Pathworld()
    mdp = world.mdp(prior, d)
    policy = np.full(mdp.rewards.shape, 1 / mdp.actions)
    values = action_values(mdp, policy)[0]
    expected = [i * prior.survival(i**2) * d(i**2) for i in range(1, 16)]
    np.testing.assert_allclose(values, expected, rtol=1e-9, atol=1e-12)


def test_true_values_match_the_paper() -> None:
    values = Pathworld().values(discount.hyperbolic(0.05))
    np.testing.assert_allclose(values, [i / (1 + 0.05 * i**2) for i in range(1, 16)])
    assert values.argmax() + 1 in (4, 5)  # paths 4 and 5 are both worth 20/9


def test_zero_paths_raise_an_error() -> None:
    with pytest.raises(ValueError, match="the number of paths must be a whole number of at least 1"):
        Pathworld(0)
