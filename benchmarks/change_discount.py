"""One training, any time preference: agents whose discount is changed after training, beside agents trained for it.

python benchmarks/change_discount.py --out results/change-discount

The foraging world offers a near, small meal and a far, large one from each of six starts. One agent is trained without
hazard, with horizons designed for a family of discounts. Its discount is then changed to match each of five hazard
priors, and it is evaluated under that hazard. Beside it stands an agent trained with horizons for that prior alone. The
second figure shows how often each prefers the far meal as k of a hyperbolic discount runs over three decades.
"""

import argparse
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import numpy as np

import multihorizon as mh
from multihorizon.envs.foraging import Foraging
from multihorizon.errors import at_least
from multihorizon.files import writable_folder, write_json
from multihorizon.reports.figure_style import BLUE, GREY, canvas, save, styled

PRIORS: dict[str, Any] = {
    "exponential, k = 0.02": mh.hazard.Exponential(0.02),
    "exponential, k = 0.1": mh.hazard.Exponential(0.1),
    "exponential, k = 0.5": mh.hazard.Exponential(0.5),
    "uniform to 0.4": mh.hazard.Uniform(0.4),
    "gamma, k = 0.05, a = 3": mh.hazard.Gamma(0.05, 3.0),
}
DECADES = np.geomspace(0.01, 10, 13)
T_MAX = 40  # no meal is further away
GAMMA_MAX = 0.99
HEADS = 5


def train(horizons: mh.Horizons, seeds: int, steps: int) -> list[mh.Policy]:
    agent = mh.agent("hyper-rainbow", horizons=horizons)
    run = mh.train(agent, "foraging", steps=steps, training_steps=steps // 3, evaluation_steps=0, seeds=seeds)
    return [run.policy(seed) for seed in run.seeds]


def earned(policies: list[mh.Policy], prior: Any, episodes: int) -> np.ndarray:
    """Returns each seed's mean undiscounted return under hazard."""
    return np.array([mh.evaluate(p, "foraging", episodes, hazard=prior, epsilon=0.0, seed=7).mean for p in policies])


def patience(policies: list[mh.Policy], k: float) -> np.ndarray:
    """Returns the share of the six starts from which each seed walks to the far meal, by a hyperbolic discount."""
    field = Foraging()
    world = field.environment()
    discount = mh.discount.hyperbolic(k)
    shares = []
    for policy in policies:
        actions = policy.with_discount(discount, t_max=T_MAX, tolerance=0.2).act(
            np.stack([np.asarray(world.observe(state)) for state in range(world.mdp.states)])
        )
        meals = mh.mdp.action_values(world.mdp, np.eye(world.actions)[actions])[field.starts, actions[field.starts]]
        shares.append(np.mean(meals.round() == far_meals(field)))
    return np.array(shares)


def far_meals(field: Foraging) -> np.ndarray:
    width = field.shape[1]
    rows = [field.rows[start // width].strip("#").split("S") for start in field.starts]
    return np.array([int(right[-1]) if len(right) > len(left) else int(left[0]) for left, right in rows])


def exact_patience(k: float) -> float:
    """Returns the share of far meals that the exact solver prefers by 1 / (1 + kt)."""
    field, world = Foraging(), Foraging().environment()
    values = mh.mdp.naive(world.mdp, mh.minimax_grid(mh.discount.hyperbolic(k), 6, gamma_max=0.999, t_max=T_MAX))
    actions = np.asarray(values.actions)[..., 0] if np.ndim(values.actions) > 1 else np.asarray(values.actions)
    meals = mh.mdp.action_values(world.mdp, np.eye(world.actions)[actions])[field.starts, actions[field.starts]]
    return float(np.mean(meals.round() == far_meals(field)))


def resampled(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Returns bootstrap means over seeds."""
    return rng.choice(values, (10_000, len(values))).mean(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=15_000, help="training steps of each seed (default: 15,000)")
    parser.add_argument("--episodes", type=int, default=2_000, help="episodes under hazard per seed (default: 2,000)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    at_least("--seeds", options.seeds, 2)
    writable_folder(options.out)
    rng = np.random.default_rng(0)
    family = [mh.discount.from_prior(prior) for prior in PRIORS.values()]
    design = mh.design_horizons(family, heads=HEADS, gamma_max=GAMMA_MAX, t_max=T_MAX)
    print(design.report(), flush=True)
    once = train(design.horizons, options.seeds, options.steps)
    found: dict[str, Any] = {"gammas": design.horizons.gammas.tolist(), "seeds": options.seeds, "steps": options.steps}
    rows = {}
    for name, prior in PRIORS.items():
        discount = mh.discount.from_prior(prior)
        changed = [policy.with_discount(discount, t_max=T_MAX) for policy in once]
        own = train(mh.minimax_grid(discount, HEADS, gamma_max=GAMMA_MAX, t_max=T_MAX), options.seeds, options.steps)
        ours, theirs = earned(changed, prior, options.episodes), earned(own, prior, options.episodes)
        ratio = resampled(ours, rng) / resampled(theirs, rng)
        rows[name] = {
            "max_error": mh.reweight(design.horizons, discount, t_max=T_MAX).max_error,
            "changed": ours.tolist(),
            "trained_for_it": theirs.tolist(),
            "ratio": float(ours.mean() / theirs.mean()),
            "ratio_interval": [float(q) for q in np.quantile(ratio, [0.025, 0.975])],
        }
        print(
            f"{name}: changed {ours.mean():.3f}, trained for it {theirs.mean():.3f}, ratio {rows[name]['ratio']:.3f} "
            f"({rows[name]['ratio_interval'][0]:.3f} to {rows[name]['ratio_interval'][1]:.3f})",
            flush=True,
        )
        write_json(options.out / "change_discount.json", found | {"priors": rows})
    choices = {f"{k:.4g}": patience(once, float(k)).tolist() for k in DECADES}
    exact = {f"{k:.4g}": exact_patience(float(k)) for k in DECADES}
    write_json(options.out / "change_discount.json", found | {"priors": rows, "far_meals": choices, "exact": exact})
    draw(choices, exact, options.out)


@styled
def draw(choices: dict[str, list[float]], exact: dict[str, float], out: Path) -> None:
    figure, axes = canvas(6.5, 3.6)
    ks = np.array([float(k) for k in choices])
    shares = np.array(list(choices.values()))
    axes.plot(ks, list(exact.values()), color=GREY, lw=4, alpha=0.5, label="exact solver")
    axes.plot(ks, shares.mean(axis=1), color=BLUE, marker="o", label="one training, discount changed")
    axes.fill_between(ks, shares.min(axis=1), shares.max(axis=1), color=BLUE, alpha=0.2, lw=0)
    axes.set_xscale("log")
    axes.set_xlabel("k of the hyperbolic discount 1 / (1 + kt)")
    axes.set_ylabel("share of far meals chosen")
    axes.set_title("One trained agent, any time preference")
    axes.legend()
    save(figure, out / "far_meals.png")


if __name__ == "__main__":
    main()
