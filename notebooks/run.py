"""Executes notebooks from top to bottom and stores their outputs. Needs no Jupyter.

    python notebooks/run.py notebooks/paper.ipynb [...]

As in Jupyter, the outputs of a cell are its printed text, its figures and the value of its last expression. A semicolon
suppresses the value.
"""

import ast
import base64
import contextlib
import io
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt


def execute(notebook: dict[str, Any]) -> None:
    """Runs the code cells in one namespace and replaces their outputs."""
    namespace: dict[str, Any] = {"__name__": "__main__"}
    code_cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(code_cells, start=1):
        cell["execution_count"] = count
        cell["outputs"] = _run("".join(cell["source"]), namespace, count)


def _run(source: str, namespace: dict[str, Any], count: int) -> list[dict[str, Any]]:
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, outputs = io.StringIO(), []
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, f"cell {count}", "exec"), namespace)
        value = eval(compile(ast.Expression(last.value), f"cell {count}", "eval"), namespace) if last else None
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue().splitlines(True)})
    if value is not None and not source.rstrip().endswith(";"):
        data = {"text/plain": repr(value).splitlines(True)}
        outputs.append({"output_type": "execute_result", "execution_count": count, "metadata": {}, "data": data})
    return outputs + [_figure(number) for number in plt.get_fignums()]


def _figure(number: int) -> dict[str, Any]:
    file = io.BytesIO()
    plt.figure(number).savefig(file, format="png", dpi=90, bbox_inches="tight", metadata={"Software": None})
    plt.close(number)
    image = base64.b64encode(file.getvalue()).decode()
    return {"output_type": "display_data", "metadata": {}, "data": {"image/png": image, "text/plain": ["<Figure>"]}}


def main(paths: list[str]) -> None:
    for path in map(Path, paths):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        execute(notebook)
        path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
