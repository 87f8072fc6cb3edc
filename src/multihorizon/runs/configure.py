"""Builds the configuration and the trainer of a run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner
from multihorizon.agents.networks import ConvTorso, MlpTorso, OwnNetwork, Torso, as_torso
from multihorizon.errors import InputError, at_least
from multihorizon.runs.configuration import Configuration
from multihorizon.training.device_collector import DeviceCollector
from multihorizon.training.evaluation import DeviceEvaluator
from multihorizon.training.host_collector import HostCollector
from multihorizon.training.host_evaluation import HostEvaluator
from multihorizon.training.schedule import Schedule, total_steps
from multihorizon.training.trainer import Collector, Evaluator, Trainer
from multihorizon.training.worlds import World, stored_world, world

MOST_ON_DEVICE, MOST_ON_HOST = 1_000_000, 1_024  # the largest number of environments for each seed


def configured(
    chosen: World,
    agent: AgentConfig,
    *,
    seeds: int = 1,
    seed: int = 0,
    steps: int | None = None,
    training_steps: int | None = None,
    evaluation_steps: int | None = None,
    environments: int | None = None,
    evaluation_environments: int | None = None,
    checkpoint_minutes: float = 10.0,
    checkpoint_replay: bool = True,
    network: Any = None,
) -> Configuration:
    """Returns the configuration of a run. Arguments that are None get the environment's defaults."""
    agent = chosen.adapt(agent)
    default = chosen.schedule
    steps = default.steps if steps is None else at_least("steps", steps, 0)
    if steps <= agent.warm_up_steps:  # checked before a folder is made
        raise InputError(
            f"steps must be more than the {agent.warm_up_steps:,} steps of the warm-up, got {steps:,}; "
            "set warm_up_steps for a shorter warm-up"
        )
    if training_steps is None:
        # All iterations have the same length, at most the default. The last iteration ends at `steps` or shortly later.
        a_time = -(-steps // -(-steps // default.training_steps))
    else:
        a_time = at_least("training_steps", training_steps, 1)
    made_of = Configuration(
        agent=agent,
        environment=chosen.name,
        torso=chosen.torso if network is None else stored_network(network),
        schedule=Schedule(
            iterations=-(-steps // a_time),
            training_steps=min(a_time, steps),
            evaluation_steps=default.evaluation_steps if evaluation_steps is None else evaluation_steps,
        ),
        seed=seed,
        seeds=seeds,
        environments=chosen.environments if environments is None else environments,
        evaluation_environments=(
            chosen.evaluation_environments if evaluation_environments is None else evaluation_environments
        ),
        checkpoint_minutes=checkpoint_minutes,
        checkpoint_replay=checkpoint_replay,
    )
    _check_counts(made_of, chosen, chosen)
    return made_of


def _check_counts(configuration: Configuration, chosen: World, evaluated_in: World) -> None:
    for name, count, one in (
        ("num_envs", configuration.environments, chosen),
        ("num_evaluation_envs", configuration.evaluation_environments, evaluated_in),
    ):
        at_least(name, count, 1, MOST_ON_DEVICE if one.on_device else MOST_ON_HOST)


def stored_network(network: Any) -> ConvTorso | MlpTorso | OwnNetwork:
    """Returns the settings of a network, or the name of a user-defined network."""
    if type(network) in (ConvTorso, MlpTorso, OwnNetwork):  # a subclass cannot be restored
        return network
    as_torso(network)
    return OwnNetwork(str(getattr(network, "__name__", type(network).__name__)))


def trainer_of(configuration: Configuration, env: Any = None, network: Any = None, eval_env: Any = None) -> Trainer:
    """Returns a trainer, which the caller must close. The last three arguments are user-defined parts of the run."""
    chosen = stored_world(configuration.environment) if env is None else world(env)
    evaluated_in = chosen.for_evaluation() if eval_env is None else world(eval_env)
    _check_counts(configuration, chosen, evaluated_in)
    total_steps(configuration.agent, configuration.schedule, configuration.environments)
    torso = configuration.torso if network is None else as_torso(network)
    collector = _collector(configuration, chosen, torso)
    learner = collector.core.learner
    if evaluated_in is not chosen:
        mine, others = (learner.observation_shape, learner.actions), evaluated_in.spaces()
        if mine != others:
            raise InputError(
                f"eval_env must have {mine[1]} actions and observations of shape {list(mine[0])}, as in "
                f"training, but has {others[1]} actions and observations of shape {list(others[0])}"
            )
    return Trainer(collector, configuration.schedule, _evaluator(configuration, evaluated_in, learner))


def _collector(configuration: Configuration, chosen: World, torso: Torso) -> Collector:
    agent, schedule = configuration.agent, configuration.schedule
    counts = (configuration.seeds, configuration.environments)
    if chosen.on_device:
        return DeviceCollector(agent, chosen.on_device(), torso, schedule, *counts)
    assert chosen.on_host is not None
    # With whole_every=1, episodes are cut off after every iteration, because a checkpoint needs finished episodes.
    whole_every = 1 if configuration.checkpoint_minutes == 0 else None
    return HostCollector(agent, chosen.on_host, torso, schedule, *counts, whole_every=whole_every)


def _evaluator(configuration: Configuration, chosen: World, learner: Learner) -> Evaluator:
    num_envs = configuration.evaluation_environments
    if chosen.on_device:
        return DeviceEvaluator(learner, chosen.on_device(), num_envs)
    assert chosen.on_host is not None
    return HostEvaluator(learner, chosen.on_host, configuration.seeds, num_envs)


@contextmanager
def made(configuration: Configuration, **given: Any) -> Iterator[Trainer]:
    """Yields a trainer and closes it at the end. `given` is passed to `trainer_of`."""
    trainer = trainer_of(configuration, **given)
    try:
        yield trainer
    finally:
        trainer.close()
