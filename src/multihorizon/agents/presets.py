"""Agents as values: DQN, C51 and Rainbow, each plain, Multi and Hyper, and the paper's ablation.

All numbers are the paper's table (Appendix G) or its authors' code. An agent differs from another in values only.
"""

from dataclasses import dataclass, replace

from multihorizon.agents.acting import Acting, Epsilon
from multihorizon.agents.losses import Bootstrap, Categorical, Huber, Loss, Priority
from multihorizon.agents.networks import Initial
from multihorizon.agents.optimisers import Adam, Optimiser, RmsProp
from multihorizon.discounting import Horizons, hazard, paper_grid, single
from multihorizon.errors import at_least, one_of


@dataclass(frozen=True)
class Agent:
    """All that makes an agent. A step is an agent's step: four frames of Atari."""

    name: str
    horizons: Horizons
    acting: Acting | float
    loss: Loss
    optimiser: Optimiser
    n_steps: int
    priority: Priority
    bootstrap: Bootstrap = Bootstrap.OWN
    double_q: bool = False
    batch: int = 32
    replay_capacity: int = 1_000_000
    warm_up_steps: int = 20_000
    update_period_steps: int = 4
    target_period_steps: int = 8_000
    epsilon: Epsilon = Epsilon()
    clip_rewards: bool = True
    compute_dtype: str = "float32"
    initial: Initial = Initial.FAN_IN

    def __post_init__(self) -> None:
        for name in ("n_steps", "batch", "update_period_steps", "target_period_steps"):
            at_least(name, getattr(self, name), 1)
        one_of("compute_dtype", self.compute_dtype, ["float32", "bfloat16"])


ATARI_HORIZONS = paper_grid(hazard.Exponential(0.01), heads=10, gamma_max=0.99)

DQN = Agent(
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


def multi(agent: Agent) -> Agent:
    """Learns ten horizons, acts by the largest: the auxiliary task alone."""
    return replace(agent, name=f"multi-{agent.name}", horizons=ATARI_HORIZONS, acting=Acting.LARGEST_GAMMA)


def hyper(agent: Agent) -> Agent:
    """Learns ten horizons, acts by their weighted sum."""
    return replace(agent, name=f"hyper-{agent.name}", horizons=ATARI_HORIZONS, acting=Acting.WEIGHTED)


BASES = (DQN, C51, RAINBOW)
ABLATION = (
    replace(C51, name="c51-nstep", n_steps=3),
    replace(C51, name="c51-priority", priority=Priority.AVERAGED),
    multi(replace(C51, name="c51-nstep", n_steps=3)),
    multi(replace(C51, name="c51-priority", priority=Priority.AVERAGED)),
)
PRESETS = {agent.name: agent for agent in (*BASES, *map(multi, BASES), *map(hyper, BASES), *ABLATION)}


def preset(name: str) -> Agent:
    return PRESETS[one_of("agent", name, PRESETS)]
