"""Settings shared by all tests."""

import os

import numpy as np
import pytest
from hypothesis import settings

settings.register_profile("suite", max_examples=50, deadline=None, derandomize=True)
settings.load_profile("suite")

# Each of the processes that share the tests has a core of its own: XLA would otherwise start as many threads as there
# are cores in each of them, and they would wait for one another.
worker = os.environ.get("PYTEST_XDIST_WORKER", "").removeprefix("gw")
if worker and hasattr(os, "sched_setaffinity"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker) % len(cores)]})


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(0)
