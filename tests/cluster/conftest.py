"""The services of docker-compose.yml as processes. CI runs a share of these tests; `make test-cluster` runs all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx2
import psutil
import psycopg
import pytest

from app.infra.runtime.loopback import free_port
from clients.cluster.programs import ProgramError, Programs
from clients.cluster.start import planned
from tests.support.health import service_checks
from tests.support.http import TLS
from tests.support.left_out import left_out
from tests.support.repeating import Repeating
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
# To look through all processes takes milliseconds, which the cluster needs itself.
_PAUSE_SECONDS = 0.5
PROGRAMS = ROOT / ".venv-cluster" / "bin"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leaves tests of the cluster out of CI, except those with the mark `share`."""
    for item in items:
        of_the_cluster = item.path.parent == Path(__file__).parent and "cluster" in item.fixturenames
        if of_the_cluster and item.get_closest_marker("share") is None:
            item.add_marker(left_out("CLUSTER", "test-cluster"))


class Cluster:
    """A running cluster. `containers`: what its processes stand for, by name. `storage`: the folder of all tables."""

    def __init__(self, data: Path, port: int, supervisor: subprocess.Popen[bytes]) -> None:
        self.data = data
        self.supervisor = supervisor
        note = json.loads((data / "headwater.json").read_text())
        self.url, self.api_key = note["url"], note["api_key"]
        self.containers = {each.name: each for each in planned(data, port)}
        self.storage = data / "volumes" / "storage" / "headwater" / "tables"

    def client(self, failures: list[str] | None = None) -> httpx2.Client:
        """With `failures`, requests that fail because a part is away are recorded there, and sent again."""
        return httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.api_key}"},
            timeout=90,
            trust_env=False,
            verify=TLS,
            transport=None if failures is None else Repeating(failures),
        )

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a query by the owner of the server, who sees every tenant."""
        postgres = self.containers["postgres-1"]
        with psycopg.connect(
            host=postgres.address,
            user=postgres.environment["POSTGRES_USER"],
            password=postgres.environment["POSTGRES_PASSWORD"],
            dbname=postgres.environment["POSTGRES_DB"],
            autocommit=True,
        ) as connection:
            return connection.execute(statement.encode(), values).fetchall()

    def processes(self, container: str, words: str = "") -> list[psutil.Process]:
        """The processes of a container with these words in their command. Its folder is their home."""
        own = str(self.containers[container].own)
        found = []
        for process in psutil.Process(self.supervisor.pid).children(recursive=True):
            try:
                # Valkey writes its title where its environment was, and Postgres works in another folder.
                home = process.environ().get("HOME") or process.cwd()
                command = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if home == own and words in command:
                found.append(process)
        return found

    def kill(self, container: str, words: str = "") -> None:
        """`kill -9` of the first process of a container with these words."""
        first, *_ = self.processes(container, words)
        first.kill()

    def environment(self, container: str) -> dict[str, str]:
        """That of the container's first process."""
        first, *_ = self.processes(container)
        return first.environ()

    def checks(self) -> dict[str, dict[str, Any]]:
        """Those of the whole service; none while no API answers."""
        with self.client() as client:
            return service_checks(client)

    def executors(self, container: str) -> set[str]:
        """The applications, one for each worker, that have an executor on a Spark worker."""
        commands = [each.cmdline() for each in self.processes(container, "CoarseGrainedExecutorBackend")]
        return {command[command.index("--app-id") + 1] for command in commands if "--app-id" in command}

    def is_ready(self, container: str) -> bool:
        """Whether an API is ready, a worker has executors, the cores of a Spark worker are used, a server answers."""
        wanted = self.containers[container]
        if not self.processes(container):
            return False
        try:
            match wanted.service.name:
                case "api":
                    url = f"http://{wanted.address}:{wanted.environment['HEADWATER_PORT']}/health/ready"
                    return httpx2.get(url, timeout=10, trust_env=False).status_code == 200
                case "worker":
                    driver = f"CoarseGrainedScheduler@{wanted.address}:"
                    return any(self.processes(f"spark-worker-{number}", driver) for number in (1, 2))
                case "spark-worker":
                    cores = int(wanted.environment["SPARK_WORKER_CORES"])
                    return len(self.processes(container, "CoarseGrainedExecutorBackend")) == cores
                case "postgres":
                    return self.query("SELECT 1") == [(1,)]
        except (httpx2.TransportError, psycopg.OperationalError, psutil.Error):
            return False
        return self.checks().get("spark", {}).get("ok") is True

    def wait_ready(self, container: str) -> None:
        """Returns once the container is ready."""
        until(lambda: self.is_ready(container), container, seconds_max=180, pause_seconds=_PAUSE_SECONDS)

    def settle(self) -> None:
        """Returns once every container is ready: a test may have stopped one."""
        for container in self.containers:
            if not self.containers[container].service.job:
                self.wait_ready(container)


@pytest.fixture(scope="session")
def programs() -> Programs:
    """The programs that stand for images; without them the test is skipped, and the reason names what is missing."""
    try:
        return Programs.found(os.pathsep.join([str(PROGRAMS), os.environ["PATH"]]))
    except ProgramError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="package")
def cluster(programs: Programs) -> Iterator[Cluster]:
    if sys.platform != "linux":
        pytest.skip("Linux only: other systems lack the addresses 127.x.y.z")
    with TemporaryDirectory(prefix="headwater-cluster-") as folder:
        data, port = Path(folder) / "data", free_port()
        command = [sys.executable, "-m", "clients.cluster", "--programs", str(PROGRAMS)]
        command += ["--data", str(data), "--port", str(port)]
        supervisor = subprocess.Popen(command, cwd=ROOT)
        try:
            started = until(
                lambda: (data / "headwater.json").exists() or supervisor.poll() is not None,
                "the cluster",
                seconds_max=300,
            )
            assert started
            assert supervisor.poll() is None, "the cluster has ended: its output says why"
            yield Cluster(data, port, supervisor)
        finally:
            supervisor.send_signal(signal.SIGTERM)
            supervisor.wait(120)


@pytest.fixture
def client(cluster: Cluster) -> Iterator[httpx2.Client]:
    with cluster.client() as client:
        yield client
