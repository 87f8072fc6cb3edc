"""Videos show an episode step by step, and failures to write one are reported in one line."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageSequence

from multihorizon.reports.video import GAME, _write_mp4, write_video
from multihorizon.runs.watching import EpisodeRecord


def test_what_comes_is_not_shown_before_it_does(tmp_path: Path) -> None:
    rng, steps = np.random.default_rng(0), 20
    pictures = [np.zeros((8, 8, 3), np.uint8)] * (steps + 1)
    values, actions = rng.normal(size=(steps, 3, 2)), np.zeros(steps, int)
    episode = EpisodeRecord(pictures, values, actions, np.ones(steps), np.array([0, 0.9, 0.99]), np.ones(3) / 3)
    with Image.open(write_video(episode, tmp_path / "a.gif", "made up", 15)) as video:
        dark = [int(np.sum(np.asarray(one.convert("L"))[:, GAME:] < 200)) for one in ImageSequence.Iterator(video)]
    assert len(dark) == steps  # of two pictures that are the same a GIF holds one
    assert dark[0] + 2_000 < dark[steps // 2] < dark[-1] - 2_000


def test_ffmpegs_failure_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import imageio_ffmpeg

    def broken(*given: Any, **named: Any) -> Iterator[None]:
        yield  # ready for frames
        raise OSError("Broken pipe\n\nFFMPEG COMMAND: ...")

    monkeypatch.setattr(imageio_ffmpeg, "write_frames", broken)
    with pytest.raises(ValueError, match="the video could not be written to") as caught:
        _write_mp4([np.zeros((4, 4, 3), np.uint8)] * 2, tmp_path / "a.mp4", 15)
    assert "\n" not in str(caught.value)
