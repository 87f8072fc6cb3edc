"""Checks that sweeps on Ray survive lost workers and nodes, and that local clusters are safe."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from disturbed import assert_same, command
from small_sweep import EXPERIMENT

from multihorizon.errors import InputError
from multihorizon.experiments import ray_cluster
from multihorizon.runs.folder import is_finished

pytest.importorskip("ray")


class Nodes:
    def __init__(self) -> None:
        script = str(Path(__file__).with_name("nodes.py"))
        pipe = subprocess.PIPE
        equal = os.environ | {"RAY_worker_niceness": "0"}  # on a busy host, workers with Ray's low priority hardly run
        self.process = subprocess.Popen([sys.executable, script], stdin=pipe, stdout=pipe, text=True, env=equal)
        self.address = self._answer("cluster at")

    def _answer(self, beginning: str) -> str:
        for line in self.process.stdout or ():
            if line.startswith(beginning):
                return line.split()[-1]
        raise AssertionError("the cluster is gone")

    def tell(self, line: str) -> None:
        assert self.process.stdin
        print(line, file=self.process.stdin, flush=True)
        self._answer("done")


@pytest.fixture
def cluster() -> Iterator[Nodes]:
    nodes = Nodes()
    with nodes.process:
        yield nodes
        assert nodes.process.stdin
        nodes.process.stdin.close()
        nodes.process.wait(timeout=60)


class Sweep:
    """Runs a sweep in its own process, and tracks the processes that train its runs."""

    def __init__(self, out: Path, address: str) -> None:
        self.process = subprocess.Popen(
            command(out, "--ray", address, "--json"), stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.out = out
        self.said: list[str] = []
        self._running: dict[str, int] = {}
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        for line in self.process.stderr or ():
            told = re.match(r"\[\d/\d\] (.*): (\w+) \([^,]*, process (\d+)\)", line)
            self.said.append(line)
            if told and told[2] == "running":
                self._running[told[1]] = int(told[3])
            elif told:
                self._running.pop(told[1], None)

    def worker(self, but: int = 0) -> int:
        """Returns a process that trains an unfinished run with a checkpoint, except the process with the ID `but`."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            for run in EXPERIMENT.runs:
                pid = self._running.get(f"{run.label} in {run.environment}", but)
                folder = self.out / run.folder
                if pid != but and any((folder / "checkpoints").glob("iteration-*")) and not is_finished(folder):
                    return pid
            time.sleep(0.02)
        raise AssertionError("".join(self.said))

    def ended(self) -> int:
        status = self.process.wait(timeout=120)
        self._thread.join()
        self.result = json.load(self.process.stdout)  # type: ignore[arg-type]
        return status

    def close(self) -> None:
        with self.process:
            self.process.kill()
        self._thread.join()


def test_sweep_survives_lost_workers_and_a_lost_node(undisturbed: Path, cluster: Nodes, tmp_path: Path) -> None:
    cluster.tell("add 1")
    with closing(Sweep(tmp_path / "small", cluster.address)) as sweep:
        pid = sweep.worker()
        os.kill(pid, signal.SIGKILL)
        sweep.worker(but=pid)
        cluster.tell("remove 0")
        cluster.tell("add 2")
        assert sweep.ended() == 0, "".join(sweep.said)
    assert [run["state"] for run in sweep.result["runs"]] == ["done", "done"]
    assert_same(undisturbed, tmp_path / "small")
    assert len(set(re.findall(r"process (\d+)", "".join(sweep.said)))) >= 4


# A user may have imported Ray with unsafe settings.
LISTENERS = """
import os
os.environ |= {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1", "RAY_AUTH_MODE": "disabled"}
import ray
from multihorizon.experiments.ray_cluster import cluster

def listeners():
    lines = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").readlines()[1:]]
    return {fields[1] for fields in lines if fields[3] == "0A"}

before = listeners()
with cluster("local", "cpu", None, None):
    print(*sorted(listeners() - before))
    mode = ray.remote(lambda: os.environ["RAY_AUTH_MODE"])
    assert ray.get(mode.remote()) == "token"
assert os.environ["RAY_AUTH_MODE"] == "disabled"
"""


@pytest.mark.skipif(not Path("/proc/net/tcp6").exists(), reason="reads Linux's table of sockets")
def test_local_cluster_listens_only_on_the_loopback_interface() -> None:
    done = subprocess.run([sys.executable, "-c", LISTENERS], capture_output=True, text=True, timeout=120, check=True)
    addresses = {listener.partition(":")[0] for listener in done.stdout.split()}
    assert addresses
    assert addresses <= {"0100007F", "0" * 16 + "FFFF00000100007F", "0" * 24 + "01000000"}


def test_unsafe_local_cluster_raises_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    ray_cluster.check_loopback(["127.0.0.1", "127.0.0.2", "::1"])
    with pytest.raises(InputError, match=r"listens on the network, at 192\.0\.2\.2, so the sweep was not started"):
        ray_cluster.check_loopback(["127.0.0.1", "192.0.2.2"])
    ray_cluster.check_token(True)
    with pytest.raises(InputError, match="requires no token, so the sweep was not started"):
        ray_cluster.check_token(False)
    stopped: list[bool] = []
    fake = SimpleNamespace(
        is_initialized=lambda: False,
        init=lambda **given: None,
        nodes=lambda: [{"NodeManagerAddress": "192.0.2.2"}],
        shutdown=lambda: stopped.append(True),
    )
    monkeypatch.setitem(sys.modules, "ray", fake)
    with pytest.raises(InputError, match="listens on the network"), ray_cluster.cluster("local", None, None, None):
        pass
    assert stopped
    fake.is_initialized = lambda: True
    with (
        pytest.raises(InputError, match="connected to a Ray cluster already"),
        ray_cluster.cluster("local", None, None, None),
    ):
        pass
    assert stopped == [True]


def test_importing_the_sweep_modules_does_not_import_ray() -> None:
    script = (
        "import sys, multihorizon.experiments.sweep, multihorizon.experiments.catalogue, multihorizon.cli.sweep\n"
        "sys.exit('ray' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
