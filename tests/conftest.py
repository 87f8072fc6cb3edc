import atexit
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import jaxtyping
import numpy as np
import pytest
from compiler_options import QUICK_TO_COMPILE, optimised_programs
from hypothesis import settings
from jaxtyping import install_import_hook

# Types and shapes are checked while the tests run, except in modules that validate user input themselves.
SOURCE = Path(__file__).parent.parent / "src"
RUNS = ("configuration", "configure", "episodes", "loading", "metrics", "observations", "policy", "run", "saved_policy")
PUBLIC = {"errors", "agents.config", *(f"runs.{name}" for name in RUNS)}
modules = [".".join(path.relative_to(SOURCE).with_suffix("").parts) for path in SOURCE.rglob("*.py")]
install_import_hook(
    [name for name in modules if not name.endswith("__init__") and name.partition(".")[2] not in PUBLIC],
    "shape_checks.checked",
)

settings.register_profile("suite", max_examples=30, deadline=None, derandomize=True)
settings.load_profile("suite")

# Shells start background jobs with SIGINT ignored. The tests of Ctrl-C need SIGINT.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.setdefault("JAX_PLATFORMS", "cpu")  # results must not depend on whether there is a GPU

# Many tests compile the same programs. All worker processes share one compilation cache.
if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
    programs = tempfile.mkdtemp(prefix="multihorizon-programs-")
    atexit.register(shutil.rmtree, programs, ignore_errors=True)
    os.environ["JAX_COMPILATION_CACHE_DIR"] = programs
    os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"] = "0.3"

os.environ.setdefault("XLA_FLAGS", QUICK_TO_COMPILE)

# Each worker process has its own core. Otherwise, XLA would start threads for all cores in every process.
worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
if worker and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker) % len(cores)]})


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)


@pytest.fixture
def no_type_checks() -> Iterator[None]:
    """Turns off the tests' type checker, which would reject invalid arguments before the library does."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.fixture
def optimised() -> Iterator[None]:
    """Compiles training programs with the options that users get, which make long training fast."""
    with optimised_programs():
        yield


LONGEST = ("test_learns", "test_ray", "test_resume")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs the longest tests first, so that all workers finish at about the same time."""
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONGEST))
