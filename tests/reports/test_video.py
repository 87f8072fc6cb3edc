"""Videos show an episode step by step. A failure to write a video is reported in one line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

from multihorizon.reports.reward_panel import BAR, make_panel
from multihorizon.reports.video import CURVES, GAME, HEIGHT, PANEL, _write_mp4, draw_q_values, write_video
from multihorizon.runs.watching import EpisodeRecord


def test_video_does_not_show_future_steps(tmp_path: Path) -> None:
    rng, steps = np.random.default_rng(0), 20
    pictures = [np.zeros((8, 8, 3), np.uint8)] * (steps + 1)
    values, actions = rng.normal(size=(steps, 3, 2)), np.zeros(steps, int)
    episode = EpisodeRecord(
        pictures, values, actions, np.ones(steps), np.array([0, 0.9, 0.99]), np.ones((steps, 3)) / 3
    )
    with Image.open(write_video(episode, tmp_path / "a.gif", "made up", 15)) as video:
        dark = [
            int(np.sum(np.asarray(one.convert("L"))[:HEIGHT, GAME:] < 200)) for one in ImageSequence.Iterator(video)
        ]
    assert len(dark) == steps  # a GIF stores equal successive pictures once
    assert dark[0] + 2_000 < dark[steps // 2] < dark[-1] - 2_000


def test_ffmpeg_failure_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import imageio_ffmpeg

    def broken(*given: Any, **named: Any) -> Iterator[None]:
        yield  # the writer is ready for frames
        raise OSError("Broken pipe\n\nFFMPEG COMMAND: ...")

    monkeypatch.setattr(imageio_ffmpeg, "write_frames", broken)
    with pytest.raises(ValueError, match="the video could not be written to") as caught:
        _write_mp4([np.zeros((4, 4, 3), np.uint8)] * 2, tmp_path / "a.mp4", 15)
    assert "\n" not in str(caught.value)


def test_the_reward_panel_shows_when_reward_is_expected() -> None:
    gammas = np.array([0.3, 0.7, 0.9, 0.97, 0.99])
    panel = make_panel(np.stack([2 * gammas**3, 2 * gammas**60, 0 * gammas]), gammas, 720, 200)
    assert panel is not None

    def middle(step: int) -> float:
        is_bar = (panel.drawn(step) == BAR).all(axis=-1)
        return float(np.mean(np.flatnonzero(is_bar.any(axis=0)))) if is_bar.any() else np.nan

    def at(t: int) -> float:
        return float(np.interp(t + 0.5, np.append(panel.timeline.starts, panel.timeline.ends[-1]), panel.columns))

    assert middle(0) == pytest.approx(at(3), abs=40)
    assert middle(1) == pytest.approx(at(60), abs=60)
    assert np.isnan(middle(2))
    np.testing.assert_array_equal(panel.drawn(2), panel.empty)


def test_negative_rewards_are_drawn_below_zero() -> None:
    gammas = np.array([0.3, 0.7, 0.9, 0.97, 0.99])
    panel = make_panel(-2 * gammas[None] ** 5, gammas, 720, 200)
    assert panel is not None
    rows = np.flatnonzero((panel.drawn(0) == BAR).all(axis=-1).sum(axis=1) > 5)
    assert rows.mean() > panel.zero


def test_the_reward_panel_needs_three_horizons(tmp_path: Path) -> None:
    assert make_panel(np.ones((4, 2)), np.array([0.5, 0.9]), 720, 200) is None
    sizes = []
    for heads in (2, 3):
        pictures = [np.zeros((8, 8, 3), np.uint8)] * 5
        values, gammas = np.ones((4, heads, 2)), np.linspace(0.5, 0.9, heads)
        episode = EpisodeRecord(pictures, values, np.zeros(4, int), np.ones(4), gammas, np.ones((4, heads)))
        with Image.open(write_video(episode, tmp_path / f"{heads}.gif", "made up", 15)) as video:
            sizes.append(video.size[1])
    assert sizes == [HEIGHT, HEIGHT + PANEL]


@pytest.mark.parametrize("name", [r"$\frac{1}{$", "$x$", "\x1b]0;x\x07", "🙂" * 200, "a\nb"])
def test_titles_are_drawn_literally(name: str) -> None:
    values = np.ones((4, 2, 2))
    episode = EpisodeRecord(None, values, np.zeros(4, int), np.ones(4), np.array([0.5, 0.9]), np.ones((4, 2)))
    figure, _ = draw_q_values(episode, f"{name} in foraging")
    title = figure.axes[0]._left_title
    assert not title.get_parse_math()
    assert "\x1b" not in title.get_text()
    assert title.get_text().replace("\n", "").startswith(name[:3].replace("\x1b", "�").replace("\n", " "))


def test_long_titles_fit_and_steps_are_whole_numbers() -> None:
    values, gammas = np.ones((4, 2, 2)), np.array([0.5, 0.9])
    episode = EpisodeRecord(None, values, np.zeros(4, int), np.ones(4), gammas, np.ones((4, 2)))
    title = (
        "any-rainbow in foraging, by survival under 0.5 Exponential(k=0.05) + 0.5 Gamma(k=0.1, a=2.0), by CVaR(0.25)"
    )
    figure, _ = draw_q_values(episode, title)
    above, below = figure.axes
    assert above.get_title(loc="left").replace("\n", " ") == title
    assert above._left_title.get_window_extent().x1 < CURVES
    assert all(tick == int(tick) for tick in below.get_xticks())
