import re
import runpy
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"

# The output of an example contains its pattern only if the example worked.
FACTS = {
    "quickstart.py": r"evaluation: Returns\(20 episodes[\s\S]*loaded: Policy\(.* in gym/CartPole-v1, 4 horizons",
    "own_gymnasium_environment.py": r"γ = 0.6: .*: left\nγ = 0.95: .*: right\nReturns\(10 episodes: mean 10,",
    "own_jax_environment.py": r"γ = 0.6: cashes in after 1 step\nγ = 0.95: cashes in after 6 steps",
    "own_network.py": r"without the network: .*Residual[\s\S]*the same Q-values: True",
    "own_discount.py": r"stretched: 4 heads, largest error 0\.00[\s\S]*100   0\.2549   0\.25",
    "change_discount.py": r"k=0.01[\s\S]*path 5[\s\S]*k=1[\s\S]*path 1[\s\S]*refused: .*deadline[\s\S]*in 20 to 26",
    "evaluation_under_hazard.py": r"γ = 0.7 +Exponential\(k=1.0\) +2\.00[\s\S]*γ = 0.95 +none +9\.00",
    "q_per_horizon.py": r"γ = 0.5: path 1 is best[\s\S]*γ = 0.99: path 5 is best[\s\S]*wrote runs/q_per_horizon.png",
    "seeds_and_intervals.py": r"seed 2: mean return[\s\S]*over 3 seeds: mean return",
    "sweep.py": r"short: done[\s\S]*long: done[\s\S]*report with \d+ files: .*index\.html",
    "loggers.py": r"not finished[\s\S]*return/evaluation/seed-0[\s\S]*TensorBoard: events",
}


def test_every_example_is_tested_and_listed() -> None:
    scripts = {path.name for path in EXAMPLES.glob("*.py")}
    assert scripts == set(FACTS)
    assert scripts == set(re.findall(r"\]\((\w+\.py)\)", (EXAMPLES / "README.md").read_text()))


@pytest.mark.usefixtures("no_type_checks")
@pytest.mark.parametrize("script", FACTS)
def test_examples_run(
    script: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    runpy.run_path(str(EXAMPLES / script), run_name="__main__")
    printed = capsys.readouterr().out
    assert re.search(FACTS[script], printed), printed
