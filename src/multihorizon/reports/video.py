"""Writes videos of episodes: the game, each horizon's Q-value over time, and when the agent expects reward."""

import importlib.util
import textwrap
import warnings
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int, UInt8

from multihorizon.errors import InputError
from multihorizon.files import atomically
from multihorizon.reports.escaping import replace_controls
from multihorizon.reports.figure_style import BLACK, GREY, RED, SETTINGS, any_name
from multihorizon.reports.names import LONGEST_LABEL, cut
from multihorizon.reports.plotting import Figure, FigureCanvasAgg, MaxNLocator, colormaps, rc_context
from multihorizon.reports.reward_panel import make_panel

if TYPE_CHECKING:
    from multihorizon.runs.watching import EpisodeRecord

HEIGHT, GAME, CURVES, PANEL = 480, 400, 720, 200  # pixels
TITLE_CHARACTERS = 76  # a line of the title has at most this number of characters
CURSOR = tuple(int(RED[i : i + 2], 16) for i in (1, 3, 5))


def check_writer(path: Path) -> None:
    """Raises an InputError unless the path names an MP4 or a GIF that can be written."""
    if path.suffix not in (".mp4", ".gif"):
        raise InputError(f"a video must be an .mp4 or a .gif file, got {path.name}")
    if path.suffix == ".mp4" and importlib.util.find_spec("imageio_ffmpeg") is None:
        raise InputError("an .mp4 file needs imageio-ffmpeg; run pip install imageio-ffmpeg, or write a .gif file")


def write_video(episode: "EpisodeRecord", path: Path, title: str, frames_per_second: int) -> Path:
    """Writes a video of an episode, as MP4 or GIF by the suffix of the path, and returns the path."""
    check_writer(path)
    figure, columns = draw_q_values(episode, title)
    drawn = _render_pixels(figure)
    top, bottom, right = _find_plot_edges(figure)
    for line in [line for axes in figure.axes for line in axes.lines]:
        line.set_visible(False)
    empty = _render_pixels(figure)
    taken = episode.values[np.arange(len(episode.actions)), :, episode.actions]  # [T H]
    panel = make_panel(taken, episode.gammas, CURVES, PANEL)
    frames = []
    for t in range(len(episode.actions) + 1):
        beside = drawn.copy()
        column = columns[min(t, len(columns) - 1)]
        beside[top:bottom, column:right] = empty[top:bottom, column:right]  # hide future steps
        beside[top:bottom, column : column + 2] = CURSOR
        if panel is not None:
            beside = np.concatenate([beside, panel.drawn(min(t, len(columns) - 1))])
        if episode.pictures is not None:
            beside = np.concatenate([_scale_picture(episode.pictures[t], len(beside)), beside], axis=1)
        frames.append(beside)
    frames += [frames[-1]] * frames_per_second  # hold the last frame for a second
    with atomically(path) as file:
        (_write_mp4 if path.suffix == ".mp4" else _write_gif)(frames, file, frames_per_second)
    return path


