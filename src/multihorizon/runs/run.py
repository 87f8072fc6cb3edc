"""The function `train`, and the class of the run that it returns."""

import os
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

from multihorizon.agents.config import AgentConfig
from multihorizon.agents.learner import Learner
from multihorizon.agents.presets import agent as agent_by_name
from multihorizon.errors import InputError, as_path, at_least, show_controls, shown
from multihorizon.room import bytes_of, check_fits
from multihorizon.runs.configuration import Configuration, device_name, read_configuration
from multihorizon.runs.configure import configured, made
from multihorizon.runs.folder import (
    CONFIGURATION,
    TemporaryFolder,
    is_finished,
    newest_weights,
    refuse_folders,
    visible_files,
)
from multihorizon.runs.loggers import Logger
from multihorizon.runs.metrics import read_metrics, rows_of
from multihorizon.runs.policy import Policy
from multihorizon.runs.progress import NoProgress, Watcher, check_hooks
from multihorizon.runs.recording import Callback, record
from multihorizon.runs.records import Records
from multihorizon.runs.weights import load_weights
from multihorizon.training import memory
from multihorizon.training.worlds import OWN, stored_world, world


@dataclass(frozen=True)
class Own:
    """User-defined objects of a run, which its folder does not store."""

    env: Any = None
    network: Any = None
    eval_env: Any = None


@dataclass(frozen=True, eq=False)
class Run:
    """One or more seeds of an agent in an environment, stored in a folder.

    Attributes:
        folder: The folder of the run.
        configuration: Every setting of the run.
        own: User-defined environments and networks, which the folder does not store.
    """

    folder: Path
    configuration: Configuration
    own: Own = Own()
    _holds: TemporaryFolder | None = None

    @property
    def finished(self) -> bool:
        """Whether the run was trained to its end."""
        return is_finished(self.folder)

    @property
    def seeds(self) -> range:
        """The seeds that train in parallel."""
        return range(self.configuration.seed, self.configuration.seed + self.configuration.seeds)

    @property
    def metrics(self) -> list[dict[str, Any]]:
        """One row for each iteration and seed, ready for `pandas.DataFrame(run.metrics)`.

        Columns: iteration, step, seed, episodes, return, length, evaluation_episodes, evaluation_return,
        evaluation_length, updates, loss, value, losses_by_horizon, values_by_horizon, steps_per_second, seconds.
        Returns and lengths are means over the episodes that ended in the iteration, and None if no episode ended.
        """
        return [row for line in read_metrics(self.folder) for row in rows_of(line, self.configuration.seed)]

    def _parameters(self, learner: Learner, weights: str | Path | None) -> Any:
        like = jax.eval_shape(
            lambda: jax.vmap(learner.init)(jax.random.split(jax.random.key(0), len(self.seeds))).parameters
        )
        check_fits("the weights of all seeds", 2 * bytes_of(like), "use a machine with more memory")
        path = newest_weights(self.folder) if weights is None else as_path("weights", weights)
        if Path(os.path.abspath(self.folder)) not in Path(os.path.abspath(path)).parents:
            path = Path(os.path.realpath(path))  # a link is followed unless it lies in the folder of the run
        held = load_weights(path, like, self.folder)
        return {name: jnp.asarray(value) for name, value in held.items()}

    def policy(self, seed: int | None = None, weights: str | Path | None = None) -> Policy:
        """Returns the trained agent of one seed.

        Args:
            seed: One of `seeds`; by default, the first seed.
            weights: A weights file of this run, such as `runs/pong/weights-000010.npz`; by default, the newest
                weights.

        Returns:
            The policy, with frozen weights.

        Raises:
            InputError: The run has no such seed or no weights yet, or the weights file is damaged.
        """
        seed = self.configuration.seed if seed is None else at_least("seed", seed, 0)
        if seed not in self.seeds:
            raise InputError(f"this run has no seed {seed}; allowed: {', '.join(map(str, self.seeds))}")
        configuration = replace(self.configuration, environments=1, evaluation_environments=1)
        with made(configuration, env=self.own.env, network=self.own.network, eval_env=self.own.eval_env) as trainer:
            learner = trainer.learner
            parameters = self._parameters(learner, weights)
            dtype = trainer.shape.frame_dtype
        mine = jax.tree.map(lambda x: x[seed - self.configuration.seed], parameters)
        network = self.configuration.torso if self.own.network is None else self.own.network
        environment = self.configuration.environment
        shape = learner.observation_shape
        return Policy(
            self.configuration.agent, environment, learner.actions, shape, dtype, network, mine, own_env=self.own.env
        )

    def resume(
        self,
        *,
        steps: int | None = None,
        callback: Callback | None = None,
        loggers: Sequence[Logger] | None = None,
        watcher: Watcher = NoProgress(),
        **changes: Any,
    ) -> "Run":
        """Continues training from the newest checkpoint.

        Args:
            steps: The new total number of steps, to extend a finished or unfinished run.
            callback: As for `train`.
            loggers: As for `train`.
            watcher: As for `train`.
            **changes: Settings that may change: `checkpoint_minutes`, `checkpoint_replay`, `evaluation_steps`,
                `num_evaluation_envs`, `weights_every`.

        Returns:
            The run with its new settings, in the same folder.

        Raises:
            InputError: The run is finished and `steps` does not extend it, a setting cannot be changed, or another
                process is training in the folder.
        """
        check_hooks(callback, loggers, watcher)
        configuration = _changed(self.configuration, steps, changes)
        run = replace(self, configuration=configuration)
        run._train(callback, loggers, watcher, self.configuration)
        return run

    def _train(
        self,
        callback: Callback | None,
        loggers: Sequence[Logger] | None,
        watcher: Watcher,
        replaces: Configuration | None = None,
    ) -> None:
        configuration, own = self.configuration, self.own
        refuse_folders(self.folder)
        with made(configuration, env=own.env, network=own.network, eval_env=own.eval_env) as trainer:
            needs = memory.check(trainer)
            with closing(Records(self.folder, configuration, loggers, replaces)) as records:
                records.refuse_if_finished()
                chosen = stored_world(configuration.environment) if own.env is None else world(own.env)
                with watcher.watch(
                    trainer, configuration, chosen.frames_per_step, f"on {device_name()}; {needs}"
                ) as hooks:
                    record(trainer, configuration, records, hooks.report, hooks.finished, hooks.warn, callback)

    def __repr__(self) -> str:
        state = "finished" if self.finished else "not finished"
        seeds = f"{len(self.seeds)} seed{'s' if len(self.seeds) > 1 else ''}"
        where = show_controls(f"{self.configuration.agent.name} in {self.configuration.environment}")
        return f"Run({where}, {seeds}, {state}, {str(self.folder)!r})"


