"""Draws a timeline of Atari training: what environments, host and device do at the same time.

    python benchmarks/timeline.py --out results/speed

Environments step in groups. The bar of a group begins when the host sends actions to the group, and ends when the host
receives the group's observations and rewards. Other bars show when the host waits for environments, waits for actions,
sends transitions to the device, or dispatches updates. The profile lasts one second. The figure shows `--milliseconds`
of the profile. The printed percentages are for the whole profile.
"""

import argparse
import glob
import gzip
import json
import tempfile
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax
from matplotlib.figure import Figure

from multihorizon.agents.presets import preset
from multihorizon.errors import InputError
from multihorizon.files import writable_folder, write_json
from multihorizon.reports.figure_style import BLUE, GREEN, GREY, ORANGE, RED, canvas, save, styled
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.configure import trainer_of
from multihorizon.training import memory
from multihorizon.training.host_collector import HostCollector
from multihorizon.training.schedule import Schedule
from multihorizon.training.trainer import Progress
from multihorizon.training.worlds import world

Spans = list[tuple[float, float]]  # start and end of each span
SETTLED = 6  # seconds of learning before the profile


STORES, UPDATES = "host hands over a step", "host hands over updates"
WAITS = "host waits for actions"


class Enough(Exception):
    """The profile is complete."""


def marked(name: str, part: Callable[..., Any]) -> Callable[..., Any]:
    def marking(*given: Any) -> Any:
        with jax.profiler.TraceAnnotation(name):
            return part(*given)

    return marking


class Marked:
    """A group of environments whose sends and receives are marked in the profile."""

    def __init__(self, world: Any, group: int) -> None:
        self._world, self._group = world, group

    def __getattr__(self, name: str) -> Any:
        return getattr(self._world, name)

    def send(self, actions: Any) -> None:
        with jax.profiler.TraceAnnotation(f"send {self._group}"):
            self._world.send(actions)

    def receive(self) -> Any:
        with jax.profiler.TraceAnnotation(f"receive {self._group}"):
            return self._world.receive()


def profiled(options: argparse.Namespace) -> list[dict[str, Any]]:
    chosen = world(f"atari/{options.game}")
    agent = replace(preset("multi-rainbow"), compute_dtype=options.dtype, warm_up_steps=options.warm_up)
    if options.replay:
        agent = replace(agent, replay_capacity=options.replay)
    schedule = Schedule(1, options.warm_up + options.steps, 0)
    environments = options.envs or chosen.environments
    trainer = trainer_of(Configuration(agent, chosen.name, chosen.torso, schedule, 0, options.seeds, environments))
    collector = trainer.collector
    assert isinstance(collector, HostCollector)
    memory.check(trainer)
    stepping: Any = collector.environments
    for group in range(stepping.groups):
        stepping._made[group] = Marked(stepping.group(group), group)
    collector._store = marked(STORES, collector._store)  # type: ignore[method-assign]
    collector.programs.learn = marked(UPDATES, collector.programs.learn)  # type: ignore[method-assign]
    stepping.send = marked(WAITS, stepping.send)
    reports = 0
    with tempfile.TemporaryDirectory() as folder:

        def report(progress: Progress) -> None:
            nonlocal reports
            reports += progress.loss is not None
            if reports == SETTLED:
                jax.profiler.start_trace(folder)
            if reports == SETTLED + 1:
                jax.profiler.stop_trace()
                raise Enough

        with suppress(Enough):
            trainer.iterate(trainer.init(0), 0, 0, report)
        trainer.close()
        paths = glob.glob(f"{folder}/**/*.trace.json.gz", recursive=True)
        if reports <= SETTLED or not paths:
            raise InputError(
                f"learning from {options.steps} steps took less than {SETTLED + 1} seconds, too short to profile; "
                "increase --steps"
            )
        with gzip.open(paths[0]) as file:
            events: list[dict[str, Any]] = json.load(file)["traceEvents"]
    return events


def merged(spans: Iterable[tuple[float, float]]) -> Spans:
    whole: Spans = []
    for begun, ended in sorted(spans):
        if whole and begun <= whole[-1][1]:
            whole[-1] = whole[-1][0], max(whole[-1][1], ended)
        else:
            whole.append((begun, ended))
    return whole


