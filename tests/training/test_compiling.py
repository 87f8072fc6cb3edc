"""Updates in one program."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.training.compiling import IN_ONE_GRAPH, updates


@pytest.mark.parametrize("count", [1, 2, 7, 10, 40])
def test_updates_go_on_from_one_another_and_on_a_gpu_several_at_once(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def one(held: jax.Array, given: jax.Array) -> tuple[jax.Array, jax.Array]:
        return 0.9 * held + given, held

    given = jnp.arange(float(count))
    held, expected = jnp.ones(()), []
    for each in given:
        expected.append(float(held))
        held, _ = one(held, each)
    for backend, together in (("cpu", 1), ("gpu", max(1, min(IN_ONE_GRAPH, count // 2)))):
        with monkeypatch.context() as patch:
            patch.setattr(jax, "default_backend", lambda backend=backend: backend)
            text = str(jax.make_jaxpr(lambda held: updates(one, held, given))(jnp.ones(())))
            last, seen = updates(one, jnp.ones(()), given)
        assert f"unroll={together}" in text
        np.testing.assert_allclose(seen, expected, rtol=1e-6)
        np.testing.assert_allclose(last, held, rtol=1e-6)
