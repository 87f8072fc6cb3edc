"""Tests compiler options, and programs with several updates."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from training.scripted import after, small, trainer_of

from multihorizon.training import compiling
from multihorizon.training.compiling import IN_ONE_GRAPH, call, compiled, updates


def test_unsupported_xla_options_give_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(compiling.OPTIONS, "cpu", {"xla_cpu_no_such_option": True})
    compiling.options_for.cache_clear()
    try:
        with pytest.warns(UserWarning, match="XLA does not support xla_cpu_no_such_option, so programs will be slower"):
            assert compiled(lambda x: 2 * x)(3) == 6
    finally:
        compiling.options_for.cache_clear()


@pytest.mark.parametrize("emitters", [True, False])
def test_options_for_updates_change_no_bit_of_training(emitters: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The option for updates makes XLA remove copies. Without a necessary copy, the results would differ."""
    monkeypatch.setitem(compiling.OPTIONS, "cpu", compiling.OPTIONS["cpu"] | {"xla_cpu_use_fusion_emitters": emitters})
    states = []
    for update_options in (compiling.UPDATE_OPTIONS, {}):
        monkeypatch.setattr(compiling, "UPDATE_OPTIONS", update_options)
        compiling.options_for.cache_clear()
        states.append(after(trainer_of(small("multi-rainbow"), environments=4, steps=400))[0])
    compiling.options_for.cache_clear()
    assert int(np.min(states[0].tally.updates)) > 50
    for (path, one), other in zip(
        jax.tree_util.tree_leaves_with_path(states[0]), jax.tree.leaves(states[1]), strict=True
    ):
        assert bool(jnp.all(one == other)), jax.tree_util.keystr(path)


@pytest.mark.parametrize("only_updates", [True, False])
def test_flags_of_the_user_override_compiler_options(only_updates: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "xla_cpu_copy_insertion_use_region_analysis"
    monkeypatch.delenv("XLA_FLAGS")
    compiling.options_for.cache_clear()
    assert (name in compiling.options_for("cpu", only_updates)) == only_updates
    monkeypatch.setenv("XLA_FLAGS", " ".join(f"--{option}=1" for option in [*compiling.OPTIONS["cpu"], name]))
    compiling.options_for.cache_clear()
    assert compiling.options_for("cpu", only_updates) == {}
    compiling.options_for.cache_clear()


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
