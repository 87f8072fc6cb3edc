"""Importing this module makes a benchmark print input errors and missing packages on one line."""

import sys
from pathlib import Path
from types import TracebackType

from multihorizon.errors import InputError


def _say(kind: type[BaseException], problem: BaseException, trace: TracebackType | None) -> None:
    name = Path(sys.argv[0]).name
    if isinstance(problem, ModuleNotFoundError):
        print(f"{name}: {problem.name} is not installed; see the top of benchmarks/{name}", file=sys.stderr)
    elif isinstance(problem, InputError | OSError):
        print(f"{name}: {problem}", file=sys.stderr)
    else:
        sys.__excepthook__(kind, problem, trace)


sys.excepthook = _say
