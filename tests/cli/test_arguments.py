import os
import subprocess
import sys
from pathlib import Path

import pytest

from multihorizon.cli import main


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["preferences", "--discount", ""], "--discount needs a value, got an empty text"),
        (["evaluate", "run", "--hazard", ""], "--hazard needs a value, got an empty text"),
        (["report", ""], "DIR needs a value, got an empty text"),
        (["discount", "--out", "a\0b"], "--out must not contain a null character"),
        (["report", "\ud800"], "DIR cannot be encoded: it contains an unpaired surrogate"),
        (["train", "dqn", "--env", "foraging", "--set", "name=\udcff"], "name cannot be encoded"),
        (["preferences", "--k", "-1e-3"], "k must be a positive number, got -0.001"),
        (["preferences", "--sooner", "-inf"], "--sooner must be a positive number, got -inf"),
        (["discount", "--heads", "1e9"], "--heads must be at most 1,000"),
        (["discount", "--heads", "9" * 5000], "is not a whole number such as 1000000 or 1e6"),
        (["discount", "--prior", "x" * 5000], "unknown prior"),
    ],
)
def test_invalid_arguments_give_one_short_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(words) == 2
    line = capsys.readouterr().err.strip()
    assert said in line
    assert "\n" not in line
    assert len(line) < 1000


def test_whole_numbers_may_have_an_exponent(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["discount", "--heads", "1e1", "--t-max", "1e3", "--json"]) == 0
    with_exponents = capsys.readouterr().out
    assert main(["discount", "--heads", "10", "--t-max", "1000", "--json"]) == 0
    assert capsys.readouterr().out == with_exponents


def test_function_values_too_large_for_a_float_are_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "steep.py").write_text("def d(t): return 100 / (1 + t)")
    steep = f"function:{tmp_path}/steep.py:d"
    assert main(["preferences", "--json", "--later", "1e307", "--discount", steep]) == 2
    assert "too large for a float" in capsys.readouterr().err


@pytest.mark.parametrize("raised", ["BrokenPipeError()", "OSError()", "GeneratorExit()"])
def test_error_message_contains_the_exception_of_user_code(
    raised: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text(f"def f(t): raise {raised}")
    assert main(["preferences", "--discount", f"function:{tmp_path}/mine.py:f"]) == 2
    assert f"failed with {raised.removesuffix('()')}" in capsys.readouterr().err


@pytest.mark.parametrize("stderr", ["closed pipe", "full disk"])
def test_results_are_written_even_if_stderr_fails(stderr: str, tmp_path: Path) -> None:
    reading, pipe = os.pipe()
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY) if os.path.exists("/dev/full") else pipe
    words = ["discount", "--grid", "minimax", "--heads", "3", "--t-max", "20", "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "multihorizon", *words]
    target = pipe if stderr == "closed pipe" else full
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=target, text=True, check=False)
    assert done.returncode == 0
    assert "3 heads" in done.stdout
    assert (tmp_path / "out/discount.json").exists()


@pytest.mark.parametrize("words", ["discount --prior samples:pipe", "train dqn --env foraging --horizons pipe"])
def test_a_pipe_is_refused_as_an_input_file(
    words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a pipe without a writer would block forever."""
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    assert main(words.split()) == 2
    assert "pipe cannot be read: it is not a file" in capsys.readouterr().err


def test_a_symbolic_link_to_itself_is_an_input_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("loop").symlink_to("loop")
    assert main(["discount", "--prior", "samples:loop"]) == 2
    assert capsys.readouterr().err.startswith("multihorizon: loop: ")