def draw_q_values(episode: "EpisodeRecord", title: str) -> tuple[Figure, Int[np.ndarray, " T"]]:
    """Draws each horizon's Q-value of the action taken, and also returns the pixel column of every step."""
    steps = np.arange(len(episode.actions))
    taken = episode.values[steps, :, episode.actions]  # [T H]
    with rc_context(SETTINGS | {"figure.dpi": 100}):
        figure = Figure(figsize=(CURVES / 100, HEIGHT / 100), layout="constrained")
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=[3, 1])
        order = np.argsort(episode.gammas)
        shades = colormaps["viridis"](np.linspace(0, 0.92, len(order)))
        if len(order) > 1:  # a wide line, visible behind the other lines
            above.plot(
                steps, (taken * episode.acting_weights).sum(axis=1), color=BLACK, lw=6, alpha=0.18, label="weighted Q"
            )
        for shade, head, style in zip(shades, order, cycle(("-", (0, (4, 1.2)))), strict=False):
            above.plot(steps, taken[:, head], color=shade, lw=1.3, ls=style, label=f"γ = {episode.gammas[head]:.4g}")
        above.set_ylabel("Q of the action taken")
        above.set_title(textwrap.fill(cut(replace_controls(title), LONGEST_LABEL), TITLE_CHARACTERS), loc="left")
        above.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8, labelspacing=0.3)
        below.plot(steps, np.cumsum(episode.rewards), color=GREY)
        below.set_ylabel("earned")
        below.set_xlabel("agent step")
        below.set_xlim(0, max(1, len(steps) - 1))
        below.xaxis.set_major_locator(MaxNLocator(integer=True))
        _render_pixels(figure)
        columns = above.transData.transform(np.stack([steps, np.zeros(len(steps))], axis=1))[:, 0]
    return figure, np.clip(np.round(columns), 0, CURVES - 2).astype(int)


def _render_pixels(figure: Figure) -> UInt8[np.ndarray, "H W 3"]:
    canvas = FigureCanvasAgg(figure)
    with any_name():
        canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def _find_plot_edges(figure: Figure) -> tuple[int, int, int]:
    """Returns the first row, the last row and the last column of the pixels that the plots cover."""
    boxes = [axes.get_window_extent() for axes in figure.axes]
    top, bottom = max(box.y1 for box in boxes), min(box.y0 for box in boxes)
    return HEIGHT - round(top), HEIGHT - round(bottom), round(max(box.x1 for box in boxes))


def _scale_picture(picture: UInt8[np.ndarray, "h w 3"], room: int) -> UInt8[np.ndarray, "H W 3"]:
    """Scales a picture to fit into `room` rows of pixels. A scale above 1 is rounded down to a whole number."""
    height, width = picture.shape[:2]
    scale = min(room / height, GAME / width)
    scale = int(scale) if scale >= 1 else scale
    rows = (np.arange(int(height * scale)) / scale).astype(int)
    columns = (np.arange(int(width * scale)) / scale).astype(int)
    large = picture[rows][:, columns]
    whole = np.full((room, GAME, 3), 255, np.uint8)
    top, left = (room - large.shape[0]) // 2, (GAME - large.shape[1]) // 2
    whole[top : top + large.shape[0], left : left + large.shape[1]] = large
    return whole


def _write_mp4(frames: list[UInt8[np.ndarray, "H W 3"]], path: Path, frames_per_second: int) -> None:
    import imageio_ffmpeg

    height, width = frames[0].shape[:2]
    writer = imageio_ffmpeg.write_frames(
        str(path.absolute()), (width, height), fps=frames_per_second, macro_block_size=1, ffmpeg_log_level="quiet"
    )
    # JAX warns whenever the process forks. This fork is harmless, because the child process only runs ffmpeg.
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="os.fork", category=RuntimeWarning)
        writer.send(None)
    problem = f"the video could not be written to {path.parent}; free some disk space, or choose another folder"
    try:
        for frame in frames:
            writer.send(np.ascontiguousarray(frame))
        writer.close()
    except OSError:  # the error message would contain ffmpeg's whole command
        raise InputError(problem) from None
    if _count_frames(path) != len(frames):  # ffmpeg reports no error on a full disk
        raise InputError(problem)


def _count_frames(path: Path) -> int:
    import imageio_ffmpeg

    try:
        return int(imageio_ffmpeg.count_frames_and_secs(str(path))[0])
    except RuntimeError:  # not a video
        return 0


def _write_gif(frames: list[UInt8[np.ndarray, "H W 3"]], path: Path, frames_per_second: int) -> None:
    from PIL import Image

    first, *others = [Image.fromarray(frame).quantize(256) for frame in frames]
    first.save(path, save_all=True, append_images=others, duration=1000 // frames_per_second, loop=0)
