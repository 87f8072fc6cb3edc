"""Tests that the memory of a donated array is reused only for the new value of the same array.

An earlier program stored the new target network in the memory of Adam's first moment. XLA should have moved the first
moment before it wrote the target network. On a GPU, XLA wrote too early, and the first moment was lost.
"""

import re
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training.scripted import host_collector, small

from multihorizon.agents.networks import MlpTorso
from multihorizon.envs.minatar import MinAtar
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.host_collector import Programs
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import Iteration


def moved(program: Any, given: tuple[Any, ...], returned: tuple[str, ...] = ()) -> list[str]:
    """Lists results that reuse the memory of an argument with another name. `returned` names the returned values."""
    text = program.lower(*given).as_text(debug_info=True)
    main = next(line for line in text.splitlines() if "func.func public @main(" in line)
    results = re.findall(r'jax\.result_info = "result([^"]*)"', main)
    found, pairs = [], re.findall(r'tf\.aliasing_output = (\d+) : i32[^}]*\} loc\("([^"]*)"\)', main)
    assert pairs
    for index, argument in pairs:
        result = results[int(index)]
        for place, name in enumerate(returned):
            result = re.sub(rf"^\[{place}\]", name, result)
        mine = argument if returned else argument.removeprefix(re.match(r"\w+", argument)[0])  # type: ignore[index]
        if result != mine:
            found.append(f"{result} in the memory of {mine}")
    return found


def calls(programs: Programs, collector: Any) -> dict[str, tuple[tuple[Any, ...], tuple[str, ...]]]:
    state = collector.init(0)
    group = collector._continue_or_reset(state, Iteration(0, 0, 0, 10, 10, True), 0)[0]
    frames = np.zeros((1, 2, 4), np.uint8)
    stored = (state.replay, state.episodes, group, frames, np.zeros((1, 2, 2), np.float32))
    acting = (state.learner.computed_with, state.keys.acting)
    kept = ("replay", "episodes", "group")
    return {
        "learn_one": ((state,), ()),
        "learn_all": ((state,), ()),
        "act": ((*acting, group), ()),
        "act_randomly": ((*acting, group), ()),
        "turn": ((*acting, *stored), kept),
        "warm_up_turn": ((*acting, *stored), kept),
        "observe": (stored, kept),
        "add_finals": ((state.replay, frames, np.ones((1, 2), bool), group.first), ()),
    }


@pytest.mark.parametrize("agent", ["dqn", "multi-rainbow"])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_host_programs_do_not_move_donated_arrays(agent: str, dtype: str) -> None:
    collector = host_collector(small(agent, compute_dtype=dtype))
    for name, (given, returned) in calls(collector.programs, collector).items():
        assert not moved(getattr(collector.programs, name), given, returned), name


def test_the_device_program_does_not_move_donated_arrays() -> None:
    collector = DeviceCollector(small("rainbow"), MinAtar("breakout"), MlpTorso((16,)), Schedule(1, 1_000, 0), 2)
    state = collector.init(0)
    assert not moved(collector._run, (state, jnp.asarray(0), jnp.asarray(9), True))


def test_moved_arrays_are_detected() -> None:
    """With the second state of the test, `target` reuses the memory of `variance`."""

    def copy_target(state: dict[str, Any]) -> dict[str, Any]:
        return state | {"target": jnp.copy(state["parameters"])}

    program: Callable[..., Any] = jax.jit(copy_target, donate_argnums=0)
    state = {name: jnp.zeros(4) for name in ("moments", "parameters", "target")}
    assert not moved(program, (state,))
    state = {name: jnp.zeros(4) for name in ("parameters", "target", "variance")}
    assert moved(program, (state,)) == ["['target'] in the memory of ['variance']"]
