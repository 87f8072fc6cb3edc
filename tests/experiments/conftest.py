"""A fixture with an uninterrupted sweep."""

import os
import subprocess
from pathlib import Path

import pytest
from disturbed import command
from filelock import FileLock


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Returns the folder of the sweep. All worker processes of a test run share this folder."""
    base = tmp_path_factory.getbasetemp()
    shared = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "undisturbed"
    with FileLock(f"{shared}.lock"):
        if not shared.exists():
            made = tmp_path_factory.mktemp("made")
            done = subprocess.run(command(made / "small"), capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            made.rename(shared)
    return shared / "small"
