"""Clients of the cluster while its parts are stopped, and the check of what they wrote and read."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count, pairwise
from typing import Any, Final

import httpx2

from tests.cluster.conftest import Cluster
from tests.support.table import Table
from tests.support.waiting import until

FIELDS: Final = [
    {"name": name, "type": kind} for name, kind in {"id": "int64", "n": "int64", "note": "string"}.items()
]
WRITERS: Final = 3
BUCKETS: Final = 4
# More than is kept with a job in Postgres, however it is encoded: such writes need the storage to be accepted.
LARGE_BYTES: Final = 80_000
_KEYS_OF_A_WRITER: Final = 1_000_000
_numbers = count(1)


class Client:
    """A thread that sends requests, and repeats those that fail because a part is away. `failures`: these."""

    def __init__(self, run: Callable[[httpx2.Client], None], cluster: Cluster) -> None:
        self.failures: list[str] = []
        self.stopping = threading.Event()
        self._error: BaseException | None = None
        self._run = run
        self._cluster = cluster
        self._thread = threading.Thread(target=self._loop, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Waits for its last request. Raises what has ended the thread."""
        self.stopping.set()
        self._thread.join(240)
        assert not self._thread.is_alive(), "a request has no end"
        if self._error is not None:
            raise self._error

    def _loop(self) -> None:
        try:
            with self._cluster.client(self.failures) as client:
                while not self.stopping.is_set():
                    self._run(client)
        except BaseException as error:
            self._error = error


class Writer(Client):
    """Writes rows one write after another, each after the commit of the last: a new key, and updates of its older ones.

    `note_bytes`: of the note of each new key. `values`: all that were written to each key, in order. `jobs`: of all
    writes. `commits`: when each write was sent, and when it was seen to be committed.
    """

    def __init__(self, cluster: Cluster, dataset: str, number: int, note_bytes: int) -> None:
        super().__init__(self._write, cluster)
        self.values: dict[int, list[int]] = {}
        self.jobs: list[str] = []
        self.commits: list[tuple[float, float]] = []
        self._dataset, self._number, self._note_bytes = dataset, number, note_bytes
        self._rng = random.Random(number)

    def _write(self, client: httpx2.Client) -> None:
        n = len(self.jobs) + 1
        older = self._rng.sample(sorted(self.values), min(len(self.values), self._rng.randint(0, 3)))
        keys = [self._number * _KEYS_OF_A_WRITER + n, *older]
        rows: list[dict[str, Any]] = [{"id": key, "n": n, "note": None} for key in keys]
        rows[0]["note"] = self._rng.randbytes(self._note_bytes).hex()
        write = {"operation": "upsert", "source": {"kind": "rows", "rows": rows}}
        headers = {"Idempotency-Key": f"{self._dataset}-{self._number}-{n}", "Prefer": "wait=5"}
        sent = time.monotonic()
        answer = client.post(f"/datasets/{self._dataset}/writes", json=write, headers=headers)
        assert answer.status_code in {200, 202}, answer.text
        job = answer.json()
        self.jobs.append(job["id"])
        for key in keys:
            self.values.setdefault(key, []).append(n)
        while job["state"] in {"queued", "running"}:
            job = client.get(f"/jobs/{job['id']}", params={"wait": 5}).json()
        assert job["state"] == "succeeded", job
        self.commits.append((sent, time.monotonic()))
        time.sleep(0.1)


class Follower(Client):
    """Reads the feed as it grows, page after page. `changes`: what it has read."""

    def __init__(self, cluster: Cluster, dataset: str) -> None:
        super().__init__(self._read, cluster)
        self.changes: list[dict[str, Any]] = []
        self._dataset = dataset

    def _read(self, client: httpx2.Client) -> None:
        params = {"since": len(self.changes), "timeout": 1, "limit": 1_000}
        answer = client.get(f"/datasets/{self._dataset}/changes", params=params)
        assert answer.status_code == 200, answer.text
        self.changes += answer.json()["changes"]
        time.sleep(0.1)


