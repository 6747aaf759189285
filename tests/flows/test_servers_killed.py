"""The API and Redis are killed: what was acknowledged stays, what was not leaves nothing behind."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import httpx2
import pytest

from tests.support.deployment import Deployment
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

HALF = b"id,note\n" + b"7,half\n" * 400_000


@contextmanager
def sending(table: Table, announced_bytes: int) -> Iterator[socket.socket]:
    """A connection on which a raw write of this number of bytes has begun."""
    address = urlsplit(table.deployment.url)
    head = (
        f"POST {table.path}/writes HTTP/1.1\r\nHost: {address.netloc}\r\n"
        f"Authorization: Bearer {table.deployment.api_key}\r\n"
        f"Content-Type: text/csv\r\nContent-Length: {announced_bytes}\r\n\r\n"
    )
    with socket.create_connection((address.hostname, address.port)) as connection:
        connection.sendall(head.encode())
        yield connection


def restart(deployment: Deployment, name: str) -> None:
    deployment.processes[name].kill()
    deployment.processes[name].start()


def staged(table: Table) -> list[str]:
    return [str(path) for path in table.deployment.storage.glob(f"*/{table.id}/staged/*")]


@share(3)
def test_body_interrupted_by_a_killed_api_is_reaped(deployment: Deployment, table: Table) -> None:
    with sending(table, 2 * len(HALF)) as connection:
        connection.sendall(HALF)
        until(lambda: staged(table), "the body to reach storage")
        restart(deployment, "api")
    assert deployment.query("SELECT count(*) FROM jobs WHERE dataset_id = %s", table.id) == [(0,)]
    assert staged(table)
    deployment.reap()
    assert not staged(table)
    table.write("upsert", [{"id": 1, "note": "whole"}])
    assert table.sound() == [{"id": 1, "note": "whole"}]


def test_write_accepted_by_a_killed_api_is_replayed_by_its_key(deployment: Deployment, table: Table) -> None:
    headers = {"Idempotency-Key": "the one"}
    rows = [{"id": 1, "note": "once"}]
    broken: list[Exception] = []

    def send() -> None:
        try:
            with deployment.client() as client:
                Table(deployment=deployment, client=client, id=table.id, key=table.key).send(
                    "insert", rows, headers
                )
        except httpx2.TransportError as error:
            broken.append(error)

    thread = threading.Thread(target=send)
    with deployment.gates.in_commit(table.id) as gate:
        thread.start()
        gate.arrival("headwater api")
        deployment.processes["api"].kill()
    thread.join()
    assert broken
    jobs = "SELECT id::text FROM jobs WHERE dataset_id = %s"
    [(job_id,)] = until(lambda: deployment.query(jobs, table.id), "the job to be durable")
    deployment.processes["api"].start()
    answer = table.send("insert", rows, headers)
    assert (answer.json()["id"], answer.headers["idempotency-replayed"]) == (job_id, "true")
    assert table.succeeded(job_id)["rows"]["inserted"] == 1
    assert deployment.query(jobs, table.id) == [(job_id,)]
    assert table.sound() == rows


def test_writes_commit_while_redis_is_down(deployment: Deployment, table: Table) -> None:
    deployment.processes["valkey"].kill()
    try:
        table.write("upsert", [{"id": 1, "note": "without"}])
        table.write("upsert", [{"id": 2, "note": "without"}])
        # Workers report themselves late while they find that the server is gone.
        until(
            lambda: table.client.get("/health/service").json()["state"] == "degraded",
            "the service to be degraded",
        )
        health = table.client.get("/health/service")
        assert not health.json()["checks"]["redis"]["ok"]
    finally:
        deployment.processes["valkey"].start()
    # A server that was restarted knows nothing of what was sent to the one before.
    table.write("upsert", [{"id": 2, "note": "with"}])
    assert table.sound() == [{"id": 1, "note": "without"}, {"id": 2, "note": "with"}]
    for name in ("api", "first", "second"):
        assert deployment.processes[name].alive, f"{name} did not survive"
