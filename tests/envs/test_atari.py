"""Compares Atari with Gymnasium's own preprocessing and with the bare emulator."""

import errno
import os

import ale_py
import cv2
import gymnasium
import jax
import numpy as np
import pytest
from scipy import stats

from multihorizon.envs.atari import GAMES, STICKY, SWITCH, Atari, rom_name
from multihorizon.envs.vector import VectorEnvironment

gymnasium.register_envs(ale_py)


def test_all_sixty_games_can_be_made() -> None:
    assert len(GAMES) == len(set(GAMES)) == 60
    assert {rom_name(game) for game in GAMES} <= set(ale_py.roms.get_all_rom_ids())


@pytest.mark.parametrize("game", ["Pong", "Breakout", "Seaquest", "UpNDown", "Qbert", "MsPacman", "MontezumaRevenge"])
def test_frames_and_rewards_match_gymnasiums_preprocessing(game: str) -> None:
    """The test uses no sticky actions, because the two libraries draw sticky actions differently."""
    name = f"ALE/{game}-v5"
    bare = gymnasium.make(name, frameskip=1, repeat_action_probability=0.0, full_action_space=False)
    twin = gymnasium.wrappers.AtariPreprocessing(
        bare, noop_max=0, frame_skip=4, screen_size=84, terminal_on_life_loss=False, grayscale_obs=True
    )
    ours = Atari(game, 2, sticky=0.0)
    assert isinstance(ours, VectorEnvironment)
    assert ours.actions == twin.action_space.n
    rng = np.random.default_rng(0)
    frames = ours.reset(np.array([3, 4]))
    expected, _ = twin.reset(seed=3)
    np.testing.assert_array_equal(frames[0, ..., 0], expected)
    for _ in range(700):
        actions = rng.integers(ours.actions, size=2)
        ours.send(actions)
        moves = ours.receive()
        expected, reward, terminated, truncated, _ = twin.step(int(actions[0]))
        assert moves.rewards[0] == reward
        assert (moves.terminated[0], moves.truncated[0]) == (terminated, truncated)
        if terminated:
            np.testing.assert_array_equal(moves.finals[0, ..., 0], expected)
            expected, _ = twin.reset()
        np.testing.assert_array_equal(moves.frames[0, ..., 0], expected)
    ours.close()


def test_sticky_actions_have_the_right_probability() -> None:
    """Each frame repeats the last action with probability 0.25, so P(an action is j frames late) = 0.75 · 0.25^j.

    The position of Breakout's paddle shows how late the action was.
    """
    count = 60
    late = np.zeros(5, int)
    references = [_breakout_after(delay) for delay in range(5)]
    assert len({frame.tobytes() for frame in references[:3]}) == 3
    ours = Atari("Breakout", count, threads=2)
    ours.reset(np.arange(count))
    for action in (0, 0, 0, 2):  # the paddle stands still, then moves right
        ours.send(np.full(count, action))
        frames = ours.receive().frames
    for frame in frames[..., 0]:
        late[next(j for j, reference in enumerate(references) if np.array_equal(frame, reference))] += 1
    shares = np.array([(1 - STICKY) * STICKY**j for j in range(4)] + [STICKY**4])
    merged, expected = [*late[:2], late[2:].sum()], [*shares[:2], shares[2:].sum()]
    assert stats.chisquare(merged, np.array(expected) * count).pvalue > 1e-3
    ours.close()


def _breakout_after(delay: int) -> np.ndarray:
    emulator = ale_py.ALEInterface()
    emulator.setFloat("repeat_action_probability", 0.0)
    emulator.loadROM(ale_py.roms.get_rom_path("breakout"))
    actions = emulator.getMinimalActionSet()
    emulator.reset_game()
    screens = []
    for frame in range(16):
        emulator.act(actions[2 if frame >= 12 + delay else 0])
        screens.append(emulator.getScreenGrayscale())
    seen = np.maximum(screens[-1], screens[-2])
    return cv2.resize(seen, (84, 84), interpolation=cv2.INTER_AREA)


def test_episodes_are_truncated_at_the_time_limit() -> None:
    ours = Atari("Breakout", 2, max_episode_frames=40)
    first = ours.reset(np.arange(2))
    for step in range(25):
        ours.send(np.zeros(2, int))
        moves = ours.receive()
        assert not moves.terminated.any()
        assert moves.truncated.all() == ((step + 1) % 10 == 0)
        if moves.truncated.any():
            assert moves.finals is not None
            np.testing.assert_array_equal(moves.frames, first)
    ours.close()


def test_equal_seeds_give_equal_games() -> None:
    def played() -> np.ndarray:
        ours = Atari("Pong", 3)
        frames = [ours.reset(np.array([5, 6, 7]))]
        for step in range(60):
            ours.send(np.full(3, step % 6))
            frames.append(ours.receive().frames)
        ours.close()
        return np.stack(frames)

    once, again = played(), played()
    np.testing.assert_array_equal(once, again)
    assert not np.array_equal(once[:, 0], once[:, 1])


def test_invalid_input_raises_an_error() -> None:
    with pytest.raises(ValueError, match=r"unknown Atari game 'Sequest' \(did you mean 'Seaquest'\?\)"):
        Atari("Sequest", 1)
    ours = Atari("Pong", 1)
    ours.reset(np.array([0]))
    for action in (-1, 6):
        with pytest.raises(ValueError, match=f"action {action} is outside the action set; allowed: 0 to 5"):
            ours.send(np.array([action]))
    with pytest.raises(ValueError, match="sticky"):
        Atari("Pong", 1, sticky=1.5)


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="only Linux has the SCHED_IDLE policy")
@pytest.mark.parametrize(
    ("backend", "switch", "give_way"), [("gpu", "on", True), ("gpu", "off", False), ("cpu", "on", False)]
)
def test_emulators_have_low_priority_if_there_is_a_gpu(
    backend: str, switch: str, give_way: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setenv(SWITCH, switch)
    before = set(os.listdir("/proc/self/task"))
    made = Atari("Pong", 2, threads=2)
    started = set(os.listdir("/proc/self/task")) - before
    assert len(started) >= 2
    assert {os.sched_getscheduler(int(thread)) for thread in started} == {os.SCHED_IDLE if give_way else os.SCHED_OTHER}
    assert os.sched_getscheduler(0) == os.SCHED_OTHER  # the main thread is unchanged
    made.close()


def test_emulators_run_if_their_priority_cannot_be_lowered(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(os, "sched_setscheduler", refused, raising=False)
    made = Atari("Pong", 2)
    assert made.reset(np.array([0, 1])).shape == (2, 84, 84, 1)
    made.close()
