"""Rainbow over several horizons in PyTorch, for benchmarks: an agent with a full replay buffer, and its update.

The update does the same work as `Learner.learn`. Among equivalent operations, it uses the fastest.
"""

from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F

from multihorizon.discounting import hazard, paper_grid, single

SIDE, STACK, BATCH, STEPS, ATOMS, V_MAX = 84, 4, 32, 3, 51, 10.0
LAYERS = ((4, 32, 8, 4), (32, 64, 4, 2), (64, 64, 3, 1))  # inputs, outputs, size, stride
HIDDEN, FLAT, LANES = 512, 11 * 11 * 64, 8  # the heads' outputs are padded to a multiple of LANES
LEARNING_RATE, EPSILON, BETAS = 6.25e-5, 1.5e-4, (0.9, 0.999)
CONVOLVES = ("plain", "products")  # PyTorch's convolutions, or matrix products of patches
ADAMS = ("traced", "fused")  # Adam compiled with the update, or PyTorch's fused Adam

Tensors = list[torch.Tensor]


class State(NamedTuple):
    """Each list contains the weight and bias of three convolutions, the dense layer and the heads, in this order."""

    masters: Tensors
    rounded: Tensors | None  # copy of the masters in the compute dtype; None for float32
    target: Tensors
    means: Tensors
    squares: Tensors
    step: torch.Tensor
    losses: torch.Tensor  # loss of each head in the last update


class Replay(NamedTuple):
    """The fields of `multihorizon.agents.replay.Replay` that an update needs. Row t of stream n has index t·N + n."""

    frames: torch.Tensor
    actions: torch.Tensor
    rewards: torch.Tensor
    ends: torch.Tensor
    ages: torch.Tensor
    priorities: torch.Tensor  # [blocks width]
    block_sums: torch.Tensor
    largest_priority: torch.Tensor


