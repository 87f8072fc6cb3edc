"""Does what change_discount.py does, but in a MinAtar game.

    python benchmarks/change_discount_minatar.py --episodes 500 --out results/change-discount
    python benchmarks/change_discount_minatar.py --over-k --steps 300000 --seeds 3 --out results/change-discount

One agent is trained without hazard, and its discount is then changed.

- By default, the changed agent's mean returns under five hazard priors are compared with the mean returns of agents
  trained for each prior. Deaths by hazard are sampled.
- With --over-k, the agent's horizons are designed for hyperbolic discounts with k from 0.01 to 10. For each k, the
  agent's expected returns with and without the change are compared. For each of four values of k, another agent is
  trained. The effect of the hazard is computed exactly, as in hazard_in_games.py.
"""

import argparse
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np
from change_discount import HEADS, Result, changed, minimax, train, under_priors
from hazard_in_games import EPISODES, MOST_STEPS, play
from matplotlib.figure import Figure

import multihorizon as mh
from multihorizon.envs.minatar import GAMES
from multihorizon.errors import at_least, one_of
from multihorizon.files import writable_folder, write_json
from multihorizon.reports.figure_style import BLUE, GREY, ORANGE, canvas, save, styled
from multihorizon.training.worlds import world

PRIORS: dict[str, mh.hazard.Prior] = {
    "exponential, k = 0.01": mh.hazard.Exponential(0.01),
    "exponential, k = 0.03": mh.hazard.Exponential(0.03),
    "exponential, k = 0.1": mh.hazard.Exponential(0.1),
    "uniform, 0 to 0.1": mh.hazard.Uniform(0.1),
    "gamma, k = 0.02, a = 2": mh.hazard.Gamma(0.02, 2.0),
}
KS = np.geomspace(0.01, 10, 13)
TRAINED_KS = KS[::4]
T_MAX, GAMMA_MAX = 500, 0.997  # episodes last up to several hundred steps


def under_hazard(env: str, seeds: int, steps: int, episodes: int, path: Path) -> None:
    design = mh.design_horizons((0.01, 0.1), heads=HEADS, gamma_max=GAMMA_MAX, t_max=T_MAX)
    print(design.worst, flush=True)

    def retrain(discount: mh.Discount) -> list[mh.Policy]:
        return train(env, minimax(discount, T_MAX, GAMMA_MAX), seeds, steps)

    def earn(policies: list[mh.Policy], prior: mh.hazard.Prior) -> np.ndarray:
        return np.array(
            [mh.evaluate(one, env, episodes, hazard=prior, seed=7, max_steps=5_000).mean for one in policies]
        )

    settings = {"gammas": design.gammas.tolist(), "seeds": seeds, "steps": steps, "episodes": episodes}
    once = train(env, design.horizons, seeds, steps)
    under_priors(once, PRIORS, retrain, earn, T_MAX, lambda rows: write_json(path, settings | {"priors": rows}))


