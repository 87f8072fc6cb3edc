"""Public functions that use several packages: `watch`, `report`, `sweep`, `pathworld` and `forage`."""

from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from multihorizon.errors import InputError, as_function, as_path, at_least, instance
from multihorizon.files import writable_file

if TYPE_CHECKING:
    from multihorizon.experiments.experiment import Experiment
    from multihorizon.experiments.foraging import Choice, Forager
    from multihorizon.experiments.pathworld import PathworldResult
    from multihorizon.experiments.sweep import PlannedRun, Status, TellOf
    from multihorizon.reports.sections import ReportContents
    from multihorizon.runs.policy import Policy
    from multihorizon.runs.progress import Hooks


@dataclass(frozen=True)
class Video:
    """A video of one episode: its file, the number of steps and the return."""

    path: Path
    steps: int
    earned: float


def watch(
    policy: "Policy",
    env: Any = None,
    out: str | Path = "episode.mp4",
    *,
    seed: int = 0,
    max_steps: int = 2_000,
    fps: int | None = None,
) -> Video:
    """Plays an episode and writes a video that shows the game and each horizon's Q-values.

    Args:
        policy: A trained policy.
        env: The environment, as for `multihorizon.train`; by default, the training environment. A function
            that makes a Gymnasium environment must set `render_mode="rgb_array"`. The video of an environment that
            cannot be drawn shows only the curves.
        out: An .mp4 or .gif file. An .mp4 needs `pip install imageio-ffmpeg`.
        seed: The seed of the episode.
        max_steps: The largest number of steps to show.
        fps: Agent steps per second of video; by default the environment's own frame rate, or 15.

    Returns:
        The file, the number of steps and the return.

    Raises:
        InputError: An argument is invalid, or the environment was made without a render mode.
    """
    from multihorizon.reports.video import check_writer, write_video
    from multihorizon.runs.policy import check_policy
    from multihorizon.runs.watching import record_episode

    check_policy(policy)
    seed = at_least("seed", seed, 0, 2**31 - 1)
    max_steps = at_least("max_steps", max_steps, 1, 27_000)
    fps = None if fps is None else at_least("fps", fps, 1, 120)
    path = as_path("out", out)
    check_writer(path)
    writable_file(path)
    chosen = policy.world(env)
    episode = record_episode(policy, chosen, seed, max_steps)
    title = ", by ".join([f"{policy.agent.name} in {chosen.name}", *policy.changes])
    write_video(episode, path, title, episode.frames_per_second if fps is None else fps)
    return Video(path, len(episode.actions), float(episode.rewards.sum()))


@dataclass(frozen=True)
class ReportFiles:
    """The files of a report, and its contents."""

    page: Path
    files: list[Path]
    contents: "ReportContents"


def report(
    folder: str | Path | None = None,
    *,
    out: str | Path | None = None,
    dopamine: str | Path | None = None,
    warn: Callable[[str], None] | None = None,
) -> ReportFiles:
    """Writes a report of runs: scores, intervals, figures and a page.

    Args:
        folder: A folder of runs. Without it, the report covers the paper's table of sixty games.
        out: The report's folder; by default `FOLDER/report`, or `reproduced/paper` for the paper's table.
        dopamine: A file or folder of Dopamine's published curves, to draw beside the runs.
        warn: Receives warnings about damaged or missing metrics; by default, they are printed to stderr.

    Returns:
        The files and the contents of the report.
    """
    from multihorizon.reports.baselines import read_dopamine
    from multihorizon.reports.data import read_runs
    from multihorizon.reports.page import write_report
    from multihorizon.reports.sections import build_paper_report, build_report
    from multihorizon.runs.folder import inside
    from multihorizon.runs.progress import warn as print_warning

    warn = print_warning if warn is None else as_function("warn", warn, "a message")
    written = None if out is None else as_path("out", out)
    if folder is None:
        if dopamine is not None:
            raise InputError("dopamine needs a folder of runs; it cannot be combined with the paper's table")
        contents = build_paper_report()
        files = write_report(contents, written or Path("reproduced/paper"))
    else:
        runs = as_path("folder", folder)
        curves = read_dopamine(as_path("dopamine", dopamine)) if dopamine is not None else None
        contents = build_report(read_runs(runs, warn), curves)
        files = write_report(contents, written or inside(runs, "report"))
    return ReportFiles(files[0], files, contents)


@dataclass(frozen=True)
class SweepResult:
    """The runs of a sweep, and how each run ended."""

    folder: Path
    runs: "list[PlannedRun]"
    statuses: "dict[str, Status]"  # one status for each run folder

    @property
    def failed(self) -> "list[PlannedRun]":
        from multihorizon.experiments.sweep import State

        return [one for one in self.runs if self.statuses[one.run.folder].state is State.FAILED]


