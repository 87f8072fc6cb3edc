"""Videos that cannot be written."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from multihorizon.report.video import _write_mp4


def test_ffmpegs_failure_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import imageio_ffmpeg

    def broken(*given: Any, **named: Any) -> Iterator[None]:
        yield  # ready for frames
        raise OSError("Broken pipe\n\nFFMPEG COMMAND: ...")

    monkeypatch.setattr(imageio_ffmpeg, "write_frames", broken)
    with pytest.raises(ValueError, match="no video could be written to") as caught:
        _write_mp4([np.zeros((4, 4, 3), np.uint8)] * 2, tmp_path / "a.mp4", 15)
    assert "\n" not in str(caught.value)
