"""Measures one update on a CPU in one process: Multi-Rainbow with ten heads, Rainbow, and Dopamine's JAX Rainbow.

Dopamine does not import after a plain installation, so it needs its own virtual environment:

    python3 -m venv ../dopamine
    ../dopamine/bin/pip install dopamine-rl==4.1.2
    ../dopamine/bin/pip uninstall -y tensorflow-probability
    ../dopamine/bin/pip install --no-deps tfp-nightly
    ../dopamine/bin/pip install -e . -c constraints.txt
    ../dopamine/bin/python benchmarks/update_cpu.py --out results/cpu/update.json

An update samples 32 transitions by priority, stacks 4 frames of 84×84 per observation, computes the gradient and
applies Adam. The agents alternate, so machine noise affects all of them equally. The table shows medians.
"""

import argparse
import os
import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np

from multihorizon.agents import replay as replays
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import NATURE
from multihorizon.agents.presets import preset
from multihorizon.agents.replay import ReplayShape, Rows
from multihorizon.files import write_json
from multihorizon.kernels.convolution import convolve_for
from multihorizon.training.compiling import compiled

FRAMES, ACTIONS, N_STEPS, UPDATES_IN_LOOP = 2_000, 6, 3, 10


def ours(name: str, in_loop: bool) -> Callable[[], None]:
    """Returns a function that makes one update, or `UPDATES_IN_LOOP` updates in one compiled loop."""
    agent = preset(name)
    learner = Learner(agent, ACTIONS, (84, 84, 4), NATURE, convolve_for(in_loop))
    shape = ReplayShape(FRAMES, 1, (84, 84, 1), "uint8", 4, N_STEPS, agent.batch)
    frames = np.random.default_rng(0).integers(0, 255, (FRAMES, 1, 84, 84, 1), np.uint8)
    add = jax.jit(partial(replays.add, shape), donate_argnums=0)
    replay = replays.init(shape)
    for t, frame in enumerate(frames):
        nothing = jnp.zeros(1, jnp.uint8)
        replay = add(replay, Rows(jnp.asarray(frame), jnp.zeros(1, int), jnp.ones(1), nothing, jnp.array([t == 0])))

    def updates(state: Any, replay: Any, key: Any) -> Any:
        if not in_loop:
            state, replay, _ = learner.learn(shape, state, replay, key)
            return state, replay

        def one(carry: Any, key: Any) -> Any:
            state, replay = carry
            state, replay, _ = learner.learn(shape, state, replay, key)
            return (state, replay), None

        return jax.lax.scan(one, (state, replay), jax.random.split(key, UPDATES_IN_LOOP))[0]

    program = compiled(jax.vmap(updates), donate_argnums=(0, 1))  # vmap over one seed, as in training
    held = list(jax.tree.map(lambda leaf: leaf[None], (learner.init(jax.random.key(0)), replay)))

    def run() -> None:
        held[:] = program(*held, jax.random.key(1)[None])
        jax.block_until_ready(held)

    return run


def dopamine() -> Callable[[], None]:
    import dopamine_agent

    agent = dopamine_agent.rainbow(ACTIONS, capacity=FRAMES, warm_up=FRAMES // 2)
    rng = np.random.default_rng(0)
    agent.begin_episode(rng.integers(0, 255, (84, 84, 1), np.uint8))
    for _ in range(FRAMES // 2):
        agent.step(1.0, rng.integers(0, 255, (84, 84, 1), np.uint8))
    assert agent._replay.add_count > 0

    def run() -> None:
        agent.min_replay_history, agent.training_steps = 0, 4
        agent._train_step()
        jax.block_until_ready(agent.online_params)

    return run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    subjects = {
        "Dopamine Rainbow, 1 head": (dopamine(), 1),
        "Rainbow, 1 head": (ours("rainbow", False), 1),
        "Multi-Rainbow, 10 heads": (ours("multi-rainbow", False), 1),
        "Rainbow, 1 head, in a loop": (ours("rainbow", True), UPDATES_IN_LOOP),
        "Multi-Rainbow, 10 heads, in a loop": (ours("multi-rainbow", True), UPDATES_IN_LOOP),
    }
    times: dict[str, list[float]] = {name: [] for name in subjects}
    for turn in range(options.rounds + 1):
        for name, (run, updates) in subjects.items():
            begun = time.perf_counter()
            for _ in range(10 // updates):
                run()
            if turn:  # the first round compiles and is not timed
                times[name].append(1e3 * (time.perf_counter() - begun) / 10)
    medians = {name: float(np.median(taken)) for name, taken in times.items()}
    single, multi = medians["Dopamine Rainbow, 1 head"], medians["Multi-Rainbow, 10 heads"]
    print("| | ms per update, median | relative to Dopamine | fastest to slowest round |")
    print("|---|---|---|---|")
    for name, taken in times.items():
        print(f"| {name} | {medians[name]:.1f} | {medians[name] / single:.2f} | {min(taken):.1f} to {max(taken):.1f} |")
    print(f"ten heads relative to one: {multi / medians['Rainbow, 1 head']:.2f}, in a loop", end=" ")
    print(f"{medians['Multi-Rainbow, 10 heads, in a loop'] / medians['Rainbow, 1 head, in a loop']:.2f}")
    machine = {"cores": os.cpu_count(), "processor": platform.processor() or platform.machine()}
    write_json(
        options.out,
        {"milliseconds": times, "medians": medians, "jax": jax.__version__, "machine": machine},
    )


if __name__ == "__main__":
    main()