MAY_CHANGE = ("checkpoint_minutes", "checkpoint_replay", "evaluation_steps", "num_evaluation_envs", "weights_every")


def _changed(held: Configuration, steps: int | None, changes: dict[str, Any]) -> Configuration:
    for name in changes:
        if name not in MAY_CHANGE:
            raise InputError(f"{name} cannot be changed in a run that has begun; allowed: {', '.join(MAY_CHANGE)}")
    schedule = held.schedule
    if steps is not None:
        steps = at_least("steps", steps, 1)
        iterations = -(-steps // schedule.training_steps)
        if iterations < schedule.iterations:
            raise InputError(f"steps must be at least {schedule.steps:,}, the run's present total, got {steps:,}")
        schedule = replace(schedule, iterations=iterations)
    if "evaluation_steps" in changes:
        schedule = replace(schedule, evaluation_steps=changes.pop("evaluation_steps"))
    if "num_evaluation_envs" in changes:
        changes["evaluation_environments"] = changes.pop("num_evaluation_envs")
    return replace(held, schedule=schedule, **changes)


def train(
    agent: AgentConfig | str,
    env: Any,
    *,
    network: Any = None,
    steps: int | None = None,
    seeds: int = 1,
    seed: int = 0,
    eval_env: Any = None,
    out: str | Path | None = None,
    callback: Callback | None = None,
    loggers: Sequence[Logger] | None = None,
    num_envs: int | None = None,
    num_evaluation_envs: int | None = None,
    training_steps: int | None = None,
    evaluation_steps: int | None = None,
    checkpoint_minutes: float = 10.0,
    checkpoint_replay: bool = True,
    watcher: Watcher = NoProgress(),
) -> Run:
    """Trains an agent in an environment.

    Training proceeds in iterations: training steps, then evaluation steps with frozen weights. The defaults for the
    network and for the numbers of steps and environments depend on the environment.

    Args:
        agent: An agent from `multihorizon.agent`, or the name of a preset.
        env: A name (`"atari/Pong"`, `"minatar/breakout"`, any Gymnasium id); a Gymnasium environment, or a class or
            function that makes one; or a JAX environment with the interface of this library or of gymnax.
        network: An equinox module that maps an observation to a vector of features, or a function
            `(key, observation_shape)` that makes such a module.
        steps: Training steps of each seed, rounded up to whole iterations.
        seeds: The number of seeds that train in parallel.
        seed: The first seed.
        eval_env: Another environment to evaluate in, such as one under hazard.
        out: The run's folder. By default a temporary folder, removed when the `Run` is garbage-collected.
        callback: Called after every iteration with its metrics, one row for each seed. Training stops if the callback
            returns False.
        loggers: Loggers that receive the metrics: `mh.loggers.TensorBoard()` (the default), `Csv()`, `WandB(...)`.
        num_envs: The number of environments for each seed.
        num_evaluation_envs: The number of environments for each seed in evaluation.
        training_steps: Training steps in each iteration.
        evaluation_steps: Evaluation steps in each iteration; 0 for none.
        checkpoint_minutes: The minimum time between two checkpoints; with 0, every iteration writes a checkpoint.
        checkpoint_replay: Whether checkpoints hold the replay buffer.
        watcher: Shows progress; `mh.PrintedProgress()` prints one line for each iteration.

    Returns:
        The run. It is finished unless the callback stopped it.

    Raises:
        InputError: An argument is invalid, or the folder already holds a run.
    """
    check_hooks(callback, loggers, watcher)
    chosen = world(env)
    config = agent_by_name(agent) if isinstance(agent, str) else agent
    if not isinstance(config, AgentConfig):
        raise InputError(f"agent must be the name of a preset or come from mh.agent(...), got {shown(agent)}")
    configuration = configured(
        chosen,
        config,
        seeds=seeds,
        seed=seed,
        steps=steps,
        training_steps=training_steps,
        evaluation_steps=evaluation_steps,
        environments=num_envs,
        evaluation_environments=num_evaluation_envs,
        checkpoint_minutes=checkpoint_minutes,
        checkpoint_replay=checkpoint_replay,
        network=network,
    )
    holds = TemporaryFolder() if out is None else None
    folder = _folder(out) if holds is None else holds.path  # type: ignore[arg-type]
    if os.path.exists(folder / CONFIGURATION):
        held = read_configuration(folder)
        finished = is_finished(folder)
        advice = "extend it with" if finished else "continue it with"
        raise InputError(
            f"{folder} already holds a run, {held.agent.name} in {held.environment}: {advice} "
            f"mh.load_run({str(folder)!r}).resume({'steps=...' if finished else ''}), or choose another folder"
        )
    run = Run(folder, configuration, _own(chosen, network, eval_env), holds)
    try:
        run._train(callback, loggers, watcher)
    except InputError as problem:
        if holds is None or str(folder) not in str(problem):
            raise
        raise InputError(f"{problem} (the temporary folder is removed; pass out= to keep the run)") from problem
    return run


def _own(chosen: Any, network: Any, eval_env: Any) -> Own:
    return Own(chosen if chosen.name.startswith(OWN) else None, network, None if eval_env is None else world(eval_env))


def _folder(out: str | Path) -> Path:
    """Returns the folder for a new run. Raises an error if the folder holds files but no run."""
    folder = as_path("out", out)
    if os.path.exists(folder) and not folder.is_dir():
        raise InputError(f"out must be a folder, but {folder} is a file")
    foreign = visible_files(folder) if os.path.isdir(folder) else []
    if foreign and CONFIGURATION not in foreign:
        raise InputError(f"{folder} holds other files, such as {foreign[0]}, and no run; choose another folder")
    return folder
