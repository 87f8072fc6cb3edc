"""Compares one update with a direct implementation of C51, and tests relations between heads."""

import math
from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from multihorizon.agents import replay as replays
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner, Parameters
from multihorizon.agents.losses import Bootstrap, Categorical, Huber, Loss, Priority
from multihorizon.agents.networks import MLP, NATURE, Torso
from multihorizon.agents.presets import PRESETS, preset
from multihorizon.agents.replay import ReplayShape, Rows, Transition
from multihorizon.discounting import Horizons, hazard, paper_grid, single
from multihorizon.kernels import fused_heads
from multihorizon.kernels.convolution import Convolve

BATCH, ACTIONS, SHAPE = 8, 3, (5,)


def learner_of(agent: AgentConfig, convolve: Convolve = Convolve.PLAIN) -> Learner:
    return Learner(agent, ACTIONS, SHAPE, MLP, convolve)


def batch_of(n_steps: int, seed: int = 0) -> Transition:
    rng = np.random.default_rng(seed)
    return Transition(
        jnp.asarray(rng.normal(size=(BATCH, *SHAPE)), jnp.float32),
        jnp.asarray(rng.integers(ACTIONS, size=BATCH)),
        jnp.asarray(rng.normal(size=(BATCH, n_steps)), jnp.float32),
        jnp.asarray(rng.integers(1, n_steps + 1, size=BATCH)),
        jnp.asarray(rng.random(BATCH) < 0.4),
        jnp.asarray(rng.normal(size=(BATCH, *SHAPE)), jnp.float32),
    )


def test_an_update_with_one_head_equals_an_update_of_c51() -> None:
    """The expected update follows the C51 paper with n-step returns, without an axis for heads."""
    agent = replace(preset("rainbow"), horizons=single(0.97))
    learner = learner_of(agent)
    state = learner.init(jax.random.key(0))
    state = state._replace(target=learner.init(jax.random.key(1)).parameters)
    batch = batch_of(agent.n_steps)
    importance = jnp.linspace(0.2, 1, BATCH)
    support = jnp.linspace(-10, 10, 51)

    def plain_losses(parameters: object) -> jax.Array:
        logits = jax.vmap(learner.network(parameters))(batch.observation)[:, 0]  # [B A Z]
        ahead = jax.nn.softmax(jax.vmap(learner.network(state.target))(batch.next_observation)[:, 0])
        best = jnp.argmax(ahead @ support, axis=1)
        p = ahead[jnp.arange(BATCH), best]
        returns = batch.rewards @ (0.97 ** jnp.arange(agent.n_steps))
        bootstraps = jnp.where(batch.terminated, 0.0, 0.97**batch.steps)
        moved = jnp.clip(returns[:, None] + bootstraps[:, None] * support, -10, 10)
        place = (moved + 10) / 0.4
        low, high = jnp.floor(place).astype(int), jnp.ceil(place).astype(int)
        rows = jnp.arange(BATCH)[:, None]
        target = jnp.zeros((BATCH, 51)).at[rows, low].add(p * (high - place + (low == high)))
        target = target.at[rows, high].add(p * (place - low))
        log_q = jax.nn.log_softmax(logits[jnp.arange(BATCH), batch.action])
        return -jnp.sum(jax.lax.stop_gradient(target) * log_q, axis=1)

    gradients = jax.jit(jax.grad(lambda p: jnp.mean(importance * plain_losses(p))))(state.parameters)
    scale = 6.25e-5 * math.sqrt(1 - 0.999) / (1 - 0.9)  # TensorFlow 1's Adam at its first update
    expected = jax.tree.map(
        lambda p, g: p - scale * 0.1 * g / (math.sqrt(0.001) * jnp.abs(g) + 1.5e-4), state.parameters, gradients
    )
    ours, priorities, metrics = jax.jit(learner.update)(state, batch, importance)
    for a, b in zip(jax.tree.leaves(ours.parameters), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-7)
    losses = plain_losses(state.parameters)
    np.testing.assert_allclose(priorities, jnp.sqrt(losses + 1e-10), rtol=1e-4)
    np.testing.assert_allclose(metrics.losses, losses.mean()[None], rtol=1e-4)


@pytest.mark.parametrize("name", ["multi-dqn", "multi-rainbow"])
def test_losses_in_bfloat16_match_losses_in_float32(name: str) -> None:
    losses = []
    for dtype in ("float32", "bfloat16"):
        learner = learner_of(replace(preset(name), compute_dtype=dtype))
        batch = batch_of(learner.agent.n_steps)
        losses.append(jax.jit(learner.update)(learner.init(jax.random.key(0)), batch, jnp.ones(BATCH))[2].losses)
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.02)


