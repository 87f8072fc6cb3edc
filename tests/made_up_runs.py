"""Writes run folders with made-up returns."""

import json
from pathlib import Path
from typing import Any

import numpy as np

TIMES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
# The report of tests/reports/conftest.py has these games and agents.
REPORT_GAMES = ("Pong", "Qbert", "AirRaid", "Alien")
REPORT_AGENTS = ("c51", "multi-c51", "rainbow", "multi-rainbow", "hyper-rainbow")


def configuration(agent: str, environment: str, seeds: int, iterations: int, **settings: Any) -> dict[str, Any]:
    """Returns the content of config.json; `agent__n_steps=5` sets agent.n_steps."""
    content: dict[str, Any] = {
        "type": "Configuration",
        "agent": {
            "type": "Agent",
            "name": agent,
            "horizons": {"gammas": [0.99], "weights": [1.0]},
            "n_steps": 3,
            "epsilon": {"type": "Epsilon", "final": 0.01, "decay_steps": 250_000, "evaluation": 0.001},
            "clip_rewards": True,
        },
        "environment": environment,
        "schedule": {
            "type": "Schedule",
            "iterations": iterations,
            "training_steps": 250_000,
            "evaluation_steps": 125_000,
        },
        "seed": 0,
        "seeds": seeds,
        "environments": 40,
        "versions": {"multihorizon": "0.1.0"},
    }
    for name, value in settings.items():
        *path, last = name.split("__")
        place = content
        for step in path:
            place = place[step]
        place[last] = value
    return content


def write_run(
    folder: Path,
    agent: str,
    environment: str,
    scores: Any,
    *,
    iterations: int | None = None,
    finished: bool = True,
    gamma: float = 0.99,
    **settings: Any,
) -> Path:
    """Writes a run with the scores [S T]. A score is NaN if no episode ended."""
    returns = np.asarray(scores, float)
    folder.mkdir(parents=True, exist_ok=True)
    content = configuration(agent, environment, len(returns), iterations or returns.shape[1], **settings)
    (folder / "config.json").write_text(json.dumps(content))
    evaluated = content["schedule"]["evaluation_steps"] > 0
    lines = []
    for t, column in enumerate(returns.T):
        known = [None if np.isnan(x) else float(x) for x in column]
        lines.append(
            {
                "iteration": t,
                "step": (t + 1) * content["schedule"]["training_steps"],
                "episodes": [0 if x is None or evaluated else 10 for x in known],
                "evaluation_episodes": [10 if x is not None and evaluated else 0 for x in known],
                "updates": 0,
                "losses": [],
                "values": [],
                "steps_per_second": 1_000.0,
                "seconds": 250.0,
                "returns": [None if x is None else -1.0 for x in known] if evaluated else known,
                "evaluation_returns": known if evaluated else [None] * len(known),
                "discount": {str(when): gamma**when for when in TIMES},
            }
        )
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    if finished:
        (folder / "weights.npz").write_bytes(b"")
    return folder


def learning(rng: np.random.Generator, final: float, seeds: int, iterations: int) -> np.ndarray:
    """Returns learning curves [S T] that rise to about `final`."""
    t = np.arange(1, iterations + 1) / iterations
    ends = final * rng.lognormal(0, 0.15, (seeds, 1))
    noise = rng.normal(0, 0.04 * abs(final) + 1e-9, (seeds, iterations))
    return ends * (1 - np.exp(-4 * t)) + noise


def write_sweep(root: Path, runs: list[dict[str, Any]], **content: Any) -> Path:
    whole = {"name": "made-up", "title": "A made-up sweep", "about": "Curves that no agent learned.", "pairs": []}
    whole |= {"panels": [], "runs": runs} | content
    root.mkdir(parents=True, exist_ok=True)
    (root / "experiment.json").write_text(json.dumps(whole))
    return root


def hyperbolic(k: float = 0.01) -> dict[str, Any]:
    return {"name": f"hyperbolic, k = {k:g}", "times": list(TIMES), "values": [1 / (1 + k * t) for t in TIMES]}
