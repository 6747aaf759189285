"""Random histories of several clients on the cluster, while its processes are killed at random.

`HISTORIES=10 make test-cluster` runs more of them.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx2
import psutil
import pytest

from tests.cluster.conftest import Cluster
from tests.support.concurrent_history import check_history, run_clients, settings_of
from tests.support.table import Row, Table

HISTORIES: Final = int(os.environ.get("HISTORIES", "2"))
WRITES_EACH: Final = 25
KILLS_MIN: Final = 6
# On a slow machine, processes are killed faster than they start. After this number of kills the clients are left alone.
KILLS_MAX: Final = 40
# The pauses between kills, in seconds.
PAUSES: Final = (0.5, 4.0)
VICTIMS: Final = [
    ("spark-worker-1", "CoarseGrainedExecutorBackend"),
    ("spark-worker-2", "CoarseGrainedExecutorBackend"),
    ("spark-worker-1", "deploy.worker.Worker"),
    ("spark-worker-2", "deploy.worker.Worker"),
    ("spark-master-1", "deploy.master.Master"),
    ("api-1", "app.main"),
    ("api-2", "app.main"),
    ("worker-1", "workers.main"),
    ("worker-2", "workers.main"),
]


class Patient:
    """The cluster with clients that repeat requests, which must have an Idempotency-Key if they write."""

    def __init__(self, cluster: Cluster) -> None:
        self.failures: list[str] = []
        self._cluster = cluster

    @property
    def storage(self) -> Path:
        return self._cluster.storage

    def client(self) -> httpx2.Client:
        return self._cluster.client(self.failures)

    def query(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._cluster.query(statement, *values)


class Killer:
    """A thread that kills processes of the cluster at random times. `killed`: which."""

    def __init__(self, cluster: Cluster, seed: int) -> None:
        self.killed: list[str] = []
        self._cluster = cluster
        self._rng = random.Random(f"kills {seed}")
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        # KILLS_MIN at least, however fast the clients are.
        while len(self.killed) < KILLS_MIN or (len(self.killed) < KILLS_MAX and not self._stopping.is_set()):
            self._stopping.wait(self._rng.uniform(*PAUSES))
            container, words = self._rng.choice(VICTIMS)
            if victims := self._cluster.processes(container, words):
                with suppress(psutil.NoSuchProcess):
                    self._rng.choice(victims).kill()
                self.killed.append(f"{words.rpartition('.')[2]} of {container}")

    @contextmanager
    def running(self) -> Iterator[None]:
        self._thread.start()
        try:
            yield
        finally:
            self._stopping.set()
            self._thread.join(60)


def submit(table: Table, operation: str, rows: Sequence[Row]) -> str:
    """The job of a write, which is sent again with the same key until it has an answer."""
    answer = table.send(operation, rows, {"Idempotency-Key": uuid4().hex})
    assert answer.status_code in {200, 202}, answer.text
    job_id: str = answer.json()["id"]
    return job_id


@pytest.mark.parametrize("seed", range(HISTORIES))
def test_history_with_random_kills_equals_a_serial_one(cluster: Cluster, seed: int) -> None:
    settings, service = settings_of(seed), Patient(cluster)
    with service.client() as client:
        name = f"history_{seed}"
        answer = client.post("/datasets", json={"name": name, **settings})
        assert answer.status_code == 201, answer.text
        table = Table(
            deployment=service, client=client, id=answer.json()["id"], key=tuple(settings["record_key"])
        )
        killer = Killer(cluster, seed)
        with killer.running():
            writes = run_clients(table, seed, submit, writes_each=WRITES_EACH, minutes=6)
        print(f"seed {seed}: killed {', '.join(killer.killed)}; {len(service.failures)} requests repeated")
        cluster.settle()
        check_history(table, writes, settings.get("ordering_field"))
