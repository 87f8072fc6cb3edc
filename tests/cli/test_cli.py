import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from multihorizon.cli import main

LINES = """
import math
def slow(t): return 1 / (1 + math.sqrt(t))
def triangle(x): return max(0.0, 1 - abs(x / 0.1 - 1)) / 0.1
def half(x): return math.exp(-x) / 2
def raises(x): raise RuntimeError("no\\nluck")
def nothing(x): return None
def overflows(x): return math.exp(x)
def leaves(x): raise SystemExit(0)
def rises(t): return 0.5 if t == 1 else 0.9
not_a_function = 3
"""


def run_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict:
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_help_takes_under_half_a_second() -> None:
    def once(*arguments: str) -> float:
        begun = time.perf_counter()
        done = subprocess.run(
            [sys.executable, "-m", "multihorizon", *arguments], capture_output=True, text=True, check=True
        )
        assert "usage: multihorizon" in done.stdout
        return time.perf_counter() - begun

    for command in ([], ["pathworld"], ["discount"], ["preferences"]):
        assert min(once(*command, "--help") for _ in range(3)) < 0.5


def test_help_does_not_import_heavy_modules() -> None:
    script = (
        "import sys, multihorizon.cli as c\n"
        "try: c.main(['--help'])\n"
        "except SystemExit: pass\n"
        "print({'numpy', 'scipy', 'matplotlib', 'rich', 'jax'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip().endswith("set()")


def test_command_line_without_arguments_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert "COMMAND" in capsys.readouterr().out


def test_discount_command_shows_that_the_published_grid_is_not_hyperbolic(capsys: pytest.CaptureFixture[str]) -> None:
    result = run_json(capsys, "discount")
    assert result["max_error"] == pytest.approx(0.249, abs=5e-4)
    assert result["max_error_at"] == 173
    assert len(result["gammas"]) == len(result["weights"]) == 10
    at = result["times"].index(100)
    assert (round(result["wanted"][at], 2), round(result["reached"][at], 2)) == (0.50, 0.27)
    main(["discount"])
    text = capsys.readouterr().out
    for shown in ("0.273", "0.98917", "largest error 0.249, at t = 173", "minimax, 3 heads, γ ≤ 0.99", "0.192"):
        assert shown in text


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["--grid", "minimax", "--heads", "3", "--gamma-cap", "0.997", "--t-max", "300"], 0.0042),
        (["--grid", "gauss", "--heads", "5"], 0.0015),
        (["--prior", "gamma:0.01,3", "--grid", "gauss", "--heads", "8"], 0.0015),
        (["--prior", "stable:0.01,0.8", "--grid", "gauss", "--heads", "8"], 0.01),
        (["--prior", "mittag-leffler:0.01,0.8", "--grid", "gauss", "--heads", "8"], 0.01),
        (["--discount", "quasi-hyperbolic:0.8,0.95", "--grid", "minimax", "--heads", "2"], 1e-6),
        (["--discount", "quasi_hyperbolic:delta=0.95,beta=0.8", "--grid", "minimax", "--heads", "2"], 1e-6),
        (["--discount", "exponential:0.9", "--grid", "gauss"], 1e-9),
        (
            [
                "--prior",
                "exponential",
                "--prior",
                "dirac:0.1",
                "--mix",
                "0.7",
                "0.3",
                "--grid",
                "gauss",
                "--heads",
                "20",
            ],
            0.01,
        ),
        (["--discount", "generalized-hyperbolic", "--k", "0.02", "--grid", "gauss"], 0.002),
        (["--discount", "none", "--grid", "gauss"], 1e-12),
    ],
)
def test_grid_error_is_small_for_many_discounts(
    capsys: pytest.CaptureFixture[str], arguments: list[str], most: float
) -> None:
    result = run_json(capsys, "discount", *arguments)
    assert result["max_error"] <= most
    assert {"gammas", "weights", "max_error", "max_error_at"} <= set(result)


