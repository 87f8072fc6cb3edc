"""A fixture with an uninterrupted sweep."""

import subprocess
from pathlib import Path

import pytest
from disturbed import command


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("undisturbed") / "small"
    done = subprocess.run(command(out), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return out
