"""Tests the options of `evaluate` and `watch` that change how an agent acts."""

import argparse
import json
import re
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

import multihorizon as mh
from multihorizon.cli import acting, main


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
        ("--discount deadline:12 --fit signed-least-squares --tolerance 0.9", mh.discount.deadline(12)),
        ("--discount exponential:0.9 --fit least-squares", mh.discount.exponential(0.9)),
    ],
)
def test_evaluate_command_prints_the_fitted_discount_before_the_returns(
    folder: Path, options: str, discount: mh.Discount, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"evaluate {folder} --episodes 5 --seed 3 --t-max 40 {options}"
    assert main(line.split()) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"acts by {discount}, expressed by 8 heads with γ ≤ 0.998: largest error ")
    assert shown.index("over t = 0..40") < shown.index("mean return")
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    method = {
        "signed-least-squares": mh.FitMethod.SIGNED_LEAST_SQUARES,
        "least-squares": mh.FitMethod.LEAST_SQUARES,
    }
    chosen = next((method[word] for word in options.split() if word in method), mh.FitMethod.MINIMAX)
    policy = mh.load_run(folder).policy().with_discount(discount, t_max=40, method=chosen, tolerance=0.9)
    np.testing.assert_allclose(found["discount"]["weights"], policy.horizons.weights)
    returns = mh.evaluate(policy, episodes=5, seed=3).values
    np.testing.assert_array_equal(found["seeds"][0]["returns"], returns)


def test_evaluate_command_can_make_a_saved_policy_precommitted(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    saved = mh.load_run(folder).policy().with_discount(mh.discount.hyperbolic(0.2), t_max=40).save(tmp_path / "policy")
    line = f"evaluate {saved} --episodes 5 --seed 3 --consistency precommitted"
    assert main(line.split()) == 0
    stated, plan, *_ = capsys.readouterr().out.splitlines()
    assert stated.startswith("acts by hyperbolic(k=0.2), expressed by 8 heads with γ ≤ 0.998: largest error ")
    assert plan == "precommitted: keeps its first plan: at time t of an episode, head i has the weight wᵢ γᵢ^t"
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["discount"], found["consistency"]) == ({"text": stated.removeprefix("acts by ")}, "precommitted")
    kept = mh.load(saved).with_consistency("precommitted")
    np.testing.assert_array_equal(found["seeds"][0]["returns"], mh.evaluate(kept, episodes=5, seed=3).values)


