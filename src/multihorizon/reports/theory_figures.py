"""Figures of the theory: discounts, hazard priors, the integrals that heads approximate, and the Pathworld tables."""

from typing import Any

import numpy as np
from jaxtyping import Int

from multihorizon.discounting import Discount, Form, Horizons, discount, hazard, paper_grid
from multihorizon.envs.pathworld import Pathworld
from multihorizon.experiments.pathworld import K, PathworldResult, PathworldTable
from multihorizon.reports.figure_style import (
    BLACK,
    BLUE,
    CYCLE,
    DASHES,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    RED,
    SKY,
    canvas,
    styled,
)
from multihorizon.reports.plotting import Axes, Figure

# These agents have the same colour in the figures of all tables.
COLOURS = {"hyperbolic": BLUE, "gamma=0.975": ORANGE, "gamma=0.95": GREEN, "gamma=0.9": RED, "gamma=0.99": PURPLE}
ON_GREY = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY)  # in order of contrast with grey
TITLES = {
    "matching_prior": "The agent's prior matches the world's:\nit values every path nearly right",
    "wrong_k": "Agents with different k; the world's k is 0.05",
    "uniform_hazard": "The world's hazard is uniform, with the same mean",
    "gamma_max": "The effect of the largest learned γ",
}


@styled
def draw_hyperbolic_against_exponential() -> Figure:
    """Draws a hyperbolic and an exponential discount that agree on the first step."""
    figure, (axes,) = canvas(7.2, 4.2)
    t = np.linspace(0, 50, 501)
    gamma = 0.9
    k = 1 / gamma - 1  # both discounts agree on the first step
    axes.plot(t, discount.hyperbolic(k)(t), color=BLUE, label=f"hyperbolic, 1/(1 + {k:.2f}t)")
    axes.plot(t, discount.exponential(gamma)(t), color=ORANGE, linestyle="--", label=f"exponential, {gamma:g}$^t$")
    axes.set(xlabel="steps t", ylabel="what a reward is worth now", ylim=(0, 1.02), xlim=(0, 50))
    axes.set_title("Equal after one step, different later")
    axes.legend()
    return figure


@styled
def draw_priors_and_discounts() -> Figure:
    """Draws hazard priors of mean 1 and the discounts that they imply (Sozou, 1998)."""
    figure, (left, right) = canvas(11, 4.2, columns=2)
    rates, t = np.linspace(0, 4, 801), np.linspace(0, 5, 501)
    priors: dict[str, hazard.Prior] = {
        "exponential": hazard.Exponential(1.0),
        "uniform": hazard.Uniform(2.0),
        "gamma, a = 4": hazard.Gamma(0.25, 4.0),
    }
    left.annotate("", (1, 1.15), (1, 0), arrowprops={"arrowstyle": "-|>", "color": BLACK, "linewidth": 2})
    right.plot(t, hazard.Dirac(1.0).survival(t), color=BLACK, label="Dirac: exponential discount")
    left.plot([], [], color=BLACK, label="Dirac (a known hazard)")
    for (name, prior), colour, dash in zip(priors.items(), CYCLE, ("-", "--", "-."), strict=False):
        left.plot(rates, prior.density(rates), color=colour, linestyle=dash, label=name)
        implied = {
            "exponential": "exponential prior: hyperbolic",
            "gamma, a = 4": "gamma prior: generalised hyperbolic",
        }
        right.plot(t, prior.survival(t), color=colour, linestyle=dash, label=implied.get(name, f"{name} prior"))
    left.set(title="A belief about the hazard ...", xlabel="hazard λ", ylabel="p(λ)", ylim=(0, 1.2), xlim=(0, 4))
    right.set(title="... implies a discount", xlabel="time t", ylabel="d(t) = s(t)", ylim=(0, 1.02), xlim=(0, 5))
    left.legend()
    right.legend()
    return figure


