"""Runs the notebooks, and compares the types of their outputs with the stored outputs."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

NOTEBOOKS = Path(__file__).parent.parent / "notebooks"

# The outputs of a notebook contain its pattern only if the agents learned.
FACTS = {
    "paper.ipynb": r"100 heads +mean squared error 0\.002[\s\S]*weighted +mean return 0\.(8[5-9]|9)",
    "own_environment.ipynb": r"γ = 0.6: .*: left\n[\s\S]*γ = 0.95: .*: right\n[\s\S]*mean 10,[\s\S]*True",
}


def test_every_notebook_is_tested() -> None:
    assert {path.name for path in NOTEBOOKS.glob("*.ipynb")} == set(FACTS)


@pytest.mark.parametrize("name", FACTS)
def test_notebooks_run(name: str, tmp_path: Path) -> None:
    copy = Path(shutil.copy(NOTEBOOKS / name, tmp_path))
    environment = os.environ | {"JAX_PLATFORMS": "cpu", "PYTHONUTF8": "1"}
    run = [sys.executable, str(NOTEBOOKS / "run.py"), str(copy)]
    done = subprocess.run(run, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    fresh, stored = _outputs(copy), _outputs(NOTEBOOKS / name)
    assert re.search(FACTS[name], "".join(text for cell in fresh for _, text in cell))
    assert [[kind for kind, _ in cell] for cell in fresh] == [[kind for kind, _ in cell] for cell in stored]


def _outputs(path: Path) -> list[list[tuple[str, str]]]:

    def text(output: dict[str, Any]) -> str:
        return "".join(output["text"] if "text" in output else output["data"]["text/plain"])

    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [[(output["output_type"], text(output)) for output in cell.get("outputs", [])] for cell in cells]
