"""Trains agents and records what happens, a chunk of steps at a time."""

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from multihorizon.errors import InputError, at_least
from multihorizon.training.loop import Trainer, Training
from multihorizon.training.records import Records


@dataclass(frozen=True)
class Chunk:
    """What is known after some more steps; lists are by seed."""

    step: int
    episodes: list[int]
    returns: list[float | None]  # mean over the episodes that ended; None where none did
    losses: list[list[float]]  # by seed and head
    values: list[list[float]]
    steps_per_second: float  # of all seeds together

    def line(self) -> dict[str, Any]:
        return dict(vars(self))


def chunks(trainer: Trainer, seed: int, steps: int, chunk_steps: int) -> Iterator[tuple[Training, Chunk]]:
    """Training as an iterator of states and reports; the caller decides what to do with them.

    The first is the warm-up. A state that was handed out is given up when the next is asked for.
    """
    at_least("the number of steps", steps, trainer.agent.warm_up_steps + 1)
    training = trainer.init(seed)
    warm_up = trainer.warm_up_cycles()
    # Chunks of one length, so that one program serves them all: the last may end a few steps beyond those asked for.
    learning = max(1, -(-steps // trainer.steps_per_cycle) - warm_up)
    number = -(-learning * trainer.steps_per_cycle // chunk_steps)
    length = -(-learning // number)
    cycle = 0
    for count in (warm_up, *[length] * number):
        good = jax.tree.map(jnp.copy, training.learner.parameters)
        begun = time.perf_counter()
        training, report = trainer.run(training, cycle, count)
        losses = np.asarray(report.metrics.losses)  # [S updates H]; waits for the device
        took = time.perf_counter() - begun
        bad = np.flatnonzero(~np.isfinite(losses).all(axis=(0, 2)))
        if len(bad):
            update = (cycle - warm_up) * trainer.updates_per_cycle + int(bad[0])
            raise NotFinite(update, good)
        cycle += count
        ended, returns = np.asarray(report.episodes.ended), np.asarray(report.episodes.returns)
        yield (
            training,
            Chunk(
                step=cycle * trainer.steps_per_cycle,
                episodes=ended.tolist(),
                returns=[float(r / n) if n else None for r, n in zip(returns, ended, strict=True)],
                losses=_means(losses),
                values=_means(np.asarray(report.metrics.values)),
                steps_per_second=count * trainer.steps_per_cycle * trainer.seeds / took,
            ),
        )


def _means(of_updates: np.ndarray) -> list[list[float]]:
    return of_updates.mean(axis=1).tolist() if of_updates.shape[1] else []


class NotFinite(InputError):
    """A loss was NaN or infinite; `parameters` are the weights before the chunk in which that happened."""

    def __init__(self, update: int, parameters: Any) -> None:
        super().__init__(f"the loss is not finite at update {update}, so training stopped; try a smaller learning rate")
        self.parameters = parameters


def train(
    trainer: Trainer,
    seed: int,
    steps: int,
    chunk_steps: int,
    records: Records | None = None,
    report: Callable[[Chunk], None] = lambda chunk: None,
) -> Training:
    """The whole run; its weights and metrics are recorded, the last good ones even where it fails."""
    try:
        for state, chunk in chunks(trainer, seed, steps, chunk_steps):
            training = state
            if records:
                records.metrics(chunk.line())
            report(chunk)
    except NotFinite as problem:
        if records:
            kept = records.weights(problem.parameters, "-last-good")
            raise InputError(f"{problem}; the last good weights are in {kept}") from None
        raise
    if records:
        records.weights(training.learner.parameters)
    return training
