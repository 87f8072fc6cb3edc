"""Computes the values of MDPs with durations, if the product of survival and discount is not exponential.

Rewards come at times that are sums of durations. `timed_series` adds up the rewards in order of time, until the
remaining rewards are negligible. The cost grows with the number of different times, not with the lengths of the
durations.
"""

import heapq
import math
from fractions import Fraction

import numpy as np
from jaxtyping import Bool, Float
from scipy import sparse

from multihorizon.errors import InputError
from multihorizon.mdp.linear import solve
from multihorizon.mdp.model import HazardousMDP, Policy

TOLERANCE = 1e-12  # largest error from all omitted terms, relative to the largest value
SHARE = 1e-3  # `timed_series` omits U_t if its effect is below SHARE times the remaining tolerance
MOST_TIMES = 100_000
BLOCK = 64  # number of times at which s(t) d(t) is evaluated at once


def timed_series(
    mdp: HazardousMDP, policy: Policy, rewards: Float[np.ndarray, " S"], live: Bool[np.ndarray, " S"], slowest: float
) -> Float[np.ndarray, "S A"]:
    """Returns Σ_t s(t) d(t) E[R_t] [S A], over all times t that are sums of durations.

    Let W_t(s, a) be the expected reward at time t after the transition (s, a) at time 0, and let U_t = Σ_a π W_t. The
    recursion begins with W_0 = R. For transitions of duration dt, U_t contributes P U_t to W_{t + dt}.

    The discount satisfies s(t) d(t) ≤ bound · slowest^t. Omitting U_t therefore changes the values by at most
    bound · slowest^t · max|U_t| · M. Here M is the largest expected discounted number of visits to states that can
    still earn rewards.
    """
    assert mdp.durations is not None
    keep = sparse.diags_array(live.astype(float))
    chain, _ = mdp.under(policy, slowest)
    visits = max(1.0, float(solve(sparse.csr_array(keep @ chain @ keep), live.astype(float)).max()))
    scale = mdp.discount.bound * visits
    lengths, each = np.unique(mdp.durations.reshape(-1), return_inverse=True)
    ticks, unit = in_whole_ticks(lengths)
    moves = [
        sparse.csr_array(sparse.diags_array((each == index).astype(float)) @ mdp.matrix @ keep)
        for index in range(len(lengths))
    ]
    total = np.zeros(policy.size)
    pending = {0: mdp.rewards.reshape(-1)}  # W_t for each time t
    waiting = [0]  # a heap of the times in `pending`
    block: list[tuple[int, np.ndarray]] = []
    left_out = 0.0

    def add_block() -> None:
        nonlocal total
        times = np.array([at / unit for at, _ in block])
        shares = mdp.discount(times) * np.exp(mdp.hazard.log_survival(times))
        total = total + np.asarray(shares) @ np.stack([arriving for _, arriving in block])
        block.clear()

    for count in range(MOST_TIMES):
        if count % BLOCK == 0 and block:
            add_block()
        if not waiting:
            break
        now = heapq.heappop(waiting)
        arriving = pending.pop(now)
        block.append((now, arriving))
        earned = rewards if now == 0 else (policy * arriving.reshape(policy.shape)).sum(axis=1)
        size = scale * slowest ** (now / unit) * float(np.abs(earned * live).max())
        if size <= SHARE * max(TOLERANCE * np.abs(total).max() - left_out, 0.0):
            left_out += size
            continue
        for tick, move in zip(ticks, moves, strict=True):
            step = move @ earned
            if now + tick in pending:
                pending[now + tick] += step
            elif np.any(step):
                pending[now + tick] = step
                heapq.heappush(waiting, now + tick)
    else:
        raise InputError(
            f"rewards come at more than {MOST_TIMES:,} different times, too many to sum; use durations with a larger "
            "common unit, or an exponential discount under a known hazard"
        )
    if block:
        add_block()
    return total.reshape(policy.shape)


def in_whole_ticks(lengths: Float[np.ndarray, " n"]) -> tuple[list[int], int]:
    """Returns durations as whole numbers of ticks, and the number of ticks in one unit of time.

    A tick is a unit of time that divides all durations. Sums of ticks are exact, which matters if the discount jumps at
    some time. The function uses the decimal number that Python prints for a float: 0.1 means exactly 1/10. The
    durations 0.1 and 0.2 therefore add up to exactly 0.3.
    """
    exact = [Fraction(repr(float(length))) for length in lengths]
    unit = math.lcm(*(one.denominator for one in exact))
    return [int(one * unit) for one in exact], unit
