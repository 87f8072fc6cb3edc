"""Figures of the mathematics: discounts, the priors behind them, and the integrals that the heads approximate."""

from typing import Any

import numpy as np
from matplotlib.figure import Figure

from multihorizon.discounting import Discount, Form, Horizons, discount, hazard, paper_grid
from multihorizon.report.style import BLACK, BLUE, CYCLE, DASHES, ORANGE, RED, SKY, canvas, styled


@styled
def hyperbolic_against_exponential() -> Figure:
    figure, (axes,) = canvas(7.2, 4.2)
    t = np.linspace(0, 50, 501)
    gamma = 0.9
    k = 1 / gamma - 1  # the same discount of the first step
    axes.plot(t, discount.hyperbolic(k)(t), color=BLUE, label=f"hyperbolic, 1/(1 + {k:.2f}t)")
    axes.plot(t, discount.exponential(gamma)(t), color=ORANGE, linestyle="--", label=f"exponential, {gamma:g}$^t$")
    axes.set(xlabel="steps t", ylabel="what a reward is worth now", ylim=(0, 1.02), xlim=(0, 50))
    axes.set_title("Alike in the first step, apart ever after")
    axes.legend()
    return figure


@styled
def priors_and_discounts() -> Figure:
    """All with mean hazard 1, after Sozou (1998)."""
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
def gamma_integral() -> Figure:
    """∫ γ^t dγ = 1 / (1 + t), for the first four steps."""
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
def integral_forms(k: float = 0.05, heads: int = 20, gamma_max: float = 0.99, t: int = 10) -> Figure:
    """Lower sums of the two integrals that equal the hyperbolic discount."""
    figure, (left, right) = canvas(11, 4.2, columns=2)
    prior = hazard.Exponential(k)
    power, laplace = (paper_grid(prior, heads, gamma_max, form) for form in (Form.POWER, Form.LAPLACE))
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
def fit(wanted: Discount, reached: dict[str, Horizons], t_max: int) -> Figure:
    """What each set of horizons adds up to, beside the discount wanted; the first is the one asked for."""
    figure, (top, bottom) = canvas(7.6, 6.4, rows=2, sharex=True, height_ratios=[2, 1])
    t = np.unique(np.round(np.geomspace(1, t_max + 1, 400)).astype(int)) - 1
    top.plot(t, wanted(t), color=BLACK, linewidth=5, alpha=0.3, label=f"wanted: {wanted.label}")
    for position, (label, horizons) in enumerate(reached.items()):
        style: Any = {"color": CYCLE[position], "linestyle": "-" if position == 0 else DASHES[position - 1]}
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
    top.set(ylabel="d(t)", ylim=(0, 1.25 * float(wanted(0))), title="The discount that the heads really add up to")
    top.legend(fontsize=9)
    bottom.axhline(0, color=BLACK, linewidth=1)
    bottom.margins(y=0.2)
    bottom.set(xlabel="steps t", ylabel="reached minus wanted", xscale="symlog", xlim=(0, t_max))
    return figure
