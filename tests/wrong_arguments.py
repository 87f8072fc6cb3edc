"""Calls every public mathematical function with invalid arguments, and prints problems.

Within 20 seconds, a call must return a value or raise a one-line InputError, without a warning. This is a separate
program, because the tests' type checker would reject the arguments first.
"""

import inspect
import math
import signal
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import gymnasium
import numpy as np

import multihorizon as mh

LONGEST_SECONDS = 20
WRONG: dict[str, Any] = {
    "None": None,
    "text": "text",
    "a number as text": "0.5",
    "an empty list": [],
    "a mixed list": [1.0, "a"],
    "a ragged list": [[1.0, 2.0], [3.0]],
    "a dictionary": {"a": 1},
    "an object": object(),
    "a class": float,
    "a function without arguments": lambda: 0.5,
    "NaN": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
    "complex": 1j,
    "True": True,
    "-1": -1,
    "0": 0,
    "-0.5": -0.5,
    "1.5": 1.5,
    "a huge whole number": 10**400,
    "a large whole number": 2**70,
    "a trillion": 10**12,
    "1e300": 1e300,
    "5e-324": 5e-324,
    "an empty array": np.zeros(0),
    "an array of NaN": np.full(3, math.nan),
    "a complex array": np.full(2, 1j),
    "an array of text": np.array(["a", "b"]),
    "an array of objects": np.array([None, object()]),
    "an array with three axes": np.ones((2, 3, 4)),
    "a large array": np.full(5, 2.0**80),
    "an array of negative numbers": -np.ones(3),
}

RNG = np.random.default_rng(0)
HORIZONS = mh.Horizons([0.5, 0.9, 0.99], [0.2, 0.3, 0.5])
HYPERBOLIC = mh.discount.hyperbolic(0.1)
TRANSITIONS = np.full((2, 2, 2), 0.4)
MDP = mh.mdp.HazardousMDP(TRANSITIONS, np.array([[1.0, 0.0], [0.5, 2.0]]))
CARTPOLE = gymnasium.make("CartPole-v1")
TIMELINE = mh.decode_rewards([1.0, 2.0, 3.0], [0.5, 0.9, 0.99], 20)
POLICY = np.full((2, 2), 0.5)
PRIORS = [
    mh.hazard.Dirac(0.1),
    mh.hazard.Exponential(0.1),
    mh.hazard.Gamma(0.1, 2.0),
    mh.hazard.Uniform(0.2),
    mh.hazard.Stable(0.1, 0.5),
    mh.hazard.MittagLeffler(0.1, 0.5),
    mh.hazard.Samples([0.1, 0.2]),
    mh.hazard.Mixture([mh.hazard.Dirac(0.1), mh.hazard.Exponential(0.1)]),
    mh.hazard.Density(lambda rate: 10 * math.exp(-10 * rate)),
]


def of_time(t: float) -> float:
    return 1 / (1 + t)


def density(rate: float) -> float:
    return 10 * math.exp(-10 * rate)


