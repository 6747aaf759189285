"""`kill -9` of a worker in a restore, a refresh, a clustering, an analysis or a read job: it happens once, and nothing
is stuck.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack

import pytest

from tests.support.deployment import Deployment
from tests.support.gates import Waiting
from tests.support.left_out import left_out
from tests.support.shares import share
from tests.support.table import Row, Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack
LONG = left_out("FLOWS", "test-flows")
DERIVED = "headwater derived"

BEFORE = [{"id": number, "note": "before"} for number in range(1_000)]
AFTER = [{"id": number, "note": "after"} for number in range(500, 1_500)]


@pytest.fixture
def table(new_table: Callable[..., Table]) -> Table:
    """A table with two versions."""
    table = new_table()
    table.write("upsert", BEFORE)
    table.write("upsert", AFTER)
    return table


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: row["id"])


def start(table: Table, what: str, **body: object) -> str:
    """The id of the job of a request."""
    answer = table.client.post(f"{table.path}/{what}", json=body)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["id"])


def kill(deployment: Deployment, session: Waiting) -> None:
    """Kills the worker of a session, and with it the process beside it that the session may be of."""
    worker = deployment.worker_at(session.port)
    deployment.processes[worker].kill()
    deployment.processes[worker].start(wait=False)


def check_nothing_is_left(deployment: Deployment, table: Table, rows: list[Row]) -> None:
    """The dead attempt's files are orphans, and the next write goes on."""
    until(lambda: deployment.reap() >= 0 and not table.orphans(), "what the dead attempt left to go")
    assert in_order(table.sound()) == rows
    assert table.deployment.query(
        "SELECT count(*) FROM jobs WHERE dataset_id = %s AND state IN ('queued', 'running')", table.id
    ) == [(0,)]


@LONG
@pytest.mark.parametrize("committing", [False, True], ids=["before_its_commit", "within_its_commit"])
def test_restore_with_a_killed_worker_happens_once(
    deployment: Deployment, table: Table, committing: bool
) -> None:
    with ExitStack() as stack:
        with deployment.gates.at_head(table.id) as head:
            job_id = start(table, "restores", version=1)
            session = head.arrival()
            if committing:
                gate = stack.enter_context(deployment.gates.in_commit(table.id))
            else:
                kill(deployment, session)
        if committing:
            until(lambda: session in gate.waiting(), "the commit to reach its gate")
            kill(deployment, session)
        assert table.version == 2
    job = table.succeeded(job_id)
    assert (job["committed_version"], job["attempts"]) == (3, 1 if committing else 2)
    assert job["result"] == {"from_version": 2, "to_version": 1}
    check_nothing_is_left(deployment, table, BEFORE)
    assert table.version == 3
    table.write("upsert", [{"id": 0, "note": "next"}])
    assert len(table.sound()) == len(BEFORE)


@LONG
def test_refresh_with_a_killed_worker_applies_each_change_once(deployment: Deployment, table: Table) -> None:
    name = table.client.get(table.path).json()["name"]
    body = {
        "name": f"{name}_upper",
        "sql": f"SELECT id, upper(note) AS note FROM {name}",
        "bucket": {"count": 1},
    }
    answer = table.client.post("/views", json=body)
    assert answer.status_code == 201, answer.text
    view = Table(deployment=deployment, client=table.client, id=answer.json()["id"], key=("id",))

    def caught_up() -> bool:
        found = view.client.get(f"/views/{view.id}").json()
        assert found["freshness"] != "failed", found["error"]
        return bool(found["freshness"] == "current")

    until(caught_up, "the view to catch up", seconds_max=60)
    with deployment.gates.at_head(view.id) as head:
        table.write("upsert", [{"id": number, "note": "last"} for number in range(0, 1_500, 3)])
        kill(deployment, head.arrival(DERIVED))
    until(caught_up, "the view to catch up again", seconds_max=120)
    rows = [row | {"note": row["note"].upper()} for row in in_order(table.sound())]
    check_nothing_is_left(deployment, view, rows)
    # Half of the changes once more would be corrections of a row by itself.
    changed = [change["row"] for change in view.changes() if change["op"] == "+C"]
    assert len(changed) == 500
    table.write("upsert", [{"id": 0, "note": "next"}])
    until(lambda: {"id": 0, "note": "NEXT"} in view.rows(), "the next refresh", seconds_max=60)


@share(3)
def test_clustering_with_a_killed_worker_happens_once(deployment: Deployment, table: Table) -> None:
    rows, changes = in_order(table.sound()), table.changes()
    with deployment.gates.at_head(table.id) as head:
        job_id = start(table, "clusterings", columns=["note"])
        kill(deployment, deployment.arrival(head)[0])
        assert table.version == 2
    job = table.succeeded(job_id)
    assert (job["committed_version"], job["attempts"]) == (3, 2)
    check_nothing_is_left(deployment, table, rows)
    assert table.changes() == changes


@LONG
def test_analysis_with_a_killed_worker_counts_again(deployment: Deployment, table: Table) -> None:
    rows = in_order(table.sound())
    job_id = start(table, "analyses")
    with deployment.gates.at_success(job_id) as gate:
        session = deployment.arrival(gate)[0]
        kill(deployment, session)
        # The server would notice only once it has the lock that it waits for.
        deployment.gates.cut_off(session)
    job = table.succeeded(job_id)
    assert (job["attempts"], job["result"]) == (2, {"version": 2, "rows": 1_500, "columns": 2})
    found = table.client.get(f"{table.path}/statistics", params={"columns": "id,note"}).json()
    assert [each["analyzed_version"] for each in found["columns"]] == [2, 2]
    assert abs(found["columns"][0]["distinct_count"] - 1_500) <= 75
    assert found["columns"][1]["distinct_count"] == 2
    check_nothing_is_left(deployment, table, rows)


@LONG
def test_read_job_with_a_killed_worker_has_one_result(deployment: Deployment, table: Table) -> None:
    answer = table.client.post(
        f"{table.path}/reads",
        json={"format": "ndjson", "order_by": [{"column": "id"}], "disposition": "files"},
    )
    assert answer.status_code == 202, answer.text
    job_id = answer.json()["id"]
    with deployment.gates.at_success(job_id) as gate:
        session = deployment.arrival(gate)[0]
        kill(deployment, session)
        # The server would notice only once it has the lock that it waits for.
        deployment.gates.cut_off(session)
    assert table.succeeded(job_id)["attempts"] == 2
    result = table.client.get(f"/jobs/{job_id}/result").json()
    assert result["rows"] == 1_500
    content = [table.client.get(file["links"]["self"]) for file in result["files"]]
    assert sum(len(each.content.splitlines()) for each in content) == 1_500
    deployment.reap()
    again = [table.client.get(file["links"]["self"]) for file in result["files"]]
    assert [each.content for each in again] == [each.content for each in content]
    check_nothing_is_left(deployment, table, in_order(table.rows()))
