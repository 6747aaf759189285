"""A whole service for one measurement, on a data folder that is thrown away.

It is started as `headwater up` starts it, or as `make cluster` does: the services of docker-compose.yml as processes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx2
import psutil

from app.infra.runtime.stack import is_worker_ready
from bench.cluster import Cluster
from bench.processes import processor_seconds, tree

ROOT = Path(__file__).parents[1]
API, WORKER = "app.main", "workers.main"
SPARK = (
    "org.apache.spark.deploy.SparkSubmit",
    "org.apache.spark.deploy.master.Master",
    "org.apache.spark.deploy.worker.Worker",
)
_START_SECONDS_MAX = 240.0
_STOP_SECONDS_MAX = 90.0
# The bucket is a folder of the S3 server of the cluster.
_BUCKET = Path("volumes", "storage", "headwater", "tables")


class JobFailed(SystemExit):
    """A write did not succeed; `problem` says why. Unless somebody has a use for that, it ends the measurement."""

    def __init__(self, job: Mapping[str, Any]) -> None:
        super().__init__(f"a write did not succeed: {json.dumps(job, indent=2)}")
        self.problem: Mapping[str, Any] = job["error"] or {"title": f"the job is {job['state']}"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """A running service: its address and key, its folders, and the processes it consists of."""

    url: str
    api_key: str
    data: Path
    supervisor: psutil.Process
    storage: Path

    @property
    def headers(self) -> dict[str, str]:
        """What a client must send."""
        return {"Authorization": f"Bearer {self.api_key}"}

    def client(self) -> httpx2.Client:
        """A client that waits as long as the slowest write takes."""
        return httpx2.Client(base_url=self.url, headers=self.headers, timeout=600, trust_env=False)

    def process(self, module: str) -> psutil.Process:
        """The API (`app.main`) or the worker (`workers.main`); the first one of a cluster."""
        return self.processes(module)[0]

    def processes(self, module: str) -> list[psutil.Process]:
        """All that run a module or a class of Java. Raises LookupError if none does."""
        found = [child for child in self.supervisor.children() if module in child.cmdline()]
        if not found:
            raise LookupError(f"no child of the service runs {module}")
        return found

    def processor_seconds(self) -> dict[str, float]:
        """Processor seconds so far, of APIs, workers, JVMs of Spark, tasks in Python, Postgres, and the rest."""
        apis, workers = self.processes(API), self.processes(WORKER)
        groups: dict[str, list[psutil.Process]] = {"api": apis, "worker": workers, "jvm": [], "tasks": []}
        working = self.working()
        for process in working:
            if process not in workers:
                groups["jvm" if process.name() == "java" else "tasks"].append(process)
        servers = [each for each in tree(self.supervisor) if each not in working and each not in apis]
        groups["postgres"] = [each for each in servers if each.name() == "postgres"]
        groups["other"] = [each for each in servers if each.name() != "postgres"]
        return {name: processor_seconds(processes) for name, processes in groups.items()}

    def working(self) -> list[psutil.Process]:
        """What does the work of jobs: the workers, Spark's JVM or its cluster, and all that they have started."""
        roots = [
            child for child in self.supervisor.children() if {WORKER, *SPARK}.intersection(child.cmdline())
        ]
        return [process for root in roots for process in tree(root)]


@contextmanager
def running_service(
    scratch: Path,
    environment: Mapping[str, str] | None = None,
    *,
    cluster: Cluster | None = None,
    waits_for_worker: bool = True,
    by_make: bool = False,
) -> Iterator[Service]:
    """Starts a service in a new folder below `scratch`, and stops and removes it at the end.

    `environment`: settings of it. `cluster`: instead of the embedded service. `waits_for_worker`: whether it has one
    when this returns, so that what is measured does not wait for its start. `by_make`: the embedded service is started
    by `make up`, which checks that the environment is built.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    data = Path(tempfile.mkdtemp(prefix="headwater-bench-", dir=scratch))
    log = data.with_suffix(".log")
    # Measured are the embedded servers, whatever else this shell is set up for.
    own = {name: value for name, value in os.environ.items() if not name.startswith("HEADWATER_")}
    if cluster is None:
        command = [sys.executable, "-m", "clients.cli", "up", "--port", "0", "--data", str(data)]
        if by_make:
            command = ["make", "--no-print-directory", "up", "PORT=0", f"DATA={data}"]
        own |= environment or {}
    else:
        command = cluster.command(data, environment or {})
    try:
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=own,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        try:
            note = _announced(process, data / "headwater.json", log)
            if waits_for_worker:
                _await_worker(process, note, log)
            started = psutil.Process(process.pid)
            yield Service(
                url=note["url"],
                api_key=note["api_key"],
                data=data,
                supervisor=started.children()[0] if by_make else started,
                storage=data / ("storage" if cluster is None else _BUCKET),
            )
        finally:
            _stop(process)
    finally:
        shutil.rmtree(data, ignore_errors=True)
        log.unlink(missing_ok=True)


def _announced(process: subprocess.Popen[bytes], note: Path, log: Path) -> dict[str, Any]:
    deadline = time.monotonic() + _START_SECONDS_MAX
    while not note.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"the service did not start:\n{log.read_text(errors='replace')}")
        time.sleep(0.05)
    found: dict[str, Any] = json.loads(note.read_text())
    return found


def _await_worker(process: subprocess.Popen[bytes], note: Mapping[str, Any], log: Path) -> None:
    deadline = time.monotonic() + _START_SECONDS_MAX
    port = urlsplit(note["url"]).port
    assert port is not None
    while not is_worker_ready(port, note["api_key"]):
        if process.poll() is not None or time.monotonic() > deadline:
            raise SystemExit(f"no worker has started:\n{log.read_text(errors='replace')}")
        time.sleep(0.1)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """Ends the service. Make passes the signal on, and ends when the service has."""
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
    try:
        process.wait(_STOP_SECONDS_MAX)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def finished(client: httpx2.Client, job: Mapping[str, Any]) -> dict[str, Any]:
    """The job once it has succeeded. Raises JobFailed."""
    found: dict[str, Any] = dict(job)
    while found["state"] in {"queued", "running"}:
        found = client.get(found["links"]["self"], params={"wait": 60}).raise_for_status().json()
    if found["state"] != "succeeded":
        raise JobFailed(found)
    return found