@pytest.mark.parametrize("bootstrap", list(Bootstrap))
@pytest.mark.parametrize("double_q", [False, True])
@pytest.mark.parametrize("name", ["hyper-dqn", "hyper-rainbow"])
def test_a_permutation_of_heads_permutes_the_losses(name: str, bootstrap: Bootstrap, double_q: bool) -> None:
    agent = replace(preset(name), bootstrap=bootstrap, double_q=double_q, loss=preset(name).loss)
    order = np.random.default_rng(0).permutation(10)
    shuffled = replace(agent, horizons=Horizons(agent.horizons.gammas[order], agent.horizons.weights[order]))
    one, other = learner_of(agent), learner_of(shuffled)
    state = one.init(jax.random.key(0))

    def permuted(parameters: Parameters) -> Parameters:
        shape = agent.loss.output_shape(10, one.actions)
        used = math.prod(shape)
        weight, bias = parameters["heads.weight"], parameters["heads.bias"]
        weight = weight.at[:used].set(weight[:used].reshape(*shape, -1)[order].reshape(used, -1))
        bias = bias.at[:used].set(bias[:used].reshape(shape)[order].reshape(-1))
        return parameters | {"heads.weight": weight, "heads.bias": bias}

    batch = batch_of(agent.n_steps)
    losses, _ = jax.vmap(lambda t: one.transition_losses(state.parameters, state.target, t))(batch)
    swapped = permuted(state.parameters)
    again, _ = jax.vmap(lambda t: other.transition_losses(swapped, swapped, t))(batch)
    np.testing.assert_allclose(losses[:, order], again, rtol=1e-4, atol=1e-5)
    key, x = jax.random.key(2), batch.observation[0]
    epsilon, elapsed = jnp.asarray(0.0), jnp.asarray(3)
    assert one.act(state.parameters, key, x, epsilon, elapsed) == other.act(swapped, key, x, epsilon, elapsed)


def test_double_q_learning_chooses_next_actions_with_the_online_network() -> None:
    agent = preset("dqn")
    learner, double = learner_of(agent), learner_of(replace(agent, double_q=True))
    state = learner.init(jax.random.key(0))
    state = state._replace(target=learner.init(jax.random.key(1)).parameters)
    batch = batch_of(1)
    for t in range(BATCH):
        transition = jax.tree.map(lambda x, t=t: x[t], batch)
        online = learner.values(state.parameters, transition.next_observation)[0]
        target = learner.values(state.target, transition.next_observation)[0]
        q = learner.values(state.parameters, transition.observation)[0, transition.action]
        for which, ahead in ((learner, target.max()), (double, target[jnp.argmax(online)])):
            goal = transition.rewards[0] + jnp.where(transition.terminated, 0, 0.99) * ahead
            error = jnp.abs(q - goal)
            expected = jnp.where(error <= 1, 0.5 * error**2, error - 0.5)
            losses, _ = which.transition_losses(state.parameters, state.target, transition)
            np.testing.assert_allclose(losses[0], expected, rtol=1e-4, atol=1e-6)


def _filled_replay(agent: AgentConfig) -> tuple[ReplayShape, replays.Replay]:
    shape = ReplayShape(200, 1, SHAPE, "float32", 1, agent.n_steps, BATCH)
    replay = replays.init(shape)
    for i in range(60):
        key = jax.random.key(i)
        row = Rows(
            jax.random.normal(key, (1, *SHAPE)),
            jax.random.randint(key, (1,), 0, ACTIONS),
            jax.random.normal(key, (1,)),
            jnp.zeros(1, jnp.uint8),
            jnp.zeros(1, bool),
        )
        replay = replays.add(shape, replay, row)
    return shape, replay


def test_the_target_network_is_updated_once_per_period() -> None:
    agent = replace(preset("multi-rainbow"), target_period_steps=12, update_period_steps=4)
    learner = learner_of(agent)
    shape, replay = _filled_replay(agent)
    state = learner.init(jax.random.key(0))
    learn = jax.jit(lambda s, r, k: learner.learn(shape, s, r, k))
    copied = []
    for update in range(7):
        state, replay, _ = learn(state, replay, jax.random.key(update))
        if learner.copies_target_after(update + 1):
            state = learner.copy_target(state)
        same = jax.tree.map(lambda a, b: bool(jnp.all(a == b)), state.parameters, state.target)
        copied.append(all(jax.tree.leaves(same)))
    assert copied == [False, False, True, False, False, True, False]


def test_updates_change_the_priorities_of_rainbow_but_not_of_c51() -> None:
    for name, changes in (("c51", False), ("rainbow", True)):
        agent = preset(name)
        learner = learner_of(agent)
        shape, replay = _filled_replay(agent)
        learn = jax.jit(partial(learner.learn, shape))
        _, after, _ = learn(learner.init(jax.random.key(0)), replay, jax.random.key(1))
        assert bool(jnp.any(after.priorities != replay.priorities)) == changes


