"""Matplotlib is imported in one place, which ignores settings in the current directory."""

import re
import subprocess
import sys
from pathlib import Path

import multihorizon

SOURCE = Path(multihorizon.__file__).parent


def test_a_matplotlibrc_in_the_current_directory_is_ignored(tmp_path: Path) -> None:
    (tmp_path / "matplotlibrc").write_text("text.usetex: True\naxes.prop_cycle: cycler('color', [open('ran', 'w')])\n")
    script = (
        "import os; here = os.getcwd()\n"
        "import multihorizon.reports.figure_style, matplotlib\n"
        "assert os.getcwd() == here\n"
        "assert matplotlib.rcParams['text.usetex'] is False"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (tmp_path / "ran").exists()


def test_only_one_file_imports_matplotlib() -> None:
    importing = re.compile(r"^\s*(from|import) matplotlib", re.MULTILINE)
    found = [path.name for path in SOURCE.rglob("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert found == ["plotting.py"]
