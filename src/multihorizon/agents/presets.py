"""The presets: the paper's agents, the agents of its ablation, and `any-rainbow`.

All numbers come from the paper's Appendix G or the authors' code, except the horizons of `any-rainbow`.
"""

from dataclasses import replace
from typing import Any

import numpy as np

from multihorizon.agents.acting import Acting
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.losses import Categorical, Huber, Priority
from multihorizon.agents.networks import Initial
from multihorizon.agents.optimisers import Adam, RmsProp
from multihorizon.discounting import Horizons, hazard, paper_grid, single
from multihorizon.errors import one_of

ATARI_HORIZONS = paper_grid(hazard.Exponential(0.01), heads=10, gamma_max=0.99)

# The discount factors are rounded results of design_horizons for hyperbolic discounts with k from 0.01 to 1 over 1000
# steps. The weights fit hyperbolic(0.01), the discount of the paper's Atari agents.
ANY_HORIZONS = Horizons(
    np.array([0.0523, 0.3532, 0.6812, 0.882, 0.9571, 0.9832, 0.9944, 0.998]),
    np.array([0.0, 0.0, 0.0, 0.0, 0.0997, 0.4305, 0.0, 0.494]),
)

DQN = AgentConfig(
    name="dqn",
    horizons=single(0.99),
    acting=Acting.LARGEST_GAMMA,
    loss=Huber(),
    optimiser=RmsProp(2.5e-4, decay=0.95, epsilon=1e-5, initial_square=1.0),
    n_steps=1,
    priority=Priority.UNIFORM,
    initial=Initial.XAVIER,
)
C51 = replace(
    DQN,
    name="c51",
    loss=Categorical(),
    initial=Initial.FAN_IN,
    optimiser=Adam(2.5e-4, epsilon=3.125e-4, epsilon_hat=True),
)
RAINBOW = replace(
    C51,
    name="rainbow",
    optimiser=Adam(6.25e-5, epsilon=1.5e-4, epsilon_hat=True),
    n_steps=3,
    priority=Priority.AVERAGED,
)


def multi(agent: AgentConfig) -> AgentConfig:
    """Returns the Multi version of an agent: it learns ten horizons and acts by the largest γ."""
    return replace(agent, name=f"multi-{agent.name}", horizons=ATARI_HORIZONS, acting=Acting.LARGEST_GAMMA)


def hyper(agent: AgentConfig) -> AgentConfig:
    """Returns the Hyper version of an agent: it learns ten horizons and acts by their weighted sum."""
    return replace(agent, name=f"hyper-{agent.name}", horizons=ATARI_HORIZONS, acting=Acting.WEIGHTED)


def any_discount(agent: AgentConfig) -> AgentConfig:
    """Returns the Any version of an agent: it learns eight horizons, and can change its discount after training.

    With suitable weights, the horizons approximate hyperbolic discounts with k from 0.01 to 1, exponential discounts
    with γ from 0.5 to 0.998, and mixtures of these discounts. The initial discount is hyperbolic(0.01).
    """
    return replace(agent, name=f"any-{agent.name}", horizons=ANY_HORIZONS, acting=Acting.WEIGHTED)


BASES = (DQN, C51, RAINBOW)
ABLATION = (
    replace(C51, name="c51-nstep", n_steps=3),
    replace(C51, name="c51-priority", priority=Priority.AVERAGED),
    multi(replace(C51, name="c51-nstep", n_steps=3)),
    multi(replace(C51, name="c51-priority", priority=Priority.AVERAGED)),
)
PRESETS = {
    agent.name: replace(agent, base=agent.name)
    for agent in (*BASES, *map(multi, BASES), *map(hyper, BASES), any_discount(RAINBOW), *ABLATION)
}


def preset(name: str) -> AgentConfig:
    """Returns a preset by its name."""
    return PRESETS[one_of("agent", name, PRESETS)]


def agent(name: str, /, **settings: Any) -> AgentConfig:
    """Returns a preset agent with your own settings.

    Args:
        name: A preset. `dqn`, `c51` and `rainbow` learn one horizon. With the prefix `multi-`, they learn many horizons
            and act by the largest γ. With `hyper-`, they act by the weighted sum of many horizons. `any-rainbow` can
            change its discount after training (`Policy.with_discount`). `multihorizon agents` lists all presets.
        **settings: Fields of `AgentConfig`, as in `n_steps=5` or `horizons=mh.minimax_grid(...)`. A part of a field has
            a dotted name: `**{"optimiser.learning_rate": 1e-4}`. Settings given here always override the
            environment's defaults.

    Returns:
        The configuration, a frozen dataclass.

    Example:
        >>> import multihorizon as mh
        >>> mh.agent("hyper-rainbow", horizons=mh.minimax_grid(mh.discount.hyperbolic(0.05), heads=4)).name
        'hyper-rainbow'
    """
    return preset(name).with_settings(**settings)
