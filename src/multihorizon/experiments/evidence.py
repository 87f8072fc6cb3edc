"""Experiments beyond the paper: shorter runs in Atari, hazard in games, and grids and heads in MinAtar."""

from dataclasses import replace
from functools import cache
from typing import Any

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.losses import Categorical
from multihorizon.agents.optimisers import Adam
from multihorizon.agents.presets import preset
from multihorizon.discounting import Discount, Horizons, discount, gauss_grid, hazard, minimax_grid, paper_grid, single
from multihorizon.discounting.hazard import Prior
from multihorizon.envs import minatar
from multihorizon.experiments.experiment import Experiment, ExperimentRun

ABLATION_GAMES = "Asterix Breakout Enduro Pong Seaquest UpNDown Venture Gravitar Qbert Zaxxon".split()  # noqa: SIM905
RAINBOWS = ("rainbow", "multi-rainbow", "hyper-rainbow")
MILLION_FRAMES = 250_000  # agent steps
# The discounts that the presets are configured for.
EXPONENTIAL, HYPERBOLIC = discount.exponential(0.99), discount.hyperbolic(0.01)

# Exponential priors with k from 0.01 to 1, a bounded prior, and a prior with two values: a small and a large hazard.
PRIORS: dict[str, Prior] = {
    "exponential-0.01": hazard.Exponential(0.01),
    "exponential-0.1": hazard.Exponential(0.1),
    "exponential-1": hazard.Exponential(1.0),
    "uniform-0.1": hazard.Uniform(0.1),
    "two-point": hazard.Mixture([hazard.Dirac(0.01), hazard.Dirac(0.3)], [0.5, 0.5]),
}
GAMMAS = (0.9, 0.95, 0.97, 0.99, 0.997)
HEADS, GAMMA_MAX, T_MAX = 10, 0.997, 1000
# Returns are larger with a larger γ, so the support of C51 is wider than MinAtar's usual ±10.
IN_MINATAR: dict[str, Any] = {
    "seeds": 30,
    "steps": 300_000,
    "training_steps": 15_000,
    "evaluation_steps": 0,
    "environments": 8,
    "settings": {"loss": Categorical(v_max=30.0)},
}


def _named(name: str, base: str, **settings: Any) -> AgentConfig:
    return replace(preset(base), name=name, **settings)


def _run(agent: AgentConfig, environment: str, **given: Any) -> ExperimentRun:
    wanted = HYPERBOLIC if agent.name.startswith("hyper-") else EXPONENTIAL
    return ExperimentRun(agent, environment, wanted=wanted, **given)


def atari_short() -> Experiment:
    """Returns the experiment with ten Atari games and ten million frames."""
    small = Adam(6.25e-5, epsilon=1.5e-5, epsilon_hat=True)
    agents = [
        *map(preset, RAINBOWS),
        *(_named(f"{base}-small-epsilon", base, optimiser=small) for base in ("rainbow", "multi-rainbow")),
    ]
    given: dict[str, Any] = {"steps": 10 * MILLION_FRAMES, "training_steps": MILLION_FRAMES, "evaluation_steps": 0}
    return Experiment(
        name="atari-short",
        title="Many horizons in ten Atari games, in short runs",
        about="Rainbow, Multi-Rainbow and Hyper-Rainbow in the ten games of the paper's ablation, with a twentieth of "
        "the paper's frames. Rainbow and Multi-Rainbow are also trained with a tenth of Adam's ε. For Multi-Rainbow, a "
        "tenth of ε has the same effect as summing the losses of the ten heads instead of averaging them.",
        runs=[_run(agent, f"atari/{game}", **given) for agent in agents for game in ABLATION_GAMES],
        pairs=[
            ("rainbow", "multi-rainbow"),
            ("rainbow", "hyper-rainbow"),
            ("rainbow", "rainbow-small-epsilon"),
            ("rainbow-small-epsilon", "multi-rainbow-small-epsilon"),
        ],
    )


