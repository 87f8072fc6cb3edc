"""A GPU kernel that computes each head's cross-entropy for the action taken, and the gradient of the features.

XLA multiplies by the weights of all actions. Each program of this kernel reads only the weights of one head and action.
The kernel takes one transition; vmap adds the batch and the seeds to the grid. `agents/learner.py` has a version in
plain JAX.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int

from multihorizon.kernels import options

# With 9,180 outputs (ten heads, 18 actions), the kernel shortens an update from 162 to 157 µs. With 2,040 outputs, it
# lengthens an update from 130 to 142 µs.
FEWEST_OUTPUTS = 5_000
MOST_FEATURES, MOST_ATOMS = 512, 64  # the weights of larger heads do not fit into one program
COLUMNS = 128  # the forward pass multiplies 128 columns of the weights at a time


def fits(outputs: int, features: int, atoms: int) -> bool:
    """Returns whether the kernel supports these sizes and is faster than XLA."""
    is_whole = features == pl.next_power_of_2(features) and features >= COLUMNS
    return outputs >= FEWEST_OUTPUTS and is_whole and features <= MOST_FEATURES and atoms <= MOST_ATOMS


def _heads_kernel(
    actions: int,
    weight: Any,
    bias: Any,
    features: Any,
    action: Any,
    target: Any,
    losses: Any,
    probabilities: Any,
    pulls: Any,
) -> None:
    atoms, width = target.shape[1], features.shape[0]
    head = pl.program_id(0)
    atom = jnp.arange(pl.next_power_of_2(atoms))
    rows, inside = (head * actions + action[0]) * atoms + atom, atom < atoms

    def weights(first: int, count: int) -> Float[Array, "Z k"]:
        columns = first + jnp.arange(count)
        mask = jnp.broadcast_to(inside[:, None], (atom.size, count))
        return triton.load(weight.at[rows[:, None], columns[None, :]], mask=mask, other=0).astype(jnp.float32)

    def products(first: int) -> Float[Array, "Z k"]:
        return weights(first, COLUMNS) * features[pl.ds(first, COLUMNS)].astype(jnp.float32)[None, :]

    outputs = jnp.sum(sum(map(products, range(0, width, COLUMNS))), axis=1)
    outputs += triton.load(bias.at[rows], mask=inside, other=0).astype(jnp.float32)
    outputs = jnp.where(inside, outputs, -jnp.inf)
    outputs = outputs - jnp.max(outputs)
    powers = jnp.exp(outputs)
    whole = jnp.sum(powers)
    chances = powers / whole
    wanted = triton.load(target.at[head, atom], mask=inside, other=0)
    losses[head] = -jnp.sum(jnp.where(inside, wanted * (outputs - jnp.log(whole)), 0))
    triton.store(probabilities.at[head, atom], chances, mask=inside)
    # The kernel reads the weights again, now from the cache. Keeping the weights in registers would take 166 registers
    # instead of 94, so fewer programs would run at once.
    pulls[head, :] = jnp.sum((chances - wanted)[:, None] * weights(0, width), axis=0)


@partial(jax.custom_jvp, nondiff_argnums=(0,))
def losses_of_action(
    actions: int,
    weight: Float[Array, "O F"],
    bias: Float[Array, " O"],
    features: Float[Array, " F"],
    action: Int[Array, ""],
    target: Float[Array, "H Z"],
) -> tuple[Float[Array, " H"], Float[Array, "H Z"]]:
    """Returns each head's cross-entropy with `target` and each head's probabilities, for the action taken.

    Rows of `target` sum to one. Only the cross-entropy has a gradient: with respect to `weight`, `bias` and `features`.
    """
    losses, probabilities, _ = _call(actions, weight, bias, features, action, target)
    return losses, probabilities


def _call(actions: int, weight: Any, bias: Any, features: Any, action: Any, target: Any) -> Any:
    heads, atoms = target.shape
    shapes = [(heads,), (heads, atoms), (heads, features.size)]
    call = pl.pallas_call(
        partial(_heads_kernel, actions),
        grid=(heads,),
        out_shape=[jax.ShapeDtypeStruct(shape, jnp.float32) for shape in shapes],
        **options(num_warps=8),
    )
    return call(weight, bias, features, action[None], target)


@losses_of_action.defjvp
def _jvp(actions: int, primals: Any, tangents: Any) -> Any:
    """Leaves the gradient of the weights to XLA, which computes one product over the batch."""
    weight, bias, features, action, target = primals
    dweight, dbias, dfeatures, _, _ = tangents
    losses, probabilities, pulls = _call(actions, weight, bias, features, action, target)
    heads, atoms = target.shape
    slopes = probabilities - target
    taken = (jnp.arange(actions) == action)[None, :, None]
    doutputs = (dweight @ features).astype(jnp.float32) + dbias.astype(jnp.float32)
    doutputs = doutputs[: heads * actions * atoms].reshape(heads, actions, atoms)
    dlosses = (jnp.where(taken, slopes[:, None], 0) * doutputs).sum(axis=(1, 2))
    # This is a sum, not a matrix product, because XLA can fuse the gradient of a sum with the gradient of the ReLU.
    dlosses += (pulls * dfeatures.astype(jnp.float32)).sum(axis=1)
    return (losses, probabilities), (dlosses, jnp.zeros_like(probabilities))
