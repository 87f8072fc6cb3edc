"""The experiments, one function each. An experiment lists its runs and the pairs of agents that its figures compare."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.losses import Categorical, Priority
from multihorizon.agents.presets import preset
from multihorizon.discounting import Horizons, discount, gauss_grid, hazard, minimax_grid, paper_grid, single
from multihorizon.discounting.hazard import Prior
from multihorizon.envs import atari, foraging, pathworld
from multihorizon.errors import one_of
from multihorizon.experiments.evidence import ABLATION_GAMES, atari_short, hazard_minatar, heads_minatar, seaquest_long
from multihorizon.experiments.experiment import Experiment, ExperimentRun

K, GAMMA = 0.01, 0.99  # the discounts that the paper's Atari agents are configured for
HYPERBOLIC, EXPONENTIAL = discount.hyperbolic(K), discount.exponential(GAMMA)

# The paper says only "a random subset of 19 games". This subset was drawn once: random.Random(0).sample(GAMES, 19).
NINETEEN_GAMES = """
Amidar BattleZone Breakout ChopperCommand DemonAttack DoubleDunk FishingDerby Frostbite Gopher Gravitar JourneyEscape
Kangaroo Krull Phoenix Riverraid Solaris TimePilot UpNDown VideoPinball
""".split()  # noqa: SIM905
ABLATION = ("c51", "c51-nstep", "c51-priority", "rainbow")
SMALL_GAMES = ("breakout", "asterix", "space_invaders")
SMALL = {"seeds": 10, "steps": 300_000, "training_steps": 15_000, "evaluation_steps": 5_000, "environments": 8}


def _run(name: str, environment: str, **given: Any) -> ExperimentRun:
    wanted = HYPERBOLIC if name.startswith("hyper-") else EXPONENTIAL
    return ExperimentRun(preset(name), environment, wanted=wanted, **given)


def _on_atari(names: Sequence[str], games: Sequence[str]) -> list[ExperimentRun]:
    return [_run(name, f"atari/{game}") for game in games for name in names]


def _named(name: str, base: str, horizons: Horizons) -> AgentConfig:
    return replace(preset(base), name=name, horizons=horizons)


def pathworld_agents() -> Experiment:
    world, heads, gamma_max = "pathworld/hazard", 10, 0.999
    prior = pathworld.HAZARD
    gammas = (0.975, 0.95, 0.9, 0.99, 0.75)
    hyperbolic = _named("hyperbolic", "hyper-dqn", paper_grid(prior, heads, gamma_max=gamma_max))
    runs = [ExperimentRun(hyperbolic, world, wanted=discount.from_prior(prior, f"hyperbolic(k={prior.k:g})"))]
    for gamma in gammas:
        runs.append(
            ExperimentRun(_named(f"gamma-{gamma:g}", "dqn", single(gamma)), world, wanted=discount.exponential(gamma))
        )
    return Experiment(
        name="pathworld",
        title="Pathworld with deep networks",
        about="The agents of the paper's first Pathworld table as deep networks: a hyperbolic agent with ten heads and "
        "five agents with a single γ, in a Pathworld of five paths. They learn without hazard and are evaluated under "
        f"hazard (k = {prior.k:g}). A score is the return of the path that an agent chooses. "
        "`multihorizon pathworld` prints the errors of the values of all paths.",
        runs=runs,
        pairs=[(f"gamma-{gamma:g}", "hyperbolic") for gamma in gammas],
    )


def hyper_vs_multi() -> Experiment:
    return Experiment(
        name="hyper-vs-multi",
        title="Hyper-Rainbow and Multi-Rainbow over Rainbow",
        about="Does acting by a hyperbolic discount help, or only learning over many horizons? The experiment uses "
        "nineteen Atari games. They were drawn at random, because the paper does not name its nineteen games.",
        runs=_on_atari(("rainbow", "multi-rainbow", "hyper-rainbow"), NINETEEN_GAMES),
        pairs=[("rainbow", "multi-rainbow"), ("rainbow", "hyper-rainbow")],
    )


def auxiliary() -> Experiment:
    return Experiment(
        name="auxiliary",
        title="Multi-Rainbow over Rainbow",
        about="Multi-Rainbow learns ten horizons as an auxiliary task and acts by the largest γ. The experiment uses "
        "sixty Atari games.",
        runs=_on_atari(("rainbow", "multi-rainbow"), atari.GAMES),
        pairs=[("rainbow", "multi-rainbow")],
    )


def _ablation(name: str, title: str, about: str, runs: list[ExperimentRun]) -> Experiment:
    pairs = [(base, f"multi-{base}") for base in ABLATION]
    return Experiment(name, title, about, runs, pairs, panels=pairs)


def ablation() -> Experiment:
    names = [name for base in ABLATION for name in (base, f"multi-{base}")]
    return _ablation(
        "ablation",
        "What many horizons add to each part of Rainbow",
        "The agents are C51, C51 with n-step returns, C51 with prioritised replay, and Rainbow. Each agent is trained "
        "with and without the multi-horizon auxiliary task, in the paper's ten games.",
        _on_atari(names, ABLATION_GAMES),
    )


def priority() -> Experiment:
    games = [f"atari/{game}" for game in atari.GAMES]
    largest = replace(preset("multi-rainbow"), name="multi-rainbow-largest", priority=Priority.LARGEST_GAMMA)
    runs = [
        run
        for game in games
        for run in (
            _run("rainbow", game),
            _run("multi-rainbow", game),
            ExperimentRun(largest, game, wanted=EXPONENTIAL),
        )
    ]
    return Experiment(
        name="priority",
        title="Priorities by the average over heads, or by the largest γ",
        about="An experiment from the paper's appendix, in sixty Atari games. The priority of a transition is the "
        "error of the head with the largest γ, or the mean error of all heads.",
        runs=runs,
        pairs=[
            ("rainbow", "multi-rainbow"),
            ("rainbow", "multi-rainbow-largest"),
            ("multi-rainbow", "multi-rainbow-largest"),
        ],
    )


HEADS, GAMMA_MAX, SUPPORT = 10, 0.997, 30.0


def _grids(environment: str, prior: Prior, gamma_max: float, t_max: int, **given: Any) -> list[ExperimentRun]:
    wanted = discount.from_prior(prior, f"hyperbolic(k={prior.mean:g})")
    made = {
        "paper": paper_grid(prior, HEADS, gamma_max=GAMMA),
        "gauss": gauss_grid(prior, HEADS, gamma_max=gamma_max),
        "minimax": minimax_grid(wanted, HEADS, gamma_max=gamma_max, t_max=t_max),
    }
    agents = [_named(f"hyper-rainbow-{name}", "hyper-rainbow", horizons) for name, horizons in made.items()]
    return [ExperimentRun(agent, environment, wanted=wanted, **given) for agent in agents]


GRID_PAIRS = [("hyper-rainbow-paper", f"hyper-rainbow-{grid}") for grid in ("gauss", "minimax")]
GRIDS_ABOUT = (
    "Hyper-Rainbow with three sets of horizons for the same hyperbolic discount. The paper's grid has ten heads with "
    "γ ≤ 0.99, whose weighted sum is not hyperbolic. Gauss quadrature and the minimax grid have up to ten heads. In "
    "games, heads of these two grids may have γ above 0.99. "
)


def grids() -> Experiment:
    support = {"settings": {"loss": Categorical(v_max=SUPPORT)}}  # returns grow with γ
    return Experiment(
        name="grids",
        title="Three sets of horizons for one discount",
        about=GRIDS_ABOUT + f"Two of the environments are MinAtar games (k = {K:g}, γ ≤ {GAMMA_MAX:g}). The third is "
        f"the foraging world (k = {foraging.HAZARD.k:g}, γ ≤ {GAMMA:g}), in which agents are evaluated under the "
        "hazard that the discount assumes.",
        runs=[
            *_grids("foraging/hazard", foraging.HAZARD, GAMMA, t_max=200, seeds=10),
            *(
                run
                for game in ("breakout", "asterix")
                for run in _grids(f"minatar/{game}", hazard.Exponential(K), GAMMA_MAX, t_max=1000, **SMALL, **support)
            ),
        ],
        pairs=GRID_PAIRS,
    )


def grids_atari() -> Experiment:
    support = {"loss": Categorical(v_max=SUPPORT)}
    agents = _grids("atari/Pong", hazard.Exponential(K), GAMMA_MAX, t_max=1000, settings=support)
    runs = [replace(run, environment=f"atari/{game}") for game in ABLATION_GAMES for run in agents]
    about = GRIDS_ABOUT + f"The environments are the ablation's ten Atari games (k = {K:g}, γ ≤ {GAMMA_MAX:g})."
    return Experiment("grids-atari", "Three sets of horizons for one discount, in Atari", about, runs, GRID_PAIRS)


def hazard_priors() -> Experiment:
    world, true = "foraging/hazard", foraging.HAZARD
    gamma = math.exp(-true.mean)
    known = _named("rainbow-known-hazard", "rainbow", single(gamma))
    beliefs = {"matched": true.k, "too-safe": true.k / 10, "too-afraid": true.k * 10}
    runs = [_run("rainbow", world, seeds=10), ExperimentRun(known, world, 10, discount.exponential(gamma))]
    for belief, k in beliefs.items():
        horizons = paper_grid(hazard.Exponential(k), HEADS, gamma_max=GAMMA)
        agent = _named(f"hyper-rainbow-{belief}", "hyper-rainbow", horizons)
        runs.append(ExperimentRun(agent, world, 10, discount.hyperbolic(k)))
    return Experiment(
        name="hazard",
        title="Matched and mismatched beliefs about risk",
        about="Agents learn to forage without hazard. They are evaluated under hazard: every episode draws "
        f"λ ~ Exponential({true.k:g}). Hyper-Rainbow assumes this prior, or a prior with a tenth or ten times the "
        f"mean. Rainbow uses γ = {GAMMA:g}, or γ = {gamma:.3f}, which is optimal if λ always equals its mean.",
        runs=runs,
        pairs=[(run.label, "hyper-rainbow-matched") for run in runs if not run.label.endswith("-matched")],
    )


def minatar() -> Experiment:
    names = [name for base in ABLATION for name in (base, f"multi-{base}")]
    return _ablation(
        "minatar",
        "What many horizons add to each part of Rainbow, in MinAtar",
        "The paper's ablation in three MinAtar games.",
        [_run(name, f"minatar/{game}", **SMALL) for game in SMALL_GAMES for name in names],
    )


CATALOGUE: dict[str, Callable[[], Experiment]] = {
    "pathworld": pathworld_agents,
    "hyper-vs-multi": hyper_vs_multi,
    "auxiliary": auxiliary,
    "ablation": ablation,
    "priority": priority,
    "grids": grids,
    "grids-atari": grids_atari,
    "hazard": hazard_priors,
    "minatar": minatar,
    "atari-short": atari_short,
    "seaquest-long": seaquest_long,
    "hazard-minatar": hazard_minatar,
    "heads-minatar": heads_minatar,
}


def experiment(name: str) -> Experiment:
    return CATALOGUE[one_of("experiment", name, CATALOGUE)]()
