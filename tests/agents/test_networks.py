import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents.networks import (
    MLP,
    NATURE,
    SMALL,
    Convolution,
    ConvTorso,
    Initial,
    MlpTorso,
    Network,
    cast,
    make_network,
)
from multihorizon.errors import InputError
from multihorizon.kernels.convolution import Convolve, convolve_for

KEY = jax.random.key(0)


@pytest.mark.parametrize(
    ("side", "size", "stride"), [(84, 8, 4), (21, 4, 2), (11, 3, 1), (10, 3, 1), (13, 6, 3), (5, 4, 4)]
)
def test_all_convolution_methods_agree(side: int, size: int, stride: int) -> None:
    x = jax.random.normal(jax.random.key(1), (side, side + 2, 3))
    plain, products, fused = (Convolution(KEY, 3, 5, size, stride, how)(x) for how in Convolve)
    assert plain.shape == (-(-side // stride), -(-(side + 2) // stride), 5)
    np.testing.assert_allclose(plain, products, atol=1e-5)
    np.testing.assert_array_equal(products, fused)  # without a kernel for these sizes, FUSED uses products
    assert plain.min() == 0 < plain.max()


def test_nature_torso_has_the_papers_shapes() -> None:
    network = make_network(KEY, NATURE, (84, 84, 4), (10, 18, 51))
    shapes = [layer.weight.shape for layer in network.torso.layers]
    assert shapes == [(8, 8, 4, 32), (4, 4, 32, 64), (3, 3, 64, 64)]
    assert network.torso.hidden.weight.shape == (512, 11 * 11 * 64)
    assert network.heads.weight.shape == (9184, 512)  # 10 · 18 · 51 = 9180, padded to a multiple of 8
    assert network(jnp.zeros((84, 84, 4), jnp.uint8)).shape == (10, 18, 51)
    for layer in (*network.torso.layers, network.torso.hidden, network.heads):
        bound = 3**0.25 / np.sqrt(layer.weight.size / layer.bias.size)
        assert 0.95 * bound < jnp.abs(layer.weight).max() <= bound
        assert not jnp.any(layer.bias)


def test_uint8_observations_are_scaled_and_heads_have_no_relu() -> None:
    network = make_network(KEY, MLP, (6,), (3, 2))
    x = jax.random.randint(jax.random.key(2), (6,), 0, 255).astype(jnp.uint8)
    np.testing.assert_allclose(network(x), network(x.astype(jnp.float32) / 255), rtol=1e-5)
    outputs = jax.vmap(network)(jax.random.normal(jax.random.key(3), (100, 6)))
    assert outputs.min() < 0 < outputs.max()


def test_the_weights_of_a_head_do_not_affect_other_heads() -> None:
    network = make_network(KEY, SMALL, (10, 10, 4), (3, 2))
    x = jax.random.uniform(jax.random.key(4), (10, 10, 4))
    changed = eqx.tree_at(lambda n: n.heads.weight, network, network.heads.weight.at[2:].multiply(5))
    before, after = network(x), changed(x)
    np.testing.assert_array_equal(before[0], after[0])
    assert not np.allclose(before[1:], after[1:])


def test_a_custom_torso_can_be_used_and_cast_to_bfloat16() -> None:
    class Mean(eqx.Module):
        def __call__(self, x: jax.Array) -> jax.Array:
            return x.mean(axis=(0, 1))

    network = make_network(KEY, lambda key, shape: Mean(), (7, 7, 3), (2, 4))
    assert network(jnp.ones((7, 7, 3))).shape == (2, 4)
    assert isinstance(cast(network, jnp.bfloat16), Network)
    assert cast(network, jnp.bfloat16).heads.weight.dtype == jnp.bfloat16
    assert cast(network, jnp.bfloat16)(jnp.ones((7, 7, 3))).dtype == jnp.float32  # outputs are not rounded to bfloat16


def test_bfloat16_weights_give_float32_outputs_and_bfloat16_gradients() -> None:
    network = cast(make_network(KEY, MLP, (6,), (3, 2)), jnp.bfloat16)
    x = jax.random.normal(jax.random.key(2), (5, 6))
    features = jax.vmap(network.torso)(x.astype(jnp.bfloat16)).astype(jnp.float32)
    exact = features @ network.heads.weight.T.astype(jnp.float32)
    np.testing.assert_allclose(jax.vmap(network)(x).reshape(5, -1), exact[:, :6], rtol=1e-5, atol=1e-6)
    gradient = jax.grad(lambda heads: jax.vmap(eqx.tree_at(lambda n: n.heads, network, heads))(x).sum())(network.heads)
    assert gradient.weight.dtype == jnp.bfloat16
    expected = jnp.broadcast_to(features.sum(axis=0), (6, features.shape[1]))
    np.testing.assert_allclose(gradient.weight[:6].astype(jnp.float32), expected, rtol=2e-2, atol=2e-2)


def test_convolution_method_depends_on_the_backend_and_an_environment_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    assert convolve_for(in_loop=False) is Convolve.PLAIN
    assert convolve_for(in_loop=True) is Convolve.PRODUCTS
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert convolve_for(in_loop=False) is convolve_for(in_loop=True) is Convolve.FUSED
    monkeypatch.setenv("MULTIHORIZON_KERNELS", "off")
    assert convolve_for(in_loop=False) is convolve_for(in_loop=True) is Convolve.PRODUCTS
    monkeypatch.setenv("MULTIHORIZON_KERNELS", "of")
    with pytest.raises(InputError, match="unknown value of MULTIHORIZON_KERNELS 'of'"):
        convolve_for(in_loop=False)


def test_invalid_input_is_rejected_with_a_message() -> None:
    with pytest.raises(InputError, match="width of a layer must be a whole number of at least 1, got -1"):
        MlpTorso((128, -1))
    with pytest.raises(InputError, match="stride of a convolution must be a whole number of at least 1, got 0"):
        ConvTorso(((16, 3, 0),), 128)
    with pytest.raises(ValueError, match=r"takes images .* not \[4\]"):
        make_network(KEY, SMALL, (4,), (1, 2))
    with pytest.raises(ValueError, match="must return a vector of features"):
        make_network(KEY, lambda key, shape: eqx.nn.Identity(), (4, 4), (1, 2))
    with pytest.raises(ValueError, match="the network cannot take observations"):
        make_network(KEY, lambda key, shape: eqx.nn.Linear(3, 2, key=key), (4,), (1, 2))


def test_dqn_weights_start_within_xavier_bounds() -> None:
    """TF-Slim's default initialiser has the same bounds for networks in which each head is a separate layer."""
    network = make_network(jax.random.key(0), NATURE, (84, 84, 4), (10, 18), initial=Initial.XAVIER)
    first, second, third = network.torso.layers
    for weight, fans in (
        (first.weight, 8 * 8 * 4 + 8 * 8 * 32),
        (second.weight, 4 * 4 * 32 + 4 * 4 * 64),
        (third.weight, 3 * 3 * 64 + 3 * 3 * 64),
        (network.torso.hidden.weight, 7_744 + 512),
        (network.heads.weight, 512 + 18),
    ):
        assert float(jnp.abs(weight).max()) == pytest.approx(math.sqrt(6 / fans), rel=0.01)


@pytest.mark.parametrize(
    ("torso", "shape"),
    [
        (ConvTorso(((2**20, 2**20, 1),), 8), (8, 8, 1)),
        (MlpTorso((2**20,)), (2**20, 2**20)),
        (MlpTorso((8,)), (2**62, 4)),
    ],
)
def test_sizes_that_overflow_are_rejected(torso: ConvTorso | MlpTorso, shape: tuple[int, ...]) -> None:
    """Without the check, XLA would abort the process."""
    with pytest.raises(InputError, match="must be at most"):
        jax.eval_shape(lambda: make_network(KEY, torso, shape, (1, 2)))