def same_padding(length: int, size: int, stride: int) -> tuple[int, int]:
    total = max((-(-length // stride) - 1) * stride + size - length, 0)
    return total // 2, total - total // 2


def convolved(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, size: int, stride: int) -> torch.Tensor:
    """Convolves [B h w I] to [B h2 w2 O] with SAME padding. The weight has the layout that `packed` returns."""
    before, after = same_padding(x.shape[1], size, stride)
    if weight.ndim == 4:
        channels_first = F.pad(x.permute(0, 3, 1, 2), (0, after - before) * 2)
        return F.conv2d(channels_first, weight, bias, stride, before).permute(0, 2, 3, 1)
    x = F.pad(x, (0, 0, before, after, before, after))
    batch, padded, _, channels = x.shape
    blocks, taps = padded // stride, size // stride
    x = x.reshape(batch, blocks, stride, blocks, stride, channels).transpose(2, 3)
    x = x.reshape(batch, blocks, blocks, stride * stride * channels)
    out = blocks - taps + 1
    across = torch.cat([x[:, :, i : i + out] for i in range(taps)], 3)
    patches = torch.cat([across[:, i : i + out] for i in range(taps)], 3)
    return torch.addmm(bias, patches.reshape(batch * out * out, -1), weight).view(batch, out, out, -1)


def network(weights: Tensors, observations: torch.Tensor, shape: tuple[int, int]) -> torch.Tensor:
    """Returns float32 logits [B H A Z] for uint8 observations [B h w k]."""
    x = observations.to(weights[0].dtype).contiguous() * (1 / 255)
    for i, (_, _, size, stride) in enumerate(LAYERS):
        x = F.relu(convolved(x, weights[2 * i], weights[2 * i + 1], size, stride))
    x = x.reshape(x.shape[0], -1)  # the order of Learner's dense layer: rows, columns, channels
    x = F.relu(F.linear(x, weights[6], weights[7]))
    out = F.linear(x, weights[8], weights[9])[:, : shape[0] * shape[1] * ATOMS]
    return out.float().view(-1, *shape, ATOMS)


def packed(weights: Tensors, convolve: str) -> Tensors:
    """Converts Learner's weights, [k k I O] and [O I], to the layouts used here."""

    def one(weight: torch.Tensor) -> torch.Tensor:
        if weight.ndim != 4:
            return weight.contiguous()
        if convolve == "plain":  # [O I k k]
            return weight.permute(3, 2, 0, 1).contiguous(memory_format=torch.channels_last)
        size, _, inputs, outputs = weight.shape
        stride = next(s for _, _, k, s in LAYERS if k == size)
        taps = weight.reshape(size // stride, stride, size // stride, stride, inputs, outputs)
        return taps.transpose(1, 2).reshape(-1, outputs).contiguous()

    return [one(weight) for weight in weights]


def unpacked(weights: Tensors, convolve: str) -> Tensors:
    weights = list(weights)
    for i, (inputs, outputs, size, stride) in enumerate(LAYERS):
        if convolve == "plain":
            weights[2 * i] = weights[2 * i].permute(2, 3, 1, 0)
        else:
            taps = weights[2 * i].reshape(size // stride, size // stride, stride, stride, inputs, outputs)
            weights[2 * i] = taps.transpose(1, 2).reshape(size, size, inputs, outputs)
    return weights


def fresh_weights(outputs: int, device: str) -> Tensors:
    """Draws weights uniformly within ±1/√fan-in, in Learner's layouts."""
    shapes = [(size, size, inputs, outputs) for inputs, outputs, size, _ in LAYERS]
    weights = []
    for shape in (*shapes, (HIDDEN, FLAT), (-(-outputs // LANES) * LANES, HIDDEN)):
        biases = shape[0] if len(shape) == 2 else shape[-1]
        bound = (biases / float(np.prod(shape))) ** 0.5
        weights += [torch.empty(shape, device=device).uniform_(-bound, bound), torch.zeros(biases, device=device)]
    return weights


class Agent:
    """An agent whose `learn` updates the state and the replay buffer in place."""

    def __init__(
        self,
        heads: int,
        actions: int,
        dtype: str,
        frames: int,
        convolve: str,
        adam: str,
        device: str,
        streams: int = 80,
    ) -> None:
        self.shape, self.convolve, self.adam = (heads, actions), convolve, adam
        self.device, self.streams = device, streams
        horizons = single(0.99) if heads == 1 else paper_grid(hazard.Exponential(0.01), heads, gamma_max=0.99)
        self.gammas = torch.tensor(np.asarray(horizons.gammas), dtype=torch.float32, device=device)
        self.powers = self.gammas[:, None] ** torch.arange(STEPS, device=device)  # [H n]
        self.support = torch.linspace(-V_MAX, V_MAX, ATOMS, device=device)
        masters = packed(fresh_weights(heads * actions * ATOMS, device), convolve)
        rounded = None if dtype == "float32" else [weight.to(getattr(torch, dtype)) for weight in masters]
        target = [weight.clone() for weight in rounded or masters]
        means, squares = ([torch.zeros_like(weight) for weight in masters] for _ in range(2))
        step, losses = torch.zeros((), device=device), torch.zeros(heads, device=device)
        self.state = State(masters, rounded, target, means, squares, step, losses)
        self.replay = self._full(frames)

    def _full(self, frames: int) -> Replay:
        rows = frames // self.streams
        size = rows * self.streams
        rows_per_block = max(1, round(np.sqrt(size) / self.streams))
        blocks = -(-rows // rows_per_block)
        priorities = torch.empty(blocks, rows_per_block * self.streams, device=self.device).uniform_(0.1, 1)
        return Replay(
            frames=torch.zeros(size, SIDE * SIDE, dtype=torch.uint8, device=self.device),
            actions=torch.zeros(size, dtype=torch.int32, device=self.device),
            rewards=torch.empty(size, device=self.device).bernoulli_(0.1),
            ends=torch.zeros(size, dtype=torch.uint8, device=self.device),
            ages=torch.full((size,), 100, dtype=torch.uint8, device=self.device),
            priorities=priorities,
            block_sums=priorities.sum(1),
            largest_priority=torch.ones((), device=self.device),
        )

    def _stacks(self, replay: Replay, row: torch.Tensor, stream: torch.Tensor) -> torch.Tensor:
        """Returns observations [B h w k], the oldest frame first. Frames before the episode's start are blank."""
        rows = replay.frames.shape[0] // self.streams
        back = torch.arange(STACK - 1, -1, -1, device=self.device)
        frames = replay.frames[((row[:, None] - back) % rows) * self.streams + stream[:, None]]  # [B k hw]
        age = replay.ages[(row % rows) * self.streams + stream]
        frames = torch.where((age[:, None] >= back)[:, :, None], frames, 0)
        return frames.view(BATCH, STACK, SIDE, SIDE).permute(0, 2, 3, 1)

    def learn(self, state: State, replay: Replay, draws: torch.Tensor | None = None) -> Tensors:
        """Makes one update. Returns gradients for PyTorch's fused Adam, or an empty list for "traced" Adam."""
        if draws is None:
            draws = torch.rand(2, BATCH, device=self.device)
        rows, width = replay.frames.shape[0] // self.streams, replay.priorities.shape[1]
        parts = (torch.arange(BATCH, device=self.device) + draws[0]) / BATCH
        blocks = search(replay.block_sums.cumsum(0)[None], parts[:, None])
        leaves = search(replay.priorities[blocks].cumsum(1), draws[1][:, None])
        before = replay.priorities[blocks, leaves]
        importance = (before + 1e-10).rsqrt()
        importance = importance / importance.max()

        row, stream = (blocks * width + leaves) // self.streams, (blocks * width + leaves) % self.streams
        window = ((row[:, None] + torch.arange(STEPS, device=self.device)) % rows) * self.streams + stream[:, None]
        ends = replay.ends[window]  # 0: the episode continues; 1: the episode terminated
        running = F.pad((ends[:, :-1] != 0).int().cumsum(1), (1, 0)) == 0
        steps, terminated = running.sum(1), (running & (ends == 1)).any(1)
        rewards = torch.where(running, replay.rewards[window], 0.0)
        returns = (rewards[:, None] * self.powers).sum(2)  # [B H]
        bootstraps = torch.where(terminated[:, None], 0.0, self.gammas ** steps[:, None])

        ahead = network(state.target, self._stacks(replay, row + steps, stream), self.shape).softmax(-1)
        best = (ahead * self.support).sum(-1).argmax(2)  # [B H], each head's own best action
        ahead = ahead.gather(2, best[:, :, None, None].expand(-1, -1, 1, ATOMS))[:, :, 0]
        moved = (returns[:, :, None] + bootstraps[:, :, None] * self.support).clamp(-V_MAX, V_MAX)
        nearness = 1 - (moved[:, :, None, :] - self.support[:, None]).abs() * ((ATOMS - 1) / (2 * V_MAX))
        goal = (nearness.clamp(0, 1) * ahead[:, :, None, :]).sum(-1)  # [B H Z]

        observation = self._stacks(replay, row, stream)
        action = replay.actions[blocks * width + leaves]
        taken = (torch.arange(self.shape[1], device=self.device) == action[:, None])[:, None, :, None]

        def objective(weights: Tensors) -> tuple[torch.Tensor, torch.Tensor]:
            output = network(weights, observation, self.shape)
            output = torch.where(taken, output, 0.0).sum(2)  # a mask, because the gradient of indexing is slow
            losses = -(goal * output.log_softmax(-1)).sum(-1)
            return (importance * losses.mean(1)).mean(), losses

        gradients, losses = torch.func.grad(objective, has_aux=True)(state.rounded or state.masters)

        priorities = (losses + 1e-10).sqrt().mean(1)
        replay.priorities[blocks, leaves] = torch.where(before > 0, priorities, 0.0)
        replay.block_sums[blocks] = replay.priorities[blocks].sum(1)
        replay.largest_priority.copy_(torch.maximum(replay.largest_priority, priorities.max()))
        state.losses.copy_(losses.mean(0))
        gradients = [gradient.float() for gradient in gradients]
        if self.adam == "traced":
            traced_adam(state, gradients)
            return []
        if self.convolve == "plain":  # fused Adam needs gradients in the layout of the weights
            return [g.contiguous(memory_format=torch.channels_last) if g.ndim == 4 else g for g in gradients]
        return gradients


def search(sums: torch.Tensor, share: torch.Tensor) -> torch.Tensor:
    """Returns the first index whose running sum exceeds the fraction `share` of the total."""
    whole = sums[:, -1:]
    return (sums <= torch.minimum(share * whole, whole * (1 - 2e-7))).sum(1)


def traced_adam(state: State, gradients: Tensors) -> None:
    """Makes one step of Adam, which the compiler fuses into one kernel."""
    state.step.add_(1)
    torch._foreach_lerp_(state.means, gradients, 1 - BETAS[0])
    torch._foreach_mul_(state.squares, BETAS[1])
    torch._foreach_addcmul_(state.squares, gradients, gradients, 1 - BETAS[1])
    roots = torch._foreach_sqrt(state.squares)
    roots = torch._foreach_mul(roots, (1 - BETAS[1] ** state.step).rsqrt())
    changes = torch._foreach_div(state.means, torch._foreach_add(roots, EPSILON))
    torch._foreach_sub_(state.masters, torch._foreach_mul(changes, LEARNING_RATE / (1 - BETAS[0] ** state.step)))
    if state.rounded is not None:
        torch._foreach_copy_(state.rounded, state.masters)