def test_custom_discounts_and_priors_are_read_from_files(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(LINES)
    (tmp_path / "seen.txt").write_text("0.01, 0.02\n0.5\n")
    own = run_json(
        capsys, "discount", "--discount", f"function:{tmp_path}/mine.py:slow", "--grid", "minimax", "--t-max", "50"
    )
    assert own["wanted"][1] == pytest.approx(0.5)
    dense = run_json(capsys, "discount", "--prior", f"density:{tmp_path}/mine.py:triangle", "--grid", "gauss")
    assert dense["max_error"] < 0.01
    seen = run_json(
        capsys, "discount", "--prior", f"samples:{tmp_path}/seen.txt", "--grid", "minimax", "--gamma-cap", "0.995"
    )
    assert seen["max_error"] < 1e-6


def test_discount_command_writes_a_figure_and_a_json_file(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["discount", "--out", str(tmp_path / "deep" / "er")]) == 0
    assert "discount.png" in capsys.readouterr().out
    assert (tmp_path / "deep/er/discount.png").stat().st_size > 10_000
    assert json.loads((tmp_path / "deep/er/discount.json").read_text())["grid"] == "paper"


@pytest.mark.parametrize("more", ["", "--json"])
def test_discount_command_writes_its_files_even_if_its_output_is_not_read(tmp_path: Path, more: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)  # nobody reads the output, so printing the first line fails
    command = [sys.executable, "-m", "multihorizon", "discount", "--out", str(tmp_path / "out"), *more.split()]
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writing)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["discount.json", "discount.png"]


def test_discount_command_reports_that_the_cap_limits_the_fit(capsys: pytest.CaptureFixture[str]) -> None:
    line = ["discount", "--grid", "minimax"]
    note = run_json(capsys, *line)["note"]
    assert note.startswith("9 of 10 heads have weight 0: the cap γ ≤ 0.99 limits the fit.")
    assert note.endswith("The largest error with --grid minimax --heads 3 --gamma-cap 0.999 is 0.00084.")
    assert main(line) == 0
    assert note in capsys.readouterr().out
    named = run_json(capsys, *["discount", "--grid", "minimax", "--heads", "3", "--gamma-cap", "0.999"])
    assert named["max_error"] == pytest.approx(0.00084, abs=5e-6)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("--grid minimax --heads 1", "The cap γ ≤ 0.99 limits the fit. "),
        ("--grid minimax --discount none --heads 2", "1 of 2 heads have weight 0: the cap γ ≤ 0.99 limits the fit"),
        ("--grid gauss --gamma-cap 0.99 --heads 5", "5 heads were merged into 3: the cap γ ≤ 0.99 limits the fit. "),
        ("--grid minimax --discount exponential:0.9 --heads 3", "2 of 3 heads have weight 0: they would not reduce"),
        ("--grid minimax --discount exponential:0.99 --heads 2", "1 of 2 heads have weight 0: they would not reduce"),
        ("--grid minimax --heads 3 --gamma-cap 0.999", None),
        ("--grid gauss", None),
        ("", None),
    ],
)
def test_discount_command_explains_what_limits_the_fit(
    capsys: pytest.CaptureFixture[str], line: str, note: str | None
) -> None:
    said = run_json(capsys, "discount", *line.split())["note"]
    assert said == note if note is None else said.startswith(note)


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ("discount --prior gamma:1.5 --grid gauss", "gamma: k = 1.5, a = 2 (default)"),
        ("discount --prior gamma:a=3 --grid gauss", "gamma: k = 0.01 (default), a = 3"),
        ("preferences --prior gamma:a=3", "gamma: k = 0.2 (default), a = 3"),
        ("discount --prior gamma --k 1.5 --grid gauss", "gamma: k = 1.5, a = 2 (default)"),
        ("preferences --discount quasi-hyperbolic:0.8", "quasi-hyperbolic: beta = 0.8, delta = 0.99 (default)"),
        ("preferences --discount quasi-hyperbolic:0.8,0.9", ""),
        ("preferences --discount quasi-hyperbolic", ""),
        ("preferences --discount hyperbolic:0.8", ""),
    ],
)
def test_a_note_states_which_parameters_have_default_values(
    capsys: pytest.CaptureFixture[str], line: str, note: str
) -> None:
    assert main([*line.split(), "--json"]) == 0
    assert capsys.readouterr().err == (f"multihorizon: {note}\n" if note else "")


def test_observed_hazards_may_include_a_large_rate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "rates.txt").write_text("0.01 0.02 5")
    assert (
        len(run_json(capsys, "discount", "--prior", f"samples:{tmp_path}/rates.txt", "--grid", "gauss")["gammas"]) == 3
    )


def test_discounts_with_extreme_parameters_are_accepted(capsys: pytest.CaptureFixture[str]) -> None:
    for line in ("preferences --k 1.7e308", "preferences --discount exponential:0", "discount --k 1.7e308"):
        run_json(capsys, *line.split())
    assert run_json(capsys, "preferences", "--k", "1.7e308")["reverses_at"] == pytest.approx(10)


