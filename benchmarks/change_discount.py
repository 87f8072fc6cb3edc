"""Changes the discount of trained agents, and compares them to agents that are trained for the new discount.

    python benchmarks/change_discount.py --out results/change-discount

In each world, one agent is trained without hazard. Its horizons are designed for hyperbolic discounts with k from 0.01
to 10. Its discount is then changed.

- In Foraging, the changed agent's returns under five hazard priors are compared with the returns of agents trained for
  each prior.
- In Foraging and Pathworld, the changed agent's choices for k from 0.01 to 10 are compared with the choices of the
  exact solver. For seven values of k, the changed agent is also compared with an agent trained for this k.

Choices and returns are computed exactly from the greedy actions in all states.
"""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import numpy as np
from matplotlib.figure import Figure

import multihorizon as mh
from multihorizon.envs.foraging import Foraging
from multihorizon.envs.pathworld import Pathworld
from multihorizon.errors import at_least
from multihorizon.experiments.foraging import best_choice, choice_of
from multihorizon.files import writable_folder, write_json
from multihorizon.reports.figure_style import BLUE, GREY, ORANGE, canvas, save, styled

PRIORS: dict[str, mh.hazard.Prior] = {
    "exponential, k = 0.02": mh.hazard.Exponential(0.02),
    "exponential, k = 0.1": mh.hazard.Exponential(0.1),
    "exponential, k = 0.5": mh.hazard.Exponential(0.5),
    "uniform, 0 to 0.4": mh.hazard.Uniform(0.4),
    "gamma, k = 0.05, a = 3": mh.hazard.Gamma(0.05, 3.0),
}
KS = np.geomspace(0.01, 10, 25)
TRAINED_KS = np.geomspace(0.01, 10, 7)
PATHS = 5
T_MAX = 40  # every meal and every end of a path is less than 40 steps away
HEADS, GAMMA_MAX = 6, 0.995
STEPS = {"foraging": 15_000, "pathworld": 60_000}  # the environments' defaults
SHORT_STEPS = 20_000  # too few training steps for Pathworld
DRAWS = 10_000  # bootstrap samples

Result = dict[str, Any]


def train(env: str, horizons: mh.Horizons, seeds: int, steps: int) -> list[mh.Policy]:
    agent = mh.agent("hyper-rainbow", horizons=horizons)
    run = mh.train(
        agent, env, steps=steps, training_steps=steps, evaluation_steps=0, seeds=seeds, watcher=mh.NoProgress()
    )
    return [run.policy(seed) for seed in run.seeds]


def changed(policies: list[mh.Policy], discount: mh.Discount, t_max: int = T_MAX) -> list[mh.Policy]:
    return [policy.with_discount(discount, t_max=t_max) for policy in policies]


def minimax(discount: mh.Discount, t_max: int = T_MAX, gamma_max: float = GAMMA_MAX) -> mh.Horizons:
    return mh.minimax_grid(discount, HEADS, gamma_max=gamma_max, t_max=t_max)


def foraging_actions(policy: mh.Policy) -> np.ndarray:
    world = Foraging().environment()
    return np.asarray(policy.act(np.eye(world.mdp.states).reshape(-1, *world.observation_shape)))


def earned_foraging(policies: list[mh.Policy], prior: mh.hazard.Prior) -> np.ndarray:
    return np.array([choice_of(foraging_actions(policy), prior).earned for policy in policies])


def far_meals(policies: list[mh.Policy]) -> np.ndarray:
    """Returns, for each seed, the fraction of start positions from which the agent walks to the far, large meal."""
    far = best_choice(mh.hazard.Dirac(1e-6)).meals
    return np.array([np.mean(choice_of(foraging_actions(policy)).meals == far) for policy in policies])


def exact_far_meals(k: float) -> float:
    far = best_choice(mh.hazard.Dirac(1e-6)).meals
    return float(np.mean(best_choice(mh.hazard.Exponential(k)).meals == far))


def chosen_path(policies: list[mh.Policy]) -> np.ndarray:
    start = np.eye(Pathworld(PATHS).mdp().states)[0]
    return np.array([1 + int(policy.act(start)) for policy in policies])


def exact_path(k: float) -> float:
    return 1.0 + int(np.argmax(Pathworld(PATHS).values(mh.discount.hyperbolic(k))))


