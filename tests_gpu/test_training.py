"""Trains for a million frames of Seaquest in each precision, as `multihorizon train` does."""

from dataclasses import replace

import numpy as np
import pytest
from precision import TYPES

from multihorizon.agents.presets import preset
from multihorizon.runs.configure import configured, made
from multihorizon.runs.recording import train
from multihorizon.training.trainer import IterationMetrics
from multihorizon.training.worlds import world

UNTRAINED = np.log(51)
FRAMES_PER_STEP, ITERATIONS = 4, 10


@pytest.mark.parametrize(("agent", "seeds"), [("rainbow", 1), ("multi-rainbow", 3)])
@pytest.mark.parametrize("dtype", TYPES)
def test_losses_fall_and_never_exceed_the_loss_of_an_untrained_network(agent: str, seeds: int, dtype: str) -> None:
    steps = 1_000_000 // FRAMES_PER_STEP
    chosen = world("atari/Seaquest")
    adapted = replace(chosen.adapt(preset(agent)), compute_dtype=dtype, replay_capacity=300_000)
    configuration = configured(
        chosen, adapted, seeds=seeds, steps=steps, training_steps=steps // ITERATIONS, evaluation_steps=0
    )
    outcomes: list[IterationMetrics] = []
    with made(configuration) as trainer:
        train(trainer, seed=0, finished=outcomes.append)
    losses = np.array([np.mean(outcome.losses, axis=1) for outcome in outcomes if outcome.losses])  # [iterations S]
    assert np.all(np.isfinite(losses))
    assert np.all(losses <= UNTRAINED * 1.001)
    assert np.all(losses[-1] < losses[0])
