"""Faults of the environment: accepted writes wait for them, and are committed once."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import psutil
import pytest

from tests.support.deployment import Deployment
from tests.support.health import service_checks
from tests.support.process import spark_tasks
from tests.support.shares import share
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

ROWS = [{"id": number, "note": "written"} for number in range(200)]


def waits(table: Table, job_id: str, missing: str, attempts: int) -> bool:
    job = table.job(job_id)
    assert job["state"] in ("queued", "running")
    return job["progress"]["waiting_for"] == missing and job["attempts"] >= attempts


@contextmanager
def storage_away(deployment: Deployment) -> Iterator[None]:
    away = deployment.storage.with_name("away")
    deployment.storage.rename(away)
    try:
        yield
    finally:
        away.rename(deployment.storage)


@share(3)
def test_writes_wait_for_a_storage_that_is_away_and_are_committed_once(
    deployment: Deployment, table: Table
) -> None:
    table.write("upsert", ROWS[:10])
    with ExitStack() as stack:
        with deployment.gates.before_claim(table.id):
            job_ids = [table.submit("upsert", [row]) for row in ROWS[10:13]]
            job_ids.append(table.submit("delete", [{"id": 0}]))
            stack.enter_context(storage_away(deployment))
        until(lambda: waits(table, job_ids[0], "storage", attempts=2), "the write to wait")
        for name in ("storage", "jobs"):
            until(lambda name=name: not service_checks(table.client)[name]["ok"], f"the check {name} to fail")
        assert table.client.get("/health/service").json()["state"] == "failing"
        assert table.client.get("/health/ready").status_code == 200
        # Larger than what is kept with its job: these rows need the storage.
        refused = table.send("upsert", [{"id": 0, "note": "x" * 100_000}])
        assert (refused.status_code, refused.json()["type"]) == (503, "/problems/storage-unavailable")
        assert table.version == 1
        assert not deployment.storage.exists()
    assert {table.succeeded(job_id)["committed_version"] for job_id in job_ids} == {2}
    assert {row["id"] for row in table.sound()} == set(range(1, 13))
    until(lambda: table.client.get("/health/service").json()["state"] == "ok", "the service to work")


@contextmanager
def full_disk(deployment: Deployment, worker: str) -> Iterator[None]:
    """The tasks of the worker cannot write more than a few bytes to a file."""
    tasks = spark_tasks(deployment.processes[worker].pid)
    limited = [*tasks, *{psutil.Process(task.ppid()) for task in tasks}]
    before = [process.rlimit(resource.RLIMIT_FSIZE) for process in limited]
    for process, (_, hard) in zip(limited, before, strict=True):
        process.rlimit(resource.RLIMIT_FSIZE, (64, hard))
    try:
        yield
    finally:
        for process, limits in zip(limited, before, strict=True):
            if process.is_running():
                process.rlimit(resource.RLIMIT_FSIZE, limits)


def test_write_waits_for_space_and_leaves_no_part_of_a_file(deployment: Deployment, table: Table) -> None:
    deployment.processes["first"].wait_ready()
    with deployment.frozen("second"):
        with full_disk(deployment, "first"):
            job_id = table.submit("upsert", ROWS)
            until(lambda: waits(table, job_id, "space", attempts=2), "the write to wait")
            assert table.version == 0
            assert not table.stored()
        assert table.succeeded(job_id)["committed_version"] == 1
    assert len(table.sound()) == len(ROWS)


@share(3)
def test_write_of_a_killed_worker_does_not_wait_for_its_lease(deployment: Deployment, table: Table) -> None:
    first = deployment.processes["first"]
    first.wait_ready()
    with deployment.frozen("second"), deployment.gates.before_plan() as gate:
        job_id = table.submit("upsert", ROWS)
        gate.arrival()
        # Without its heartbeat, so that the lease stays as long.
        first.freeze()
        longer = "UPDATE jobs SET lease_until = lease_until + interval '600 s' WHERE id = %s RETURNING epoch"
        assert deployment.query(longer, job_id) == [(1,)]
        first.kill()
    first.start(wait=False)
    job = table.succeeded(job_id)
    assert (job["attempts"], job["committed_version"]) == (2, 1)
    # The commit is of the claim after the one that was ended.
    assert deployment.query("SELECT epoch FROM jobs WHERE id = %s", job_id) == [(2,)]
    assert len(table.sound()) == len(ROWS)
