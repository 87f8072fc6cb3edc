"""Trains Rainbow, Multi-Rainbow and Hyper-Rainbow in MinAtar, and prints returns with confidence intervals.

    python benchmarks/minatar.py --games breakout asterix space_invaders --seeds 10 --out results/minatar

The seeds of each game and agent train in parallel on one device. Finished runs are skipped, so the same command
continues an interrupted benchmark. A run is also skipped if it would probably not finish within --minutes.
"""

import argparse
import json
import time
from pathlib import Path

import in_one_line  # noqa: F401
import jax
import numpy as np

from multihorizon.agents.presets import preset
from multihorizon.envs.minatar import MinAtar
from multihorizon.files import write_json
from multihorizon.runs.configuration import plain
from multihorizon.runs.recording import iterations
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.evaluation import play_episodes
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import Trainer
from multihorizon.training.worlds import world

AGENTS = ("rainbow", "multi-rainbow", "hyper-rainbow")
EPISODES, MOST_STEPS = 100, 5_000


def train_and_judge(game: str, name: str, seeds: int, steps: int, environments: int) -> dict[str, object]:
    chosen = world(f"minatar/{game}")
    agent = chosen.adapt(preset(name))
    environment = MinAtar(game)
    schedule = Schedule(20, steps // 20, 0)
    trainer = Trainer(DeviceCollector(agent, environment, chosen.torso, schedule, seeds, environments), schedule)
    begun = time.perf_counter()
    curve = []
    for state, outcome in iterations(trainer, 0):
        training = state
        curve.append({"step": outcome.step, "returns": outcome.returns, "steps_per_second": outcome.steps_per_second})
        mean = np.mean([r for r in outcome.returns if r is not None])
        print(f"{game} {name} {outcome.step:,} {mean:.2f} {outcome.steps_per_second:,.0f} steps/s", flush=True)
    trained = time.perf_counter() - begun
    keys = jax.random.split(jax.random.key(1), seeds)
    play = jax.jit(
        jax.vmap(
            lambda parameters, key: play_episodes(
                trainer.learner, environment, parameters, key, EPISODES, MOST_STEPS, agent.epsilon.evaluation
            )
        )
    )
    returns = np.asarray(play(training.learner.parameters, keys).returns).mean(axis=1)
    return {
        "game": game,
        "agent": name,
        "configuration": plain(agent),
        "environments": environments,
        "steps": steps,
        "seconds": trained,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "returns": returns.tolist(),  # for each seed, the mean return of the evaluation episodes after training
        "curve": curve,
    }


def interval(values: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Returns the 95% percentile bootstrap interval of the mean over seeds."""
    means = rng.choice(values, size=(10_000, len(values))).mean(axis=1)
    return float(np.quantile(means, 0.025)), float(np.quantile(means, 0.975))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--games", nargs="+", default=["breakout", "asterix", "space_invaders"])
    parser.add_argument("--agents", nargs="+", default=list(AGENTS))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=1_000_000)
    parser.add_argument("--envs", type=int, default=8)
    parser.add_argument("--minutes", type=float, default=1e9)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    begun, slowest = time.perf_counter(), 0.0
    for game in options.games:
        for name in options.agents:
            path = options.out / f"{game}-{name}.json"
            if path.exists():
                continue
            if time.perf_counter() - begun + 1.1 * slowest > 60 * options.minutes:
                continue
            now = time.perf_counter()
            write_json(path, train_and_judge(game, name, options.seeds, options.steps, options.envs))
            slowest = max(slowest, time.perf_counter() - now)
    results = [json.loads(path.read_text()) for path in sorted(options.out.glob("*-*.json"))]
    rng = np.random.default_rng(0)
    lines = ["| game | agent | seeds | return, mean | 95% interval | steps/s, all seeds |", "|---|---|---|---|---|---|"]
    for result in results:
        returns = np.array(result["returns"])
        low, high = interval(returns, rng)
        speed = np.median([point["steps_per_second"] for point in result["curve"]])
        lines.append(
            f"| {result['game']} | {result['agent']} | {len(returns)} | {returns.mean():.2f} | {low:.2f} to {high:.2f} "
            f"| {speed:,.0f} |"
        )
    print("\n".join(lines))


if __name__ == "__main__":
    main()
