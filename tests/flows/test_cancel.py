"""Cancelling: a write that waits, one about to commit, and one whose Spark tasks hang."""

from __future__ import annotations

import pytest

from tests.support.deployment import Deployment
from tests.support.process import spark_tasks
from tests.support.table import Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

ROW = {"id": 1, "note": "cancelled"}
NEXT = {"id": 1, "note": "next"}


def cancel(table: Table, job_id: str) -> None:
    answer = table.client.post(f"/jobs/{job_id}/cancel")
    assert (answer.status_code, answer.json()["state"]) == (200, "cancelled")


def test_cancelled_waiting_write_does_not_run(deployment: Deployment, table: Table) -> None:
    with deployment.gates.before_claim(table.id) as gate:
        job_id = table.submit("insert", [ROW])
        gate.arrival()
        cancel(table, job_id)
    assert table.write("insert", [NEXT])["committed_version"] == 1
    assert table.job(job_id)["attempts"] == 0
    assert table.sound() == [NEXT]
    again = table.client.post(f"/jobs/{job_id}/cancel")
    assert (again.status_code, again.json()["type"]) == (409, "/problems/job-ended")


def test_write_cancelled_before_its_commit_leaves_no_rows(deployment: Deployment, table: Table) -> None:
    with deployment.gates.at_head(table.id) as gate:
        job_id = table.submit("insert", [ROW])
        gate.arrival()
        cancel(table, job_id)
    assert table.write("insert", [NEXT])["committed_version"] == 1
    assert table.sound() == [NEXT]
    timeline = table.client.get(f"{table.path}/timeline").json()["items"]
    assert [instant["state"] for instant in timeline] == ["completed", "rolled_back"]
    assert table.orphans()
    deployment.reap()
    assert not table.orphans()


def test_cancel_stops_hanging_tasks(deployment: Deployment, table: Table) -> None:
    for name in ("first", "second"):
        deployment.processes[name].wait_ready()
    with deployment.frozen("second"):
        table.write("upsert", [{"id": number, "note": ""} for number in range(10)])
        workers = spark_tasks(deployment.processes["first"].pid)
        assert workers
        for process in workers:
            process.suspend()
        try:
            job_id = table.submit("insert", [{"id": 100, "note": "never"}])
            until(lambda: table.job(job_id)["progress"]["total"], "tasks to run")
            cancel(table, job_id)
            until(lambda: "no longer ours" in deployment.processes["first"].log(), "the tasks to be stopped")
        finally:
            for process in workers:
                if process.is_running():
                    process.resume()
        assert table.write("insert", [{"id": 101, "note": "next"}])["committed_version"] == 2
    assert {row["id"] for row in table.sound()} == {*range(10), 101}