@styled
def draw_gamma_integral() -> Figure:
    """Draws ∫ γ^t dγ = 1 / (1 + t) for the first four steps."""
    figure, panels = canvas(12, 3.3, columns=4, sharey=True)
    gamma = np.linspace(0, 1, 201)
    for t, axes in enumerate(panels):
        axes.plot(gamma, gamma**t, color=BLUE)
        axes.fill_between(gamma, gamma**t, color=SKY, alpha=0.35, linewidth=0)
        axes.axvline(0.9, color=BLACK, linestyle=":", linewidth=1.5)
        area = "1" if t == 0 else f"1/{t + 1}"
        axes.text(0.69, 0.07, f"area {area}", color=RED, fontsize=12, ha="center")
        axes.set(title=f"t = {t}", xlabel="γ", xlim=(0, 1), ylim=(0, 1.05), xticks=[0, 0.5, 0.9])
    panels[0].set_ylabel("γ$^t$")
    figure.suptitle("The area under γ$^t$ is the hyperbolic discount 1/(1 + t); the dotted line is the single γ = 0.9")
    return figure


@styled
def draw_integral_forms(k: float = 0.05, heads: int = 20, gamma_max: float = 0.99, t: int = 10) -> Figure:
    """Draws the lower sums of the two integrals that equal the hyperbolic discount."""
    figure, (left, right) = canvas(11, 4.2, columns=2)
    prior = hazard.Exponential(k)
    power, laplace = (paper_grid(prior, heads, gamma_max=gamma_max, form=form) for form in (Form.POWER, Form.LAPLACE))
    x = np.linspace(0, 1, 1001)
    nodes = power.gammas ** (1 / k)
    left.plot(x, x ** (k * t), color=BLUE)
    rectangles: Any = {"align": "edge", "color": SKY, "alpha": 0.4, "edgecolor": BLUE, "linewidth": 0.6}
    left.bar(nodes, nodes ** (k * t), np.diff(np.append(nodes, 1)), **rectangles)
    left.set(
        title=f"∫ x$^{{kt}}$ dx, each head learns γ = x$^k$\nsum {power.discount(t):.3f}",
        xlabel="x",
        ylabel="x$^{kt}$",
        ylim=(0, 1.05),
    )
    gamma = np.linspace(1e-6, 1, 4001)
    right.plot(gamma, prior.weighting(gamma) * gamma**t, color=BLUE)
    widths = np.diff(np.append(laplace.gammas, 1))
    right.bar(laplace.gammas, laplace.weights / widths * laplace.gammas**t, widths, **rectangles)
    right.set(
        title=f"∫ w(γ) γ$^t$ dγ, peaked as γ → 1\nsum {laplace.discount(t):.3f}",
        xlabel="γ",
        ylabel="w(γ) γ$^t$",
        xlim=(0.75, 1.002),
    )
    figure.suptitle(
        f"Two integrals for 1/(1 + kt) = {discount.hyperbolic(k)(t):.3f}  "
        f"(k = {k:g}, t = {t}, {heads} heads, γ max {gamma_max:g})"
    )
    return figure


@styled
def draw_fit(wanted: Discount, reached: dict[str, Horizons], t_max: int) -> Figure:
    """Draws the wanted discount and the discounts of several sets of horizons, up to `t_max`.

    The figure marks the largest error of the first set.
    """
    figure, (top, bottom) = canvas(7.6, 6.4, rows=2, sharex=True, height_ratios=[2, 1])
    t = np.unique(np.round(np.geomspace(1, t_max + 1, 400)).astype(int)) - 1
    top.plot(t, wanted(t), color=BLACK, linewidth=5, alpha=0.3, label=f"wanted: {wanted.label}")
    for position, (label, horizons) in enumerate(reached.items()):
        style: Any = {"color": ON_GREY[position], "linestyle": "-" if position == 0 else DASHES[position - 1]}
        top.plot(t, horizons.discount(t), label=label, **style)
        bottom.plot(t, horizons.discount(t) - wanted(t), **style)
        if position == 0:
            worst = horizons.fit(wanted, t_max)
            error = float(horizons.discount(worst.max_error_at) - wanted(worst.max_error_at))
            bottom.plot(worst.max_error_at, error, "o", **style)
            said = f"{worst.max_error:.3g} at t = {worst.max_error_at}"
            place: Any = {"xytext": (0, -8), "ha": "center", "va": "top", "textcoords": "offset points"}
            bottom.annotate(said, (worst.max_error_at, error), fontsize=9, **place)
            if t_max >= 100:
                for d, colour, shift, side in (
                    (wanted, BLACK, (8, 2), "left"),
                    (horizons.discount, style["color"], (-8, -8), "right"),
                ):
                    top.plot(100, d(100), "o", color=colour, zorder=5)
                    place = {"xytext": shift, "ha": side, "color": colour, "textcoords": "offset points"}
                    top.annotate(f"d(100) = {d(100):.2f}", (100, float(d(100))), **place)
    top.set(ylabel="d(t)", ylim=(0, 1.25 * float(wanted(0))), title="The discount that the heads add up to")
    top.legend(fontsize=9)
    bottom.axhline(0, color=BLACK, linewidth=1)
    bottom.margins(y=0.2)
    bottom.set(xlabel="steps t", ylabel="reached minus wanted", xscale="symlog", xlim=(0, t_max))
    return figure


