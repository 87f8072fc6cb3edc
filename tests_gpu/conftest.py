"""Tests of the GPU code at Atari's sizes. They need a GPU: `make test-gpu`.

`MULTIHORIZON_INTERPRET=on` runs the kernel tests in interpreted mode, without a GPU. This mode checks the tests, but
not the compiled kernels.
"""

import os

import jax
import pytest

INTERPRETED = os.environ.get("MULTIHORIZON_INTERPRET") == "on"
ON_GPU = jax.default_backend() == "gpu"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if ON_GPU:
        return
    for item in items:
        if not (INTERPRETED and "kernel" in item.keywords):
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU, but JAX finds only {jax.default_backend()}"))


def pytest_report_header() -> str:
    return f"jax {jax.__version__} on {jax.devices()[0].device_kind}"
