"""Runs a sweep on Ray, with one task for each run. If a worker dies, its task resumes from the run's checkpoint.

Only this file imports Ray.
"""

import importlib
import ipaddress
import logging
import os
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from multihorizon import interrupts
from multihorizon.errors import InputError, at_least, one_of
from multihorizon.experiments.sweep import PlannedRun, State, Status, TellOf, TrainAll, attempt
from multihorizon.runs.configuration import Configuration
from multihorizon.runs.folder import EXPERIMENT, Busy, Lock, is_finished
from multihorizon.runs.metrics import Warn

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",  # send no usage statistics
    "RAY_NUM_REDIS_GET_RETRIES": "1",  # by default, a connection to a wrong address fails after more than two minutes
    "RAY_gcs_server_request_timeout_seconds": "10",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # by default, Ray prints each worker's death between the results
}
# With these settings, a local cluster listens only on the loopback interface, and requires a token if Ray supports
# tokens. These settings override the user's own settings.
LOCAL_ENVIRONMENT = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_AUTH_MODE": "token"}
RETRIES = 20  # how many times a task is restarted after its worker dies
SECONDS_TO_ANSWER = 5.0
SECONDS_BETWEEN_LOOKS = 0.5
SECONDS_TO_LET_GO = 120.0  # the longest time to wait for a lock that a worker on a lost node may still hold
MEMORY_SHARE = 0.9  # the tasks on a GPU together use at most this fraction of its memory


@contextmanager
def cluster(address: str, device: str | None, gpu_share: float | None, cpus: int | None) -> Iterator[TrainAll]:
    """Connects to a Ray cluster, or starts one if `address` is "local". Yields a function that trains runs on it."""
    if device is not None:
        one_of("device", device, ["cpu", "gpu"])
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)  # Ray reads these variables when it is imported
    try:
        ray = importlib.import_module("ray")
    except ImportError:
        raise InputError("a sweep on Ray needs the package ray: pip install ray") from None
    if ray.is_initialized():
        raise InputError("this process is connected to a Ray cluster already; call ray.shutdown() first")
    with _on_loopback() if address == "local" else nullcontext():
        try:
            _connect(ray, address)
            asked = _asked(ray, device, gpu_share, cpus)

            def train_all(left: Sequence[PlannedRun], tell: TellOf, warn: Warn) -> None:
                _train_all(ray, asked, left, tell, warn)

            yield train_all
        finally:
            ray.shutdown()


@contextmanager
def _on_loopback() -> Iterator[None]:
    """Applies `LOCAL_ENVIRONMENT`, even if Ray has already been imported."""
    constants: Any = importlib.import_module("ray._private.ray_constants")
    core: Any = importlib.import_module("ray._raylet")
    environment, is_cluster = dict(os.environ), constants.ENABLE_RAY_CLUSTER
    os.environ.update(LOCAL_ENVIRONMENT)
    constants.ENABLE_RAY_CLUSTER = False
    has_tokens = hasattr(core, "get_authentication_mode")
    try:
        if has_tokens:
            core.Config.initialize("")  # reads the environment again
            check_token(core.get_authentication_mode() == core.AuthenticationMode.TOKEN)
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = is_cluster
        for name in LOCAL_ENVIRONMENT:
            os.environ.pop(name, None)
            if name in environment:
                os.environ[name] = environment[name]
        if has_tokens:
            core.Config.initialize("")


UNSAFE = "the sweep was not started; run it in a new Python process, or without Ray"


def check_token(is_required: bool) -> None:
    """Raises an error if a cluster on this machine would not require a token."""
    if not is_required:
        raise InputError(f"Ray would start a cluster here that requires no token, so {UNSAFE}")


def check_loopback(addresses: Sequence[str]) -> None:
    """Raises an error if other machines can reach a node of the local cluster."""
    for address in addresses:
        if not ipaddress.ip_address(address).is_loopback:
            raise InputError(f"Ray started a cluster here that listens on the network, at {address}, so {UNSAFE}")


def _connect(ray: Any, address: str) -> None:
    quiet = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address == "local":
        ray.init(address="local", include_dashboard=False, **quiet)
        check_loopback([node["NodeManagerAddress"] for node in ray.nodes()])
        return
    advice = "start one with: ray start --head"
    if address != "auto":
        host, _, port = address.rpartition(":")
        if not host or not port.isdigit() or "/" in host:
            raise InputError(f"the address must be HOST:PORT of the cluster's head, or auto, got '{address}'")
        try:
            socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
        except (OSError, OverflowError) as problem:
            raise InputError(f"no Ray cluster answers at {address} ({problem}); {advice}") from None
    try:
        with _silence():
            ray.init(address=address, **quiet)
    except (ConnectionError, RuntimeError, ValueError, TimeoutError) as problem:
        said = str(problem).strip().split("\n")[0]
        raise InputError(f"cannot connect to a Ray cluster at {address} ({said}); {advice}") from None


