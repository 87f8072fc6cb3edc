"""Compares the fast update (kernels, bfloat16) with the plain update (XLA's convolutions, float32).

    python benchmarks/fast_and_plain.py --out results/speed/fast_and_plain.json

The first part computes losses, gradients and priorities on random batches, with kernels and with XLA's convolutions, in
float32 and in bfloat16. All results are compared with the results of exact float32. The errors of the gradients are
larger than the rounding errors, because rounding switches some ReLUs on or off.

The second part makes many fast and many plain updates on the same batches, and measures the distance between the final
weights. Two other distances are measured for comparison: between the final weights of two seeds, and between the final
weights of two plain runs whose initial weights differ by a millionth.
"""

import argparse
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np

from multihorizon.agents.learner import Learner, LearnerState
from multihorizon.agents.networks import NATURE, cast
from multihorizon.agents.presets import preset
from multihorizon.agents.replay import Transition, importance_weights
from multihorizon.errors import at_least
from multihorizon.files import writable_file, write_json
from multihorizon.kernels import SWITCH
from multihorizon.kernels.convolution import Convolve, convolve_for
from multihorizon.training.compiling import compiled, updates

ACTIONS, BATCH, SHAPE = 18, 32, (84, 84, 4)
BATCHES = 64  # number of different batches, which are used in turn
NUDGE = 1e-6  # relative change of each initial weight


def batch(key: Any) -> Transition:
    keys = jax.random.split(key, 6)

    def pictures(key: Any) -> Any:
        blocks = jax.random.randint(key, (BATCH, 7, 7, 4), 0, 256).astype(jnp.uint8)
        return jnp.repeat(jnp.repeat(blocks, 12, axis=1), 12, axis=2)

    return Transition(
        observation=pictures(keys[0]),
        action=jax.random.randint(keys[1], (BATCH,), 0, ACTIONS),
        rewards=jax.random.randint(keys[2], (BATCH, 3), -1, 2).astype(jnp.float32),
        steps=jnp.full(BATCH, 3),
        terminated=jax.random.bernoulli(keys[3], 0.1, (BATCH,)),
        next_observation=pictures(keys[4]),
    )


def learner(dtype: str, convolve: Convolve) -> Learner:
    return Learner(replace(preset("multi-rainbow"), compute_dtype=dtype), ACTIONS, SHAPE, NATURE, convolve)


def looked_at(one: Learner, state: LearnerState, given: Transition) -> tuple[Any, Any, Any]:
    def objective(parameters: Any) -> Any:
        losses, _ = jax.vmap(lambda t: one.transition_losses(parameters, state.target, t))(given)
        return losses.mean(), losses

    gradients, losses = jax.grad(objective, has_aux=True)(state.computed_with)
    _, priorities, _ = one.update(state, given, jnp.ones(BATCH))
    return losses, cast(gradients, jnp.float32), priorities


def looks(one: Learner, state: LearnerState, batches: list[Transition], precision: str = "default") -> list[Any]:
    """Applies `looked_at` to each batch. A GPU multiplies float32 as TF32 unless precision is "highest"."""
    with jax.default_matmul_precision(precision):
        look = jax.jit(lambda state, given: looked_at(one, state, given))
        return [look(state, given) for given in batches]


def many(one: Learner, count: int) -> Callable[[LearnerState], LearnerState]:
    def step(state: LearnerState, number: Any) -> tuple[LearnerState, None]:
        key = jax.random.fold_in(jax.random.key(7), number % BATCHES)
        importance = importance_weights(jax.random.uniform(key, (BATCH,), minval=0.1))
        state, _, _ = one.update(state, batch(key), importance)
        due = one.copies_target_after(number + 1)
        return jax.lax.cond(due, one.copy_target, lambda same: same, state), None

    return compiled(lambda state: updates(step, state, jnp.arange(count))[0])


def distance(a: Any, b: Any) -> float:
    squares = [jnp.sum((x - y) ** 2) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True)]
    return float(jnp.sqrt(sum(squares)))


def size(a: Any) -> float:
    return distance(a, jax.tree.map(jnp.zeros_like, a))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=10_000)
    parser.add_argument("--looks", type=int, default=8, help="random batches to compare (default: %(default)s)")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    at_least("--looks", options.looks, 1)
    at_least("--updates", options.updates, 1)
    writable_file(options.out)
    fast, plain = learner("bfloat16", convolve_for(in_loop=True)), learner("float32", Convolve.PLAIN)
    found: dict[str, Any] = {"device": jax.devices()[0].device_kind}
    key = jax.random.key(0)
    kinds = {
        "kernels, float32": learner("float32", convolve_for(in_loop=True)),
        "plain, float32": plain,
        "kernels, bfloat16": fast,
        "plain, bfloat16": learner("bfloat16", Convolve.PLAIN),
    }
    batches = [batch(jax.random.key(100 + number)) for number in range(options.looks)]
    exact = looks(plain, plain.init(key), batches, "highest")
    print("largest distance from exact float32 | losses | gradients | priorities\n---|---|---|---")
    for name, one in kinds.items():
        seen = looks(one, one.init(key), batches)
        distances = [
            [distance(a, b) / size(b) for a, b in zip(*pair, strict=True)] for pair in zip(seen, exact, strict=True)
        ]
        worst = dict(zip(("losses", "gradients", "priorities"), np.max(distances, axis=0).tolist(), strict=True))
        print(f"{name} | " + " | ".join(f"{w:.1e}" for w in worst.values()), flush=True)
        found[name] = worst
        write_json(options.out, found)
    begun, learn = plain.init(key), many(plain, options.updates)
    nudged = begun._replace(parameters=jax.tree.map(lambda weights: weights * (1 + NUDGE), begun.parameters))
    ended = learn(begun).parameters
    found["weights"] = {
        "updates": options.updates,
        "plain from its initial weights": distance(ended, begun.parameters),
        "fast from plain": distance(many(fast, options.updates)(fast.init(key)).parameters, ended),
        "plain from itself, nudged": distance(learn(nudged).parameters, ended),
        "one seed from another": distance(learn(plain.init(jax.random.key(1))).parameters, ended),
    }
    for name, value in found["weights"].items():
        print(f"{name}: {value:.4g}")
    write_json(options.out, found)


if __name__ == "__main__":
    os.environ.pop(SWITCH, None)
    main()