def test_bfloat16_updates_match_float32_updates_and_keep_float32_weights() -> None:
    agent = preset("multi-rainbow")
    exact, rough = learner_of(agent), learner_of(replace(agent, compute_dtype="bfloat16"))
    state, rough_state = exact.init(jax.random.key(0)), rough.init(jax.random.key(0))
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(rough_state.parameters))
    assert all(x.dtype == jnp.bfloat16 for x in jax.tree.leaves(rough_state.target))
    batch = batch_of(agent.n_steps)
    _, priorities, _ = jax.jit(exact.update)(state, batch, jnp.ones(BATCH))
    new, rough_priorities, _ = jax.jit(rough.update)(rough_state, batch, jnp.ones(BATCH))
    np.testing.assert_allclose(priorities, rough_priorities, rtol=0.02)
    assert all(x.dtype == jnp.float32 for x in jax.tree.leaves(new.parameters))
    for master, rounded in zip(jax.tree.leaves(new.parameters), jax.tree.leaves(new.rounded), strict=True):
        np.testing.assert_array_equal(master.astype(jnp.bfloat16), rounded)


def test_presets_match_the_paper() -> None:
    assert set(PRESETS) == {
        *(
            "dqn",
            "c51",
            "rainbow",
            "multi-dqn",
            "multi-c51",
            "multi-rainbow",
            "hyper-dqn",
            "hyper-c51",
            "hyper-rainbow",
        ),
        *("c51-nstep", "c51-priority", "multi-c51-nstep", "multi-c51-priority"),
        "any-rainbow",  # not in the paper
    }
    rainbow = preset("multi-rainbow")
    assert (rainbow.optimiser.learning_rate, rainbow.optimiser.epsilon) == (6.25e-5, 1.5e-4)
    assert (rainbow.n_steps, rainbow.priority, rainbow.loss) == (3, Priority.AVERAGED, Categorical(51, 10.0))
    assert (rainbow.batch, rainbow.replay_capacity, rainbow.warm_up_steps) == (32, 1_000_000, 20_000)
    assert (rainbow.update_period_steps, rainbow.target_period_steps) == (4, 8_000)
    assert (rainbow.epsilon.final, rainbow.epsilon.decay_steps, rainbow.epsilon.evaluation) == (0.01, 250_000, 0.001)
    assert rainbow.horizons.gammas[-1] == pytest.approx(0.98917, abs=5e-6)
    c51, dqn = preset("c51"), preset("dqn")
    assert (c51.optimiser.learning_rate, c51.optimiser.epsilon, c51.n_steps) == (2.5e-4, 3.125e-4, 1)
    assert (dqn.optimiser.learning_rate, dqn.optimiser.decay, dqn.optimiser.epsilon) == (2.5e-4, 0.95, 1e-5)
    with pytest.raises(ValueError, match=r"unknown agent 'rainbw'.*did you mean 'rainbow'"):
        preset("rainbw")


@pytest.mark.parametrize(("loss", "outputs"), [(Categorical(), [464]), (Huber(), [])])
def test_losses_and_gradients_are_equal_with_and_without_the_heads_kernel(
    loss: Loss, outputs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = replace(preset("multi-rainbow"), horizons=paper_grid(hazard.Exponential(0.01), 3), loss=loss)
    looked_at: list[int] = []

    def fits(outputs: int, features: int, atoms: int) -> bool:
        looked_at.append(outputs)
        return (features, atoms) == (128, 51)

    monkeypatch.setattr(fused_heads, "fits", fits)
    batch, found = batch_of(agent.n_steps), []
    for convolve in (Convolve.PLAIN, Convolve.FUSED):
        learner = learner_of(agent, convolve)
        states = jax.vmap(learner.init)(jax.random.split(jax.random.key(0), 2))  # two seeds

        def total(parameters: Parameters, target: Parameters, learner: Learner = learner) -> tuple[jax.Array, object]:
            told = jax.vmap(learner.transition_losses, (None, None, 0))(parameters, target, batch)
            return (told[0] * jnp.arange(1.0, 4)).sum(), told

        found.append(jax.jit(jax.vmap(jax.grad(total, has_aux=True)))(states.parameters, states.target))
    assert looked_at == outputs
    for ours, wanted in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-4, atol=1e-4 * np.abs(ours).max())


def test_a_learner_lists_the_kernels_of_an_update() -> None:
    def kernels(heads: int, torso: Torso, convolve: Convolve) -> list[str]:
        horizons = single(0.99) if heads == 1 else paper_grid(hazard.Exponential(0.01), heads, gamma_max=0.99)
        return Learner(replace(preset("rainbow"), horizons=horizons), 18, (84, 84, 4), torso, convolve).kernels

    assert kernels(10, NATURE, Convolve.FUSED) == ["convolutions", "heads", "replay"]
    assert kernels(1, NATURE, Convolve.FUSED) == ["convolutions", "replay"]
    assert kernels(1, MLP, Convolve.FUSED) == ["replay"]
    assert kernels(10, NATURE, Convolve.PLAIN) == []