def played(policies: list[mh.Policy], ks: np.ndarray, other: mh.Policy | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Returns the expected return of each seed under the exponential prior of each k [S K].

    Also returns, for each seed, the fraction of visited states in which `other` has a different greedy action [S].
    """
    environment = world(policies[0].environment).make_for_evaluation()
    discounts = jnp.asarray(np.stack([mh.discount.hyperbolic(float(k))(np.arange(MOST_STEPS)) for k in ks], axis=1))
    parameters = jax.tree.map(lambda *leaves: jnp.stack(leaves), *(policy.parameters for policy in policies))
    against = None if other is None else other._programs.learner

    @jax.jit
    @jax.vmap
    def run(parameters: Any, key: Any) -> tuple[Any, Any]:
        found = play(policies[0]._programs.learner, environment, parameters, key, discounts, EPISODES, against)
        return found.returns.mean(axis=0), found.disagreements.sum() / found.lengths.sum()

    returns, share = run(parameters, jax.random.split(jax.random.key(1), len(policies)))
    return np.asarray(returns, float), np.asarray(share, float)


def over_k(env: str, seeds: int, steps: int, path: Path) -> Result:
    design = mh.design_horizons((float(KS[0]), float(KS[-1])), heads=HEADS, gamma_max=GAMMA_MAX, t_max=T_MAX)
    print(design.worst, flush=True)
    once = train(env, design.horizons, seeds, steps)
    found: Result = {"seeds": seeds, "steps": steps, "gammas": design.gammas.tolist()}
    found |= {"changed": {}, "differs": {}, "trained_for_it": {}}
    found["unchanged"] = {f"{k:.4g}": row.tolist() for k, row in zip(KS, played(once, KS)[0].T, strict=True)}
    patient = changed(once, mh.discount.hyperbolic(float(KS[0])), T_MAX)[0]
    for k in KS:
        policies = changed(once, mh.discount.hyperbolic(float(k)), T_MAX)
        returns, share = played(policies, np.array([k]), patient)
        found["changed"][f"{k:.4g}"], found["differs"][f"{k:.4g}"] = returns[:, 0].tolist(), share.tolist()
        print(f"k = {k:.4g}: return {returns.mean():.4g}, actions differ in {share.mean():.1%} of states", flush=True)
    write_json(path, found)
    for k in TRAINED_KS:
        own = train(env, minimax(mh.discount.hyperbolic(float(k)), T_MAX, GAMMA_MAX), seeds, steps)
        found["trained_for_it"][f"{k:.4g}"] = played(own, np.array([k]))[0][:, 0].tolist()
        print(f"k = {k:.4g}: trained for it {np.mean(found['trained_for_it'][f'{k:.4g}']):.4g}", flush=True)
        write_json(path, found)
    return found


@styled
def draw(found: Result, game: str) -> Figure:
    """Draws returns, divided by the returns of the unchanged agent, and the fraction of choices that change with k."""
    figure, (left, right) = canvas(10.5, 3.6, columns=2)
    figure.set_layout_engine("constrained", wspace=0.08)
    before = {k: np.mean(row) for k, row in found["unchanged"].items()}
    for name, colour, mark, label in (
        ("changed", BLUE, "-", "one training, discount changed"),
        ("trained_for_it", ORANGE, "o", "trained for this k"),
    ):
        rows = found[name]
        ratios = np.array([np.array(row) / before[k] for k, row in rows.items()])
        ks = np.array([float(k) for k in rows])
        left.plot(ks, ratios.mean(axis=1), mark, color=colour, ms=7, label=label)
        left.vlines(ks, ratios.min(axis=1), ratios.max(axis=1), color=colour, alpha=0.4, lw=2)
    left.axhline(1, color=GREY, lw=1)
    left.set(title=f"{game.capitalize()}: return under hazard", ylabel="return / return without the change")
    left.legend(fontsize=9)
    shares = np.array(list(found["differs"].values()))
    right.plot(KS, shares.mean(axis=1), color=BLUE)
    right.fill_between(KS, shares.min(axis=1), shares.max(axis=1), color=BLUE, alpha=0.2, lw=0)
    right.set(title=f"{game.capitalize()}: choices that differ from k = {KS[0]:g}", ylabel="share of states")
    right.set_ylim(0, 1)
    for axes in (left, right):
        axes.set(xscale="log", xlabel="k of the discount 1 / (1 + kt)")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="breakout", help="MinAtar game (default: breakout)")
    parser.add_argument("--over-k", action="store_true", help="compare for each k instead of under five priors")
    parser.add_argument("--seeds", type=int, default=10, help="seeds per agent (default: 10)")
    parser.add_argument("--steps", type=int, default=1_000_000, help="training steps per seed (default: 1,000,000)")
    parser.add_argument("--episodes", type=int, default=1_000, help="episodes per seed and prior (default: 1,000)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    for name in ("seeds", "steps", "episodes"):
        at_least(f"--{name}", getattr(options, name), 1)
    game = one_of("MinAtar game", options.game, GAMES)
    env, path = f"minatar/{game}", writable_folder(options.out) / f"minatar_{game}.json"
    if options.over_k:
        path = path.with_stem(f"{path.stem}_over_k")
        save(draw(over_k(env, options.seeds, options.steps, path), game), path.with_suffix(".png"))
    else:
        under_hazard(env, options.seeds, options.steps, options.episodes, path)


if __name__ == "__main__":
    main()
