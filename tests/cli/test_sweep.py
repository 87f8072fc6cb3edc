import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from multihorizon.cli import main
from multihorizon.cli.terminal import show, table
from multihorizon.experiments.catalogue import experiment
from multihorizon.experiments.estimates import RATES, Sizes, estimate, seconds
from multihorizon.experiments.sweep import plan
from multihorizon.runs.configuration import plain
from multihorizon.runs.metrics import format_line


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("sweep minatr", "unknown experiment 'minatr' (did you mean 'minatar'?)"),
        ("sweep", "the following arguments are required: EXPERIMENT"),
        ("sweep hazard --seeds 0", "--seeds must be a whole number of at least 1"),
        ("sweep hazard --steps 100", "--steps must be more than the 2,000 steps of the warm-up"),
        ("sweep hazard --only raimbow", "unknown agent or environment 'raimbow' (did you mean 'rainbow'?)"),
        ("sweep hazard --checkpoint-minutes -1", "--checkpoint-minutes must be a number of at least 0, got -1"),
        ("sweep hazard --device tpu", "unknown device 'tpu'"),
        ("sweep hazard --gpu-share 0.5", "--gpu-share needs --ray"),
        ("sweep hazard --cpus 2", "--cpus needs --ray"),
        ("sweep hazard --dry-runs", "unknown option of sweep '--dry-runs' (did you mean '--dry-run'?)"),
        ("sweep nowhere.py", "nowhere.py: No such file"),
        ("sweep hazard --ray 127.0.0.1:1", "no Ray cluster answers at 127.0.0.1:1"),
        (
            "sweep hazard --ray localhost",
            "the address must be HOST:PORT of the cluster's head, or auto, got 'localhost'",
        ),
        ("sweep hazard --ray a.b.invalid:6379", "no Ray cluster answers at a.b.invalid:6379"),
    ],
)
def test_invalid_input_gives_one_line_and_status_2(
    line: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(line.split()) == 2
    assert not list(tmp_path.iterdir())
    said = capsys.readouterr().err.strip()
    assert words in said
    assert "\n" not in said


def test_missing_ray_is_reported(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "ray", None)
    assert main(["sweep", "hazard", "--ray"]) == 2
    assert capsys.readouterr().err.strip().endswith("pip install ray")
    assert not list(tmp_path.iterdir())


def test_a_folder_accepts_only_one_experiment(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    def refused(line: str) -> str:
        assert main(["sweep", *line.split(), "--out", str(tmp_path), "--dry-run"]) == 2
        said = capsys.readouterr().err.strip()
        assert "\n" not in said
        return said

    (tmp_path / "letter.txt").touch()
    assert "holds other files, such as letter.txt, not an experiment" in refused("hazard")
    (tmp_path / "experiment.json").write_text("{")
    assert "experiment.json cannot be read" in refused("hazard")
    (tmp_path / "experiment.json").write_text(json.dumps(experiment("hazard").description()))
    assert "holds the experiment 'hazard', not 'minatar'" in refused("minatar")
    # Before a run has started, the options may change.
    assert main(["sweep", "hazard", "--out", str(tmp_path), "--dry-run", "--seeds", "2"]) == 0
    begun = tmp_path / "foraging-hazard/rainbow"
    begun.mkdir(parents=True)
    (begun / "config.json").write_text(json.dumps(plain(experiment("hazard").runs[0].configuration())))
    assert "foraging-hazard/rainbow, which was started with other options: seeds is 10, not 2; give" in refused(
        "hazard --seeds 2"
    )
    capsys.readouterr()
    assert main(["sweep", "hazard", "--out", str(tmp_path), "--dry-run"]) == 0
    (tmp_path / "experiment.json").write_text('{"name": "hazard"}')
    assert "experiment.json has no 'runs'; choose" in refused("hazard")
    foreign = tmp_path / "mine.py"
    for content, words in (("EXPERIMENT = 3", "must define EXPERIMENT = "), ("1 / 0", "failed with ZeroDivisionError")):
        foreign.write_text(content)
        assert words in refused(str(foreign))


IMPORTS = """
from dataclasses import replace
from multihorizon.agents.presets import preset
from multihorizon.discounting import discount
from multihorizon.experiments.experiment import Experiment, ExperimentRun
"""
OWN = {
    "agent=preset('dqn'), settings={'nstep': 2}": "unknown setting of dqn 'nstep' (did you mean 'n_steps'?)",
    "agent=preset('dqn'), seeds='3'": "seeds must be a whole number of at least 1, got '3'",
    "agent=preset('dqn'), steps='3'": "steps must be a whole number of at least 1, got '3'",
    "agent=preset('dqn'), wanted=0.99": "wanted of dqn must be None or a Discount, such as discount.exponential(0.99)",
    "agent=preset('dqn'), wanted=lambda t: 1.0": "wanted of dqn must be None or a Discount",
    "agent=preset('dqn'), wanted=discount.from_function(lambda t: 1 / (1 - t))": "it fails: float division by zero",
    "agent='dqn'": "the agent of a run must be an AgentConfig, such as mh.agent('dqn'), got 'dqn'",
    "agent=replace(preset('dqn'), name='')": "an agent's name must contain a letter or digit",
}
PANELS = {
    "('dqn',)": "two labels (baseline, challenger), got ('dqn',)",
    "'dqn'": "two labels (baseline, challenger)",
    "3": "two labels (baseline, challenger), got 3",
}


def test_errors_in_custom_experiments_are_one_line(tmp_path: Path) -> None:
    """Uses another process, because the tests' type checker would raise other errors."""
    made = {
        f"Experiment('own', '', '', [ExperimentRun(environment='foraging', {run})])": words
        for run, words in OWN.items()
    }
    for panel, words in PANELS.items():
        made[f"Experiment('own', '', '', [ExperimentRun(preset('dqn'), 'foraging')], panels=[{panel}])"] = words
    for number, content in enumerate(made):
        (tmp_path / f"{number}.py").write_text(f"{IMPORTS}EXPERIMENT = {content}\n")
    script = "from multihorizon.cli import main\n" + "".join(
        f"assert main(['sweep', '{number}.py', '--dry-run']) == 2\n" for number in range(len(made))
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for number, (said, words) in enumerate(zip(done.stderr.splitlines(), made.values(), strict=True)):
        assert said.startswith(f"multihorizon: {number}.py")
        assert words in said
        assert "InputError" not in said


def test_dry_run_shows_time_and_disk_space(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["sweep", "hazard", "--dry-run", "--only", "rainbow"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "foraging/hazard rainbow 10 × 15,000" in shown
    assert shown.startswith("1 run ")
    assert "One after another, the runs take about" in shown
    assert main(["sweep", "hazard", "--dry-run", "--only", "rainbow", "--steps", "2500"]) == 0
    assert "10 × 2,508" in capsys.readouterr().out  # 2,500 is rounded up to 3 iterations × 209 cycles × 4 steps
    only = ["--only", "minatar/breakout", "--only", "multi-rainbow"]
    assert main(["sweep", "minatar", "--dry-run", "--json", *only]) == 0
    (run,) = json.loads(capsys.readouterr().out)["runs"]
    assert run["state"] == "waiting"
    assert run["seconds"] > 0
    assert not list(tmp_path.iterdir())


def test_estimates_cover_the_remaining_work(tmp_path: Path) -> None:
    atari = plan(experiment("auxiliary"), tmp_path, 5.0)[1]
    size = Sizes().of(atari.configuration)
    assert size.replay == pytest.approx(3 * 7.1e9, rel=0.02)  # docs/guides/atari.md
    told = estimate(atari, "gpu", Sizes())
    assert told.working_bytes > 3 * size.replay
    assert 2 < told.seconds / 3600 < 5  # 600 million frames at about 60,000 frames per second
    assert seconds(atari, "cpu") > 20 * told.seconds
    atari.folder.mkdir(parents=True)
    line = {"iteration": 99, "step": 25_000_000, "updates": 0, "losses": [], "values": []}
    line |= {"episodes": [1] * 3, "returns": [0.0] * 3, "evaluation_episodes": [0] * 3}
    line |= {"evaluation_returns": [None] * 3, "steps_per_second": 1.0, "seconds": 1.0}
    (atari.folder / "metrics.jsonl").write_text(format_line(line) + "\n")
    assert seconds(atari, "gpu") == pytest.approx(told.seconds / 2, rel=0.01)
    (atari.folder / "weights.npz").touch()
    assert estimate(atari, "gpu", Sizes()).seconds == 0
    for rates in RATES.values():
        assert "" in rates  # the default rate


def test_estimated_sizes_depend_on_the_environment(tmp_path: Path) -> None:
    sizes = Sizes()
    games = {one.run.environment: one.configuration for one in plan(experiment("minatar"), tmp_path, 5.0)}
    replays = {name.partition("/")[2]: sizes.of(one).replay for name, one in games.items()}
    bytes_of_a_channel = 10 * 100_000 * 10 * 10  # seeds, steps, height, width
    assert replays["asterix"] == replays["breakout"]  # both have four channels; space_invaders has six
    assert replays["space_invaders"] - replays["breakout"] == pytest.approx(2 * bytes_of_a_channel, rel=0.01)


def test_names_of_runs_are_never_truncated(capsys: pytest.CaptureFixture[str]) -> None:
    name = "multi-rainbow-" * 10
    shown = table("runs", ["environment", "agent"], [["foraging", name]])
    show(shown)
    assert name in capsys.readouterr().out
    terminal = Console(width=40, force_terminal=True, color_system=None)
    terminal.print(shown)
    folded = capsys.readouterr().out
    assert "…" not in folded
    assert folded.count("rainbow") + folded.count("multi") >= 10
