"""The package's only import of matplotlib. The import ignores a matplotlibrc in the current directory.

The current directory may be an untrusted folder, and matplotlib prefers ./matplotlibrc to any other settings file.
"""

import sys
from contextlib import chdir
from importlib.util import find_spec
from pathlib import Path


def _import_matplotlib() -> None:
    found = find_spec("matplotlib")
    if "matplotlib" in sys.modules or found is None or found.origin is None or not Path("matplotlibrc").exists():
        return
    with chdir(Path(found.origin).parent / "mpl-data"):  # this folder holds matplotlib's default settings
        import matplotlib  # noqa: F401


_import_matplotlib()

from matplotlib import colormaps, rc_context, rcParamsDefault  # noqa: E402
from matplotlib.axes import Axes  # noqa: E402
from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: E402
from matplotlib.figure import Figure  # noqa: E402
from matplotlib.lines import Line2D  # noqa: E402
from matplotlib.ticker import FixedLocator, MaxNLocator, NullFormatter  # noqa: E402

__all__ = [
    "Axes",
    "Figure",
    "FigureCanvasAgg",
    "FixedLocator",
    "Line2D",
    "MaxNLocator",
    "NullFormatter",
    "colormaps",
    "rcParamsDefault",
    "rc_context",
]
