import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import multihorizon as mh
from multihorizon.discounting.decoding import bin_edges, longest_time

GAMMAS = np.array([0.05, 0.35, 0.68, 0.88, 0.957, 0.983, 0.994, 0.998])


def values_of(rewards: dict[int, float]) -> np.ndarray:
    return np.sum([reward * GAMMAS**t for t, reward in rewards.items()], axis=0)


@pytest.mark.parametrize("t", [0, 1, 4, 10, 30, 100, 300])
def test_a_single_reward_is_decoded_near_its_time(t: int) -> None:
    timeline = mh.decode_rewards(values_of({t: 2.0}), GAMMAS, 1000)
    peak = int(timeline.rewards.argmax())
    assert timeline.starts[peak] / 1.4 <= t <= timeline.ends[peak] * 1.4
    assert timeline.earliest[peak] <= t <= timeline.latest[peak]
    assert timeline.rewards.sum() == pytest.approx(2.0, rel=0.15)


def test_two_distant_rewards_are_decoded_separately() -> None:
    timeline = mh.decode_rewards(values_of({3: 1.0, 60: 2.0}), GAMMAS, 600, noise=0.01)
    early = timeline.rewards[timeline.ends <= 12].sum()
    late = timeline.rewards[timeline.starts >= 20].sum()
    assert early == pytest.approx(1.0, rel=0.03)
    assert late == pytest.approx(2.0, rel=0.03)
    assert timeline.value(mh.discount.hyperbolic(0.1)) == pytest.approx(1 / 1.3 + 2 / 7, rel=0.05)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.floats(0, 5), min_size=24, max_size=24),
    st.sampled_from([0.003, 0.03, 0.3]),
    st.booleans(),
)
def test_decoded_rewards_reproduce_the_q_values(rewards: list[float], noise: float, signed: bool) -> None:
    """Let A map rewards per bin to Q-values. If Q = A r, the decoded rewards x satisfy ‖A x - Q‖ ≤ noise · ‖r‖."""
    starts = bin_edges(600)[:-1]
    held = np.resize(rewards, len(starts))
    lengths = np.diff(np.append(starts, 601))
    each_step = np.repeat(held / lengths, lengths)
    q = np.power.outer(GAMMAS, np.arange(601)) @ each_step
    timeline = mh.decode_rewards(q, GAMMAS, 600, noise=noise, signed=signed)
    again = np.array([timeline.value(mh.discount.exponential(float(g))) for g in GAMMAS])
    assert np.linalg.norm(again - q) <= noise * np.linalg.norm(held) + 1e-9
    assert timeline.max_errors == pytest.approx(np.abs(again - q).max(), abs=1e-9)
    assert signed or np.all(timeline.rewards >= 0)


@settings(deadline=None, max_examples=30)
@given(st.floats(0.01, 100), st.booleans())
def test_rewards_scale_with_the_q_values(scale: float, signed: bool) -> None:
    q = values_of({5: 1.0, 80: 3.0})
    one, other = (mh.decode_rewards(s * q, GAMMAS, 300, signed=signed).rewards for s in (1.0, scale))
    np.testing.assert_allclose(other, scale * one, rtol=1e-6, atol=1e-9 * scale)


def test_decoded_rewards_minimise_the_penalised_error() -> None:
    gammas, noise = np.array([0.3, 0.7, 0.9, 0.97]), 0.05
    q = gammas**2 + 2 * gammas**9
    timeline = mh.decode_rewards(q, gammas, 30, noise=noise)
    terms = np.array(
        [
            [np.mean([g**t for t in range(a, b)]) for a, b in zip(timeline.starts, timeline.ends, strict=True)]
            for g in gammas
        ]
    )

    def objective(x: np.ndarray) -> float:
        return float(np.sum((terms @ x - q) ** 2) + noise**2 * np.sum(x**2))

    twin = minimize(objective, np.ones(len(timeline.starts)), bounds=[(0, None)] * len(timeline.starts), tol=1e-14)
    np.testing.assert_allclose(timeline.rewards, twin.x, atol=2e-3)


