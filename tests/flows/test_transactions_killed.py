"""`kill -9` of a worker at every point of a transaction: it happens once in all its datasets, or in none yet."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack

import pytest

from tests.support.deployment import Deployment
from tests.support.gates import Gate, Waiting
from tests.support.shares import share
from tests.support.table import Row, Table
from tests.support.waiting import until

pytestmark = pytest.mark.stack

ROWS = [{"id": number, "note": "in"} for number in range(100)]


def submit(tables: list[Table], rows: list[Row]) -> Row:
    """A transaction that upserts the rows into each table."""
    source = {"kind": "rows", "rows": rows}
    writes = [{"dataset": table.id, "operation": "upsert", "source": source} for table in tables]
    answer = tables[0].client.post("/transactions", json={"writes": writes})
    assert answer.status_code == 202, answer.text
    return answer.json()


def ended(tables: list[Table], transaction: Row) -> Row:
    for _ in range(2):
        found = tables[0].client.get(transaction["links"]["self"], params={"wait": 30}).json()
        if found["state"] not in ("queued", "running"):
            return found
    raise AssertionError(f"still {found['state']} after a minute")


def kill(deployment: Deployment, session: Waiting) -> None:
    worker = deployment.worker_at(session.port)
    deployment.processes[worker].kill()
    deployment.processes[worker].start(wait=False)


@pytest.fixture
def tables(new_table: Callable[..., Table]) -> list[Table]:
    """In the order in which their heads are locked, each with a row."""
    made = sorted((new_table() for _ in range(3)), key=lambda table: table.id)
    for table in made:
        table.write("upsert", [{"id": -1, "note": "before"}])
    return made


Closing = Callable[[Deployment, list[Table]], AbstractContextManager[Gate]]
# Where the commit transaction stands still: at its first lock, at its last, before it sends COMMIT, within COMMIT.
POINTS: dict[str, tuple[Closing | None, bool]] = {
    "at its first lock": (None, False),
    "at its last lock": (lambda deployment, tables: deployment.gates.at_head(tables[2].id), False),
    "at its last statement": (lambda deployment, _: deployment.gates.at_last_statement(), False),
    "within commit": (lambda deployment, tables: deployment.gates.in_commit(tables[1].id), True),
}


@share(4)
@pytest.mark.parametrize("point", POINTS)
def test_transaction_with_a_killed_worker_happens_once_in_every_dataset(
    deployment: Deployment, tables: list[Table], point: str
) -> None:
    closing, happened = POINTS[point]
    with ExitStack() as stack:
        with deployment.gates.at_head(tables[0].id) as head:
            transaction = submit(tables, ROWS)
            session = head.arrival()
            # Accepting would run into some of the gates as well, so they are closed only now.
            gate = head if closing is None else stack.enter_context(closing(deployment, tables))
            if closing is None:
                kill(deployment, session)
        if closing is not None:
            until(lambda: session in gate.waiting(), "the commit to reach its gate")
            assert [table.version for table in tables] == [1, 1, 1]
            kill(deployment, session)
    done = ended(tables, transaction)
    assert done["state"] == "succeeded", done
    assert {job["committed_version"] for job in done["jobs"]} == {2}
    assert {job["attempts"] for job in done["jobs"]} == {1 if happened else 2}
    for table in tables:
        assert len(table.sound()) == 101
        assert table.version == 2
    deployment.reap()
    for table in tables:
        assert not table.orphans()
        assert len(table.sound()) == 101


@share(3)
def test_late_worker_changes_no_dataset_of_its_transaction(
    deployment: Deployment, tables: list[Table]
) -> None:
    with deployment.gates.at_head(tables[0].id) as head:
        transaction = submit(tables, ROWS)
        worker = deployment.arrival(head)[1]
        deployment.processes[worker].freeze()
        tables[0].client.post(f"{transaction['jobs'][2]['links']['self']}/cancel")
    deployment.processes[worker].thaw()
    assert ended(tables, transaction)["state"] == "cancelled"
    later = ended(tables, submit(tables, [{"id": 7, "note": "later"}]))
    assert {job["committed_version"] for job in later["jobs"]} == {2}
    for table in tables:
        assert sorted(row["id"] for row in table.sound()) == [-1, 7]
