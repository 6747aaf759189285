"""The whole service as real processes: Postgres, Valkey, the API and two workers with Spark."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import httpx2
import psycopg

from app.access.tenants.bootstrap import initialise
from app.features.retention.repository.references import ReferenceStore
from app.features.retention.service.reaper import Reap
from app.infra.db.session import Database
from app.infra.files.storage import open_storage
from app.infra.runtime.child import ChildSpec
from app.infra.runtime.java import java_home
from app.infra.runtime.loopback import LOOPBACK, free_port
from app.infra.runtime.postgres import EmbeddedPostgres
from app.infra.runtime.stack import is_api_ready
from app.infra.runtime.valkey import EmbeddedValkey
from tests.support.gates import Gate, Gates, Waiting
from tests.support.http import TLS
from tests.support.process import Process
from tests.support.proxy import BreakingProxy
from tests.support.waiting import until

ROOT = Path(__file__).parents[2]
WORKERS = ("first", "second")
ATTEMPTS_MAX = 3
INLINE_BYTES_MAX = 64 * 1024
LEASE_SECONDS = 3.0
_READY_SECONDS_MAX = 120.0
_SETTINGS = {
    "HEADWATER_LEASE_SECONDS": str(LEASE_SECONDS),
    "HEADWATER_HEARTBEAT_SECONDS": "1",
    "HEADWATER_POLL_SECONDS": "0.5",
    "HEADWATER_MAINTENANCE_POLL_SECONDS": "0.4",
    "HEADWATER_ATTEMPTS_MAX": str(ATTEMPTS_MAX),
    "HEADWATER_RETENTION_SECONDS": "0.5",
    "HEADWATER_UNUSED_FILE_SECONDS": "0",
    "HEADWATER_INLINE_BYTES_MAX": str(INLINE_BYTES_MAX),
    "HEADWATER_SPARK_MASTER": "local[2]",
    "HEADWATER_DERIVED_HEAP_BYTES": str(512 * 1024 * 1024),
    "HEADWATER_WEBHOOK_RETRY_SECONDS": "0.2,0.2",
    "HEADWATER_WEBHOOK_HTTP": "true",
    "HEADWATER_WEBHOOK_ALLOW": "127.0.0.0/8",
    "HEADWATER_SOURCE_HTTP": "true",
    "HEADWATER_SOURCE_ALLOW": "127.0.0.0/8",
}


@dataclass(kw_only=True)
class Deployment:
    """Running processes by name: postgres, valkey, api, first, second (the workers).

    The workers differ: the second also takes a group of a dataset that the first is at (two writers at most).
    """

    url: str
    api_key: str
    owner_url: str
    storage: Path
    incoming: Path
    processes: dict[str, Process]
    proxies: dict[str, BreakingProxy]
    gates: Gates
    database: Database

    @classmethod
    @contextmanager
    def running(cls, directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[Self]:
        """Starts everything below `directory`, with further settings, and stops it in the end."""
        with ExitStack() as stack:
            postgres, valkey = EmbeddedPostgres(directory), EmbeddedValkey(directory)
            processes: dict[str, Process] = {}

            def start(spec: ChildSpec, *, wait: bool = True) -> None:
                processes[spec.name] = Process(spec, directory / "logs")
                processes[spec.name].start(wait=wait)
                stack.callback(processes[spec.name].stop)

            start(postgres.child())
            start(valkey.child())
            postgres.provision()
            key = initialise(
                postgres.owner_url, application_url=postgres.url, administration_url=postgres.admin_url
            ).api_key
            assert key is not None
            port = free_port()
            common = _environment(directory, valkey.url, port) | dict(settings or {})
            proxies = {name: stack.enter_context(BreakingProxy.before(postgres.url)) for name in WORKERS}
            urls = {
                "HEADWATER_DATABASE_URL": postgres.url,
                "HEADWATER_ADMIN_DATABASE_URL": postgres.admin_url,
            }
            start(_api(common | urls, port), wait=False)
            for writers, name in enumerate(WORKERS, start=1):
                own = {
                    "HEADWATER_DATABASE_URL": proxies[name].url,
                    "HEADWATER_DATASET_WRITERS_MAX": str(writers),
                }
                start(_worker(name, common | own, processes, postgres.owner_url), wait=False)
            for name in ("api", *WORKERS):
                processes[name].wait_ready()
            database = Database(postgres.url, application_name="tests")
            stack.callback(database.close)
            yield cls(
                url=f"http://{LOOPBACK}:{port}",
                api_key=key,
                owner_url=postgres.owner_url,
                storage=directory / "storage",
                incoming=directory / "incoming",
                processes=processes,
                proxies=proxies,
                gates=stack.enter_context(Gates.at(postgres.owner_url)),
                database=database,
            )

    def client(self) -> httpx2.Client:
        return httpx2.Client(
            base_url=self.url,
            headers={"Authorization": f"Bearer {self.api_key}"},
            timeout=90,
            trust_env=False,
            verify=TLS,
        )

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """Rows of a query, asked as the owner, who sees every tenant."""
        with psycopg.connect(self.owner_url, autocommit=True) as connection:
            return connection.execute(statement.encode(), values).fetchall()

    def arrival(self, gate: Gate) -> tuple[Waiting, str]:
        """The first session of a live worker to wait at the gate, once there is one, and the worker.

        Sessions of killed workers may wait there, too, until the server notices.
        """

        def found() -> tuple[Waiting, str] | None:
            for session in gate.waiting():
                for name, proxy in self.proxies.items():
                    if proxy.carries(session.port):
                        return session, name
            return None

        return until(found, "a worker to reach the gate", seconds_max=90)

    def worker_at(self, client_port: int) -> str:
        """The worker whose connection Postgres sees coming from this port."""
        [name] = [name for name, proxy in self.proxies.items() if proxy.carries(client_port)]
        return name

    def owner(self, job_id: str) -> str | None:
        """The worker that holds the job."""
        [(owner,)] = self.query("SELECT owner FROM jobs WHERE id = %s", job_id)
        if owner is None:
            return None
        pid = int(owner.rsplit("-", 2)[1])
        [name] = [name for name, each in self.processes.items() if each.runs and each.pid == pid]
        return name

    def other(self, worker: str) -> str:
        return WORKERS[1 - WORKERS.index(worker)]

    @contextmanager
    def frozen(self, *names: str) -> Iterator[None]:
        """These processes do nothing meanwhile."""
        for name in names:
            self.processes[name].freeze()
        try:
            yield
        finally:
            for name in names:
                self.processes[name].thaw()

    def reap(self) -> int:
        """Deletes every orphan, however young; returns how many."""
        reaper = Reap(
            references=ReferenceStore(self.database),
            storage=open_storage(self.storage.as_uri()),
            grace_seconds=0,
            upload_seconds_max=86_400,
            result_seconds_max=86_400,
        )
        return reaper.run()


def _environment(directory: Path, redis_url: str, port: int) -> dict[str, str]:
    return {
        "HEADWATER_DATA_DIR": str(directory),
        "HEADWATER_HOST": LOOPBACK,
        "HEADWATER_PORT": str(port),
        "HEADWATER_REDIS_URL": redis_url,
        "HEADWATER_SOURCE_ROOTS": (directory / "incoming").as_uri(),
        "JAVA_HOME": str(java_home(directory, os.environ)),
        "PYTHONPATH": str(ROOT),
        "PYTHONUNBUFFERED": "1",
        **_SETTINGS,
    }


def _api(environment: dict[str, str], port: int) -> ChildSpec:
    return ChildSpec(
        name="api",
        command=(sys.executable, "-P", "-m", "app.main"),
        environment=environment,
        ready=lambda: is_api_ready(port),
        ready_seconds_max=_READY_SECONDS_MAX,
        stop_seconds_max=15,
    )


def _worker(
    name: str, environment: dict[str, str], processes: dict[str, Process], owner_url: str
) -> ChildSpec:
    def polls() -> bool:
        with psycopg.connect(owner_url) as connection:
            query = "SELECT FROM workers WHERE id LIKE %s"
            return connection.execute(query, [f"%-{processes[name].pid}-%"]).fetchone() is not None

    return ChildSpec(
        name=name,
        command=(sys.executable, "-P", "-m", "workers.main"),
        environment=environment,
        ready=polls,
        ready_seconds_max=_READY_SECONDS_MAX,
        stop_seconds_max=15,
    )