# One valid call of each public function. An invalid call replaces one argument of a valid call.
CALLS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "hazard.Dirac": (mh.hazard.Dirac, {"k": 0.1}),
    "hazard.Exponential": (mh.hazard.Exponential, {"k": 0.1}),
    "hazard.Gamma": (mh.hazard.Gamma, {"k": 0.1, "a": 2.0}),
    "hazard.Uniform": (mh.hazard.Uniform, {"k": 0.2, "low": 0.1}),
    "hazard.Stable": (mh.hazard.Stable, {"k": 0.1, "s": 0.5}),
    "hazard.MittagLeffler": (mh.hazard.MittagLeffler, {"k": 0.1, "s": 0.5}),
    "hazard.Samples": (mh.hazard.Samples, {"rates": [0.1, 0.2], "weights": [0.5, 0.5]}),
    "hazard.Mixture": (mh.hazard.Mixture, {"components": [mh.hazard.Dirac(0.1)], "weights": [1.0]}),
    "hazard.Density": (mh.hazard.Density, {"function": density, "support": (0.0, math.inf)}),
    "discount.deadline": (mh.discount.deadline, {"last": 3.0}),
    "discount.ebert_prelec": (mh.discount.ebert_prelec, {"k": 0.1, "s": 0.5}),
    "discount.exponential": (mh.discount.exponential, {"gamma": 0.9}),
    "discount.from_function": (mh.discount.from_function, {"function": of_time, "label": "mine"}),
    "discount.from_prior": (mh.discount.from_prior, {"prior": PRIORS[0], "label": "mine"}),
    "discount.generalised_hyperbolic": (mh.discount.generalised_hyperbolic, {"k": 0.1, "a": 2.0}),
    "discount.hyperbolic": (mh.discount.hyperbolic, {"k": 0.1}),
    "discount.none": (mh.discount.none, {}),
    "discount.quasi_hyperbolic": (mh.discount.quasi_hyperbolic, {"beta": 0.7, "delta": 0.9}),
    "discount.rachlin": (mh.discount.rachlin, {"k": 0.1, "s": 0.5}),
    "discount.uniform": (mh.discount.uniform, {"k": 0.1}),
    "Discount()": (HYPERBOLIC, {"t": 1.0}),
    "Discount.log": (HYPERBOLIC.log, {"t": 1.0}),
    "Horizons": (mh.Horizons, {"gammas": [0.5, 0.9], "weights": [0.5, 0.5]}),
    "Horizons.fit": (HORIZONS.fit, {"target": HYPERBOLIC, "t_max": 20}),
    "single": (mh.single, {"gamma": 0.9}),
    "paper_grid": (mh.paper_grid, {"source": HYPERBOLIC, "heads": 3, "gamma_max": 0.99}),
    "gauss_grid": (mh.gauss_grid, {"source": HYPERBOLIC, "heads": 3, "gamma_max": 0.99}),
    "minimax_grid": (mh.minimax_grid, {"source": HYPERBOLIC, "heads": 2, "gamma_max": 0.9, "t_max": 20}),
    "report_grid": (
        mh.report_grid,
        {"discount": HYPERBOLIC, "grid": "paper", "heads": 2, "gamma_max": 0.9, "t_max": 20, "compare": False},
    ),
    "reweight": (
        mh.reweight,
        {"horizons": HORIZONS, "discount": HYPERBOLIC, "t_max": 20, "method": mh.FitMethod.MINIMAX, "tolerance": 0.9},
    ),
    "design_horizons": (
        mh.design_horizons,
        {"discounts": [HYPERBOLIC, mh.discount.hyperbolic(0.2)], "heads": 2, "gamma_max": 0.9, "t_max": 20},
    ),
    "decode_rewards": (
        mh.decode_rewards,
        {"q_values": [1.0, 2.0, 3.0], "gammas": [0.5, 0.9, 0.99], "t_max": 20, "noise": 0.1, "signed": False},
    ),
    "RewardTimeline.value": (TIMELINE.value, {"discount": HYPERBOLIC}),
    "Offer": (mh.Offer, {"sooner": 1.0, "later": 1.1, "delay": 1.0}),
    "Offer.values": (mh.Offer().values, {"discount": HYPERBOLIC, "wait": 1.0}),
    "Offer.advantage": (mh.Offer().advantage, {"discount": HYPERBOLIC, "wait": 1.0}),
    "Offer.taken": (mh.Offer().taken, {"discount": HYPERBOLIC, "wait": 1.0}),
    "Offer.reversal": (mh.Offer().reversal, {"discount": HYPERBOLIC, "longest_wait": 20}),
    "envs.GymnasiumHazard": (mh.envs.GymnasiumHazard, {"env": CARTPOLE, "prior": PRIORS[0], "seed": 1}),
    "envs.Shortcut": (mh.envs.Shortcut, {"field": "SG", "survival": 0.9, "mud_duration": 3.0, "most_steps": 9}),
    "envs.Foraging": (mh.envs.Foraging, {"field": "S9", "most_steps": 9}),
    "envs.Lethal": (mh.envs.Lethal, {"environment": mh.envs.Shortcut().environment()}),
    "envs.Hazard": (mh.envs.Hazard, {"environment": mh.envs.Shortcut().environment(), "prior": PRIORS[0]}),
    "CVaR": (mh.CVaR, {"level": 0.5}),
    "Quantile": (mh.Quantile, {"level": 0.5}),
    "Epsilon": (mh.Epsilon, {"final": 0.1, "decay_steps": 10, "evaluation": 0.1}),
    "mdp.HazardousMDP": (
        mh.mdp.HazardousMDP,
        {
            "transitions": TRANSITIONS,
            "rewards": MDP.rewards,
            "hazard": PRIORS[0],
            "discount": HYPERBOLIC,
            "durations": np.ones((2, 2)),
            "survivals": np.ones((2, 2)),
        },
    ),
    "mdp.HazardousMDP.discounted": (MDP.discounted, {"gamma": 0.9}),
    "mdp.HazardousMDP.check_policy": (MDP.check_policy, {"policy": POLICY}),
    "mdp.HazardousMDP.check_place": (MDP.check_place, {"state": 0, "action": 0}),
    "mdp.HazardousMDP.under": (MDP.under, {"policy": POLICY, "gamma": 0.9}),
    "mdp.action_values": (mh.mdp.action_values, {"mdp": MDP, "policy": POLICY}),
    "mdp.optimal_control": (
        mh.mdp.optimal_control,
        {"mdp": mh.mdp.HazardousMDP(TRANSITIONS, MDP.rewards, mh.hazard.Dirac(0.1))},
    ),
    "mdp.simulate": (
        mh.mdp.simulate,
        {"mdp": MDP, "policy": POLICY, "state": 0, "action": 0, "episodes": 20, "rng": RNG},
    ),
    "mdp.q_learning": (mh.mdp.q_learning, {"mdp": MDP, "gammas": [0.5], "start": 0, "episodes": 3, "rng": RNG}),
    **{
        f"mdp.{function.__name__}": (function, {"mdp": MDP, "horizons": HORIZONS, "steps": 3})
        for function in (mh.mdp.naive, mh.mdp.precommitted, mh.mdp.sophisticated)
    },
    **{
        f"mdp.{function.__name__}": (function, {"mdp": MDP, "horizons": HORIZONS})
        for function in (mh.mdp.naive_by_heads, mh.mdp.precommitted_by_heads, mh.mdp.own_head_values)
    },
    "mdp.acting_head_values": (
        mh.mdp.acting_head_values,
        {"mdp": MDP, "horizons": HORIZONS, "actions": np.array([0, 1])},
    ),
}
METHODS = {
    "density": {"rate": 0.1},
    "cdf": {"rate": 0.1},
    "quantile": {"probability": 0.5},
    "log_survival": {"t": 1.0},
    "survival": {"t": 1.0},
    "hazard_rate": {"t": 1.0},
    "weighting": {"gamma": 0.5},
    "sample": {"rng": RNG, "size": 3},
}
for prior in PRIORS:
    for method, given in METHODS.items():
        CALLS[f"hazard.{type(prior).__name__}.{method}"] = getattr(prior, method), given


