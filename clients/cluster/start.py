"""Starts the plan under a supervisor, and stops it."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import subprocess
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import app
from app.infra.runtime.account import account_for
from app.infra.runtime.child import ChildSpec
from app.infra.runtime.data_directory import DataDirectory
from app.infra.runtime.java import java_home
from app.infra.runtime.loopback import LOOPBACK, is_free
from app.infra.runtime.postgres import create_cluster
from app.infra.runtime.private_file import kept_secret
from app.infra.runtime.stack import is_api_ready, is_worker_ready, run_until_stopped
from app.infra.runtime.supervisor import Supervisor, to_standard_error
from clients.cluster.composition import adjusted, read
from clients.cluster.plan import INGRESS, Container, plan
from clients.cluster.programs import Programs

ROOT: Final = Path(app.__file__ or "").parents[1]
PASSWORDS: Final = ("POSTGRES_PASSWORD", "APP_PASSWORD", "ADMIN_PASSWORD", "S3_SECRET_KEY")
_READY_SECONDS_MAX: Final = 300.0
_PROBE_SECONDS: Final = 2.0
_STOP_SECONDS_MAX: Final = 5.0
_WORKER_SECONDS: Final = 1.0
# The ports at which servers are ready, by service.
_PORTS: Final = {"redis": 6379, "storage": 9000, "spark-master": 7077}
_POSTGRES_PORT: Final = 5432
# A container gets nothing of its host's environment.
_FOREIGN: Final = ("HEADWATER_", "AWS_", "SPARK_", "PG", "VGW_")
# Characters that have a meaning in URLs, in SQL and in a shell, as users' passwords may.
_ODD_CHARACTERS: Final = "@/:%' \"#?"
# No difference from the file.
_AS_STATED: Final[Mapping[str, Any]] = MappingProxyType({})


class ClusterError(Exception):
    """The cluster cannot be started. The message has the reason."""


def planned(
    data: Path,
    port: int,
    *,
    scales: Mapping[str, int] = _AS_STATED,
    settings: Mapping[str, Mapping[str, str]] = _AS_STATED,
) -> list[Container]:
    """The containers of a cluster with this data folder, whose proxy listens on this port of 127.0.0.1.

    `scales`, `settings`: as in `run`. Raises ClusterError.
    """
    variables = {name: kept_secret(data / f"{name}.secret") + _ODD_CHARACTERS for name in PASSWORDS}
    services = read(ROOT / "docker-compose.yml", ROOT / "Dockerfile", variables)
    try:
        services = adjusted(services, scales, settings)
    except ValueError as error:
        raise ClusterError(str(error)) from error
    return plan(services, data, _network(data / "network"), f"{LOOPBACK}:{port}")


def run(
    data: Path,
    port: int,
    programs: Programs,
    *,
    scales: Mapping[str, int] = _AS_STATED,
    settings: Mapping[str, Mapping[str, str]] = _AS_STATED,
) -> None:
    """Starts all containers, writes ``headwater.json``, and supervises them until SIGINT or SIGTERM.

    `scales`: numbers of containers by service, and `settings`: further variables by service, where they differ from
    the file. Raises ClusterError, StartError, DataDirectoryError, PostgresError, JavaError, AccountError.
    """
    for name in [name for name in os.environ if name.startswith(_FOREIGN)]:
        del os.environ[name]
    with DataDirectory(data) as directory:
        if not is_free(port):
            raise ClusterError(f"port {port} is in use; choose another: make cluster PORT=…")
        containers = planned(directory.path, port, scales=scales, settings=settings)

        def begin(supervisor: Supervisor) -> None:
            key_file = _start(supervisor, _Machine(directory.path, programs, port), containers)
            url = f"http://{LOOPBACK}:{port}"
            directory.announce(url, key_file.read_text(encoding="utf-8").strip())
            to_standard_error(
                f"serving on {url}; the key is in {directory.note_file}; Ctrl-C stops everything"
            )

        run_until_stopped(directory, begin)
    to_standard_error("stopped")


def _network(file: Path) -> str:
    """The first three numbers of the addresses, the same at every start: Spark's master keeps those of its workers."""
    if not file.exists():
        first, second = 64 + secrets.randbelow(64), secrets.randbelow(256)
        file.write_text(f"127.{first}.{second}", encoding="utf-8")
    return file.read_text(encoding="utf-8")


