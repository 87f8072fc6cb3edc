"""Settings of the optimisers."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import optax

from multihorizon.errors import MOST_IN_FLOAT32, between, inside, positive_in_float32, store, true_or_false

BETA_1, BETA_2 = 0.9, 0.999  # Adam's usual decay rates


@dataclass(frozen=True)
class Adam:
    """Adam (Kingma & Ba, 2015).

    Args:
        learning_rate: Step size.
        epsilon: Constant added to the square root of the second moment.
        epsilon_hat: Whether to add ε before the bias correction of the second moment, as TensorFlow 1 does. Kingma
            and Ba describe this version, with ε̂, at the end of Section 2. If gradients are small, this version makes
            early updates smaller: 1/32 of the usual size at update 1, and 1/3 at update 100.
    """

    learning_rate: float
    epsilon: float = 1e-8
    epsilon_hat: bool = False

    def __post_init__(self) -> None:
        store(
            self,
            learning_rate=positive_in_float32("learning_rate", self.learning_rate),
            epsilon=positive_in_float32("the optimiser's epsilon", self.epsilon),
            epsilon_hat=true_or_false("epsilon_hat", self.epsilon_hat),
        )

    def make(self) -> optax.GradientTransformation:
        """Returns the optimiser as an optax transformation."""
        if not self.epsilon_hat:
            return optax.adam(self.learning_rate, b1=BETA_1, b2=BETA_2, eps=self.epsilon)
        return optax.chain(_scale_by_adam_hat(self.epsilon), optax.scale(-self.learning_rate))


def _scale_by_adam_hat(epsilon: float) -> optax.GradientTransformation:
    """Returns a version of optax.scale_by_adam that adds ε before the bias correction."""

    def update(gradients: Any, state: Any, parameters: Any = None) -> tuple[Any, Any]:
        del parameters
        count = state.count + 1
        mu = jax.tree.map(lambda g, m: BETA_1 * m + (1 - BETA_1) * g, gradients, state.mu)
        nu = jax.tree.map(lambda g, v: BETA_2 * v + (1 - BETA_2) * g**2, gradients, state.nu)
        correction = jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
        changes = jax.tree.map(lambda m, v: correction * m / (jnp.sqrt(v) + epsilon), mu, nu)
        return changes, optax.ScaleByAdamState(count, mu, nu)

    return optax.GradientTransformation(optax.scale_by_adam().init, update)


@dataclass(frozen=True)
class RmsProp:
    """Centred RMSProp, which divides gradients by an estimate of their standard deviation.

    Args:
        learning_rate: Step size.
        decay: Decay rate of the first and the second moment.
        epsilon: Constant added to the variance, inside the square root.
        initial_square: Initial mean of the squared gradients. TensorFlow 1 starts at 1, which makes early updates
            small. optax starts at 0.
    """

    learning_rate: float
    decay: float = 0.95
    epsilon: float = 1e-5
    initial_square: float = 0.0

    def __post_init__(self) -> None:
        store(
            self,
            learning_rate=positive_in_float32("learning_rate", self.learning_rate),
            decay=inside("decay", self.decay, 0, 1),
            epsilon=positive_in_float32("the optimiser's epsilon", self.epsilon),
            initial_square=between("initial_square", self.initial_square, 0, MOST_IN_FLOAT32),
        )

    def make(self) -> optax.GradientTransformation:
        """Returns the optimiser as an optax transformation."""
        return optax.rmsprop(
            self.learning_rate,
            decay=self.decay,
            eps=self.epsilon,
            initial_scale=self.initial_square,
            eps_in_sqrt=True,
            centered=True,
        )


Optimiser = Adam | RmsProp
