"""Figures of the Pathworld experiments."""

from typing import Any

import numpy as np
from jaxtyping import Int
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from multihorizon.discounting import discount
from multihorizon.envs.pathworld import Pathworld
from multihorizon.experiments.pathworld import Experiment, K, Outcome
from multihorizon.report.style import BLACK, BLUE, CYCLE, DASHES, GREEN, GREY, ORANGE, PURPLE, RED, canvas, styled

# An agent that is in several figures has one colour in all of them.
COLOURS = {"hyperbolic": BLUE, "gamma=0.975": ORANGE, "gamma=0.95": GREEN, "gamma=0.9": RED, "gamma=0.99": PURPLE}
TITLES = {
    "matching_prior": "The hyperbolic agent's prior is the world's:\nit values every path nearly right",
    "wrong_k": "The agent's k is not the world's 0.05",
    "uniform_hazard": "The world's hazard is uniform, with the same mean",
    "gamma_max": "What the largest learned γ does",
}


@styled
def picture(outcome: Outcome) -> Figure:
    """The picture to see first: the paths, and what they are worth to each agent."""
    figure, (left, right) = canvas(12, 4.8, columns=2, width_ratios=[1, 1.25])
    _draw_paths(left, Pathworld(), np.flatnonzero(np.isclose(outcome.true, outcome.true.max())))
    _draw_values(right, outcome)
    right.set_title("What is each path worth?")
    return figure


@styled
def values(outcome: Outcome) -> Figure:
    figure, (axes,) = canvas(7.2, 4.6)
    _draw_values(axes, outcome)
    axes.set_title(TITLES[outcome.experiment.name])
    return figure


@styled
def gamma_max(experiment: Experiment) -> Figure:
    """The discount that each cap on γ really adds up to, beside the one wanted."""
    figure, (left, right) = canvas(11, 4.2, columns=2)
    wanted = discount.hyperbolic(K)
    t = np.arange(0, 226)
    left.plot(t, wanted(t), color=BLACK, linewidth=3, label=f"wanted: 1/(1 + {K:g}t)")
    caps = sorted(experiment.agents.items(), key=lambda item: item[1].gammas[-1])
    for position, (agent, horizons) in enumerate(caps):
        colour, dash = CYCLE[position], DASHES[position]
        left.plot(t, horizons.discount(t), color=colour, linestyle=dash, label=_label(agent))
        right.plot(t, horizons.discount(t) - wanted(t), color=colour, linestyle=dash)
    left.set(title="A cap on γ shortens the discount", xlabel="steps t", ylabel="d(t)", ylim=(0, 1))
    left.legend()
    right.axhline(0, color=BLACK, linewidth=1)
    right.set(title="... by this much", xlabel="steps t", ylabel="reached minus wanted")
    return figure


def _label(agent: str) -> str:
    return agent.replace("gamma_max", "γ max").replace("gamma", "γ").replace("=", " = ")


def _draw_values(axes: Axes, outcome: Outcome) -> None:
    paths = np.arange(1, len(outcome.true) + 1)
    axes.plot(paths, outcome.true, color=BLACK, linewidth=5, alpha=0.25, label="true value under hazard", zorder=3)
    axes.plot(paths, outcome.simulated, "x", color=BLACK, markersize=6, label="simulated", zorder=6)
    agents = list(outcome.experiment.agents)
    colours = {agent: COLOURS.get(agent, colour) for agent, colour in zip(agents, CYCLE, strict=False)}
    dashes = iter(("-", *DASHES))
    for agent in agents:
        line: Any = {"linestyle": next(dashes), "zorder": 4}
        if agent == agents[0]:
            line |= {"linewidth": 2.4, "zorder": 5}
        label = "hyperbolic, from 100 heads" if agent == "hyperbolic" else _label(agent)
        axes.plot(paths, outcome.closed[agent], color=colours[agent], label=label, **line)
        axes.plot(paths, outcome.learned[agent], "o", color=colours[agent], markersize=4, zorder=line["zorder"])
    axes.plot([], [], "o", color=GREY, markersize=4, label="learned by Q-learning")
    top = 1.45 * max(float(v.max()) for v in [outcome.true, *outcome.closed.values()])
    axes.set(xlabel="path i  (i² steps long, pays i)", ylabel="value", xticks=paths, ylim=(-0.04 * top, top))
    axes.legend(fontsize=9, ncols=3, loc="upper center")


def _draw_paths(axes: Axes, world: Pathworld, best: Int[np.ndarray, " n"]) -> None:
    for i, (length, reward) in enumerate(zip(world.lengths, world.rewards, strict=True)):
        colour = RED if i in best else BLUE
        axes.plot([0, length], [i + 1, i + 1], color=colour, linewidth=1.6, solid_capstyle="round")
        axes.plot(length, i + 1, "o", color=colour, markersize=4 + reward * 0.6)
        axes.annotate(
            f"{reward:g}", (length, i + 1), xytext=(9, 0), textcoords="offset points", va="center", fontsize=9
        )
    axes.plot([0, 0], [1, world.paths], color=BLACK, linewidth=2)
    axes.plot(0, (world.paths + 1) / 2, "s", color=BLACK, markersize=9, zorder=5)
    named = " and ".join(str(i + 1) for i in best)
    axes.annotate(
        f"path{'s' if len(best) > 1 else ''} {named}: worth most\nunder the true hazard",
        (world.lengths[best[-1]] + 14, best.mean() + 1),
        xytext=(95, 3.2),
        color=RED,
        fontsize=10,
        va="center",
        arrowprops={"arrowstyle": "->", "color": RED},
    )
    axes.set(xlabel="steps to walk, each with the same unknown risk of dying", ylabel="path i, which pays i at its end")
    axes.set(xlim=(-6, 250), yticks=range(1, world.paths + 1), title="One choice: near and small, or far and large?")
    axes.grid(False)