def public() -> set[str]:
    names = {f"{part}.{name}" for part in ("hazard", "mdp") for name in getattr(mh, part).__all__}
    names |= {
        f"discount.{name}"
        for name, value in vars(mh.discount).items()
        if inspect.isfunction(value) and value.__module__ == mh.discount.__name__ and not name.startswith("_")
    }
    homes = mh._HOMES
    names |= {name for name, home in homes.items() if "discounting" in home or "risk" in home}
    results = {"hazard.Atoms", "hazard.Prior", "mdp.Behaviour", "mdp.Equilibrium", "mdp.Estimate", "mdp.Optimum"}
    return names - results - {"Design", "Discount", "FitMethod", "GridReport", "RewardTimeline", "Reweighting"}


def problem(function: Callable[..., Any], arguments: dict[str, Any]) -> str:
    """Returns the problem with a call, or an empty text."""
    signal.alarm(LONGEST_SECONDS)
    try:
        function(**arguments)
    except mh.InputError as error:
        said = str(error)
        return "" if "\n" not in said and len(said) < 500 else f"a long message: {said!r}"
    except Exception as error:  # noqa: BLE001 - this program looks for them
        return f"{type(error).__name__}: {error}"
    finally:
        signal.alarm(0)
    return ""


def calls() -> Iterator[tuple[str, Callable[..., Any], dict[str, Any]]]:
    for name, (function, given) in CALLS.items():
        yield f"{name} with valid arguments", function, given
        for argument in given:
            for words, value in WRONG.items():
                yield f"{name} with {argument} = {words}", function, given | {argument: value}


def main() -> None:
    def stop(*_: Any) -> None:
        raise TimeoutError(f"took more than {LONGEST_SECONDS} seconds")

    signal.signal(signal.SIGALRM, stop)
    warnings.simplefilter("error")
    missing = public() - set(CALLS)
    if missing:
        print(f"no call for {sorted(missing)}")
    chosen = sys.argv[1:]
    for words, function, arguments in calls():
        if chosen and not words.startswith(tuple(chosen)):
            continue
        found = problem(function, arguments)
        if found:
            print(f"{words}: {found[:200]}")


if __name__ == "__main__":
    main()
