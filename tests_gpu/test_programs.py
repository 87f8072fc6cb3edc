"""Training programs return the same results with and without donated arguments.

XLA may write a result to the memory of a donated argument, but only after XLA has read the argument.
"""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from filled_replay import ACTIONS, SHAPE, filled
from precision import TYPES, plain

from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import NATURE
from multihorizon.agents.presets import preset
from multihorizon.envs.minatar import MinAtar
from multihorizon.kernels.convolution import Convolve
from multihorizon.training.compiling import compiled
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.host_collector import Programs
from multihorizon.training.schedule import Schedule
from multihorizon.training.state import Core

# Two arrays may differ by this fraction of their norm. Two compilations of a program may round differently, but values
# from the wrong memory have far larger errors.
TOLERANCE = 0.1


def copies(tree: Any) -> Any:
    return jax.tree.map(jnp.copy, tree)


def agree(found: np.ndarray, expected: np.ndarray) -> bool:
    if not np.issubdtype(expected.dtype, np.floating):
        return np.array_equal(found, expected)
    return bool(np.linalg.norm(found - expected) <= TOLERANCE * np.linalg.norm(expected))


def assert_same(name: str, found: Any, expected: Any) -> None:
    pairs = zip(jax.tree_util.tree_leaves_with_path(found), jax.tree.leaves(expected), strict=True)
    wrong = [jax.tree_util.keystr(path) for (path, a), b in pairs if not agree(plain(a), plain(b))]
    assert not wrong, f"{name} returns different values for {', '.join(wrong)}"


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("agent", ["multi-rainbow", "dqn"])
def test_donation_does_not_change_the_results_with_host_environments(agent: str, dtype: str, seeds: int) -> None:
    chosen = replace(preset(agent), compute_dtype=dtype)
    learner = Learner(chosen, ACTIONS, (84, 84, 4), NATURE, Convolve.FUSED)
    core = Core(learner, SHAPE)
    programs = Programs(core, updates_per_cycle=4)
    state = programs.init(jnp.arange(seeds))._replace(replay=filled(seeds))
    state = programs.learn_all(copies(state))  # after an update, the two moments of the optimiser differ
    width, rng = SHAPE.streams // 2, np.random.default_rng(0)
    frames = rng.integers(256, size=(seeds, width, 84, 84, 1), dtype=np.uint8)
    packed = np.stack([rng.random((seeds, width)), np.zeros((seeds, width))], axis=-1).astype(np.float32)
    first = jnp.full(seeds, width, jnp.int32)
    group = programs.start(frames, first, jnp.zeros(seeds, jnp.int32))
    acting = (state.learner.computed_with, state.keys.acting)
    stored = (state.replay, state.episodes, group, frames, packed)
    calls = {
        "learn_all": (state,),
        "copy": (state.learner.computed_with,),
        "act": (*acting, group),
        "act_randomly": (*acting, group),
        "turn": (*acting, *stored),
        "warm_up_turn": (*acting, *stored),
        "observe": stored,
        "add_finals": (state.replay, frames, np.ones((seeds, width), bool), first),
    }
    for name, given in calls.items():
        program = getattr(programs, name)
        expected = compiled(program.__wrapped__)(*given)
        assert_same(name, program(*copies(given)), expected)


@pytest.mark.parametrize("agent", ["rainbow", "dqn"])
def test_donation_does_not_change_the_results_with_device_environments(agent: str) -> None:
    chosen = replace(preset(agent), warm_up_steps=200, replay_capacity=2_000, target_period_steps=80)
    collector = DeviceCollector(chosen, MinAtar("breakout"), NATURE, Schedule(1, 1_000, 0), num_seeds=3, num_envs=4)
    state = collector.init(0)
    state = collector._run(state, jnp.asarray(0), jnp.asarray(100), False)
    given = (jnp.asarray(100), jnp.asarray(200), True)
    expected = compiled(collector._run_all, static_argnums=3)(state, *given)
    found = collector._run(copies(state), *given)
    assert_same("learner", found.learner, expected.learner)


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("dtype", TYPES)
def test_copying_weights_to_the_target_network_leaves_other_state_unchanged(dtype: str, seeds: int) -> None:
    core = Core(Learner(replace(preset("rainbow"), compute_dtype=dtype), ACTIONS, (84, 84, 4), NATURE), SHAPE)
    programs = Programs(core, updates_per_cycle=4)
    state = programs.init(jnp.arange(seeds))._replace(replay=filled(seeds))
    state = programs.learn_all(copies(state))
    kept = jax.tree.map(np.asarray, state.learner._replace(target={}))
    target = programs.copy(state.learner.computed_with)
    for a, b in zip(jax.tree.leaves(state.learner._replace(target={})), jax.tree.leaves(kept), strict=True):
        np.testing.assert_array_equal(np.asarray(a), b)
    for a, b in zip(jax.tree.leaves(target), jax.tree.leaves(state.learner.computed_with), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        assert a.unsafe_buffer_pointer() != b.unsafe_buffer_pointer()
