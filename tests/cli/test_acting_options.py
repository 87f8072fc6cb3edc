"""The commands `evaluate` and `watch` accept another discount or a risk rule."""

import json
from pathlib import Path

import numpy as np
import pytest

import multihorizon as mh
from multihorizon.cli import main


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("acting") / "run"
    line = f"train any-rainbow --env foraging --steps 900 --training-steps 450 --evaluation-steps 0 --out {out}"
    assert main([*line.split(), "--set", "warm_up_steps=300", "--set", "replay_capacity=2000"]) == 0
    return out


@pytest.mark.parametrize(
    ("options", "discount"),
    [
        ("--discount hyperbolic:0.2", mh.discount.hyperbolic(0.2)),
        ("--prior gamma:0.05,3", mh.discount.from_prior(mh.hazard.Gamma(0.05, 3.0))),
        ("--discount rachlin:0.3,0.8", mh.discount.rachlin(0.3, 0.8)),
        ("--discount deadline:12 --fit signed --tolerance 0.9", mh.discount.deadline(12)),
        ("--discount exponential:0.9 --fit least-squares", mh.discount.exponential(0.9)),
    ],
)
def test_fitted_discount_is_printed_before_playing(
    folder: Path, options: str, discount: mh.Discount, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"evaluate {folder} --episodes 5 --seed 3 --t-max 40 {options}"
    assert main(line.split()) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"acts by {discount}, expressed by 8 heads with γ ≤ 0.998: largest error ")
    assert shown.index("over t = 0..40") < shown.index("mean return")
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    method = {"signed": mh.FitMethod.SIGNED_MINIMAX, "least-squares": mh.FitMethod.LEAST_SQUARES}
    chosen = next((method[word] for word in options.split() if word in method), mh.FitMethod.MINIMAX)
    policy = mh.load_run(folder).policy().with_discount(discount, t_max=40, method=chosen, tolerance=0.9)
    np.testing.assert_allclose(found["discount"]["weights"], policy.horizons.weights)
    returns = mh.evaluate(policy, episodes=5, seed=3).values
    np.testing.assert_array_equal(found["seeds"][0]["returns"], returns)


def test_watch_and_risk(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"watch {folder} --out {tmp_path}/a.gif --steps 5 --discount hyperbolic:0.1 --risk cvar:0.25"
    assert main(line.split()) == 0
    shown = capsys.readouterr().out
    assert "acts by hyperbolic(k=0.1), expressed by 8 heads" in shown
    assert "takes the action with the best CVaR(level=0.25) of the return" in shown
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["risk"] == "CVaR(level=0.25)"
    assert found["discount"]["max_error"] < 0.003
    assert main(f"evaluate {folder} --episodes 2 --json".split()) == 0
    assert "discount" not in json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--discount none", "8 heads with γ ≤ 0.998 cannot express no discount"),
        ("--discount deadline:12 --t-max 40", "--fit signed reaches"),
        ("--discount deadline:12 --t-max 40", "otherwise raise --tolerance"),
        ("--discount hyperbolic:0.1 --t-max 0", "--t-max must be"),
        ("--discount hyperbolic:0.1 --fit best", "fit 'best'"),
        ("--discount hyperbolic:0.1 --tolerance 0", "--tolerance must be"),
        ("--discount hyperbolic:0.1 --prior gamma:0.1,2", "either --discount or --prior"),
        ("--discount hyperbola:0.1", "did you mean 'hyperbolic'"),
        ("--t-max 40", "--t-max needs --discount or --prior"),
        ("--risk cvar", "--risk takes a rule and its level, as in cvar:0.25, got 'cvar'"),
        ("--risk cvar:2", "the level of a CVaR must lie in (0, 1]"),
        ("--risk variance:2", "risk 'variance'"),
    ],
)
def test_errors_are_one_line(folder: Path, options: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"evaluate {folder} --episodes 2 {options}".split()) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1