def seaquest_long() -> Experiment:
    """Returns the experiment with Seaquest and 100 million frames."""
    given: dict[str, Any] = {"steps": 100 * MILLION_FRAMES, "training_steps": MILLION_FRAMES, "evaluation_steps": 0}
    return Experiment(
        name="seaquest-long",
        title="Seaquest in long runs",
        about="Rainbow, Multi-Rainbow and Hyper-Rainbow in Seaquest, where the paper reports the largest gain of "
        "Multi-Rainbow over Rainbow.",
        runs=[_run(preset(name), "atari/Seaquest", seeds=1, **given) for name in RAINBOWS],
        pairs=[("rainbow", "multi-rainbow"), ("rainbow", "hyper-rainbow")],
    )


def hazard_minatar() -> Experiment:
    """Returns the experiment with agents that train without hazard."""
    middle = PRIORS["exponential-0.1"]
    paper = _named("hyper-rainbow-paper", "hyper-rainbow", horizons=paper_grid(middle, HEADS))
    agents: list[tuple[AgentConfig, Discount]] = [
        *((_named(f"rainbow-{g:g}", "rainbow", horizons=single(g)), discount.exponential(g)) for g in GAMMAS),
        (preset("multi-rainbow"), EXPONENTIAL),
        (paper, discount.from_prior(middle)),
        *(
            (_named(f"hyper-rainbow-{name}", "hyper-rainbow", horizons=_minimax(name, HEADS, GAMMA_MAX)), wanted)
            for name, wanted in ((name, discount.from_prior(prior)) for name, prior in PRIORS.items())
        ),
        (preset("any-rainbow"), HYPERBOLIC),
    ]
    games = [f"minatar/{game}" for game in minatar.GAMES]
    return Experiment(
        name="hazard-minatar",
        title="Agents trained without hazard, in MinAtar",
        about="Rainbow with each of five γ's, Multi-Rainbow, Hyper-Rainbow and Any-Rainbow. Hyper-Rainbow uses the "
        "paper's grid, or a minimax grid for one of five hazard priors. All agents learn without hazard. "
        "benchmarks/hazard_in_games.py evaluates them under the five priors.",
        runs=[ExperimentRun(agent, game, wanted=wanted, **IN_MINATAR) for game in games for agent, wanted in agents],
        pairs=[(f"rainbow-{gamma:g}", "hyper-rainbow-exponential-0.1") for gamma in GAMMAS],
    )


def heads_minatar() -> Experiment:
    """Returns the experiment with several grids, numbers of heads and largest γ's."""
    prior, name = PRIORS["exponential-0.1"], "exponential-0.1"
    wanted = discount.from_prior(prior)
    runs = []
    for game in ("breakout", "asterix"):
        for cap in (0.99, GAMMA_MAX):
            for heads in (3, 5, HEADS, 30):
                grids = {
                    "paper": paper_grid(prior, heads, gamma_max=cap),
                    "gauss": gauss_grid(prior, heads, gamma_max=cap),
                    "minimax": _minimax(name, heads, cap),
                }
                for grid, horizons in grids.items():
                    agent = _named(f"{grid}-{heads}-{cap:g}", "hyper-rainbow", horizons=horizons)
                    runs.append(ExperimentRun(agent, f"minatar/{game}", wanted=wanted, **IN_MINATAR))
    return Experiment(
        name="heads-minatar",
        title="Grids, heads and the largest γ",
        about=f"Hyper-Rainbow for one hyperbolic discount (k = {prior.mean:g}), with 3, 5, 10 or 30 heads, three "
        "grids, and two bounds on γ.",
        runs=runs,
        pairs=[(f"paper-{HEADS}-0.99", f"{grid}-{HEADS}-{GAMMA_MAX:g}") for grid in ("paper", "gauss", "minimax")],
    )


@cache
def _minimax(prior: str, heads: int, gamma_max: float) -> Horizons:
    return minimax_grid(PRIORS[prior], heads, gamma_max=gamma_max, t_max=T_MAX)
