"""The services of docker-compose.yml as processes. `make test-cluster` runs these tests; they take minutes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import psutil
import pytest

from app.runtime.loopback import free_port
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / ".venv-cluster" / "bin"


class Cluster:
    """A running cluster."""

    def __init__(self, data: Path, supervisor: subprocess.Popen[bytes]) -> None:
        self.data = data
        self.supervisor = supervisor
        note = json.loads((data / "headwater.json").read_text())
        self.url, self.api_key = note["url"], note["api_key"]

    def client(self) -> httpx.Client:
        headers = {"Authorization": f"Bearer {self.api_key}"}
        return httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False)

    def processes(self, container: str, words: str = "") -> list[psutil.Process]:
        """The processes of a container with these words in their command. Its folder is their home."""
        found = []
        for process in psutil.Process(self.supervisor.pid).children(recursive=True):
            try:
                home = process.environ().get("HOME")
                command = " ".join(process.cmdline())
            except psutil.Error:
                continue
            if home == str(self.data / "containers" / container) and words in command:
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
        """Those of the readiness; none while no API answers."""
        with self.client() as client:
            answer = client.get("/health/ready")
        if not answer.headers.get("content-type", "").startswith("application/json"):
            return {}
        return {check["name"]: check for check in answer.json()["checks"]}


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    if "CLUSTER" not in os.environ:
        pytest.skip("the cluster is tested by `make test-cluster`")
    missing = [
        name
        for name in ("versitygw", "caddy")
        if not (name.upper() in os.environ or shutil.which(name, path=f"{PROGRAMS}:{os.environ['PATH']}"))
    ]
    if missing:
        pytest.skip(f"missing: {', '.join(missing)}; `make cluster` says how to get them")
    with TemporaryDirectory(prefix="headwater-cluster-") as folder:
        data = Path(folder) / "data"
        command = [sys.executable, "-m", "clients.cluster", "--programs", str(PROGRAMS)]
        command += ["--data", str(data), "--port", str(free_port())]
        supervisor = subprocess.Popen(command, cwd=ROOT)
        try:
            started = until(
                lambda: (data / "headwater.json").exists() or supervisor.poll() is not None,
                "the cluster",
                seconds_max=300,
            )
            assert started
            assert supervisor.poll() is None, "the cluster has ended: its output says why"
            yield Cluster(data, supervisor)
        finally:
            supervisor.send_signal(signal.SIGTERM)
            supervisor.wait(120)


@pytest.fixture
def client(cluster: Cluster) -> Iterator[httpx.Client]:
    with cluster.client() as client:
        yield client
