"""Compares the kernel for heads and losses, and its gradients, with NumPy in float64."""

from typing import Any

import jax
import numpy as np
import pytest
from precision import RESULT, TYPES, check, exact, product_error

from multihorizon.kernels.fused_heads import losses_of_action

pytestmark = pytest.mark.kernel
BATCH, FEATURES, ATOMS = 32, 512, 51
# Relative rounding error of the slopes, which are the derivatives of the loss with respect to the logits.
ROUNDED = {"float32": 2.0**-10, "bfloat16": 2.0**-8}


@pytest.mark.parametrize("seeds", [1, 3])
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("actions", [4, 18])
@pytest.mark.parametrize("heads", [1, 10, 30])
def test_loss_and_gradient_errors_stay_within_rounding_bounds(heads: int, actions: int, dtype: str, seeds: int) -> None:
    keys = jax.random.split(jax.random.key(0), 5)
    outputs = -(-heads * actions * ATOMS // 8) * 8
    weights = (jax.random.normal(keys[0], (seeds, outputs, FEATURES)) / np.sqrt(FEATURES)).astype(dtype)
    biases = jax.random.normal(keys[1], (seeds, outputs)).astype(dtype)
    features = jax.nn.relu(jax.random.normal(keys[2], (seeds, BATCH, FEATURES))).astype(dtype)
    taken = jax.random.randint(keys[3], (seeds, BATCH), 0, actions)
    targets = jax.nn.softmax(jax.random.normal(keys[4], (seeds, BATCH, heads, ATOMS)))

    @jax.jit
    @jax.vmap
    def run(weight: Any, bias: Any, features: Any, taken: Any, targets: Any) -> Any:
        def total(weight: Any, bias: Any, features: Any) -> Any:
            one = jax.vmap(lambda f, a, t: losses_of_action(actions, weight, bias, f, a, t))
            losses, probabilities = one(features, taken, targets)
            return losses.sum(), (losses, probabilities)

        gradients, found = jax.grad(total, (0, 1, 2), has_aux=True)(weight, bias, features)
        return *found, *gradients

    found = run(weights, biases, features, taken, targets)
    used = heads * actions * ATOMS
    for s in range(seeds):
        losses, probabilities, of_weight, of_bias, of_features = (x[s] for x in found)
        matrix = exact(weights[s])[:used].reshape(heads, actions, ATOMS, FEATURES)
        bias = exact(biases[s])[:used].reshape(heads, actions, ATOMS)
        rows, action, target = exact(features[s]), np.asarray(taken[s]), np.asarray(targets[s], np.float64)
        mine = np.swapaxes(matrix[:, action], 0, 1)  # [B H Z F]
        logits = np.einsum("bhzf,bf->bhz", mine, rows) + np.swapaxes(bias[:, action], 0, 1)
        scale = np.einsum("bhzf,bf->bhz", np.abs(mine), np.abs(rows)) + np.abs(np.swapaxes(bias[:, action], 0, 1))
        # The kernel uses no tensor cores, so it does not round factors. This is the case "bfloat16" of `product_error`.
        logit_error = (product_error("bfloat16", FEATURES + 2) * scale).max(axis=2)  # [B H]
        # The sum over atoms has an error of ATOMS units in the last place. The functions exp and log add a few units.
        logits = logits - logits.max(axis=2, keepdims=True)
        chances = np.exp(logits) / np.exp(logits).sum(axis=2, keepdims=True)
        log_chances = logits - np.log(np.exp(logits).sum(axis=2, keepdims=True))
        elementary = (ATOMS + 16) * 2.0**-23
        wanted = -(target * log_chances).sum(axis=2)
        check(losses, wanted, 2 * logit_error + elementary * (1 + np.abs(log_chances).max(axis=2)))
        chance_error = (2 * logit_error + elementary)[:, :, None] * chances
        check(probabilities, chances, chance_error + 2.0**-24)

        slopes, slope_error = chances - target, chance_error + 2.0**-22
        sums = np.einsum("bhz,bhzf->bf", slopes, mine)
        size = np.einsum("bhz,bhzf->bf", np.abs(slopes), np.abs(mine))
        bound = np.einsum("bhz,bhzf->bf", slope_error, np.abs(mine)) + product_error("bfloat16", ATOMS * heads) * size
        check(of_features, sums, bound + RESULT[dtype] * np.abs(sums) + heads * ROUNDED[dtype] * size)

        chosen = np.eye(actions)[action]  # [B A]
        spread = np.einsum("bhz,ba->bhaz", slopes, chosen).reshape(BATCH, used)
        spread_error = np.einsum("bhz,ba->bhaz", slope_error, chosen).reshape(BATCH, used)
        size = np.abs(spread).T @ np.abs(rows)
        relative = product_error(dtype, BATCH) + 2 * ROUNDED[dtype]  # XLA rounds the slopes and the result
        bound = spread_error.T @ np.abs(rows) + (relative + RESULT[dtype]) * size
        check(of_weight[:used], spread.T @ rows, bound)
        bound = spread_error.sum(axis=0) + (BATCH * 2.0**-23 + 2 * RESULT[dtype]) * np.abs(spread).sum(axis=0)
        check(of_bias[:used], spread.sum(axis=0), bound)
        assert not np.any(exact(of_weight[used:])), "outputs that pad the matrix must have no gradient"
