"""Checks the adapter for Gymnasium environments."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Discrete

from multihorizon.envs.gymnasium_vector import Gymnasium
from multihorizon.errors import InputError
from multihorizon.training.worlds import world


class Shown(gymnasium.Env[Any, Any]):
    """Every observation is filled with the step number. Episodes last three steps."""

    action_space = Discrete(2)

    def __init__(self, shape: tuple[int, ...], dtype: Any = np.uint8) -> None:
        self.observation_space = Box(0, 255, shape, dtype)
        self._time = 0

    def reset(self, **given: Any) -> tuple[Any, dict[str, Any]]:
        self._time = 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self._time += 1
        return self._seen(), 1.0, False, self._time == 3, {}

    def _seen(self) -> Any:
        return np.full(self.observation_space.shape, self._time, self.observation_space.dtype)


@pytest.mark.parametrize(
    ("shape", "dtype", "frame", "kept"),
    [
        ((12, 10), np.uint8, (12, 10, 1), "uint8"),
        ((12, 10, 3), np.uint8, (12, 10, 3), "uint8"),
        ((7,), np.float64, (7,), "float32"),
    ],
)
def test_observations_have_the_declared_shape_and_type(
    shape: tuple[int, ...], dtype: Any, frame: tuple[int, ...], kept: str
) -> None:
    made = Gymnasium(lambda: Shown(shape, dtype), 2)
    assert (made.frame_shape, made.frame_dtype, made.actions) == (frame, kept, 2)
    assert made.reset(np.arange(2)).shape == (2, *frame)
    for time in (1, 2, 3):
        made.send(np.zeros(2, int))
        moves = made.receive()
        assert moves.truncated.all() == (time == 3)
        np.testing.assert_array_equal(moves.frames, np.full((2, *frame), time % 3, kept))
    np.testing.assert_array_equal(moves.finals, np.full((2, *frame), 3, kept))


def test_images_with_channels_first_raise_an_error() -> None:
    with pytest.raises(ValueError, match=r"must be \[height width channels\], but .* have shape \(3, 64, 64\)"):
        Gymnasium(lambda: Shown((3, 64, 64)), 1)


def test_observations_with_four_axes_raise_an_error() -> None:
    with pytest.raises(ValueError, match=r"the observations of .* have shape \(2, 8, 8, 3\)"):
        Gymnasium(lambda: Shown((2, 8, 8, 3)), 1)


def test_nan_reward_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Shown, "step", lambda self, action: (self._seen(), np.nan, False, False, {}))
    made = Gymnasium(lambda: Shown((4,)), 2)
    made.reset(np.arange(2))
    made.send(np.zeros(2, int))
    with pytest.raises(ValueError, match=r"a reward of nan; it must be finite"):
        made.receive()


@pytest.mark.parametrize(
    ("problem", "said"),
    [(ValueError("no such\n  level"), "no such level"), (NotImplementedError(), "NotImplementedError")],
)
def test_error_while_making_an_environment_becomes_one_line(problem: Exception, said: str) -> None:
    def broken() -> gymnasium.Env[Any, Any]:
        raise problem

    gymnasium.register("Broken-v0", broken)
    try:
        with pytest.raises(InputError, match=f"Gymnasium cannot make 'Broken-v0': {said}$"):
            Gymnasium("Broken-v0", 1)
    finally:
        del gymnasium.registry["Broken-v0"]


def test_environment_without_rendering_can_be_made() -> None:
    gymnasium.register("Plain-v0", lambda: Shown((4,)))
    try:
        assert Gymnasium("Plain-v0", 1).frame_shape == (4,)
        with pytest.raises(ValueError, match=r"Gymnasium cannot render 'Plain-v0'"):
            Gymnasium("Plain-v0", 1, rendered=True)
    finally:
        del gymnasium.registry["Plain-v0"]


def test_observation_outside_its_space_raises_an_error() -> None:
    class Odd(Shown):
        def _seen(self) -> Any:
            return np.zeros(3, np.uint8)

    with pytest.raises(InputError, match=r"reset returned an observation of shape \[3\], but .* has \[4\]"):
        Gymnasium(lambda: Odd((4,)), 1).check_observation()


@pytest.mark.parametrize("name", ["LunarLander-v9", "gym/LunarLander-v9"])
def test_lunar_lander_has_more_default_iterations_than_cartpole(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    spec = gymnasium.spec("CartPole-v1")  # LunarLander itself needs another package
    monkeypatch.setitem(gymnasium.registry, "LunarLander-v9", spec)
    assert world(name).schedule.iterations == 3 * world("CartPole-v1").schedule.iterations


class Remembering(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper that Gymnasium cannot copy, because it does not record its arguments."""


@pytest.mark.parametrize("one", [Shown((3,)), Remembering(gymnasium.make("CartPole-v1"))])
def test_environment_that_cannot_be_copied_must_be_given_as_a_function(one: gymnasium.Env[Any, Any]) -> None:
    name = type(one).__name__
    with pytest.raises(InputError, match=rf"pass a function that makes it, as in env=lambda: {name}\(...\)") as refused:
        world(one)
    assert "\n" not in str(refused.value)
    assert world(lambda: one).name.startswith("own/")
