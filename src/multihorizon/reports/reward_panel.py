"""The part of a video that shows when the agent expects reward, as bars over future time."""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, UInt8

from multihorizon.discounting import RewardTimeline, decode_rewards
from multihorizon.reports.figure_style import BLUE, ORANGE, SETTINGS
from multihorizon.reports.plotting import Figure, FigureCanvasAgg, rc_context

LEAST_HEADS = 3  # the panel needs at least this number of different discount factors
MOST_TICKS = 7
BAR, SPAN = (tuple(int(colour[i : i + 2], 16) for i in (1, 3, 5)) for colour in (BLUE, ORANGE))


@dataclass(frozen=True)
class RewardPanel:
    """The panel's pixels without bars, and the positions of bars."""

    empty: UInt8[np.ndarray, "h w 3"]
    timeline: RewardTimeline
    columns: Float[np.ndarray, " edges"]  # pixel column of each bin edge
    zero: float  # pixel row of reward 0
    rows_per_reward: float

    def drawn(self, step: int) -> UInt8[np.ndarray, "h w 3"]:
        """Returns the panel at a step, with a bar for each time bin.

        It is uncertain when a reward comes. For the largest bar, a line shows the range of possible times.
        """
        pixels = self.empty.copy()
        rewards = self.timeline.rewards[step]
        for low, high, reward in zip(self.columns[:-1], self.columns[1:], rewards, strict=True):
            top, bottom = sorted((round(self.zero), round(self.zero - reward * self.rows_per_reward)))
            pixels[top:bottom, round(low) + 1 : round(high)] = BAR
        largest = int(np.abs(rewards).argmax())
        if abs(rewards[largest]) * self.rows_per_reward >= 1:
            edges = np.append(self.timeline.starts, self.timeline.ends[-1])
            times = (self.timeline.earliest[largest], self.timeline.latest[largest] + 1)
            left, right = (round(float(x)) for x in np.interp(times, edges, self.columns))
            row = round(self.zero - rewards[largest] * self.rows_per_reward) - (5 if rewards[largest] > 0 else -3)
            pixels[max(row, 0) : max(row, 0) + 3, left:right] = SPAN
        return pixels


def make_panel(
    taken: Float[np.ndarray, "T H"], gammas: Float[np.ndarray, " H"], width: int, height: int
) -> RewardPanel | None:
    """Decodes the rewards that the agent expects at each step, and draws the panel's axes. Sizes are in pixels.

    `taken` holds the Q-values of the action taken. With fewer than three different discount factors, the function
    returns None.
    """
    if len(np.unique(gammas)) < LEAST_HEADS:
        return None
    timeline = decode_rewards(taken, gammas)
    low, high = min(float(timeline.rewards.min()), 0.0), max(float(timeline.rewards.max()), 0.0)
    room = 0.15 * (high - low) or 1.0
    edges = np.append(timeline.starts, timeline.ends[-1])
    with rc_context(SETTINGS | {"figure.dpi": 100}):
        figure = Figure(figsize=(width / 100, height / 100), layout="constrained")
        axes = figure.subplots()
        axes.set_xlim(0, len(edges) - 1)
        axes.set_ylim(low - (room if low < 0 else 0), high + room)
        shown = np.unique(np.linspace(0, len(timeline.starts) - 1, MOST_TICKS).round().astype(int))
        axes.set_xticks(shown + 0.5, [_span(timeline, int(place)) for place in shown])
        axes.set_xlabel("steps from now (line: when the largest bar's reward may come)")
        axes.set_ylabel("reward")
        axes.set_title("when the agent expects reward", loc="left")
        axes.grid(axis="x", visible=False)
        canvas = FigureCanvasAgg(figure)
        canvas.draw()
        corners = axes.transData.transform([(0, 0), (len(edges) - 1, 1)])
    pixels = np.asarray(canvas.buffer_rgba())[..., :3].copy()
    columns = np.linspace(corners[0, 0], corners[1, 0], len(edges))
    return RewardPanel(pixels, timeline, columns, height - corners[0, 1], corners[1, 1] - corners[0, 1])


def _span(timeline: RewardTimeline, place: int) -> str:
    first, last = timeline.starts[place], timeline.ends[place] - 1
    return f"{first}" if first == last else f"{first}-{last}"
