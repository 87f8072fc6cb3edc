"""Tests compiler options, and programs with several updates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.training import compiling
from multihorizon.training.compiling import IN_ONE_GRAPH, call, compiled, updates


def test_unsupported_xla_options_give_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compiling.OPTIONS, "cpu", {"xla_cpu_no_such_option": True})
    compiling._options.cache_clear()
    try:
        with pytest.warns(UserWarning, match="XLA does not support xla_cpu_no_such_option, so programs will be slower"):
            assert compiled(lambda x: 2 * x)(3) == 6
    finally:
        compiling._options.cache_clear()


@pytest.mark.parametrize("count", [1, 2, 7, 10, 40])
@pytest.mark.parametrize("most", [1, 5])
def test_several_updates_in_one_graph_equal_single_updates(
    count: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one(held: jax.Array, given: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 0.9 * held + given, held

    monkeypatch.setitem(IN_ONE_GRAPH, "cpu", most)
    given = jnp.arange(float(count))
    held, expected = jnp.ones(()), []
    for each in given:
        expected.append(float(held))
        held, _ = one(held, each)
    last, seen = updates(one, jnp.ones(()), given)
    np.testing.assert_allclose(seen, expected, rtol=1e-6)
    np.testing.assert_allclose(last, held, rtol=1e-6)
    text = str(jax.make_jaxpr(lambda held: updates(one, held, given))(jnp.ones(())))
    assert f"unroll={max(1, min(most, count // 2))}" in text


def test_compiled_functions_can_be_called_inside_another_program() -> None:
    program = compiled(lambda x: {"twice": 2 * x})
    assert call(program, 3)["twice"] == 6
    assert jax.jit(lambda x: call(program, x)["twice"] + 1)(3) == 7
    assert jax.eval_shape(lambda: call(program, jnp.arange(3.0)))["twice"].shape == (3,)
