"""Calls the mathematical functions with invalid arguments: none may fail unclearly. See wrong_arguments.py."""

import subprocess
import sys
from pathlib import Path


def test_every_wrong_argument_gets_a_clear_answer() -> None:
    program = Path(__file__).parent / "wrong_arguments.py"
    told = subprocess.run([sys.executable, str(program)], capture_output=True, text=True, check=True)
    assert told.stdout.splitlines() == []
