"""Tests of what runs on a GPU, at the sizes of Atari. They need a GPU: `make test-gpu`.

`MULTIHORIZON_INTERPRET=on` runs the kernels' tests without one, interpreted, to try the tests themselves. That says
nothing about the compiled kernels.
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
            item.add_marker(pytest.mark.skip(reason=f"needs a GPU, and JAX finds {jax.default_backend()} alone here"))


def pytest_report_header() -> str:
    return f"jax {jax.__version__} on {jax.devices()[0].device_kind}"
