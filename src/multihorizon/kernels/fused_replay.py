"""Drawing by priority, and writing new priorities, as one kernel each on a GPU: XLA needs nine and six, each of them
too small to be worth its launch. `replay` has the plain versions. Written for one seed; vmap adds more to the grid."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int

from multihorizon.kernels import options

ALMOST = 1 - 2e-7  # of a whole: its last part, in float32


def _row(ref: Any, *place: Any, length: int) -> Any:
    """A row of any length, with nothing after its end."""
    columns = jnp.arange(pl.next_power_of_2(length))
    return triton.load(ref.at[(*place, columns)], mask=columns < length, other=0)


def _search(values: Float[Array, " w"], share: Float[Array, ""], length: int) -> Int[Array, ""]:
    """The first entry whose running sum exceeds a share of the whole. If some are not finite none may: then the last,
    since what is drawn will be written to."""
    sums = jnp.cumsum(values)
    whole = jnp.max(sums)
    return jnp.minimum(jnp.sum((sums <= jnp.minimum(share * whole, whole * ALMOST)).astype(jnp.int32)), length - 1)


def _draw_kernel(priorities: Any, block_sums: Any, parts: Any, within: Any, indices: Any, drawn: Any) -> None:
    blocks, width = priorities.shape
    b = pl.program_id(0)
    block = _search(_row(block_sums, length=blocks), parts[b], blocks)
    leaf = _search(_row(priorities, block, length=width), within[b], width)
    indices[b] = block * width + leaf
    drawn[b] = priorities[block, leaf]


def draw(
    priorities: Float[Array, "blocks width"],
    block_sums: Float[Array, " blocks"],
    parts: Float[Array, " B"],
    within: Float[Array, " B"],
) -> tuple[Int[Array, " B"], Float[Array, " B"]]:
    """The indices at shares `parts` of the sum of all, and then at shares `within` their blocks; their priorities."""
    shapes = [jax.ShapeDtypeStruct(parts.shape, jnp.int32), jax.ShapeDtypeStruct(parts.shape, jnp.float32)]
    call = pl.pallas_call(_draw_kernel, grid=parts.shape, out_shape=shapes, **options())
    indices, drawn = call(priorities, block_sums, parts, within)
    return indices, drawn


def _write_kernel(batch: int, old: Any, old_sums: Any, indices: Any, values: Any, priorities: Any, sums: Any) -> None:
    """Several may lie in one block, and the programs know nothing of one another: each puts all new values of its block
    into its own copy, so that what it read of theirs, old or new, does not matter."""
    del old, old_sums  # the same memory as what is written
    width = priorities.shape[1]
    columns = jnp.arange(pl.next_power_of_2(width))
    index = indices[pl.program_id(0)]
    block = jax.lax.div(index, jnp.full_like(index, width))

    def put(i: Any, row: Any) -> Any:
        return jnp.where((block * width + columns == indices[i]) & (row > 0) & (columns < width), values[i], row)

    row = jax.lax.fori_loop(0, batch, put, _row(priorities, block, length=width))
    leaf = index - block * width
    priorities[block, leaf] = jnp.sum(jnp.where(columns == leaf, row, 0))
    sums[block] = jnp.sum(row)


def write(
    priorities: Float[Array, "blocks width"],
    block_sums: Float[Array, " blocks"],
    indices: Int[Array, " B"],
    values: Float[Array, " B"],
) -> tuple[Float[Array, "blocks width"], Float[Array, " blocks"]]:
    """New priorities, of those that had one before, and the sums of their blocks."""
    kernel = partial(_write_kernel, indices.shape[0])
    shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in (priorities, block_sums)]
    call = pl.pallas_call(kernel, grid=indices.shape, out_shape=shapes, input_output_aliases={0: 0, 1: 1}, **options())
    priorities, block_sums = call(priorities, block_sums, indices, values)
    return priorities, block_sums