class Load:
    """Several writers and a follower of one dataset of several buckets."""

    def __init__(self, cluster: Cluster, client: httpx2.Client) -> None:
        name = f"load_{next(_numbers)}"
        definition = {
            "name": name,
            "schema": {"fields": FIELDS},
            "record_key": ["id"],
            "bucket": {"count": BUCKETS},
        }
        answer = client.post("/datasets", json=definition)
        assert answer.status_code == 201, answer.text
        self.table = Table(deployment=cluster, client=client, id=answer.json()["id"], key=("id",))
        sizes = [LARGE_BYTES, *[0] * (WRITERS - 1)]
        self.writers = [Writer(cluster, name, number, size) for number, size in enumerate(sizes)]
        self.follower = Follower(cluster, name)

    @property
    def failures(self) -> list[str]:
        """Requests that were repeated."""
        return [failure for client in (*self.writers, self.follower) for failure in client.failures]

    def start(self) -> None:
        for client in (*self.writers, self.follower):
            client.start()
        until(
            lambda: all(len(each.commits) >= 2 for each in self.writers), "the first commits", seconds_max=90
        )

    def stop(self) -> None:
        for client in (*self.writers, self.follower):
            client.stopping.set()
        for client in (*self.writers, self.follower):
            client.stop()

    def recovery_seconds(self, since: float) -> tuple[float, float]:
        """How long after this time a write that was sent after it was committed: of one client, and of all."""

        def first(writer: Writer) -> float | None:
            return next((seen - since for sent, seen in list(writer.commits) if sent >= since), None)

        def found() -> list[float] | None:
            seconds = [first(writer) for writer in self.writers]
            return [each for each in seconds if each is not None] if None not in seconds else None

        seconds = until(found, "a commit of every client after the fault", seconds_max=180)
        return min(seconds), max(seconds)

    def check(self) -> None:
        """The table, the whole feed, all jobs and what the follower read are what the writers wrote, once."""
        rows = self.table.sound()
        values = {key: written for writer in self.writers for key, written in writer.values.items()}
        assert {row["id"]: row["n"] for row in rows} == {key: written[-1] for key, written in values.items()}
        changes = self.table.changes()
        steps: dict[int, list[tuple[str, int]]] = {}
        for change in changes:
            steps.setdefault(change["row"]["id"], []).append((change["op"], change["row"]["n"]))
        assert steps == {key: _steps(written) for key, written in values.items()}
        assert self.follower.changes == changes[: len(self.follower.changes)]
        # Table services run by themselves, and may have begun just now.
        until(lambda: not self._jobs(state=["queued", "running"]), "the end of all jobs", seconds_max=120)
        jobs = self._jobs(kind=["write"])
        assert {job["state"] for job in jobs} == {"succeeded"}
        sent = [job_id for writer in self.writers for job_id in writer.jobs]
        assert sorted(job["id"] for job in jobs) == sorted(sent)

    def _jobs(self, **selection: list[str]) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        params: dict[str, Any] = {"dataset": self.table.id, "page_size": 1_000, **selection}
        while True:
            answer = self.table.client.get("/jobs", params=params)
            assert answer.status_code == 200, answer.text
            found += answer.json()["items"]
            if answer.json()["next_page_token"] is None:
                return found
            params["page_token"] = answer.json()["next_page_token"]


def _steps(written: list[int]) -> list[tuple[str, int]]:
    """The changes of a key to which these values were written."""
    corrected = [step for old, new in pairwise(written) for step in (("-C", old), ("+C", new))]
    return [("+A", written[0]), *corrected]


@contextmanager
def loaded(cluster: Cluster, client: httpx2.Client) -> Iterator[Load]:
    """A load, which is checked in the end, once every container is there again."""
    load = Load(cluster, client)
    load.start()
    try:
        yield load
    finally:
        load.stop()
        cluster.settle()
    load.check()
