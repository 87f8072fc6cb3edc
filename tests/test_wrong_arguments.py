"""Calls the mathematical functions with invalid arguments, by means of wrong_arguments.py."""

import subprocess
import sys
from pathlib import Path


def test_invalid_arguments_give_a_result_or_a_clear_error() -> None:
    program = Path(__file__).parent / "wrong_arguments.py"
    told = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == []
