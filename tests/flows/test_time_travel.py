"""Back in time on the real stack: tables without and with a key are taken back, on Spark, and their feeds have it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pytest

from tests.support.row_formats import ARROW, arrow_stream
from tests.support.shares import share
from tests.support.table import Row, Table

pytestmark = pytest.mark.stack

KINDS: dict[str, dict[str, Any]] = {
    "with a key": {},
    "without a key": {"record_key": []},
}


def start(table: Table, what: str, **body: Any) -> Row:
    """The job of a request, once it has succeeded."""
    answer = table.client.post(f"{table.path}/{what}", json=body)
    assert answer.status_code == 202, answer.text
    return table.succeeded(answer.json()["id"])


def in_order(rows: list[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (row["id"], str(row["note"])))


@share(4)
@pytest.mark.parametrize("kind", KINDS)
def test_restore_and_rollback_work_on_the_deployment(new_table: Callable[..., Table], kind: str) -> None:
    table = new_table(**KINDS[kind])
    operation = "upsert" if table.key else "insert"
    table.write(operation, [{"id": number, "note": "a"} for number in range(2_000)])
    start(table, "savepoints", name="first")
    table.write(operation, [{"id": number, "note": "b"} for number in range(1_000, 3_000)])
    table.run_write("delete", where="id < 500")
    past = [in_order(table.rows(version)) for version in range(4)]

    restored = start(table, "restores", savepoint="first")
    assert restored["result"] == {"from_version": 3, "to_version": 1}
    assert in_order(table.sound()) == past[1]
    rolled_back = start(table, "rollbacks", instants=2)
    assert rolled_back["result"] == {"from_version": 4, "to_version": 2}
    assert in_order(table.sound()) == past[2]
    assert [in_order(table.rows(version)) for version in range(4)] == past

    compared = start(table, "comparisons", from_tag="first")["result"]["rows"]
    changed = 1_000 if table.key else 0
    assert compared == {
        "added": 2_000 - changed,
        "removed": 0,
        "changed": changed,
        "unchanged": 2_000 - changed,
    }
    assert start(table, "verifications")["result"]["equal"]


@share(4)
@pytest.mark.parametrize("kind", KINDS)
def test_feed_has_the_rows_of_a_load_after_the_table_has_other_files(
    new_table: Callable[..., Table], kind: str
) -> None:
    """Many new rows are written once, in files of the table and of the feed."""
    one_bucket = {"bucket": {"count": 1}} if not KINDS[kind] else {}
    table = new_table(**KINDS[kind], **one_bucket, table_type="merge_on_read")
    loaded = [{"id": number, "note": f"{number} {'x' * 10_000}"} for number in range(1_800)]
    answer = table.client.post(
        f"{table.path}/writes",
        params={"operation": "bulk_insert"},
        headers={"Content-Type": ARROW},
        content=arrow_stream(pa.Table.from_pylist(loaded)),
    )
    assert answer.status_code == 202, answer.text
    table.succeeded(answer.json()["id"])
    first = table.referenced()
    assert len(first) == 1
    table.run_write("delete", where="id < 10")
    table.compact()
    rows = in_order(table.sound())
    assert rows == loaded[10:]
    cleaned = start(table, "cleans", versions=1)
    assert cleaned["result"]["files_expired"] > 0
    table.deployment.reap()
    query = "SELECT count(*) FROM files WHERE dataset_id = %s AND path = ANY(%s)"
    assert table.deployment.query(query, table.id, [*first]) == [(0,)]
    assert in_order(table.sound()) == rows
    assert [change["row"] for change in table.changes()][: len(loaded)] == loaded
    assert start(table, "verifications")["result"]["equal"]
