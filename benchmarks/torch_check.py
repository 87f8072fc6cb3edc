"""Compares updates in PyTorch with the updates of `Learner`, given the same weights, replay buffer and random draws.

    pip install torch
    python benchmarks/torch_check.py --device cuda

PyTorch updates two seeds with the same inputs. Each seed is compared with `Learner`, for every combination of --dtypes,
--convolves, --adams and --forms. The form `graph` needs a GPU and is skipped on a CPU.
"""

import argparse
import itertools
from dataclasses import replace
from typing import Any

import in_one_line  # noqa: F401
import jax
import jax.numpy as jnp
import numpy as np
import torch
from torch_agent import ADAMS, BATCH, CONVOLVES, STACK, Tensors, packed, unpacked
from torch_update import FORMS, Subject, check_device

from multihorizon.agents import replay as replays
from multihorizon.agents.learner import Learner, LearnerState
from multihorizon.agents.networks import NATURE
from multihorizon.agents.optimisers import Adam
from multihorizon.agents.presets import preset
from multihorizon.agents.replay import Replay, ReplayShape
from multihorizon.training.compiling import compiled

FRAMES, STREAMS, ACTIONS, UPDATES, SEEDS = 8_000, 80, 6, 3, 2
# The largest accepted relative errors in the Euclidean norm. The first number is for losses and priorities. The second
# number is for the changes of the weights. The second number is larger, because rounding switches some ReLUs on or off.
TOLERANCES = {"float32": (1e-4, 3e-3), "bfloat16": (1e-2, 0.3)}


def random_replay(shape: ReplayShape, seed: int = 0) -> Replay:
    rng = np.random.default_rng(seed)
    replay = replays.init(shape)
    drawable = rng.random(replay.priorities.shape) < 0.9
    priorities = jnp.asarray(drawable * rng.uniform(0.1, 1, drawable.shape), jnp.float32)
    return replay._replace(
        frames=jnp.asarray(rng.integers(256, size=replay.frames.shape), jnp.uint8),
        actions=jnp.asarray(rng.integers(ACTIONS, size=replay.actions.shape), jnp.int32),
        rewards=jnp.asarray(rng.normal(size=replay.rewards.shape), jnp.float32),
        ends=jnp.asarray(rng.choice(4, size=replay.ends.shape, p=[0.7, 0.1, 0.1, 0.1]), jnp.uint8),
        ages=jnp.asarray(rng.integers(8, size=replay.ages.shape), jnp.uint8),
        priorities=priorities,
        block_sums=priorities.sum(axis=1),
    )


def weights_of(parameters: Any) -> Tensors:
    layers = [*(f"torso.layers.{number}" for number in range(3)), "torso.hidden", "heads"]
    parts = [parameters[f"{layer}.{part}"] for layer in layers for part in ("weight", "bias")]
    return [torch.tensor(np.asarray(part, np.float32)) for part in parts]


def load(subject: Subject, state: LearnerState, replay: Replay) -> None:
    """Copies the state into the existing tensors of every seed, because a captured CUDA graph uses these tensors."""
    masters, target = (packed(weights_of(w), subject.agents[0].convolve) for w in (state.parameters, state.target))
    for agent in subject.agents:
        for tensors, weights in (
            (agent.state.masters, masters),
            (agent.state.rounded, masters),
            (agent.state.target, target),
        ):
            for tensor, weight in zip(tensors or masters, weights, strict=True):
                tensor.copy_(weight)
        for tensor in (*agent.state.means, *agent.state.squares, agent.state.step):
            tensor.zero_()
        for name, tensor in agent.replay._asdict().items():
            tensor.copy_(torch.tensor(np.asarray(getattr(replay, name))).view(tensor.shape))
    for optimiser in subject.optimisers:
        for held in optimiser.state.values():
            for moment in held.values():
                moment.zero_()


def draws_of(replay: Replay, indices: Any) -> torch.Tensor:
    """Returns uniform draws that make stratified sampling return these indices."""
    blocks, leaves = np.divmod(np.asarray(indices), replay.priorities.shape[1])
    priorities = np.asarray(replay.priorities, np.float64)
    ends = priorities.sum(1).cumsum()
    low = (ends - priorities.sum(1))[blocks] / ends[-1] * BATCH - np.arange(BATCH)
    high = ends[blocks] / ends[-1] * BATCH - np.arange(BATCH)
    inside = priorities[blocks]
    ends = inside.cumsum(1)
    leaf_ends, chosen = np.take_along_axis(ends, leaves[:, None], 1)[:, 0], inside[np.arange(BATCH), leaves]
    draws = np.stack([(low.clip(0) + high.clip(max=1)) / 2, (leaf_ends - chosen / 2) / ends[:, -1]])
    return torch.tensor(draws, dtype=torch.float32)


