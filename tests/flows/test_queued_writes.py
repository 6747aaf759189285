"""Writes that queue up while one runs: committed together, each with its own outcome."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.deployment import ATTEMPTS_MAX, Deployment
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack


@pytest.fixture
def one_worker(deployment: Deployment) -> Iterator[None]:
    """Only the first worker works: the second would take a group of its own beside it."""
    for name in ("first", "second"):
        deployment.processes[name].wait_ready()
    with deployment.frozen("second"):
        yield


def test_queued_writes_commit_as_one_version(deployment: Deployment, table: Table, one_worker: None) -> None:
    with deployment.gates.at_head(table.id) as gate:
        leader = table.submit("upsert", [{"id": 0, "note": "live"}])
        gate.arrival()
        upserts = [
            table.submit("upsert", [{"id": number, "note": f"own {number}"}, {"id": 99, "note": f"{number}"}])
            for number in range(1, 18)
        ]
        bad = table.submit("insert", [{"id": 0, "note": "again"}, {"id": 1000, "note": "never"}])
        cancelled = table.submit("upsert", [{"id": 2000, "note": "never"}])
        assert table.client.post(f"/jobs/{cancelled}/cancel").json()["state"] == "cancelled"
        key = {"Idempotency-Key": "last"}
        last = [{"id": 99, "note": "last"}]
        replies = [table.send("upsert", last, key).json()["id"] for _ in range(2)]
        assert replies[0] == replies[1]
    assert table.succeeded(leader)["committed_version"] == 1
    jobs = [table.succeeded(job_id) for job_id in [*upserts, replies[0]]]
    assert {job["committed_version"] for job in jobs} == {2}
    assert [job["rows"]["inserted"] for job in jobs] == [2] + [1] * 16 + [0]
    assert [job["rows"]["updated"] for job in jobs] == [0] + [1] * 17
    problem = table.failed(bad, "duplicate-key")
    assert (problem["status"], problem["duplicates"], problem["keys"]) == (422, 1, [{"id": 0}])
    assert table.job(cancelled)["state"] == "cancelled"
    rows = {row["id"]: row["note"] for row in table.sound()}
    assert rows == {0: "live", 99: "last"} | {number: f"own {number}" for number in range(1, 18)}
    # The feed has every step of a key, in order of acceptance.
    steps = [c["row"]["note"] for c in table.changes() if c["row"]["id"] == 99 and c["op"] in ("+A", "+C")]
    assert steps == [*map(str, range(1, 18)), "last"]


def test_failed_insert_releases_its_key_for_a_retry(table: Table) -> None:
    table.write("insert", [{"id": 1, "note": "first"}])
    key = {"Idempotency-Key": "insert"}
    first = table.send("insert", [{"id": 1, "note": "second"}], key).json()["id"]
    table.failed(first, "duplicate-key")
    replay = table.send("insert", [{"id": 1, "note": "second"}], key)
    assert (replay.status_code, replay.json()["type"]) == (422, "/problems/duplicate-key")
    assert replay.json()["job"]["id"] == first
    other = table.send("insert", [{"id": 2, "note": "second"}], key)
    assert (other.status_code, other.json()["type"]) == (422, "/problems/idempotency-mismatch")
    assert table.sound() == [{"id": 1, "note": "first"}]


@share(8)
def test_write_that_kills_every_worker_fails(deployment: Deployment, table: Table) -> None:
    for name in ("first", "second"):
        deployment.processes[name].wait_ready()
    # The second runs two groups of a dataset at a time: the other writes would lose their attempts with the poison's.
    with deployment.frozen("second"):
        with deployment.frozen("first"):
            before = table.submit("upsert", [{"id": 1, "note": "before"}])
            poison = table.submit("upsert", [{"id": 2, "note": "poison"}])
            after = table.submit("upsert", [{"id": 3, "note": "after"}])
        with deployment.gates.at_success(poison) as gate:
            for _ in range(ATTEMPTS_MAX):
                session, worker = deployment.arrival(gate)
                deployment.processes[worker].kill()
                deployment.processes[worker].start(wait=False)
                # The server would notice only once it has the lock that it waits for.
                deployment.gates.cut_off(session)
                until(lambda gone=session: gone not in gate.waiting(), "the dead worker's session to end")
            assert table.failed(poison, "attempts-exhausted")["attempts"] == ATTEMPTS_MAX
            for job_id in (before, after):
                table.succeeded(job_id)
    rows = sorted(table.sound(), key=lambda row: row["id"])
    assert rows == [{"id": 1, "note": "before"}, {"id": 3, "note": "after"}]
    deployment.reap()
    assert not table.orphans()
