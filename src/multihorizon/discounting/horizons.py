"""Horizons: discount factors γᵢ with weights wᵢ, which form the discount Σ wᵢ γᵢ^t.

Each head of an agent learns the values for one γᵢ, and the weights combine the heads.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy.typing import ArrayLike

from multihorizon.discounting.discount import Discount, exponential
from multihorizon.discounting.hazard.prior import Values
from multihorizon.discounting.sources import MOST_STEPS, check_discount
from multihorizon.errors import InputError, at_least, between, numbers

MOST_HEADS = 10_000
LOG_SMALLEST = 708.0  # powers below e^-708 are treated as 0, because processors are slow with subnormal numbers
MOST_SHOWN = 12  # a repr lists all heads if there are at most MOST_SHOWN


class Fit(NamedTuple):
    """How closely horizons reproduce a discount.

    Attributes:
        max_error: The largest |Σ wᵢ γᵢ^t - d(t)| over the compared steps.
        max_error_at: The step t with the largest error.
    """

    max_error: float
    max_error_at: int


def discount_factors(gammas: ArrayLike) -> Float[np.ndarray, " H"]:
    """Copies `gammas` to an array of floats, and checks that they lie in [0, 1]."""
    array = numbers("gammas", gammas).copy()
    if array.ndim != 1 or array.size == 0 or not np.all((array >= 0) & (array <= 1)):
        raise InputError("gammas must be one or more discount factors in [0, 1]")
    if array.size > MOST_HEADS:
        raise InputError(f"gammas must be at most {MOST_HEADS:,} discount factors, got {array.size:,}")
    return array


@dataclass(frozen=True, eq=False, repr=False)
class Horizons:
    """Discount factors γᵢ and weights wᵢ, which form the discount d(t) = Σ wᵢ γᵢ^t.

    By the paper's Lemma (equations 18 and 19), the value of a policy under this discount is Σ wᵢ Q_γᵢ. An agent with
    one head per γ can therefore act by this discount. Horizons are immutable. They are equal if their gammas and
    weights are equal.

    Args:
        gammas: The discount factors [H], in [0, 1].
        weights: The weights [H], finite.

    Raises:
        InputError: If a discount factor lies outside [0, 1], or if there is not one finite weight for each factor.
    """

    gammas: Float[np.ndarray, " H"]
    weights: Float[np.ndarray, " H"]

    def __post_init__(self) -> None:
        gammas = discount_factors(self.gammas)
        weights = numbers("weights", self.weights).copy()
        if weights.shape != gammas.shape or not np.all(np.isfinite(weights)):
            raise InputError(f"weights must be {gammas.size} finite numbers, one for each entry of gammas")
        gammas.flags.writeable = weights.flags.writeable = False
        object.__setattr__(self, "gammas", gammas)
        object.__setattr__(self, "weights", weights)

    def __len__(self) -> int:
        return len(self.gammas)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Horizons):
            return NotImplemented
        return np.array_equal(self.gammas, other.gammas) and np.array_equal(self.weights, other.weights)

    def __hash__(self) -> int:
        return hash((tuple(self.gammas.tolist()), tuple(self.weights.tolist())))

    def __repr__(self) -> str:
        return f"Horizons(gammas={_listed(self.gammas)}, weights={_listed(self.weights)})"

    @property
    def effective_horizons(self) -> Float[np.ndarray, " H"]:
        """The effective horizon 1 / (1 - γ) of each head, in steps [H]; ∞ for γ = 1."""
        with np.errstate(divide="ignore"):
            return 1 / (1 - self.gammas)

    @property
    def discount(self) -> Discount:
        """The discount Σ wᵢ γᵢ^t."""
        if len(self) == 1 and self.weights[0] == 1:
            return exponential(float(self.gammas[0]))
        slowest = float(self.gammas[self.weights != 0].max(initial=0.0))
        return Discount(f"{len(self)} horizons", self._sum, None, slowest, float(np.abs(self.weights).sum()))

    def _sum(self, t: np.ndarray) -> Values:
        flat = t.reshape(-1)
        total = np.zeros(flat.shape)
        with np.errstate(divide="ignore"):
            ends = LOG_SMALLEST / np.abs(np.log(self.gammas))
        latest = flat.max(initial=0)
        for gamma, weight, end in zip(self.gammas, self.weights, ends, strict=True):
            counts = flat <= end if end < latest else slice(None)
            total[counts] += weight * np.power(gamma, flat[counts])
        return total.reshape(t.shape)[()]

    def fit(self, target: Discount, t_max: int) -> Fit:
        """Compares the horizons with a discount over the steps t = 0, 1, ..., t_max.

        Args:
            target: The discount d(t) to compare with.
            t_max: The last step to compare, at least 1.

        Returns:
            The largest |Σ wᵢ γᵢ^t - d(t)|, and its step.
        """
        check_discount(target, "target")
        t = np.arange(at_least("t_max", t_max, 1, MOST_STEPS) + 1)
        error = np.abs(self.discount(t) - target(t))
        worst = int(np.argmax(error))
        return Fit(float(error[worst]), worst)


def _listed(values: Iterable[float]) -> str:
    """Formats numbers with six digits. A long list shows only its first three and last three numbers."""
    words = [f"{value:.6g}" for value in values]
    if len(words) > MOST_SHOWN:
        words = [*words[:3], f"... {len(words) - 6} more ...", *words[-3:]]
    return f"[{', '.join(words)}]"


def single(gamma: float) -> Horizons:
    """Returns one horizon of weight 1, which gives the exponential discount γ^t.

    Args:
        gamma: The discount factor, in [0, 1].
    """
    return Horizons(np.array([between("gamma", gamma, 0, 1)]), np.ones(1))