def check(dtype: str, convolve: str, adam: str, form: str, device: str) -> bool:
    """Prints the distances between PyTorch's and Learner's results, and returns whether all are within tolerance."""
    preset_ = preset("multi-rainbow")
    assert isinstance(preset_.optimiser, Adam)
    optimiser = replace(preset_.optimiser, epsilon_hat=False)  # PyTorch's Adam has no `epsilon_hat`
    learning = replace(preset_, compute_dtype=dtype, optimiser=optimiser)
    learner = Learner(learning, ACTIONS, (84, 84, STACK), NATURE)
    shape = ReplayShape(FRAMES, STREAMS, (84, 84, 1), "uint8", STACK, learning.n_steps, BATCH)
    subject = Subject(len(learning.horizons), ACTIONS, dtype, FRAMES, convolve, adam, device, seeds=SEEDS)
    agents = subject.agents
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    draws = torch.rand(2, BATCH, device=device)
    run = subject.runner(form, 1, draws)
    apart: dict[str, float] = {}

    def compare(name: str, ours: Any, theirs: torch.Tensor) -> None:
        expected, got = np.asarray(ours).reshape(-1), theirs.cpu().numpy().reshape(-1)
        distance = float(np.linalg.norm(got - expected) / np.linalg.norm(expected))
        apart[name] = max(apart.get(name, 0.0), distance)

    state, replay = learner.init(jax.random.key(0)), random_replay(shape)
    state = state._replace(target=learner.init(jax.random.key(1)).target)
    load(subject, state, replay)
    first = weights_of(state.parameters)
    sample = jax.jit(lambda replay, key: replays.sample(shape, replay, key).indices)
    learn = compiled(lambda state, replay, key: learner.learn(shape, state, replay, key))
    for key in jax.random.split(jax.random.key(2), UPDATES):
        draws.copy_(draws_of(replay, sample(replay, key)))
        before, before_there = replay.priorities, [agent.replay.priorities.clone() for agent in agents]
        state, replay, metrics = learn(state, replay, key)
        run()
        changes = replay.priorities - before
        for agent, priorities in zip(agents, before_there, strict=True):
            compare("losses", metrics.losses, agent.state.losses)
            compare("changes of priorities", changes, agent.replay.priorities - priorities)
            compare("sums of blocks", replay.block_sums, agent.replay.block_sums)
            compare("largest priority", replay.largest_priority, agent.replay.largest_priority)
    names = [f"{kind} {i}" for i in range(5) for kind in ("weight", "bias")]
    for agent in agents:
        there = unpacked([weight.cpu() for weight in agent.state.masters], convolve)
        for name, begun, ours, theirs in zip(names, first, weights_of(state.parameters), there, strict=True):
            compare(f"change of {name}", ours - begun, theirs - begun)
    near = all(value <= TOLERANCES[dtype]["change of" in name] for name, value in apart.items())
    fine = near and subject.steps == UPDATES * SEEDS
    way = ", ".join((form, convolve, adam, dtype, device))
    print(f"{'equal' if fine else 'DIFFERENT'}: {way}, {UPDATES} updates of {SEEDS} seeds")
    for name, value in apart.items():
        print(f"    {name}: {value:.1e} apart")
    return fine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dtypes", nargs="+", choices=TOLERANCES, default=TOLERANCES)
    parser.add_argument("--convolves", nargs="+", choices=CONVOLVES, default=CONVOLVES)
    parser.add_argument("--adams", nargs="+", choices=ADAMS, default=ADAMS)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=FORMS)
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="device for PyTorch")
    options = parser.parse_args()
    check_device(options.device)
    jax.config.update("jax_platforms", "cpu")  # so that JAX uses neither GPU kernels nor TF32
    forms = [form for form in options.forms if options.device == "cuda" or form != "graph"]
    ways = itertools.product(options.dtypes, options.convolves, options.adams, forms)
    fine = [check(*way, options.device) for way in ways]
    raise SystemExit(not all(fine))


if __name__ == "__main__":
    main()