def sweep(
    experiment: "Experiment | str",
    out: str | Path | None = None,
    *,
    seeds: int | None = None,
    steps: int | None = None,
    only: "Callable[[PlannedRun], bool] | None" = None,
    train_all: "AbstractContextManager[Any] | None" = None,
    checkpoint_minutes: float = 10.0,
    tell: "TellOf | None" = None,
    warn: Callable[[str], None] | None = None,
) -> SweepResult:
    """Trains all unfinished runs of an experiment, one after another or on Ray. A stopped sweep is resumed.

    Args:
        experiment: An `Experiment`, or the name of one that ships with the package.
        out: The sweep's folder; `runs/NAME` by default.
        seeds: The number of seeds of each run; by default, as in the experiment.
        steps: The training steps of each seed; by default, as in the experiment.
        only: A function that returns whether to train a run; by default, all runs are trained.
        train_all: A context manager. It yields the function that trains the runs. To train on Ray, use
            `multihorizon.experiments.ray_cluster.cluster(...)`. By default, runs are trained one after another.
        checkpoint_minutes: The minimum number of minutes between two checkpoints of a run.
        tell: Called with a run and its status whenever the status changes.
        warn: Receives warnings; by default, they are printed to stderr.

    Returns:
        The runs and how they ended. A failed run does not stop the other runs.
    """
    from multihorizon.experiments import catalogue
    from multihorizon.experiments.experiment import Experiment
    from multihorizon.experiments.sweep import describe, here, plan
    from multihorizon.runs.folder import Lock
    from multihorizon.runs.progress import warn as print_warning

    if isinstance(experiment, str):
        experiment = catalogue.experiment(experiment)
    instance("experiment", experiment, Experiment, "an Experiment or the name of one")
    if train_all is not None:
        kind: Any = AbstractContextManager
        instance("train_all", train_all, kind, "a context manager, such as ray_cluster.cluster(...)")
    for name, given, of in (("only", only, "a planned run"), ("tell", tell, "a run and its status")):
        if given is not None:
            as_function(name, given, of)
    warn = print_warning if warn is None else as_function("warn", warn, "a message")
    experiment = experiment.scaled(seeds, steps)
    folder = Path("runs") / experiment.name if out is None else as_path("out", out)
    planned = [one for one in plan(experiment, folder, checkpoint_minutes) if only is None or only(one)]
    statuses = {one.run.folder: one.status() for one in planned}

    def keep(one: "PlannedRun", status: "Status") -> None:
        statuses[one.run.folder] = status
        if tell is not None:
            tell(one, status)

    with train_all or nullcontext(here) as train_them, closing(Lock(folder)):
        describe(experiment, folder)
        train_them([one for one in planned if not one.finished], keep, warn)
    return SweepResult(folder, planned, statuses)


@dataclass(frozen=True)
class PathworldReport:
    """The paper's four Pathworld tables, and the files written."""

    results: "list[PathworldResult]"
    files: list[Path]

    def tables(self) -> dict[str, dict[str, dict[str, float]]]:
        """Returns mean squared errors by table, agent and column (paper, ours, learned)."""
        return {result.experiment.name: result.table() for result in self.results}


def pathworld(*, seed: int = 0, out: str | Path | None = None) -> PathworldReport:
    """Reproduces the paper's Pathworld tables and its theoretical figures.

    Args:
        seed: The seed of Q-learning and of the simulation.
        out: A folder for the figures and `tables.json`; without it, nothing is written.

    Returns:
        The tables, and the files.
    """
    from multihorizon.experiments import pathworld as experiment
    from multihorizon.files import writable_folder, write_json

    seed = at_least("seed", seed, 0)
    folder = None if out is None else writable_folder(as_path("out", out))
    report = PathworldReport(experiment.run(seed), [])
    if folder is not None:
        from multihorizon.reports.figure_style import save
        from multihorizon.reports.theory_figures import draw_pathworld_figures

        drawn = draw_pathworld_figures(report.results)
        report.files.extend(save(figure, folder / f"{name}.png") for name, figure in drawn.items())
        report.files.append(write_json(folder / "tables.json", report.tables()))
    return report


@dataclass(frozen=True)
class ForagingReport:
    """The choices and returns of agents in the foraging world, and the best possible return."""

    foragers: "list[Forager]"
    best: "Choice"

    def table(self) -> dict[str, dict[str, Any]]:
        """Returns each agent's meals and earnings, by seed."""
        found = {f.agent: {"meals": f.meals.tolist(), "earned": f.earned.tolist()} for f in self.foragers}
        return found | {"best": {"meals": self.best.meals.tolist(), "earned": self.best.earned}}


def forage(
    *,
    steps: int = 14_000,
    seed: int = 0,
    out: str | Path | None = None,
    progress: "Callable[[str, int], AbstractContextManager[Hooks]] | None" = None,
) -> ForagingReport:
    """Trains Rainbow and Hyper-Rainbow to forage without hazard, three seeds each, and evaluates them under hazard.

    Args:
        steps: Training steps of each seed.
        seed: The first of the three seeds.
        out: A folder for `foraging.json`; without it, nothing is written.
        progress: A function that takes an agent's name and its number of training steps. It returns a context manager
            that yields hooks, which receive the progress of training.

    Returns:
        The choices and returns of each agent, and the best possible return.
    """
    from multihorizon.experiments import foraging
    from multihorizon.files import writable_folder, write_json
    from multihorizon.runs.progress import NO_HOOKS

    seed = at_least("seed", seed, 0, 2**31 - 4)
    steps = at_least("steps", steps, 1, 10_000_000)
    if progress is not None and not isinstance(progress, type):  # a class of context managers is allowed
        as_function("progress", progress, "an agent's name and its training steps")
    folder = None if out is None else writable_folder(as_path("out", out))
    foragers = []
    for agent in (foraging.rainbow(0.99), foraging.hyper_rainbow()):
        with nullcontext(NO_HOOKS) if progress is None else progress(agent.name, steps) as hooks:
            foragers.append(foraging.forage(agent, steps, seed, hooks.report, hooks.finished))
    report = ForagingReport(foragers, foraging.best_choice())
    if folder is not None:
        write_json(folder / "foraging.json", report.table())
    return report
