"""Parts of the cluster that are killed, stopped or restarted under load: nothing is lost, doubled or stuck."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable

import httpx2
import pytest

from tests.cluster.conftest import Cluster
from tests.cluster.load import Load, loaded
from tests.support.http import upsert
from tests.support.shares import share
from tests.support.waiting import until

AWAY_SECONDS = 30
Record = Callable[[str, object], None]
KILLS = {
    "executor": ("spark-worker-1", "CoarseGrainedExecutorBackend"),
    "Spark worker": ("spark-worker-1", "deploy.worker.Worker"),
    "Spark master": ("spark-master-1", "deploy.master.Master"),
    "API": ("api-1", "app.main"),
    "worker": ("worker-1", "workers.main"),
}


def report(fault: str, load: Load, since: float, record_property: Record) -> None:
    """Prints how long the fault lasted for the clients, for the table in docs/operations.md."""
    first, all_clients = load.recovery_seconds(since)
    record_property("seconds", [round(first, 1), round(all_clients, 1)])
    print(f"{fault}: {first:.1f} s, all clients {all_clients:.1f} s, {len(load.failures)} requests repeated")


@share(2 * len(KILLS))
@pytest.mark.parametrize("part", KILLS)
def test_nothing_is_lost_or_doubled_when_a_part_is_killed(
    cluster: Cluster, client: httpx2.Client, part: str, record_property: Record
) -> None:
    with loaded(cluster, client) as load:
        since = time.monotonic()
        cluster.kill(*KILLS[part])
        report(part, load, since, record_property)


def test_nothing_is_lost_or_doubled_when_the_storage_hangs(
    cluster: Cluster, client: httpx2.Client, record_property: Record
) -> None:
    with loaded(cluster, client) as load:
        [storage] = cluster.processes("storage-1")
        storage.suspend()
        try:
            time.sleep(AWAY_SECONDS)
        finally:
            since = time.monotonic()
            storage.resume()
        report(f"storage frozen for {AWAY_SECONDS} s", load, since, record_property)


def test_nothing_is_lost_or_doubled_when_the_storage_is_killed_and_away(
    cluster: Cluster, client: httpx2.Client, record_property: Record
) -> None:
    with loaded(cluster, client) as load:
        # Its supervisor starts it again and again, at growing intervals.
        away_until, killed = time.monotonic() + AWAY_SECONDS, 0
        while time.monotonic() < away_until:
            for process in cluster.processes("storage-1"):
                process.kill()
                killed += 1
            time.sleep(0.2)
        assert killed > 1
        until(lambda: cluster.processes("storage-1"), "the storage", seconds_max=60)
        report(f"storage killed for {AWAY_SECONDS} s", load, time.monotonic(), record_property)


def test_nothing_is_lost_or_doubled_when_postgres_is_stopped_and_started(
    cluster: Cluster, client: httpx2.Client, record_property: Record
) -> None:
    with loaded(cluster, client) as load:
        since = time.monotonic()
        # The first process is the server's own; its supervisor starts it again on the same data.
        cluster.processes("postgres-1")[0].send_signal(signal.SIGINT)
        report("postgres", load, since, record_property)


def test_reads_go_on_through_the_proxy_while_no_worker_runs(cluster: Cluster, client: httpx2.Client) -> None:
    fields = [{"name": "id", "type": "int64"}]
    definition = {"name": "without-workers", "schema": {"fields": fields}, "record_key": ["id"]}
    dataset = client.post("/datasets", json=definition).headers["location"]
    written = client.post(f"{dataset}/writes", json=upsert({"id": 1})).headers["location"]
    until(lambda: client.get(written).json()["state"] == "succeeded", "the first write", seconds_max=180)
    # They are stopped first, so that none of their successors counts.
    stopped = [process for name in ("worker-1", "worker-2") for process in cluster.processes(name)]
    for process in stopped:
        process.suspend()
    try:
        until(lambda: not cluster.checks()["workers"]["ok"], "the workers to count as gone", seconds_max=60)
        assert client.get("/health/service").json()["state"] == "failing"
        for _ in range(20):
            assert client.get("/health/ready").status_code == 200
            assert client.get(f"{dataset}/rows").json()["rows"] == [{"id": 1}]
        accepted = client.post(f"{dataset}/writes", json=upsert({"id": 2}))
        assert accepted.status_code == 202
    finally:
        for process in stopped:
            process.kill()
    until(
        lambda: client.get(accepted.headers["location"]).json()["state"] == "succeeded",
        "the write that waited",
        seconds_max=120,
    )


def served_rows(cluster: Cluster, container: str) -> float:
    """How many pages of rows an API has answered."""
    api = cluster.containers[container]
    url = f"http://{api.address}:{api.environment['HEADWATER_PORT']}/metrics"
    headers = {"Authorization": f"Bearer {cluster.api_key}"}
    text = httpx2.get(url, headers=headers, timeout=10, trust_env=False).text
    route = r"^http_server_request_duration_seconds_count\{.*/datasets/\{dataset\}/rows\".*\} (\S+)$"
    counts = re.findall(route, text, re.MULTILINE)
    return sum(map(float, counts))


def test_api_that_stops_gets_no_request_while_it_still_answers(
    cluster: Cluster, client: httpx2.Client
) -> None:
    fields = [{"name": "id", "type": "int64"}]
    definition = {"name": "draining", "schema": {"fields": fields}, "record_key": ["id"]}
    rows = client.post("/datasets", json=definition).headers["location"] + "/rows"
    [stopped, *_] = cluster.processes("api-1", "app.main")
    until(lambda: client.get(rows) and served_rows(cluster, "api-1"), "a read by the first API")
    stopped.send_signal(signal.SIGTERM)
    until(lambda: not cluster.is_ready("api-1"), "its drain")
    # The proxy checks once a second.
    time.sleep(2.2)
    before = served_rows(cluster, "api-1")
    assert {client.get(rows).status_code for _ in range(40)} == {200}
    assert served_rows(cluster, "api-1") == before
    until(lambda: not stopped.is_running(), "its end", seconds_max=60)
    assert {client.get(rows).status_code for _ in range(40)} == {200}
    cluster.wait_ready("api-1")


def restart(cluster: Cluster, container: str, words: str = "") -> None:
    """Stops a container in order, and returns once its successor is ready."""
    old, *_ = cluster.processes(container, words)
    # As the image of PostgreSQL does: SIGTERM would wait for its clients.
    old.send_signal(signal.SIGINT if container == "postgres-1" else signal.SIGTERM)
    until(lambda: not old.is_running(), f"the end of {container}", seconds_max=90)
    cluster.wait_ready(container)


def test_rolling_restart_fails_no_request(cluster: Cluster, client: httpx2.Client) -> None:
    with loaded(cluster, client) as load:
        for container, words in [
            ("api-1", "app.main"),
            ("api-2", "app.main"),
            ("worker-1", "workers.main"),
            ("worker-2", "workers.main"),
            ("spark-worker-1", "deploy.worker.Worker"),
            ("spark-worker-2", "deploy.worker.Worker"),
            ("spark-master-1", "deploy.master.Master"),
            ("redis-1", ""),
            ("storage-1", ""),
        ]:
            since = time.monotonic()
            restart(cluster, container, words)
            load.recovery_seconds(since)
            print(f"{container}: {time.monotonic() - since:.1f} s, {load.failures}")
            assert load.failures == [], container


def test_restart_of_a_single_server_needs_repeated_requests_only(
    cluster: Cluster, client: httpx2.Client
) -> None:
    with loaded(cluster, client) as load:
        # Without the proxy there is no connection; without Postgres, 503. Requests of the first restart may still be
        # repeated during the second.
        for container, causes in {
            "ingress-1": ("Error(", "502"),
            "postgres-1": ("Error(", "502", "503"),
        }.items():
            before = len(load.failures)
            since = time.monotonic()
            restart(cluster, container)
            load.recovery_seconds(since)
            failures = load.failures[before:]
            print(f"{container}: {time.monotonic() - since:.1f} s, {failures}")
            assert all(any(cause in failure for cause in causes) for failure in failures), failures
