"""Tests the pictures of recorded episodes."""

from pathlib import Path
from typing import Any

import gymnasium
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image

import multihorizon as mh
from multihorizon.agents.learner import Learner
from multihorizon.reports.video import CURVES, GAME
from multihorizon.runs.policy import Policy
from multihorizon.runs.watching import record_episode
from multihorizon.training.worlds import world

STEPS = 4


class Plain(gymnasium.Env[Any, Any]):
    """An environment with vector observations that cannot be drawn."""

    observation_space = gymnasium.spaces.Box(0, 1, (3,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.time = 0
        return np.zeros(3, np.float32), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.time += 1
        return np.full(3, self.time / STEPS, np.float32), 1.0, self.time == STEPS, False, {}


class Drawn(Plain):
    """A `Plain` environment that can be drawn."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012 - Gymnasium's own declaration

    def __init__(self, render_mode: str | None = None) -> None:
        self.render_mode = render_mode

    def render(self) -> Any:
        return np.full((20, 30, 3), 10 * self.time, np.uint8)


class OnDevice:
    actions, observation_shape, observation_dtype = 2, (3,), "float32"

    def reset(self, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.int32(0), jnp.zeros(3)

    def step(self, key: jax.Array, state: jax.Array, action: jax.Array) -> tuple[jax.Array, mh.envs.Step]:
        state = state + 1
        return state, mh.envs.Step(jnp.full(3, state / STEPS), jnp.float32(1), state >= STEPS, jnp.bool_(False))


@pytest.fixture(scope="module")
def policy() -> mh.Policy:
    agent = mh.agent("hyper-dqn", warm_up_steps=100, replay_capacity=500, batch=8)
    return mh.train(agent, Plain, steps=200, training_steps=200, evaluation_steps=0).policy()


def test_environment_made_without_a_render_mode_is_refused(policy: mh.Policy, tmp_path: Path) -> None:
    with pytest.raises(mh.InputError, match=r'made without a render mode: .* render_mode="rgb_array"') as refused:
        mh.watch(policy, Drawn, tmp_path / "a.gif")
    assert "\n" not in str(refused.value)
    assert not (tmp_path / "a.gif").exists()


def test_environment_made_with_a_render_mode_is_drawn(policy: mh.Policy) -> None:
    record = record_episode(policy, policy.world(lambda: Drawn("rgb_array")), 0, 100)
    assert record.pictures is not None
    assert [int(picture.max()) for picture in record.pictures[:STEPS]] == [0, 10, 20, 30]


def test_registered_environment_is_made_with_a_render_mode(policy: mh.Policy) -> None:
    for made in (Drawn, Plain):
        gymnasium.register(f"{made.__name__}-v0", entry_point=made)
    try:
        assert record_episode(policy, policy.world("Drawn-v0"), 0, 100).pictures is not None
        assert record_episode(policy, policy.world("Plain-v0"), 0, 100).pictures is None
    finally:
        for made in (Drawn, Plain):
            del gymnasium.registry[f"{made.__name__}-v0"]


@pytest.mark.parametrize("env", [Plain, OnDevice()])
def test_video_of_an_environment_that_cannot_be_drawn_has_curves_only(
    env: Any, policy: mh.Policy, tmp_path: Path
) -> None:
    video = mh.watch(policy, env, tmp_path / "a.gif")
    assert (video.steps, video.earned) == (STEPS, STEPS)
    with Image.open(video.path) as shown:
        assert shown.size[0] == CURVES
    drawn = mh.watch(policy, lambda: Drawn("rgb_array"), tmp_path / "b.gif")
    with Image.open(drawn.path) as shown:
        assert shown.size[0] == CURVES + GAME


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"fps": 0}, "fps must be"),
        ({"seed": -1}, "seed must be"),
        ({"max_steps": 0}, "max_steps must be"),
        ({"policy": "x"}, "policy must be a Policy"),
    ],
)
def test_invalid_arguments_are_refused_before_playing(
    given: dict[str, Any], words: str, policy: mh.Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multihorizon.runs.watching.record_episode", lambda *_: pytest.fail("played"))
    with pytest.raises(mh.InputError, match=words):
        mh.watch(**({"policy": policy, "out": tmp_path / "a.gif"} | given))


def test_precommitted_agents_are_refused_in_environments_with_durations() -> None:
    agent, chosen = mh.agent("hyper-dqn", consistency="precommitted"), world("shortcut")
    shape, actions = chosen.spaces()
    parameters = Learner(agent, actions, shape, chosen.torso).init(jax.random.key(0)).parameters
    policy = Policy(agent, "shortcut", actions, shape, "float32", chosen.torso, parameters)
    with pytest.raises(mh.InputError, match="this environment reports durations"):
        record_episode(policy, chosen, 0, 5)
