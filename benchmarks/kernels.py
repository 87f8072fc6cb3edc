"""Draws a timeline of the GPU kernels of a few updates, from a profile that `update.py` wrote.

    python benchmarks/update.py --only 0 --profile FOLDER --out update.json
    python benchmarks/kernels.py FOLDER --out results/speed

Kernels are classified by name. XLA's names may change with its version.
"""

import argparse
import re
from pathlib import Path

import in_one_line  # noqa: F401
import numpy as np
from matplotlib.figure import Figure
from timeline import Spans, merged
from update import kernels

from multihorizon.errors import InputError
from multihorizon.files import writable_folder, write_json
from multihorizon.reports.figure_style import BLUE, GREEN, GREY, ORANGE, SKY, canvas, save, styled

DRAWS = "_draw_kernel"  # the first kernel of an update
KINDS = {
    "draws": (GREEN, DRAWS),
    "new priorities": (GREEN, "_write_kernel"),
    "convolutions": (BLUE, "_forward_kernel|_image_kernel|_weight_kernel"),
    "heads and losses": (SKY, "_heads_kernel"),
    "matrix products": (SKY, "nvjet|cublas|gemm"),
    "Adam, large matrices": (ORANGE, "loop_add_convert_fusion"),
    "all else": (GREY, ""),
}


@styled
def draw(lanes: dict[str, Spans], begins: list[float], first: float, last: float, title: str) -> Figure:
    figure, (axes,) = canvas(11, 0.5 * len(lanes) + 1.3)
    for place, (kind, spans) in enumerate(reversed(lanes.items())):
        shown = [(a - first, b - a) for a, b in spans if b > first and a < last]
        axes.broken_barh(shown, (place - 0.38, 0.76), color=KINDS[kind][0], lw=0)
    for begun in begins:
        if first <= begun < last:
            axes.axvline(begun - first, color="black", lw=0.8, ls=":")
    axes.set_yticks(range(len(lanes)), list(reversed(lanes)))
    axes.set_xlim(0, last - first)
    axes.set_xlabel("time in microseconds (dotted lines: start of an update)")
    axes.set_title(title)
    axes.grid(visible=False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("profile", type=Path, help="folder written by `update.py --profile`")
    parser.add_argument("--updates", type=int, default=6, help="consecutive updates to draw (default: %(default)s)")
    parser.add_argument("--device", default="", help="name of the profiled device, for the title")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    writable_folder(options.out)
    events = kernels(options.profile)
    lanes: dict[str, Spans] = {}
    for event in events:
        kind = next(kind for kind, (_, pattern) in KINDS.items() if re.search(pattern, event["name"]))
        lanes.setdefault(kind, []).append((event["ts"], event["ts"] + event["dur"]))
    begins = sorted(event["ts"] for event in events if DRAWS in event["name"])
    if not 0 < options.updates < len(begins):
        raise InputError(f"--updates must lie in [1, {len(begins) - 1}] for this profile, got {options.updates}")
    # The profiler can delay updates at the start or end of a CUDA graph. The figure therefore shows the most evenly
    # spaced updates.
    gaps_of = np.lib.stride_tricks.sliding_window_view(np.diff(begins), options.updates)
    steadiest = int(np.argmin(np.ptp(gaps_of, axis=1)))
    gaps = gaps_of[steadiest]
    first, last = begins[steadiest], begins[steadiest + options.updates]
    lanes = {kind: merged(lanes[kind]) for kind in KINDS if kind in lanes}
    each = (last - first) / options.updates
    busy = {
        kind: sum(min(b, last) - max(a, first) for a, b in spans if b > first and a < last) / options.updates
        for kind, spans in lanes.items()
    }
    print(f"| | µs per update (total: {each:.0f}) |\n|---|---|")
    for kind, taken in busy.items():
        print(f"| {kind} | {taken:.0f} |")
    found = {"microseconds": each, "between_draws": gaps.tolist(), "busy_microseconds": busy}
    write_json(options.out / "kernels.json", found)
    title = f"{options.updates} updates" + (f" on {options.device}" if options.device else "")
    print(save(draw(lanes, begins, first, last, title), options.out / "kernels.png"))


if __name__ == "__main__":
    main()
