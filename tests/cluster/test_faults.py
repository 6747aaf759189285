"""Parts of the cluster that are killed, stopped or restarted under load: nothing is lost, doubled or stuck."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count

import httpx
import pytest

from tests.cluster.conftest import Cluster
from tests.support.waiting import until

_numbers = count(1)
FIELDS = [{"name": "id", "type": "int64"}]
S3_SECONDS = 30


class Writer:
    """Writes one row after another through the proxy, each with a key of its own, and repeats what gets no answer."""

    def __init__(self, cluster: Cluster, dataset: str) -> None:
        self._cluster = cluster
        self.dataset = dataset
        self.accepted: list[int] = []
        self.refused: list[str] = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        self._thread.join(120)

    def _run(self) -> None:
        with self._cluster.client() as client:
            number = 0
            while not self._stop.is_set():
                number += 1
                while not self._accepts(client, number):
                    time.sleep(0.2)

    def _accepts(self, client: httpx.Client, number: int) -> bool:
        write = {"operation": "upsert", "source": {"kind": "rows", "rows": [{"id": number}]}}
        headers = {"Idempotency-Key": f"{self.dataset}-{number}", "Prefer": "wait=5"}
        try:
            answer = client.post(f"/datasets/{self.dataset}/writes", json=write, headers=headers)
        except httpx.HTTPError as error:
            self.refused.append(repr(error))
            return False
        if answer.status_code in {200, 202}:
            self.accepted.append(number)
            return True
        self.refused.append(f"{answer.status_code} {answer.text[:200]}")
        return False


@contextmanager
def writing(cluster: Cluster, client: httpx.Client) -> Iterator[Writer]:
    """A writer, whose rows are checked in the end: each accepted one is in the table and once in the feed."""
    name = f"faults_{next(_numbers)}"
    definition = {"name": name, "schema": {"fields": FIELDS}, "record_key": ["id"], "bucket": {"count": 1}}
    assert client.post("/datasets", json=definition).status_code == 201
    writer = Writer(cluster, name)
    writer.start()
    try:
        until(lambda: len(writer.accepted) >= 3, "the first writes", seconds_max=60)
        yield writer
    finally:
        writer.stop()
    params = {"dataset": name, "page_size": 200}

    def ended() -> bool:
        answer = client.get("/jobs", params=params)
        return answer.status_code == 200 and all(
            job["state"] == "succeeded" for job in answer.json()["items"]
        )

    until(ended, "the end of all jobs", seconds_max=120)
    changes = client.get(f"/datasets/{name}/changes", params={"limit": 5_000}).json()["changes"]
    assert sorted(change["row"]["id"] for change in changes) == sorted(writer.accepted)


def committed_rows(client: httpx.Client, dataset: str) -> int:
    answer = client.get(f"/datasets/{dataset}")
    return int(answer.json()["next_offset"]) if answer.status_code == 200 else 0


def recovery_seconds(client: httpx.Client, writer: Writer, since: float) -> float:
    """The time until something is committed again."""
    before = len(writer.accepted)

    def committed() -> bool:
        # A write that is accepted after the fault, and all before it, are committed.
        try:
            return len(writer.accepted) > before + 1 and committed_rows(client, writer.dataset) > before + 1
        except httpx.HTTPError:
            return False

    until(committed, "a commit after the fault", seconds_max=120)
    return time.monotonic() - since


KILLS = {
    "executor": ("spark-worker-1", "CoarseGrainedExecutorBackend"),
    "Spark worker": ("spark-worker-1", "deploy.worker.Worker"),
    "Spark master": ("spark-master-1", "deploy.master.Master"),
    "API": ("api-1", "app.main"),
    "worker": ("worker-1", "workers.main"),
}


@pytest.mark.parametrize("part", KILLS)
def test_nothing_is_lost_or_doubled_when_a_part_is_killed(
    cluster: Cluster, client: httpx.Client, part: str, record_property: Callable[[str, object], None]
) -> None:
    with writing(cluster, client) as writer:
        cluster.kill(*KILLS[part])
        seconds = recovery_seconds(client, writer, time.monotonic())
        record_property("seconds", round(seconds, 1))
        print(f"{part}: {seconds:.1f} s")
    # Later tests need the part again.
    until(lambda: cluster.processes(*KILLS[part]), part, seconds_max=90)
    until(lambda: cluster.checks().get("spark", {}).get("ok"), "executors for all", seconds_max=120)


def test_nothing_is_lost_or_doubled_when_the_storage_hangs(cluster: Cluster, client: httpx.Client) -> None:
    with writing(cluster, client) as writer:
        [storage] = cluster.processes("storage-1")
        storage.suspend()
        try:
            time.sleep(S3_SECONDS)
        finally:
            storage.resume()
        print(f"storage: {recovery_seconds(client, writer, time.monotonic()):.1f} s after {S3_SECONDS} s")


def test_nothing_is_lost_or_doubled_when_postgres_is_stopped_and_started(
    cluster: Cluster, client: httpx.Client
) -> None:
    with writing(cluster, client) as writer:
        # The first process is the server's own; its supervisor starts it again on the same data.
        cluster.processes("postgres-1")[0].send_signal(signal.SIGINT)
        print(f"postgres: {recovery_seconds(client, writer, time.monotonic()):.1f} s")


def test_rolling_restart_fails_no_request(cluster: Cluster, client: httpx.Client) -> None:
    with writing(cluster, client) as writer:
        writer.refused.clear()
        for container, words in [
            ("api-1", "app.main"),
            ("api-2", "app.main"),
            ("worker-1", "workers.main"),
            ("worker-2", "workers.main"),
        ]:
            old, *_ = cluster.processes(container, words)
            old.send_signal(signal.SIGTERM)
            until(lambda old=old: not old.is_running(), f"the end of {container}", seconds_max=60)
            until(lambda name=container: runs(cluster, name), f"the start of {container}", seconds_max=90)
        assert writer.refused == []


def runs(cluster: Cluster, container: str) -> bool:
    """Whether an API answers, or a worker has executors, after its start."""
    if not cluster.processes(container):
        return False
    environment = cluster.environment(container)
    if "HEADWATER_HOST" in environment:
        try:
            url = f"http://{environment['HEADWATER_HOST']}:{environment['HEADWATER_PORT']}/health/live"
            return httpx.get(url, timeout=2, trust_env=False).status_code == 200
        except httpx.HTTPError:
            return False
    driver = f"CoarseGrainedScheduler@{environment['HEADWATER_SPARK_DRIVER_HOST']}:"
    return bool(cluster.processes("spark-worker-1", driver))
