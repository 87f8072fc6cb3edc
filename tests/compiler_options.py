"""Compiler options of the tests."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

# In most tests, programs take longer to compile than to run. These flags halve the time to compile. The flags override
# the compiler options of training programs.
QUICK_TO_COMPILE = "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false"


@contextmanager
def optimised_programs() -> Iterator[None]:
    """Compiles training programs with the options that users get, also in processes that a test starts."""
    from multihorizon.training import compiling

    options = {"cpu": compiling.OPTIONS["cpu"] | {"xla_cpu_use_fusion_emitters": True}}
    with mock.patch.dict(compiling.OPTIONS, options), mock.patch.dict(os.environ):
        os.environ.pop("XLA_FLAGS", None)
        compiling.options_for.cache_clear()
        try:
            yield
        finally:
            compiling.options_for.cache_clear()