def resampled(values: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.choice(values, (DRAWS, len(values))).mean(axis=1)


def compare(ours: np.ndarray, theirs: np.ndarray) -> Result:
    """Returns the ratio of two means over seeds, with a 95% bootstrap interval.

    The ratio and the interval are None if any bootstrap mean of `theirs` is not positive.
    """
    rng = np.random.default_rng(0)
    found: Result = {"changed": ours.tolist(), "trained_for_it": theirs.tolist(), "ratio": None, "ratio_interval": None}
    above, below = resampled(ours, rng), resampled(theirs, rng)
    if np.all(below > 0):
        found["ratio"] = float(ours.mean() / theirs.mean())
        found["ratio_interval"] = [float(q) for q in np.quantile(above / below, [0.025, 0.975])]
    return found


def show(name: str, row: Result) -> None:
    earned = {what: np.mean(row[what]) for what in ("changed", "trained_for_it", "unchanged")}
    means = f"{name}: " + ", ".join(f"{what.replace('_', ' ')} {mean:.3f}" for what, mean in earned.items())
    if row["ratio"] is None:
        print(f"{means}, no ratio", flush=True)
        return
    low, high = row["ratio_interval"]
    print(f"{means}, ratio {row['ratio']:.3f} ({low:.3f} to {high:.3f})", flush=True)


def under_priors(
    once: list[mh.Policy],
    priors: dict[str, mh.hazard.Prior],
    retrain: Callable[[mh.Discount], list[mh.Policy]],
    earn: Callable[[list[mh.Policy], mh.hazard.Prior], np.ndarray],
    t_max: int,
    write: Callable[[dict[str, Result]], object] = lambda rows: None,
) -> dict[str, Result]:
    """Changes the discount of an agent to that of each prior, and compares the agent with agents trained for the prior.

    Calls `write` after each prior.
    """
    rows: dict[str, Result] = {}
    for name, prior in priors.items():
        discount = mh.discount.from_prior(prior)
        rows[name] = compare(earn(changed(once, discount, t_max), prior), earn(retrain(discount), prior))
        rows[name]["unchanged"] = earn(once, prior).tolist()
        rows[name]["max_error"] = mh.reweight(once[0].horizons, discount, t_max=t_max).max_error
        show(name, rows[name])
        write(rows)
    return rows


def over_k(
    once: list[mh.Policy], env: str, steps: int, seeds: int, choose: Callable[[list[mh.Policy]], np.ndarray], exact: Any
) -> Result:
    hyperbolic = mh.discount.hyperbolic
    found: Result = {
        "changed": {f"{k:.4g}": choose(changed(once, hyperbolic(float(k)))).tolist() for k in KS},
        "exact": {f"{k:.4g}": exact(float(k)) for k in KS},
        "trained_for_it": {},
    }
    for k in TRAINED_KS:
        trained = train(env, minimax(hyperbolic(float(k))), seeds, steps)
        found["trained_for_it"][f"{k:.4g}"] = choose(trained).tolist()
        print(f"{env}, k = {k:.4g}: {found['trained_for_it'][f'{k:.4g}']}", flush=True)
    return found


def small_worlds(seeds: int, own_seeds: int, out: Path) -> None:
    design = mh.design_horizons((float(KS[0]), float(KS[-1])), heads=HEADS, gamma_max=GAMMA_MAX, t_max=T_MAX)
    print(design.report(), flush=True)
    found: Result = {"gammas": design.gammas.tolist(), "seeds": seeds, "seeds_trained_for_k": own_seeds}
    found |= {"steps": STEPS | {"pathworld_short": SHORT_STEPS}}

    def retrain(discount: mh.Discount) -> list[mh.Policy]:
        return train("foraging", minimax(discount), seeds, STEPS["foraging"])

    once = train("foraging", design.horizons, seeds, STEPS["foraging"])
    found["priors"] = under_priors(once, PRIORS, retrain, earned_foraging, T_MAX)
    for name, prior in PRIORS.items():
        found["priors"][name]["best"] = best_choice(prior).earned
    write_json(out / "change_discount.json", found)
    found["foraging"] = over_k(once, "foraging", STEPS["foraging"], own_seeds, far_meals, exact_far_meals)
    write_json(out / "change_discount.json", found)
    for name, steps in (("pathworld_short", SHORT_STEPS), ("pathworld", STEPS["pathworld"])):
        once = train("pathworld", design.horizons, seeds, steps)
        found[name] = over_k(once, "pathworld", steps, own_seeds, chosen_path, exact_path)
        write_json(out / "change_discount.json", found)
    save(draw_choices(found), out / "choices.png")


@styled
def draw_choices(found: Result) -> Figure:
    figure, panels = canvas(13, 3.6, columns=3)
    figure.set_layout_engine("constrained", wspace=0.06)
    titles = {
        "foraging": ("Foraging", "share of far meals chosen"),
        "pathworld": (f"Pathworld, {STEPS['pathworld']:,} steps", "path chosen"),
        "pathworld_short": (f"Pathworld, {SHORT_STEPS:,} steps: too few", "path chosen"),
    }
    for axes, (name, (title, label)) in zip(panels, titles.items(), strict=True):
        rows = found[name]
        shares = np.array(list(rows["changed"].values()))
        axes.plot(KS, list(rows["exact"].values()), color=GREY, lw=6, alpha=0.45, label="exact solver")
        axes.plot(KS, shares.mean(axis=1), color=BLUE, label="one training, discount changed")
        axes.fill_between(KS, shares.min(axis=1), shares.max(axis=1), color=BLUE, alpha=0.2, lw=0)
        trained = np.array([np.mean(values) for values in rows["trained_for_it"].values()])
        axes.plot(TRAINED_KS, trained, "o", color=ORANGE, ms=7, label="trained for this k")
        axes.set(xscale="log", xlabel="k of the discount 1 / (1 + kt)", ylabel=label, title=title)
    panels[0].set_ylim(-0.03, 1.03)
    panels[0].legend(fontsize=9, loc="lower left")
    for axes in panels[1:]:
        axes.set_yticks(range(1, PATHS + 1))
        axes.set_ylim(0.8, PATHS + 0.2)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="seeds per agent (default: 10)")
    parser.add_argument("--own-seeds", type=int, default=3, help="seeds per agent trained for one k (default: 3)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for name in ("seeds", "own_seeds"):
        at_least(f"--{name.replace('_', '-')}", getattr(options, name), 1)
    writable_folder(options.out)
    small_worlds(options.seeds, options.own_seeds, options.out)


if __name__ == "__main__":
    main()
