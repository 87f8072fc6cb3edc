"""The kernel of heads and losses against the plain version: interpreted here, and lowered for a GPU."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents.fused_heads import fits, losses_of_action
from multihorizon.agents.losses import Categorical, of_action

SEEDS, BATCH, HEADS, ACTIONS, ATOMS, FEATURES = 2, 5, 3, 4, 51, 256
LOSS = Categorical(ATOMS)


def given(dtype: Any = jnp.float32, features: int = FEATURES, seeds: int = SEEDS, batch: int = BATCH) -> Any:
    """Weights, biases and features of some seeds, and actions and targets of each transition."""
    outputs = -(-HEADS * ACTIONS * ATOMS // 8) * 8
    keys = jax.random.split(jax.random.key(0), 5)
    learned = (
        jax.random.normal(keys[0], (seeds, outputs, features)) / np.sqrt(features),
        jax.random.normal(keys[1], (seeds, outputs)),
        jax.random.normal(keys[2], (seeds, batch, features)),
    )
    actions = jax.random.randint(keys[3], (seeds, batch), 0, ACTIONS)
    targets = jax.nn.softmax(3 * jax.random.normal(keys[4], (seeds, batch, HEADS, ATOMS)))
    return tuple(array.astype(dtype) for array in learned), actions, targets


def fused(weight: Any, bias: Any, features: Any, action: Any, target: Any) -> Any:
    losses, probabilities = losses_of_action(ACTIONS, weight, bias, features, action, target)
    return losses, probabilities @ LOSS.support


def plain(weight: Any, bias: Any, features: Any, action: Any, target: Any) -> Any:
    outputs = (weight @ features + bias)[: HEADS * ACTIONS * ATOMS].reshape(HEADS, ACTIONS, ATOMS)
    output = of_action(outputs, action)
    return LOSS.losses(output, target), LOSS.values(output[:, None])[:, 0]


def with_gradients(one: Any, learned: Any, actions: Any, targets: Any) -> Any:
    """Of a sum that weighs every loss of every transition otherwise."""
    weights = jnp.arange(1.0, actions.size * HEADS + 1).reshape(*actions.shape, HEADS)

    def objective(learned: Any) -> Any:
        over_batch = jax.vmap(one, (None, None, 0, 0, 0))
        losses, values = jax.vmap(over_batch)(*learned, actions, targets)
        return (weights * losses).sum(), (losses, values)

    gradients, told = jax.grad(objective, has_aux=True)(learned)
    return *gradients, *told


def test_losses_values_and_gradients_are_the_plain_ones() -> None:
    arguments = given()
    ours, expected = (jax.jit(lambda *a, one=one: with_gradients(one, *a))(*arguments) for one in (fused, plain))
    for mine, wanted in zip(ours, expected, strict=True):
        np.testing.assert_allclose(mine, wanted, rtol=1e-4, atol=1e-5)


def test_what_fits_the_kernel() -> None:
    assert fits(9_184, 512, 51)
    assert fits(5_000, 128, 64)
    assert not fits(920, 512, 51)
    assert not fits(9_184, 1024, 51)
    assert not fits(9_184, 384, 51)
    assert not fits(9_184, 64, 51)
    assert not fits(9_184, 512, 65)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
def test_the_kernel_is_made_for_a_gpu(dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    shapes = jax.eval_shape(lambda: given(dtype, 512))
    text = jax.jit(lambda *a: with_gradients(fused, *a)).trace(*shapes).lower(lowering_platforms=("cuda",)).as_text()
    assert text.count("gpu.triton") == 1