def test_negative_rewards_are_decoded_in_a_batch() -> None:
    rows = np.stack([values_of({8: 1.0}), values_of({8: -1.0}), values_of({2: 1.0, 50: -2.0})])
    timeline = mh.decode_rewards(rows, GAMMAS, 300, signed=True)
    assert timeline.rewards.shape == (3, len(timeline.starts))
    assert timeline.max_errors.shape == (3,)
    np.testing.assert_allclose(timeline.rewards[0], -timeline.rewards[1], atol=1e-12)
    assert timeline.rewards[2][timeline.ends <= 6].sum() > 0.7
    assert timeline.rewards[2][timeline.starts >= 15].sum() < -1.5
    # Non-negative rewards cannot explain negative values.
    refused = mh.decode_rewards(rows[1], GAMMAS, 300, signed=False)
    assert refused.rewards.max() == 0.0
    assert refused.max_errors == pytest.approx(np.abs(rows[1]).max())


def test_clearly_negative_q_values_allow_negative_rewards_by_default() -> None:
    for row in (values_of({8: -1.0}), values_of({2: 1.0, 50: -2.0})):
        found, signed = mh.decode_rewards(row, GAMMAS, 300), mh.decode_rewards(row, GAMMAS, 300, signed=True)
        np.testing.assert_array_equal(found.rewards, signed.rewards)
        assert found.rewards.min() < -0.1
    slightly = values_of({8: 1.0}) - 0.01  # an error in Q, not a negative reward
    assert mh.decode_rewards(slightly, GAMMAS, 300).rewards.min() == 0.0
    assert mh.decode_rewards(np.zeros(8), GAMMAS, 300).rewards.tolist() == [0.0] * len(bin_edges(300)[:-1])


def test_the_rows_of_a_batch_are_decoded_independently() -> None:
    rows = np.stack([values_of({8: 1.0}), values_of({8: -1e4}), values_of({8: -0.01})])
    together = mh.decode_rewards(rows, GAMMAS, 300)
    for row, rewards in zip(rows, together.rewards, strict=True):
        np.testing.assert_array_equal(rewards, mh.decode_rewards(row, GAMMAS, 300).rewards)
    assert (together.rewards.min(axis=1) < 0).tolist() == [False, True, True]


def test_fewer_heads_or_more_noise_give_a_coarser_resolution() -> None:
    q = values_of({40: 1.0})

    def width(noise: float, keep: slice) -> float:
        timeline = mh.decode_rewards(q[keep], GAMMAS[keep], 600, noise=noise)
        at = int(np.searchsorted(timeline.ends, 40, side="right"))
        return float(np.log((timeline.latest[at] + 1) / (timeline.earliest[at] + 1)))

    assert width(0.003, slice(None)) < width(0.1, slice(None))
    assert width(0.03, slice(None)) < width(0.03, slice(None, None, 3))


@pytest.mark.parametrize("t_max", [2, 3, 17, 600, 100_000])
def test_every_step_lies_in_exactly_one_bin(t_max: int) -> None:
    edges = bin_edges(t_max)
    assert edges[0] == 0
    assert edges[-1] == t_max + 1
    assert np.all(np.diff(edges) >= 1)


def test_the_default_timeline_spans_three_effective_horizons() -> None:
    assert longest_time(np.array([0.5, 0.99, 1.0])) == 300
    assert mh.decode_rewards(values_of({8: 1.0}), GAMMAS).ends[-1] == 1501


@pytest.mark.parametrize(
    ("q", "gammas", "words"),
    [
        ([1.0, 1.0], [0.5, 0.9], "three or more different"),
        ([1.0, 1.0, 1.0], [0.5, 0.9, 0.9], "three or more different"),
        ([1.0, 1.0], [0.5, 0.9, 0.99], "one value for each of 3 gammas"),
        (1.0, [0.5, 0.9, 0.99], "one value for each of 3 gammas"),
        ([1.0, 1.0, np.nan], [0.5, 0.9, 0.99], "must be finite"),
    ],
)
def test_invalid_input_is_rejected(q: object, gammas: list[float], words: str) -> None:
    with pytest.raises(mh.InputError, match=words):
        mh.decode_rewards(q, gammas)  # type: ignore[arg-type]


def test_a_timeline_is_printed_as_a_table() -> None:
    lines = str(mh.decode_rewards(values_of({3: 1.0}), GAMMAS, 50)).split("\n")
    assert lines[0].split() == ["steps", "reward", "resolution"]
    assert lines[1].split()[0] == "0..0"
    assert "2 timelines" in str(mh.decode_rewards(np.ones((2, 8)), GAMMAS, 50))


def test_bins_beyond_every_horizon_are_not_resolved() -> None:
    gammas = np.array([0.5, 0.9, 0.99])
    timeline = mh.decode_rewards(gammas**5, gammas, 1_000_000)
    assert np.all(timeline.earliest <= timeline.starts)
    assert timeline.latest[-1] == 1_000_000