@styled
def draw_pathworld(outcome: PathworldResult) -> Figure:
    """Draws the paths and their values to each agent."""
    figure, (left, right) = canvas(12, 4.8, columns=2, width_ratios=[1, 1.25])
    _draw_paths(left, Pathworld(), np.flatnonzero(np.isclose(outcome.true, outcome.true.max())))
    _draw_values(right, outcome)
    right.set_title("What is each path worth?")
    return figure


@styled
def draw_path_values(outcome: PathworldResult) -> Figure:
    """Draws each path's true value, and its value to each agent, in closed form and learned."""
    figure, (axes,) = canvas(7.2, 4.6)
    _draw_values(axes, outcome)
    axes.set_title(TITLES[outcome.experiment.name])
    return figure


@styled
def draw_gamma_max(experiment: PathworldTable) -> Figure:
    """Draws the wanted discount, and the discounts of agents that differ in their largest γ."""
    figure, (left, right) = canvas(11, 4.2, columns=2)
    wanted = discount.hyperbolic(K)
    t = np.arange(0, 226)
    left.plot(t, wanted(t), color=BLACK, linewidth=3, label=f"wanted: 1/(1 + {K:g}t)")
    caps = sorted(experiment.agents.items(), key=lambda item: item[1].gammas[-1])
    for position, (agent, horizons) in enumerate(caps):
        colour, dash = CYCLE[position], DASHES[position]
        left.plot(t, horizons.discount(t), color=colour, linestyle=dash, label=_format_agent(agent))
        right.plot(t, horizons.discount(t) - wanted(t), color=colour, linestyle=dash)
    left.set(title="A cap on γ shortens the discount", xlabel="steps t", ylabel="d(t)", ylim=(0, 1))
    left.legend()
    right.axhline(0, color=BLACK, linewidth=1)
    right.set(title="The error of each discount", xlabel="steps t", ylabel="reached minus wanted")
    return figure


def _format_agent(agent: str) -> str:
    return agent.replace("gamma_max", "γ max").replace("gamma", "γ").replace("=", " = ")


def _draw_values(axes: Axes, outcome: PathworldResult) -> None:
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
        label = "hyperbolic, from 100 heads" if agent == "hyperbolic" else _format_agent(agent)
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


def draw_pathworld_figures(results: list[PathworldResult]) -> dict[str, Figure]:
    """Returns the figures of the Pathworld tables and the theoretical figures, by file name."""
    by_name = {result.experiment.name: result for result in results}
    return {
        "pathworld": draw_pathworld(by_name["matching_prior"]),
        **{f"values_{name}": draw_path_values(result) for name, result in by_name.items()},
        "effect_of_gamma_max": draw_gamma_max(by_name["gamma_max"].experiment),
        "hyperbolic_against_exponential": draw_hyperbolic_against_exponential(),
        "priors_and_discounts": draw_priors_and_discounts(),
        "gamma_integral": draw_gamma_integral(),
        "integral_forms": draw_integral_forms(),
    }
