"""Two GPU kernels for prioritised replay: one draws transitions by priority, one writes new priorities.

Compiled by XLA, the two operations would need nine and six kernels, each of which takes longer to launch than to run.
The kernels in this file take one seed; vmap adds seeds to the grid. `agents/replay.py` has versions in plain JAX.
"""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jaxtyping import Array, Float, Int

from multihorizon.kernels import options

ALMOST = 1 - 2e-7  # largest fraction of a sum in `_search`; in float32, a larger fraction could round to the whole sum


def _row(ref: Any, *place: Any, length: int) -> Any:
    """Loads a row, padded with zeros to a power of two."""
    columns = jnp.arange(pl.next_power_of_2(length))
    return triton.load(ref.at[(*place, columns)], mask=columns < length, other=0)


def _search(values: Float[Array, " w"], share: Float[Array, ""], length: int) -> Int[Array, ""]:
    """Returns the first index whose running sum exceeds the fraction `share` of the total.

    The result is less than `length` even if values are not finite, so that writes stay in bounds.
    """
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
    """Draws B entries with probabilities proportional to their priorities, and returns their indices and priorities.

    Uniform numbers in [0, 1) select a block (`parts`) and an entry within the block (`within`).
    """
    shapes = [jax.ShapeDtypeStruct(parts.shape, jnp.int32), jax.ShapeDtypeStruct(parts.shape, jnp.float32)]
    call = pl.pallas_call(_draw_kernel, grid=parts.shape, out_shape=shapes, **options())
    indices, drawn = call(priorities, block_sums, parts, within)
    return indices, drawn


def _write_kernel(batch: int, old: Any, old_sums: Any, indices: Any, values: Any, priorities: Any, sums: Any) -> None:
    """Writes one priority and the sum of its block.

    Several programs may write to the same block without synchronisation. These programs write equal values, because
    each program applies all new priorities to its own copy of the block.
    """
    del old, old_sums  # aliases of the outputs
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
    """Writes new priorities, except where the old priority is 0, and returns all priorities and block sums."""
    kernel = partial(_write_kernel, indices.shape[0])
    shapes = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in (priorities, block_sums)]
    call = pl.pallas_call(kernel, grid=indices.shape, out_shape=shapes, input_output_aliases={0: 0, 1: 1}, **options())
    priorities, block_sums = call(priorities, block_sums, indices, values)
    return priorities, block_sums