def lanes(events: list[dict[str, Any]]) -> dict[str, Spans]:
    def span(event: dict[str, Any]) -> tuple[float, float]:
        return event["ts"] / 1e3, (event["ts"] + event["dur"]) / 1e3

    complete = [event for event in events if event.get("ph") == "X"]
    found: dict[str, Spans] = {}
    groups = sorted({int(e["name"].split()[1]) for e in complete if e["name"].startswith("send ")})
    for group in groups:
        sent = sorted(span(e)[1] for e in complete if e["name"] == f"send {group}")
        received = sorted(span(e)[1] for e in complete if e["name"] == f"receive {group}")
        pairs = [(s, min(r for r in received if r > s)) for s in sent if received and received[-1] > s]
        if pairs:
            found[f"environments, group {group + 1}"] = pairs
    found["host waits for environments"] = merged(span(e) for e in complete if e["name"].startswith("receive "))
    found |= {name: merged(span(e) for e in complete if e["name"] == name) for name in (STORES, UPDATES, WAITS)}
    gpus = {e["pid"] for e in events if e.get("name") == "process_name" and "GPU" in e["args"]["name"]}
    streams = {
        (e["pid"], e["tid"])
        for e in events
        if e.get("name") == "thread_name" and e["pid"] in gpus and "Stream" in e["args"]["name"]
    }
    kernels = [e for e in complete if (e["pid"], e["tid"]) in streams]
    for lane, learns in (("device stores and acts", False), ("device learns", True)):
        own = [e for e in kernels if ("learn" in str(e.get("args", {}).get("hlo_module", ""))) == learns]
        found[lane] = merged(span(e) for e in own)
    return {name: spans for name, spans in found.items() if spans}


@styled
def draw(found: dict[str, Spans], first: float, milliseconds: float, title: str) -> Figure:
    figure, (axes,) = canvas(11, 0.55 * len(found) + 1.1)
    colours = {"environments": ORANGE, "host waits": GREY, "host": RED, "device stores": GREEN, "device learns": BLUE}
    for place, (name, spans) in enumerate(reversed(found.items())):
        shown = [(a - first, b - a) for a, b in spans if b > first and a < first + milliseconds]
        colour = next(colour for start, colour in colours.items() if name.startswith(start))
        axes.broken_barh(shown, (place - 0.38, 0.76), color=colour, lw=0)
    axes.set_yticks(range(len(found)), list(reversed(found)))
    axes.set_xlim(0, milliseconds)
    axes.set(xlabel="milliseconds", title=title)
    axes.grid(axis="y", visible=False)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--game", default="Seaquest")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--envs", type=int, default=0, help="number of environments (default: as in train)")
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--warm-up", type=int, default=20_000)
    parser.add_argument("--steps", type=int, default=150_000, help="agent steps after the warm-up")
    parser.add_argument("--replay", type=int, default=0, help="replay capacity in steps (default: the preset's)")
    parser.add_argument("--milliseconds", type=float, default=40.0, help="milliseconds to draw")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    writable_folder(options.out)
    found = lanes(profiled(options))
    first, last = found["host waits for environments"][0][0], found["host waits for environments"][-1][1]
    inside = {n: [(max(a, first), min(b, last)) for a, b in s if b > first and a < last] for n, s in found.items()}
    shares = {n: sum(b - a for a, b in merged(s)) / (last - first) for n, s in inside.items()}
    print(f"| | of {last - first:.0f} ms |\n|---|---|")
    for name, share in shares.items():
        print(f"| {name} | {100 * share:.0f}% |")
    device = jax.devices()[0].device_kind
    write_json(options.out / "timeline.json", {"device": device, "shares": shares})
    shown = min(options.milliseconds, (last - first) / 2)
    title = f"Multi-Rainbow in {options.game} on {device}"
    print(save(draw(found, first + 0.2 * (last - first), shown, title), options.out / "timeline.png"))


if __name__ == "__main__":
    main()