def test_discount_command_prints_valid_json_for_extreme_options(capsys: pytest.CaptureFixture[str]) -> None:
    endless = run_json(capsys, "discount", "--discount", "none", "--grid", "gauss")
    assert endless["effective_horizons"] == [None]
    assert run_json(capsys, "discount", "--t-max", "1", "--grid", "minimax")["max_error"] < 1e-4
    assert run_json(capsys, "discount", "--grid", "minimax", "--gamma-cap", "1e-18")["gammas"] == [0.0] * 10


def test_preferences_command_compares_tiny_values_correctly(capsys: pytest.CaptureFixture[str]) -> None:
    hasty = run_json(capsys, "preferences", "--discount", "exponential:0.1")
    assert [hasty["offers"][wait]["taken"] for wait in ("0", "365")] == ["sooner", "sooner"]
    main(["preferences", "--discount", "quasi-hyperbolic:0.7,0.99"])
    assert "reverses as soon as neither reward is immediate" in capsys.readouterr().out


def test_a_limited_encoding_or_a_closed_pipe_causes_no_error() -> None:
    environment = {**os.environ, "PYTHONIOENCODING": "cp1252"}
    command = [sys.executable, "-m", "multihorizon", "discount"]
    done = subprocess.run(command, capture_output=True, env=environment, check=False)
    assert done.returncode == 0
    shown = subprocess.run(f"{' '.join(command)} | head -1", shell=True, capture_output=True, text=True, check=True)
    assert shown.stderr == ""


def test_preferences_command_finds_a_reversal_only_under_a_hyperbolic_discount(
    capsys: pytest.CaptureFixture[str],
) -> None:
    result = run_json(capsys, "preferences")
    assert [result["offers"][wait]["taken"] for wait in ("0", "365")] == ["sooner", "later"]
    assert result["reverses_at"] == pytest.approx(5)
    patient = run_json(capsys, "preferences", "--discount", "exponential:0.99")
    assert [patient["offers"][wait]["taken"] for wait in ("0", "365")] == ["later", "later"]
    assert patient["reverses_at"] is None
    main(["preferences", "--k", "1"])
    text = capsys.readouterr().out
    assert "reverses beyond a wait of 9 days" in text
    assert "does not reverse" in text


