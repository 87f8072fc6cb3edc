"""The learner and its state. Functions are written for one seed; vmap adds more seeds."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from multihorizon.agents import replay as replays
from multihorizon.agents.acting import Acting, Consistency, acting_weights, choose, weights_after
from multihorizon.agents.config import AgentConfig
from multihorizon.agents.losses import Categorical, Priority, next_actions, of_action, priority
from multihorizon.agents.networks import Network, Torso, cast, fuses_convolutions, make_network
from multihorizon.agents.replay import Replay, ReplayShape, Transition
from multihorizon.agents.returns import bootstrap_factors, n_step_returns
from multihorizon.agents.risk import Risk, distribution_of
from multihorizon.kernels import fused_heads
from multihorizon.kernels.convolution import Convolve
from multihorizon.room import bytes_of, check_fits

Parameters = dict[str, Any]
"""The weights of a network by name. JAX takes longer to flatten a network object than a GPU takes for an update."""


class LearnerState(NamedTuple):
    """The state of the learner for one seed."""

    parameters: Parameters  # weights of the online network, in float32
    rounded: Parameters | None  # `parameters` in the compute dtype; None if the compute dtype is float32
    target: Parameters  # weights of the target network, in the compute dtype
    optimiser: optax.OptState

    @property
    def computed_with(self) -> Parameters:
        return self.parameters if self.rounded is None else self.rounded


class UpdateMetrics(NamedTuple):
    """Means over the batch of one update."""

    losses: Float[Array, " H"]
    values: Float[Array, " H"]  # Q-values of the actions taken


class Learner:
    """The pure functions of an agent, for observations of one shape."""

    def __init__(
        self,
        agent: AgentConfig,
        actions: int,
        observation_shape: tuple[int, ...],
        torso: Torso,
        convolve: Convolve = Convolve.PLAIN,
        risk: Risk | None = None,
    ) -> None:
        self.agent, self.actions, self.convolve, self.risk = agent, actions, convolve, risk
        self.observation_shape = tuple(observation_shape)
        self.gammas = jnp.asarray(agent.horizons.gammas, jnp.float32)
        self.acting_weights = jnp.asarray(acting_weights(agent.acting, agent.horizons), jnp.float32)
        self.optimiser = agent.optimiser.make()
        self.dtype = jnp.dtype(agent.compute_dtype)
        output_shape = agent.loss.output_shape(len(agent.horizons), actions)
        self._make = lambda key: make_network(key, torso, observation_shape, output_shape, convolve, agent.initial)
        check_fits(
            "the network",
            bytes_of(eqx.filter_eval_shape(self._make, jax.random.key(0))),
            "use fewer horizons or a smaller network",
        )
        parameters, self._rest = eqx.partition(self._make(jax.random.key(0)), eqx.is_inexact_array)
        named, self._structure = jax.tree_util.tree_flatten_with_path(parameters)
        self._names = [jax.tree_util.keystr(path, simple=True, separator=".") for path, _ in named]

    def init(self, key: Key[Array, ""]) -> LearnerState:
        leaves = jax.tree.leaves(eqx.filter(self._make(key), eqx.is_inexact_array))
        parameters = dict(zip(self._names, leaves, strict=True))
        state = LearnerState(parameters, self._rounded(parameters), {}, self.optimiser.init(parameters))
        return self.copy_target(state)

    def _rounded(self, parameters: Parameters) -> Parameters | None:
        return None if self.dtype == jnp.float32 else cast(parameters, self.dtype)

    def network(self, parameters: Parameters) -> Network:
        leaves = [parameters[name].astype(self.dtype) for name in self._names]
        return eqx.combine(jax.tree.unflatten(self._structure, leaves), self._rest)

    def values(self, parameters: Parameters, observation: Array) -> Float[Array, "H A"]:
        """Returns the Q-values of all heads and actions for one observation."""
        return self.agent.loss.values(self.network(parameters)(observation))

    def weights_after(self, elapsed: Array) -> Float[Array, " H"]:
        """Returns the heads' weights at time `elapsed` of an episode. Only a precommitted agent's weights change."""
        if self.agent.consistency is not Consistency.PRECOMMITTED:
            return self.acting_weights
        return weights_after(elapsed, self.agent.horizons.weights, self.agent.horizons.gammas)

    def distribution(self, parameters: Parameters, observation: Array) -> Float[Array, "H A Z"]:
        """Returns the probability of each atom, for every head and action. Requires a categorical loss."""
        return jax.nn.softmax(self.network(parameters)(observation))

    def risk_scores(self, parameters: Parameters, observation: Array, elapsed: Array) -> Float[Array, " A"]:
        """Returns each action's score under the risk measure. The agent takes the action with the largest score."""
        assert self.risk is not None
        support = distribution_of(self.agent).support
        return self.risk.scores(self.distribution(parameters, observation), support, self.weights_after(elapsed))

    def act(
        self, parameters: Parameters, key: Key[Array, ""], observation: Array, epsilon: Float[Array, ""], elapsed: Array
    ) -> Int[Array, ""]:
        """Chooses an action. `elapsed` is the time since the start of the episode."""
        if self.risk is not None:
            return choose(key, self.risk_scores(parameters, observation, elapsed)[None], jnp.ones(1), epsilon)
        sampled_head = self.agent.acting is Acting.SAMPLED_HEAD
        return choose(key, self.values(parameters, observation), self.weights_after(elapsed), epsilon, sampled_head)

    def transition_losses(
        self, parameters: Parameters, target: Parameters, transition: Transition
    ) -> tuple[Float[Array, " H"], Float[Array, " H"]]:
        """Returns each head's loss on one transition, and each head's Q-value of the action taken."""
        loss = self.agent.loss
        ahead = self.network(target)(transition.next_observation)
        choosing = self.values(parameters, transition.next_observation) if self.agent.double_q else loss.values(ahead)
        goal = loss.target(
            n_step_returns(transition.rewards, self.gammas, transition.timing),
            bootstrap_factors(self.gammas, transition.steps, transition.terminated, transition.timing),
            ahead,
            next_actions(choosing, self.acting_weights, self.agent.bootstrap),
        )
        return self._losses(self.network(parameters), transition, goal)

    def _losses(
        self, network: Network, transition: Transition, target: Float[Array, "H *Z"]
    ) -> tuple[Float[Array, " H"], Float[Array, " H"]]:
        loss, heads = self.agent.loss, network.heads
        if isinstance(loss, Categorical) and self._fuses_heads(heads.weight.shape):
            features = network.features(transition.observation)
            losses, probabilities = fused_heads.losses_of_action(
                self.actions, heads.weight, heads.bias, features, transition.action, target
            )
            return losses, probabilities @ loss.support
        output = of_action(network(transition.observation), transition.action)
        return loss.losses(output, target), loss.values(output[:, None])[:, 0]

    def _fuses_heads(self, weight_shape: tuple[int, ...]) -> bool:
        loss = self.agent.loss
        if self.convolve is not Convolve.FUSED or type(loss) is not Categorical:  # a subclass may have a different loss
            return False
        outputs, features = weight_shape
        return fused_heads.fits(outputs, features, loss.atoms)

    @property
    def kernels(self) -> list[str]:
        """Names of the GPU kernels that an update uses."""
        if self.convolve is not Convolve.FUSED:
            return []
        network = eqx.filter_eval_shape(self._make, jax.random.key(0))
        fused = {"convolutions": fuses_convolutions(network), "heads": self._fuses_heads(network.heads.weight.shape)}
        return [name for name, in_use in (fused | {"replay": True}).items() if in_use]

    def update(
        self, state: LearnerState, transitions: Transition, importance: Float[Array, " B"]
    ) -> tuple[LearnerState, Float[Array, " B"], UpdateMetrics]:
        """Makes one gradient step. Returns the new state, the new priorities of the batch, and metrics."""

        def objective(parameters: Parameters) -> tuple[Float[Array, ""], tuple[Array, Array]]:
            losses, values = jax.vmap(lambda t: self.transition_losses(parameters, state.target, t))(transitions)
            return jnp.mean(importance * losses.mean(axis=1)), (losses, values)

        gradients, (losses, values) = jax.grad(objective, has_aux=True)(state.computed_with)
        gradients = cast(gradients, jnp.float32)
        changes, optimiser = self.optimiser.update(gradients, state.optimiser, state.parameters)
        parameters = optax.apply_updates(state.parameters, changes)
        priorities = jax.vmap(lambda one: priority(one, self.gammas, self.acting_weights, self.agent.priority))(losses)
        metrics = UpdateMetrics(losses.mean(axis=0), values.mean(axis=0))
        return LearnerState(parameters, self._rounded(parameters), state.target, optimiser), priorities, metrics

    def learn(
        self, shape: ReplayShape, state: LearnerState, replay: Replay, key: Key[Array, ""]
    ) -> tuple[LearnerState, Replay, UpdateMetrics]:
        """Samples a batch, makes one update, and writes the new priorities of the batch."""
        batch = replays.sample(shape, replay, key)
        prioritised = self.agent.priority is not Priority.UNIFORM
        importance = replays.importance_weights(batch.priorities) if prioritised else jnp.ones(shape.batch)
        state, priorities, metrics = self.update(state, batch.transitions, importance)
        if prioritised:
            replay = replays.reprioritise(shape, replay, batch.indices, priorities)
        return state, replay, metrics

    @property
    def target_period_updates(self) -> int:
        return max(1, self.agent.target_period_steps // self.agent.update_period_steps)

    def copy_target(self, state: LearnerState) -> LearnerState:
        """Copies the weights to new arrays for the target network, because donated arrays must not share memory."""
        return state._replace(target=jax.tree.map(jnp.copy, state.computed_with))

    def copies_target_after(self, updates: Any) -> Any:
        """Returns whether the target network is copied when the run has made exactly `updates` updates."""
        return updates % self.target_period_updates == 0
