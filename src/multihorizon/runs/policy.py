"""The class `Policy`, a trained agent with frozen weights."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy.typing import ArrayLike

from multihorizon.agents.acting import MOST_STEPS, Acting, Consistency, acting_weights, weights_after
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner, Parameters
from multihorizon.agents.networks import as_torso
from multihorizon.agents.risk import Risk, check_risk, distribution_of
from multihorizon.discounting import (
    Discount,
    FitMethod,
    Horizons,
    RewardTimeline,
    Reweighting,
    decode_rewards,
    reweight,
)
from multihorizon.discounting.hazard import Prior
from multihorizon.errors import InputError, as_path, at_least, between, numbers, show_controls, shown
from multihorizon.runs.observations import as_batch, check_environment
from multihorizon.runs.policy_programs import LONGEST_ELAPSED, PolicyPrograms
from multihorizon.training.worlds import World, stored_world, world


@dataclass(frozen=True, eq=False)
class Policy:
    """A trained agent that values observations and acts.

    Methods take one observation of shape `observation_shape`, or a batch with one more axis in front. An Atari
    observation is a stack of four 84×84 frames, the newest last. A state of a Discrete space is a one-hot vector.

    Attributes:
        agent: The agent's configuration.
        environment: The name of the environment that the agent was trained in.
        num_actions: The number of actions A.
        observation_shape: The shape of one observation.
        observation_dtype: The NumPy type of an observation.
        network: The network without its heads.
        parameters: The weights of the network, by name.
        reweighting: How well the heads express the discount given to `with_discount`. None if the discount was not
            changed, or if the policy was loaded from disk.
        saved_discount: In a loaded policy, the description of its changed discount; otherwise None.
        risk: The measure of risk given to `with_risk`; None to act by the mean.
        own_env: The user-defined environment in which the agent was trained, if any. `save` does not store it.
    """

    agent: AgentConfig
    environment: str
    num_actions: int
    observation_shape: tuple[int, ...]
    observation_dtype: str
    network: Any
    parameters: Parameters
    reweighting: Reweighting | None = None
    saved_discount: str | None = None
    risk: Risk | None = None
    own_env: Any = None

    def __post_init__(self) -> None:
        if self.risk is not None:
            check_risk(self.risk, self.agent)

    @cached_property
    def _programs(self) -> PolicyPrograms:
        spaces, torso = (self.num_actions, self.observation_shape), as_torso(self.network)
        return PolicyPrograms(Learner(self.agent, *spaces, torso, risk=self.risk), self.parameters)

    def world(self, env: Any = None) -> World:
        """Returns the environment to play in.

        Args:
            env: The environment, as for `multihorizon.train`; by default, the training environment.

        Returns:
            The environment with its default settings.

        Raises:
            InputError: The environment has other observations or actions than the policy. Or the training environment
                was user-defined, and `env` is None.
        """
        given = self.own_env if env is None else env
        chosen = stored_world(self.environment) if given is None else world(given)
        check_environment(chosen, self.observation_shape, self.num_actions)
        return chosen

    @property
    def changes(self) -> list[str]:
        """The new discount, the precommitted plan and the measure of risk that the agent acts by, if any."""
        found = [str(self.reweighting.target)] if self.reweighting else []
        if self.saved_discount:
            found.append(self.saved_discount.partition(", expressed by")[0])
        if self.agent.consistency is Consistency.PRECOMMITTED:
            found.append("a precommitted plan")
        return found + ([str(self.risk)] if self.risk else [])

    @property
    def horizons(self) -> Horizons:
        """The discount factors γᵢ of the heads, and the weights wᵢ that the agent acts by."""
        return Horizons(self.agent.horizons.gammas, acting_weights(self.agent.acting, self.agent.horizons))

    @property
    def discount(self) -> Discount:
        """The discount d(t) that the agent acts by: the weighted sum of its horizons."""
        return self.horizons.discount

    def with_discount(
        self,
        discount: Discount | Prior | Callable[[float], float],
        *,
        t_max: int = 1000,
        method: FitMethod = FitMethod.MINIMAX,
        tolerance: float = 0.05,
    ) -> "Policy":
        """Returns a policy that acts by another discount, with the same heads and new weights.

        With the default `Bootstrap.OWN`, no training is needed: each head bootstraps from its own best action,
        regardless of the weights. Heads trained with `Bootstrap.ACTING` still estimate the returns of the original
        policy. The new policy acts by a weighted sum, and its `reweighting` states the error.

        Args:
            discount: The discount to act by: a `Discount`, such as `mh.discount.hyperbolic(0.1)` or
                `mh.discount.deadline(50)`, a prior over hazard, or a function of t.
            t_max: The last step at which the error is measured, such as the length of an episode.
            method: The criterion for the best weights.
            tolerance: The largest error that is accepted, as a fraction of d(0).

        Returns:
            The new policy. The original policy is unchanged.

        Raises:
            InputError: The heads cannot express the discount within the tolerance. The message suggests a remedy.
        """
        found = reweight(self.agent.horizons, discount, t_max=t_max, method=method, tolerance=tolerance)
        agent = self.agent.with_settings(horizons=found.horizons, acting=Acting.WEIGHTED)
        return replace(self, agent=agent, reweighting=found, saved_discount=None)

    def with_consistency(self, consistency: Consistency | str) -> "Policy":
        """Returns a naive or precommitted policy with the same heads.

        A naive agent makes a new plan at every step. A precommitted agent keeps the plan from the start of the episode.
        The heads are the same, so no training is needed.

        Args:
            consistency: `mh.Consistency.NAIVE` or `mh.Consistency.PRECOMMITTED`, or the name as a string.

        Returns:
            The new policy. The original policy is unchanged.

        Raises:
            InputError: This agent or the new agent is sophisticated, or the agent cannot be precommitted (see
                `multihorizon.AgentConfig`).
        """
        before, agent = self.agent.consistency, self.agent.with_settings(consistency=consistency)
        if agent.consistency is not before and Consistency.SOPHISTICATED in (agent.consistency, before):
            raise InputError(
                f"a {before.name.lower()} agent cannot become {agent.consistency.name.lower()} after training, because "
                "a sophisticated agent's heads learn other values; train an agent with "
                f"consistency={agent.consistency.name.lower()}"
            )
        return replace(self, agent=agent)

    def with_risk(self, risk: Risk | None) -> "Policy":
        """Returns a policy that acts by the CVaR or a quantile of the return instead of the mean.

        Risk is measured on the weighted return Σ wᵢ Zᵢ, where Zᵢ is the return discounted by γᵢ. The heads' returns are
        assumed to be comonotone, so that their quantile functions add up (see `multihorizon.CVaR`). The distributions
        still describe the learned policy, which maximises the mean.

        Args:
            risk: `mh.CVaR(0.25)`, `mh.Quantile(0.5)`, or None to act by the mean again.

        Returns:
            The new policy. The original policy is unchanged.

        Raises:
            InputError: The agent learns means (`Huber`) rather than distributions (`Categorical`), samples heads, or
                has a negative weight.
        """
        return replace(self, risk=risk)

    @property
    def atoms(self) -> Float[np.ndarray, " Z"]:
        """The returns to which `return_distribution` assigns probabilities [Z].

        Raises:
            InputError: The agent learns means rather than distributions.
        """
        return np.asarray(distribution_of(self.agent).support, float)

    def return_distribution(self, obs: ArrayLike) -> Float[np.ndarray, "*B H A Z"]:
        """Returns the learned distribution of the return, for every horizon and action.

        Head i holds the distribution of the return discounted by γᵢ, whose mean is Q: `q_values(obs)` equals
        `return_distribution(obs) @ atoms`.

        Args:
            obs: One observation, or a batch of them.

        Returns:
            The probability of each of `atoms`, an array [H A Z], or [B H A Z] for a batch.

        Raises:
            InputError: The agent learns means rather than distributions.
        """
        batch, is_single = as_batch(obs, self.observation_shape, self.observation_dtype)
        distribution_of(self.agent)
        found = self._programs.distribution(batch)
        return found[0] if is_single else found

    def expected_rewards(
        self,
        obs: ArrayLike,
        t_max: int | None = None,
        *,
        noise: float = 0.03,
        signed: bool | None = None,
        elapsed: ArrayLike | None = None,
    ) -> RewardTimeline:
        """Decodes when the agent expects reward after its greedy action.

        Args:
            obs: One observation, or a batch of them.
            t_max: The last step of the timeline; by default three times the longest effective horizon.
            noise: The size of the errors in Q, relative to the rewards. A larger value gives a smoother timeline.
            signed: Whether rewards may be negative; by default, only if a Q-value is clearly negative.
            elapsed: Steps since the start of the episode, as for `act`.

        Returns:
            Expected rewards in bins of time, with their resolution (see `multihorizon.decode_rewards`).

        Raises:
            InputError: The agent has fewer than three different discount factors.
        """
        values = self.q_values(obs)  # [*B H A]
        taken = np.asarray(self.act(obs, elapsed=elapsed))[..., None, None]
        chosen = np.take_along_axis(values, np.broadcast_to(taken, (*values.shape[:-1], 1)), axis=-1)[..., 0]
        return decode_rewards(chosen, self.agent.horizons.gammas, t_max, noise=noise, signed=signed)

    def q_values(self, obs: ArrayLike) -> Float[np.ndarray, "*B H A"]:
        """Returns the Q-value of every horizon and action.

        Args:
            obs: One observation, or a batch of them.

        Returns:
            An array [H A], or [B H A] for a batch. The axis H has the order of `horizons.gammas`.
        """
        batch, is_single = as_batch(obs, self.observation_shape, self.observation_dtype)
        values = self._programs.values(batch)
        return values[0] if is_single else values

    def act(
        self,
        obs: ArrayLike,
        epsilon: float = 0.0,
        rng: np.random.Generator | None = None,
        elapsed: ArrayLike | None = None,
    ) -> int | Int[np.ndarray, " B"]:
        """Returns the action with the largest value under the agent's acting rule.

        Args:
            obs: One observation, or a batch of them.
            epsilon: Probability of a uniformly random action.
            rng: Source of randomness for `epsilon` and for agents that sample a head; by default a new generator.
            elapsed: Steps since the start of the episode: one number, or an array [B]. Precommitted agents need it.
                Other agents ignore it.

        Returns:
            The index of the action, or an array [B] of indices for a batch.

        Raises:
            InputError: An argument is invalid, or does not fit `observation_shape` or `observation_dtype`.
        """
        epsilon = between("epsilon", epsilon, 0, 1)
        if rng is not None and not isinstance(rng, np.random.Generator):
            raise InputError(f"rng must be a NumPy generator, such as np.random.default_rng(0), got {shown(rng)}")
        if elapsed is None and self.agent.consistency is Consistency.PRECOMMITTED:
            raise InputError(
                "a precommitted agent needs the number of steps since the start of the episode: act(obs, elapsed=t)"
            )
        batch, is_single = as_batch(obs, self.observation_shape, self.observation_dtype)
        rng = np.random.default_rng() if rng is None else rng
        elapsed = 0 if elapsed is None else elapsed
        best = self._programs.best(batch, self.weights_after(elapsed, len(batch)), elapsed, rng)
        random = rng.integers(self.num_actions, size=len(best))
        actions = np.where(rng.random(len(best)) < epsilon, random, best)
        return int(actions[0]) if is_single else actions

    def weights_after(self, elapsed: ArrayLike, count: int = 1) -> Float[np.ndarray, "B H"]:
        """Returns the weights of the heads `elapsed` steps after the start of an episode.

        Args:
            elapsed: Steps since the start of the episode: one number, or one for each row of the result.
            count: The number of rows B.

        Returns:
            The weights [B H]. Only the weights of precommitted agents change over time.

        Raises:
            InputError: `elapsed` or `count` is invalid.
        """
        times, count = numbers("elapsed", elapsed), at_least("count", count, 0, MOST_STEPS)
        if times.shape not in ((), (count,)):
            raise InputError(f"elapsed must be one number or have shape [{count}], got {list(times.shape)}")
        if not np.all((times >= 0) & np.isfinite(times)):
            raise InputError("elapsed must be 0 or more, and finite, because it counts the steps of an episode")
        weights = self.horizons.weights
        if self.agent.consistency is Consistency.PRECOMMITTED:
            weights = weights_after(np.minimum(times, LONGEST_ELAPSED), weights, self.horizons.gammas)
        return np.broadcast_to(weights, (count, weights.shape[-1]))

    def save(self, path: str | Path) -> Path:
        """Writes the policy to a folder: the weights as safetensors and the configuration as JSON.

        A user-defined environment or network is not stored. Pass it to `multihorizon.load` again.

        Args:
            path: The folder, created if needed. An existing policy in it is replaced.

        Returns:
            The folder.

        Raises:
            InputError: `path` is a file.
        """
        from multihorizon.runs.saved_policy import save_policy

        return save_policy(self, as_path("path", path))

    def __repr__(self) -> str:
        heads = len(self.agent.horizons)
        changes = show_controls("".join(f", by {change}" for change in self.changes))
        where = show_controls(f"{self.agent.name} in {self.environment}")
        return f"Policy({where}, {heads} horizon{'s' if heads > 1 else ''}{changes})"


def check_policy(policy: Any) -> Policy:
    """Returns `policy` if it is a `Policy`."""
    if not isinstance(policy, Policy):
        raise InputError(f"policy must be a Policy, as run.policy() or mh.load(...) returns, got {shown(policy)}")
    return policy