def test_watch_command_accepts_a_discount_and_a_risk_measure(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = f"watch {folder} --out {tmp_path}/a.gif --steps 5 --discount hyperbolic:0.1 --risk cvar:0.25"
    assert main(line.split()) == 0
    shown = capsys.readouterr().out
    assert "acts by hyperbolic(k=0.1), expressed by 8 heads" in shown
    assert "takes the action whose return has the largest CVaR(level=0.25)" in shown
    assert main([*line.split(), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["risk"] == "CVaR(level=0.25)"
    assert found["discount"]["max_error"] < 0.003
    assert main(f"evaluate {folder} --episodes 2 --json".split()) == 0
    assert "discount" not in json.loads(capsys.readouterr().out)


def test_error_about_a_deadline_suggests_two_sets_of_options(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = f"evaluate {folder} --episodes 2 --t-max 40 --discount deadline:12"
    assert main(line.split()) == 2
    said = capsys.readouterr().err
    other = re.search(r"(--fit signed-least-squares --tolerance \S+); the largest error is then (\S+) at", said)
    same = re.search(r"Set (--tolerance \S+) to accept this error", said)
    assert other
    assert same
    for options in (other[1], same[1]):
        assert main([*line.split(), *options.split()]) == 0
        assert ("largest error " + other[2] in capsys.readouterr().out) == (options == other[1])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--discount none", "8 heads with γ ≤ 0.998 cannot express the discount 'no discount'"),
        ("--discount deadline:12 --t-max 40", "--fit signed-least-squares --tolerance 0."),
        ("--discount deadline:12 --t-max 40", "Set --tolerance 0.4"),
        ("--discount hyperbolic:0.1 --t-max 0", "--t-max must be"),
        ("--discount hyperbolic:0.1 --fit best", "fit 'best'"),
        ("--discount hyperbolic:0.1 --tolerance 0", "--tolerance must be"),
        ("--discount hyperbolic:0.1 --prior gamma:0.1,2", "either --discount or --prior"),
        ("--discount hyperbola:0.1", "did you mean 'hyperbolic'"),
        ("--t-max 40", "--t-max needs --discount or --prior"),
        ("--risk cvar", "--risk must be a rule with a level, such as cvar:0.25, got 'cvar'"),
        ("--risk cvar:2", "the level of a CVaR must lie in [0.0001, 1]"),
        ("--risk variance:2", "risk 'variance'"),
    ],
)
def test_invalid_options_for_a_run_give_one_line(
    folder: Path, options: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(f"evaluate {folder} --episodes 2 {options}".split()) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


@pytest.fixture(scope="module")
def saved(folder: Path) -> Path:
    return mh.load_run(folder).policy().save(folder.parent / "policy")


def test_a_saved_policy_has_the_same_returns_as_its_run(
    folder: Path, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = "--episodes 5 --hazard exponential:0.1 --prior exponential:0.2 --t-max 4e1 --risk cvar:0.5"
    found = []
    for place in (folder, saved):
        assert main(f"evaluate {place} {options} --json".split()) == 0
        found.append(json.loads(capsys.readouterr().out))
    run, policy = found
    assert policy["weights"] == str(saved)
    assert [one["seed"] for one in policy["seeds"]] == [None]
    assert policy["seeds"][0]["returns"] == run["seeds"][0]["returns"]
    assert [policy[name] for name in ("discount", "risk", "environment")] == [
        run[name] for name in ("discount", "risk", "environment")
    ]
    assert main(f"evaluate {saved} {options}".split()) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["episodes", "mean", "return", "95%", "interval", "std", "mean", "length"] in lines


def test_watch_command_accepts_a_saved_policy(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(f"watch {saved} --steps 1 --discount hyperbolic:0.1 --out {saved}/episode.gif".split()) == 0
    assert f"Written to {saved}/episode.gif: 1 step, return" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("evaluate POLICY --weights a.npz", "--weights needs the folder of a run"),
        ("watch POLICY --of-seed 0", "--of-seed needs the folder of a run"),
        ("evaluate POLICY --env CartPole-v1", "the policy was trained with observations"),
        ("evaluate POLICY --discount none", "cannot express the discount 'no discount'"),
        ("watch POLICY --fps 1.5", "'1.5' is not a whole number"),
    ],
)
def test_invalid_options_for_a_saved_policy_give_an_error(
    saved: Path, line: str, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(line.replace("POLICY", str(saved)).split()) == 2
    said = capsys.readouterr().err
    assert words in said.splitlines()[-1]
    assert "Traceback" not in said


def test_the_env_option_replaces_a_user_defined_environment(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"warm_up_steps": 100, "replay_capacity": 500, "batch": 8}
    run = mh.train(
        mh.agent("dqn", **settings),
        lambda: gymnasium.make("CartPole-v1"),
        steps=200,
        training_steps=200,
        evaluation_steps=0,
        out=tmp_path / "run",
    )
    run.policy().save(tmp_path / "policy")
    for name in ("run", "policy"):
        assert main(["evaluate", f"{tmp_path}/{name}", "--episodes", "2"]) == 2
        assert "the environment CartPoleEnv is user-defined" in capsys.readouterr().err
        assert main(["evaluate", f"{tmp_path}/{name}", "--episodes", "2", "--env", "CartPole-v1"]) == 0
        assert "dqn in CartPole-v1" in capsys.readouterr().out


def test_a_new_discount_lets_any_agent_become_precommitted(folder: Path) -> None:
    trained = mh.load_run(folder).policy()
    largest = replace(trained, agent=trained.agent.with_settings(acting="largest_gamma"))
    parser = argparse.ArgumentParser()
    acting.add_arguments(parser)
    words = [str(folder), "--consistency", "precommitted"]
    changed = acting.changed(largest, parser.parse_args([*words, "--discount", "hyperbolic:0.2", "--t-max", "40"]))
    assert changed.changes == ["hyperbolic(k=0.2)", "a precommitted plan"]
    with pytest.raises(mh.InputError, match="needs acting=weighted"):
        acting.changed(largest, parser.parse_args(words))
