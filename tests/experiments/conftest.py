"""A fixture with an uninterrupted sweep."""

import subprocess
from pathlib import Path

import pytest
from disturbed import command
from filelock import FileLock


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the sweep. All worker processes share this folder."""
    shared = tmp_path_factory.getbasetemp().parent / "undisturbed"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            done = subprocess.run(command(shared / "small"), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
    return shared / "small"
