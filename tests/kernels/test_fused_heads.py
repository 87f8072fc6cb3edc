"""Compares the interpreted kernel for heads and losses with plain JAX, and lowers the kernel for a GPU."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents.losses import Categorical, of_action
from multihorizon.agents.networks import product_in_full
from multihorizon.kernels.fused_heads import fits, losses_of_action

SEEDS, BATCH, HEADS, ACTIONS = 2, 5, 3, 4


def given(features: int, atoms: int, dtype: Any = jnp.float32) -> Any:
    outputs = -(-HEADS * ACTIONS * atoms // 8) * 8
    keys = jax.random.split(jax.random.key(0), 5)
    learned = (
        jax.random.normal(keys[0], (SEEDS, outputs, features)) / np.sqrt(features),
        jax.random.normal(keys[1], (SEEDS, outputs)),
        jax.random.normal(keys[2], (SEEDS, BATCH, features)),
    )
    actions = jax.random.randint(keys[3], (SEEDS, BATCH), 0, ACTIONS)
    targets = jax.nn.softmax(3 * jax.random.normal(keys[4], (SEEDS, BATCH, HEADS, atoms)))
    return tuple(array.astype(dtype) for array in learned), actions, targets


def fused(weight: Any, bias: Any, features: Any, action: Any, target: Any) -> Any:
    losses, probabilities = losses_of_action(ACTIONS, weight, bias, features, action, target)
    return losses, probabilities @ Categorical(target.shape[1]).support


def plain(weight: Any, bias: Any, features: Any, action: Any, target: Any) -> Any:
    atoms = target.shape[1]
    loss = Categorical(atoms)
    outputs = product_in_full(weight, features) + bias.astype(jnp.float32)
    output = of_action(outputs[: HEADS * ACTIONS * atoms].reshape(HEADS, ACTIONS, atoms), action)
    return loss.losses(output, target), loss.values(output[:, None])[:, 0]


def with_gradients(one: Any, learned: Any, actions: Any, targets: Any) -> Any:
    """Returns the gradients of a weighted sum of the losses, then the losses, then the values."""
    weights = jnp.arange(1.0, actions.size * HEADS + 1).reshape(*actions.shape, HEADS)

    def objective(learned: Any) -> Any:
        over_batch = jax.vmap(one, (None, None, 0, 0, 0))
        losses, values = jax.vmap(over_batch)(*learned, actions, targets)
        return (weights * losses).sum(), (losses, values)

    gradients, told = jax.grad(objective, has_aux=True)(learned)
    return *gradients, *told


@pytest.mark.parametrize(
    ("features", "atoms", "dtype", "near"),
    [
        (512, 51, jnp.float32, 1e-5),
        (256, 64, jnp.float32, 1e-5),  # 64 atoms need no mask
        (128, 2, jnp.float32, 1e-5),
        (512, 51, jnp.bfloat16, 2e-2),
    ],
)
def test_the_heads_kernel_matches_plain_jax_in_losses_values_and_gradients(
    features: int, atoms: int, dtype: Any, near: float
) -> None:
    arguments = given(features, atoms, dtype)
    ours, expected = (jax.jit(lambda *a, one=one: with_gradients(one, *a))(*arguments) for one in (fused, plain))
    for mine, wanted in zip(ours, expected, strict=True):
        assert mine.dtype == wanted.dtype
        exact = np.asarray(wanted, np.float32)
        np.testing.assert_allclose(np.asarray(mine, np.float32), exact, rtol=near, atol=near * np.abs(exact).max())


def test_the_heads_kernel_supports_only_some_sizes() -> None:
    assert fits(9_184, 512, 51)
    assert fits(5_000, 128, 64)
    assert not fits(4_999, 512, 51)
    assert not fits(9_184, 1024, 51)
    assert not fits(9_184, 384, 51)
    assert not fits(9_184, 64, 51)
    assert not fits(9_184, 512, 65)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_heads_kernel_lowers_for_a_gpu(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    shapes = jax.eval_shape(lambda: given(512, 51, dtype))
    text = jax.jit(lambda *a: with_gradients(fused, *a)).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("gpu.triton") == 1