@contextmanager
def _silence() -> Iterator[None]:
    """Silences the file descriptor of stderr, because Ray's core writes to it while connecting."""
    kept = os.dup(2)
    with open(os.devnull, "w") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _asked(ray: Any, device: str | None, gpu_share: float | None, cpus: int | None) -> dict[str, float]:
    nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
    most = {name: max((node.get(name, 0.0) for node in nodes), default=0.0) for name in ("CPU", "GPU")}
    share = 1.0 if gpu_share is None else gpu_share
    if not 0 < share <= 1:
        raise InputError(f"gpu_share must lie in (0, 1], got {share:g}")
    if device == "gpu" and not most["GPU"]:
        raise InputError("the Ray cluster has no GPU; choose the CPU as the device")
    cores = 1 if cpus is None else at_least("cpus", cpus, 1)
    if cores > most["CPU"]:
        raise InputError(f"cpus must be at most {most['CPU']:g}, the cores of the largest node, got {cores}")
    return {"num_cpus": cores, "num_gpus": share if most["GPU"] and device != "cpu" else 0}


class _Board:
    """An actor that collects the statuses and warnings of all workers."""

    def __init__(self) -> None:
        self._statuses: dict[str, Status] = {}
        self._warnings: list[str] = []

    def tell(self, folder: str, status: Status) -> None:
        self._statuses[folder] = status

    def warn(self, message: str) -> None:
        self._warnings.append(message)

    def read(self) -> tuple[dict[str, Status], list[str]]:
        told = self._statuses, self._warnings
        self._statuses, self._warnings = {}, []
        return told


def _train_all(ray: Any, asked: dict[str, float], left: Sequence[PlannedRun], tell: TellOf, warn: Warn) -> None:
    strategies = importlib.import_module("ray.util.scheduling_strategies")
    this_node = strategies.NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    board = ray.remote(_Board).options(num_cpus=0, scheduling_strategy=this_node).remote()
    # Each task has its own process, because JAX chooses its device only once and frees memory only at the end.
    task = ray.remote(max_retries=RETRIES, max_calls=1, scheduling_strategy="SPREAD", **asked)(_task)
    by_folder = {str(one.folder.resolve()): one for one in left}
    tasks = {
        task.remote(one.configuration, folder, one.run.folder, one.steps, asked["num_gpus"], board): folder
        for folder, one in by_folder.items()
    }
    waiting = list(tasks)
    while waiting:
        interrupts.check()
        ready, waiting = ray.wait(waiting, timeout=SECONDS_BETWEEN_LOOKS)
        statuses, warnings = ray.get(board.read.remote())
        for message in warnings:
            warn(message)
        for folder in (tasks[one] for one in waiting):
            if folder in statuses:
                tell(by_folder[folder], statuses[folder])
        for one in ready:
            tell(by_folder[tasks[one]], _ended(ray, one))


def _ended(ray: Any, task: Any) -> Status:
    try:
        ended = ray.get(task)
        assert isinstance(ended, Status)
        return ended
    except ray.exceptions.RayError as problem:
        lines = str(problem).strip().split("\n") or [type(problem).__name__]
        said = lines[-1] if isinstance(problem, ray.exceptions.RayTaskError) else lines[0]
        return Status(State.FAILED, said=f"Ray gave up on this run: {said}")


def _task(configuration: Configuration, place: str, within: str, steps: int, gpu_share: float, board: Any) -> Status:
    import jax

    ray = importlib.import_module("ray")
    folder = Path(place)
    if not gpu_share:
        jax.config.update("jax_platforms", "cpu")
    elif gpu_share < 1:
        os.environ["XLA_PYTHON_CLIENT_MEM_FRACTION"] = f"{MEMORY_SHARE * gpu_share:.3f}"
    gpus = "".join(f", GPU {gpu}" for gpu in ray.get_gpu_ids())
    where = f"{socket.gethostname()}, process {os.getpid()}{gpus}"
    if not (Path(place.removesuffix(within)) / EXPERIMENT).exists():
        said = f"{socket.gethostname()} cannot access {place}: all nodes must share the experiment's folder"
        return Status(State.FAILED, where, said=said)
    _wait_for_lock(folder)
    if is_finished(folder):  # the previous worker died after finishing the run
        return Status(State.DONE, where, steps)

    def tell(status: Status) -> None:
        board.tell.remote(place, replace(status, where=where))

    def warn(message: str) -> None:
        board.warn.remote(message)

    return replace(attempt(configuration, folder, tell, warn), where=where)


def _wait_for_lock(folder: Path) -> None:
    deadline = time.monotonic() + SECONDS_TO_LET_GO
    while True:
        try:
            Lock(folder).close()
            return
        except Busy:
            if time.monotonic() > deadline:
                raise
            time.sleep(SECONDS_BETWEEN_LOOKS)