class _Machine:
    """What containers get from this machine: programs, an account, Java."""

    def __init__(self, data: Path, programs: Programs, port: int) -> None:
        """`port`: that of the proxy. `key_file`: the file with the operator's key, once it is made."""
        self.programs = programs
        self.key_file = Path()
        self._port = port
        self._next_probe = 0.0
        self._java_home = java_home(data)
        # Every program and folder has to be reachable for the account.
        paths = (data / "containers", ROOT / "app", programs.python, programs.versitygw, programs.caddy)
        self.account = account_for(*paths, programs.postgres / "postgres", self._java_home / "bin")

    def specification(self, container: Container) -> ChildSpec:
        """The process of a container; makes its folders and files."""
        self._make(container)
        return ChildSpec(
            name=container.name,
            command=self.programs.command(container.service.image, container.command),
            environment=container.environment | self._environment(container),
            directory=container.own,
            ready=partial(self._is_ready, container),
            ready_seconds_max=_READY_SECONDS_MAX,
            stop_seconds_max=container.service.stop_seconds,
            account=self.account,
        )

    def _is_ready(self, container: Container) -> bool:
        """What the health check of the service finds out; of workers, that the service knows of a live one."""
        match container.service.name:
            case "postgres":
                command = [str(self.programs.postgres / "pg_isready"), "-q", "-h", container.address]
                return subprocess.run(command, check=False, timeout=_STOP_SECONDS_MAX).returncode == 0
            case "ingress":
                return is_api_ready(self._port)
            case "worker":
                return self._has_worker()
            case name:
                return _listens(container.address, _PORTS[name])

    def _has_worker(self) -> bool:
        """Whether the service knows of a live worker. The answer takes all checks of the service: it is not requested
        again within a second.
        """
        if time.monotonic() < self._next_probe:
            return False
        self._next_probe = time.monotonic() + _WORKER_SECONDS
        return is_worker_ready(self._port, self.key_file.read_text(encoding="utf-8").strip())

    def _environment(self, container: Container) -> dict[str, str]:
        environment = {"HOME": str(container.own), "NO_PROXY": "*", "no_proxy": "*"}
        if container.service.ours:
            environment |= {
                "JAVA_HOME": str(self._java_home),
                "SPARK_HOME": str(self.programs.spark_home),
                "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "clients" / "python")]),
                "PYTHONDONTWRITEBYTECODE": "1",
            }
        return environment

    def _make(self, container: Container) -> None:
        for folder in (container.own, *container.folders.values()):
            folder.mkdir(parents=True, exist_ok=True)
            if self.account is not None:
                self.account.owns(folder)
        for path, content in container.files.items():
            path.write_text(content, encoding="utf-8")


def _start(supervisor: Supervisor, machine: _Machine, containers: list[Container]) -> Path:
    """Starts the containers in their order; returns the file with the operator's key."""
    for container in containers:
        if container.service.name == "postgres":
            _start_postgres(supervisor, machine, container)
        elif container.service.job:
            supervisor.run(machine.specification(container))
            machine.key_file = Path(container.command[container.command.index("--key-file") + 1])
        else:
            # Services that others need by their health. The proxy is ready once an API is, a worker needs the others.
            supervisor.start(machine.specification(container), wait=container.service.name in _PORTS)
    supervisor.wait_ready(f"{INGRESS}-1")
    supervisor.wait_ready("worker-1")
    return machine.key_file


def _start_postgres(supervisor: Supervisor, machine: _Machine, container: Container) -> None:
    """As the image does: creates the cluster at the first start, and runs the scripts of the file once."""
    specification = machine.specification(container)
    [volume] = container.folders.values()
    cluster, initialised = volume / "data", volume / "initialised"
    owner, password = container.environment["POSTGRES_USER"], container.environment["POSTGRES_PASSWORD"]
    if not (cluster / "PG_VERSION").exists():
        create_cluster(cluster, owner, password, machine.account)
    supervisor.start(
        replace(
            specification,
            command=(*specification.command, "-D", str(cluster)),
            stop_signal=signal.SIGINT,  # "fast", as the image does
            death_signal=signal.SIGQUIT,
        )
    )
    if initialised.exists():
        return
    environment = {
        **container.environment,
        "PATH": os.pathsep.join([str(machine.programs.postgres), os.environ.get("PATH", "")]),
        "PGHOST": container.address,
        "PGPORT": str(_POSTGRES_PORT),
        "PGUSER": owner,
        "PGPASSWORD": password,
    }
    scripts = [("sh", str(path)) for path in container.files]
    for number, command in enumerate([("createdb", container.environment["POSTGRES_DB"]), *scripts]):
        name = f"postgres-setup-{number}"
        supervisor.run(ChildSpec(name=name, command=("env", *command), environment=environment))
    initialised.touch()


def _listens(address: str, port: int) -> bool:
    try:
        with socket.create_connection((address, port), timeout=_PROBE_SECONDS):
            return True
    except OSError:
        return False
