"""Exports on the whole stack, while writers write."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import httpx2
import pytest

from tests.support.deployment import Deployment
from tests.support.exports import NDJSON
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack


@share(3)
def test_scheduled_runs_contain_every_change_once(
    deployment: Deployment, new_table: Callable[..., Table], client: httpx2.Client
) -> None:
    table = new_table()
    stop = threading.Event()
    jobs: list[str] = []

    def write() -> None:
        number = 0
        while not stop.wait(0.05):
            number += 1
            rows = [{"id": number % 7, "note": f"{number}"}, {"id": 100 + number, "note": None}]
            jobs.append(table.submit("upsert", rows))

    table.write("upsert", [{"id": 0, "note": "first"}])
    body = {"query": "changes", "format": "ndjson", "schedule": {"every_seconds": 10}}
    export = client.post(f"{table.path}/exports", json=body).headers["location"]
    writer = threading.Thread(target=write, name="writer")
    writer.start()
    try:
        # By schedule, and in between on request.
        until(lambda: len(done(client, export)) >= 1, "the first run")
        client.post(f"{export}/runs")
        until(lambda: len(done(client, export)) >= 3, "the third run", seconds_max=40)
    finally:
        stop.set()
        writer.join()
    for job in jobs:
        table.succeeded(job)
    client.post(f"{export}/runs")
    head = len(table.changes())
    until(lambda: state(client, export)["offset"] == head, "the last run", seconds_max=40)
    exported = b"".join(written(client, run) for run in reversed(done(client, export)))
    answer = client.get(f"{table.path}/changes", params={"limit": 10_000}, headers={"Accept": NDJSON})
    assert int(answer.headers["headwater-pending"]) == 0
    assert exported == answer.content
    deployment.reap()
    assert exported == b"".join(written(client, run) for run in reversed(done(client, export)))


def test_changed_rows_are_exported_on_spark(new_table: Callable[..., Table], client: httpx2.Client) -> None:
    table = new_table()
    table.write("upsert", [{"id": number, "note": "old"} for number in range(5_000)])
    since = len(table.changes())
    table.write("upsert", [{"id": number, "note": "new"} for number in range(0, 5_000, 10)])
    table.write("delete", [{"id": number} for number in range(0, 5_000, 20)])
    for format_ in ("ndjson", "csv"):
        body = {"query": "incremental", "format": format_, "since": since, "where": "note = 'new'"}
        export = client.post(f"{table.path}/exports", json=body).headers["location"]
        table.succeeded(state(client, export)["runs"][0]["job_id"])
        (run,) = done(client, export)
        content = written(client, run)
        lines = content.decode().splitlines()[format_ == "csv" :]
        texts = ['{{"id":{},"note":"new"}}', '{},"new"'][format_ == "csv"]
        assert sorted(lines) == sorted(texts.format(number) for number in range(10, 5_000, 20))


def test_run_with_a_killed_worker_is_published_once(
    deployment: Deployment, new_table: Callable[..., Table], client: httpx2.Client
) -> None:
    for name in ("first", "second"):
        deployment.processes[name].wait_ready()
    table = new_table()
    table.write("upsert", [{"id": number, "note": "a"} for number in range(100)])
    export = client.post(f"{table.path}/exports", json={"query": "changes", "format": "csv"}).headers[
        "location"
    ]
    job_id = state(client, export)["runs"][0]["job_id"]
    with deployment.gates.at_success(job_id) as gate:
        session = gate.arrival()
        worker = deployment.worker_at(session.port)
        deployment.processes[worker].kill()
        deployment.processes[worker].start(wait=False)
        # The server would notice only once it has the lock that it waits for.
        deployment.gates.cut_off(session)
    assert table.succeeded(job_id)["attempts"] == 2
    (run,) = done(client, export)
    assert (run["rows"], run["file_count"]) == (100, 1)
    folder = f"*/*/exports/{run['links']['export'].rsplit('/', 1)[1]}/*"
    attempts = {path.name for path in deployment.storage.glob(folder)}
    assert len(attempts) == 2
    deployment.reap()
    left = {path.parent.name for path in deployment.storage.glob(f"{folder}/*")}
    assert left < attempts
    assert len(written(client, run).splitlines()) == 101


def state(client: httpx2.Client, export: str) -> dict[str, Any]:
    return client.get(export).json()


def done(client: httpx2.Client, export: str) -> list[dict[str, Any]]:
    """The runs that have succeeded, the last one first."""
    runs = client.get(f"{export}/runs").json()["items"]
    assert all(run["error"] is None for run in runs), runs
    return [run for run in runs if run["state"] == "succeeded"]


def written(client: httpx2.Client, run: dict[str, Any]) -> bytes:
    """The files of a run, joined."""
    manifest = client.get(run["links"]["self"]).json()
    found = [client.get(file["links"]["self"]) for file in manifest["files"]]
    assert all(answer.status_code == 200 for answer in found)
    return b"".join(answer.content for answer in found)