def test_pathworld_command_prints_tables_and_writes_figures(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("multihorizon.experiments.pathworld.JUDGING_EPISODES", 2000)
    monkeypatch.setattr("multihorizon.experiments.pathworld.LEARNING_EPISODES", 300)
    tables = run_json(capsys, "pathworld", "--out", str(tmp_path))
    assert list(tables) == ["matching_prior", "wrong_k", "uniform_hazard", "gamma_max"]
    row = tables["matching_prior"]["gamma=0.975"]
    assert row["paper"] == 0.566
    assert row["ours"] == pytest.approx(0.566, abs=5e-4)
    assert set(row) == {"paper", "ours", "learned"}
    assert len(list(tmp_path.glob("*.png"))) == 10
    assert main(["pathworld"]) == 0
    text = capsys.readouterr().out
    assert "γ=0.975" in text
    assert "--out DIR" in text


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("discount --gamma-cap 1", "--gamma-cap must lie in (0, 1), got 1"),
        ("discount --gamma-cap -0.5", "--gamma-cap must lie in (0, 1)"),
        ("discount --k 0", "k must be a positive number, got 0"),
        ("discount --k -1", "k must be a positive number, got -1"),
        ("discount --k abc", "--k: invalid float value: 'abc'"),
        ("discount --heads 0", "--heads must be a whole number of at least 1, got 0"),
        ("discount --t-max -5", "--t-max must be a whole number of at least 1, got -5"),
        ("discount --grid gaus", "unknown grid 'gaus' (did you mean 'gauss'?); allowed: paper, gauss, minimax"),
        ("discount --prior exponentail", "unknown prior 'exponentail' (did you mean 'exponential'?)"),
        ("preferences --discount function:{tmp}/mine.py:rises", "must not rise, but rises goes from 0.5 at t = 1"),
        ("discount --discount hyprbolic", "unknown discount 'hyprbolic' (did you mean 'hyperbolic'?)"),
        ("discount --discount quasi-hyperbolic:0.7,x", "the delta of quasi-hyperbolic must be a number, got 'x'"),
        ("discount --discount hyperbolic:1,2", "hyperbolic takes k; got 1,2"),
        ("discount --discount exponential --k 1", "exponential takes gamma, so --k cannot be used"),
        ("discount --discount hyperbolic --prior dirac", "either --discount or --prior, not both"),
        ("discount --prior samples", "samples needs a file"),
        ("discount --prior samples:nowhere.txt", "nowhere.txt: No such file"),
        ("discount --prior density:{tmp}/mine.py:half", "must integrate to 1 over (0, inf), but integrates to 0.5"),
        ("discount --prior density:{tmp}/mine.py:absent", "has no absent; it defines"),
        ("discount --prior density:{tmp}/mine.py:not_a_function", "must be a function of one number, got 3"),
        ("discount --prior density:{tmp}/mine.py:raises", "failed with RuntimeError: no luck"),
        ("discount --prior density:{tmp}/mine.py:nothing", "failed with TypeError"),
        ("discount --prior density:{tmp}/mine.py:overflows", "failed with OverflowError"),
        ("discount --grid minimax --discount function:{tmp}/mine.py:leaves", "failed with SystemExit"),
        ("discount --grid minimax --discount function:{tmp}/broken.py:f", "failed with SyntaxError"),
        ("discount --prior density:{tmp}:f", "{tmp}"),
        ("discount --prior density:mine", "density needs a file and a name, such as"),
        ("discount --prior samples:{tmp}/words.txt", "must contain only numbers"),
        ("discount --prior samples:{tmp}/empty.txt", "one or more"),
        ("discount --prior samples:{tmp}/times.txt", "times.txt seems to contain times, not hazard rates per step"),
        ("discount --prior gamma:-1", "k must be a positive number, got -1"),
        ("discount --k=--", "--k needs a value, got '--'"),
        ("discount --gamma-cap=--", "--gamma-cap needs a value"),
        ("preferences --k=--", "--k needs a value, got '--'"),
        ("preferences --prior=--", "--prior needs a value"),
        ("preferences --delay=--", "--delay needs a value"),
        ("discount --prior samples:{tmp}/many.txt", "not Samples(200 hazards with mean"),
        ("discount --k nan", "k must be a positive number, got nan"),
        ("discount --heads 2.5", "--heads: '2.5' is not a whole number"),
        ("discount --heads 100000", "--heads must be at most 1,000"),
        ("discount --t-max 1000000000", "--t-max must be at most 1,000,000"),
        ("discount --discount quasi-hyperbolic", "needs a prior without point masses"),
        ("discount --k 1 --prior gamma:0.01,2", "the k of gamma is given twice"),
        ("discount --prior uniform:0.1,k=0.2", "the k of uniform is given twice"),
        ("discount --prior gamma:,,", "the k of gamma must be a number"),
        ("--bogus", "'--bogus' is not understood"),
        ("--", "is not understood"),
        ("preferences --wait 1000000000", "--wait must be at most"),
        ("pathworld --seed -1", "--seed must be a whole number of at least 0"),
        ("pathworld --out {tmp}/mine.py/under", "mine.py"),
        ("discount --discount function:{tmp}/mine.py:slow", "use --grid minimax"),
        ("discount --mix 0.5", "--mix gives the weights of several priors"),
        ("discount --prior dirac --prior dirac --mix 0.5 0.6", "add up to 1"),
        ("discount --head 3", "unknown option of discount '--head' (did you mean '--heads'?)"),
        ("discount 3", "'3' is not understood"),
        ("preferences --wait -1", "--wait must be a whole number of at least 1, got -1"),
        ("preferences --delay -1", "--delay must be a positive number, got -1"),
        ("preferences --sooner 0", "--sooner must be a positive number"),
        ("pathwrld", "unknown command 'pathwrld' (did you mean 'pathworld'?)"),
        ("pathworld --seed x", "--seed: 'x' is not a whole number"),
        ("discount --out {tmp}/mine.py/under", "mine.py"),
    ],
)
def test_invalid_input_gives_one_line_and_status_2(
    line: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(LINES)
    (tmp_path / "broken.py").write_text("def f(t) return 1")
    (tmp_path / "words.txt").write_text("0.1 often")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "times.txt").write_text("5 12 40")
    (tmp_path / "many.txt").write_text("\n".join(f"{0.001 * i}" for i in range(200)))
    words = words.replace("{tmp}", str(tmp_path))
    assert main(line.replace("{tmp}", str(tmp_path)).split()) == 2
    said = capsys.readouterr().err.strip()
    assert words in said
    assert said.startswith("multihorizon: ")
    assert "\n" not in said
