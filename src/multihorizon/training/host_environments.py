"""Groups of environments on the host. While the device chooses one group's actions, the other groups step."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import Int, Shaped

from multihorizon.envs.vector import Moves, VectorEnvironment
from multihorizon.errors import InputError, at_least
from multihorizon.training.keys import environment_seeds

# The smallest group size if there are more than two groups. A step of a smaller group would take less time than the
# host's own work.
GROUP = 40
MOST_GROUPS = 4
MOST_ENVIRONMENTS = 4_096  # largest number of environments of all seeds together; each environment needs memory


def usual_groups(num_envs: int) -> int:
    """Returns the default number of groups, a divisor of `num_envs`: 1 without a GPU, and 1 to 4 with a GPU."""
    most = 1 if jax.default_backend() == "cpu" else min(MOST_GROUPS, max(2, num_envs // GROUP))
    return max(groups for groups in range(1, most + 1) if num_envs % groups == 0)


class HostEnvironments:
    """The environments of all seeds in one phase. Arrays are [S m ...], for the m environments of a group.

    Args:
        make: Makes a vector environment with the given number of environments.
        num_envs: The number of environments for each seed.
        phase: `keys.TRAINING` or `keys.EVALUATION`. Each phase has its own environment seeds.
        groups: A function from the number of environments to the number of groups.
    """

    def __init__(
        self,
        make: Callable[[int], VectorEnvironment],
        num_seeds: int,
        num_envs: int,
        phase: int,
        groups: Callable[[int], int] = usual_groups,
    ) -> None:
        if num_seeds * num_envs > MOST_ENVIRONMENTS:
            raise InputError(
                f"{num_seeds:,} seeds with {num_envs:,} environments each need {num_seeds * num_envs:,} environments, "
                f"but at most {MOST_ENVIRONMENTS:,} can step on the CPU; use fewer seeds or environments"
            )
        self._make, self._num_seeds, self.num_envs, self._phase = make, num_seeds, num_envs, phase
        self.groups = at_least("the number of groups", groups(num_envs), 1)
        if num_envs % self.groups:
            raise InputError(f"{num_envs} environments cannot step in {self.groups} groups of equal size")
        self.group_size = num_envs // self.groups
        self._made: dict[int, VectorEnvironment] = {}

    def group(self, group: int) -> VectorEnvironment:
        """Returns the environments of a group. The first call makes them."""
        if group not in self._made:
            self._made[group] = self._make(self._num_seeds * self.group_size)
        return self._made[group]

    def first(self, group: int) -> int:
        """Returns the index of a group's first environment among all environments of a seed."""
        return group * self.group_size

    def reset(self, group: int, seed: int, iteration: int) -> Shaped[np.ndarray, "S m ..."]:
        seeds = environment_seeds(seed, self._num_seeds, iteration, self._phase, self.num_envs)
        first = self.first(group)
        return self._by_seed(self.group(group).reset(seeds[:, first : first + self.group_size].reshape(-1)))

    def send(self, group: int, actions: Int[Any, "S m"]) -> None:
        """Waits until the device has chosen the actions, and sends them to the environments."""
        self.group(group).send(np.asarray(actions).reshape(-1))

    def receive(self, group: int) -> Moves:
        return jax.tree.map(self._by_seed, self.group(group).receive())

    def close(self) -> None:
        for environments in self._made.values():
            environments.close()
        self._made.clear()

    def _by_seed(self, values: Shaped[np.ndarray, "Sm ..."]) -> Shaped[np.ndarray, "S m ..."]:
        return values.reshape(self._num_seeds, -1, *values.shape[1:])
