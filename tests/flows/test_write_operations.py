"""Each way to write that lakehouses know, named as they name it, over HTTP against real processes and Spark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.support.table import Row, Table

pytestmark = pytest.mark.stack

NewTable = Callable[..., Table]
FIELDS = [
    {"name": "id", "type": "int64"},
    {"name": "day", "type": "string"},
    {"name": "ts", "type": "int64"},
    {"name": "note", "type": "string"},
]
SCHEMA = {"schema": {"fields": FIELDS}}


def row(number: int, note: str = "a", *, ts: int = 1, day: str = "mon") -> Row:
    return {"id": number, "day": day, "ts": ts, "note": note}


def notes(table: Table) -> dict[int, str]:
    """Notes by id, once table and feed agree."""
    return {each["id"]: each["note"] for each in table.sound()}


def problem(table: Table, code: str, operation: str, rows: list[Row] | None = None, **options: Any) -> Row:
    """The problem that a write is refused with, at once or by its job."""
    body: Row = {"operation": operation, **options}
    if rows is not None:
        body["source"] = {"kind": "rows", "rows": rows}
    answer = table.client.post(f"{table.path}/writes", json=body, headers={"Prefer": "wait=30"})
    assert answer.status_code >= 400, answer.text
    assert answer.json()["type"] == f"/problems/{code}", answer.text
    return answer.json()


INDEXES: dict[str, Row] = {
    "bucket": {"bucket": {"count": 2}},
    "simple": {"bucket": {"mode": "dynamic", "target_rows": 3, "count": 1}, "index": {"type": "simple"}},
    "bloom": {"bucket": {"mode": "dynamic", "target_rows": 3, "count": 1}, "index": {"type": "bloom"}},
    "record": {"bucket": {"mode": "dynamic", "target_rows": 3, "count": 1}, "index": {"type": "record"}},
}


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
@pytest.mark.parametrize("index", INDEXES)
def test_upsert_matches_rows_with_every_index(new_table: NewTable, index: str, table_type: str) -> None:
    table = new_table(**SCHEMA, table_type=table_type, **INDEXES[index])
    table.run_write("upsert", [row(number) for number in range(10)])
    job = table.run_write("upsert", [row(3, "b"), row(8, "b"), row(11)])
    assert job["rows"] == {
        "inserted": 1,
        "updated": 2,
        "deleted": 0,
        "unchanged": 0,
        "late": 0,
        "quarantined": 0,
    }
    assert notes(table) == {number: "b" if number in (3, 8) else "a" for number in [*range(10), 11]}


def test_insert_upsert_bulk_insert_and_delete_change_the_table(new_table: NewTable) -> None:
    table = new_table(**SCHEMA)
    table.run_write("bulk_insert", [row(1), row(2)])
    table.run_write("insert", [row(3)])
    table.run_write("upsert", [row(2, "b"), row(4)])
    table.run_write("delete", [{"id": 1}])
    table.run_write("delete", where="note = 'b' OR id > 3")
    assert notes(table) == {3: "a"}


def test_ordering_field_selects_the_newest_row_before_and_after_the_write(new_table: NewTable) -> None:
    table = new_table(**SCHEMA, ordering_field="ts")
    job = table.run_write("insert", [row(1, "late", ts=1), row(1, "kept", ts=5), row(1, "mid", ts=3)])
    assert [job["rows"][name] for name in ("inserted", "unchanged", "late")] == [1, 1, 1]
    table.run_write("upsert", [row(1, "stale", ts=4)])
    assert notes(table) == {1: "kept"}
    table.run_write("upsert", [row(1, "new", ts=6), row(1, "newer", ts=7)])
    assert notes(table) == {1: "newer"}


def test_keys_of_several_fields_and_nested_partition_sources_work(new_table: NewTable) -> None:
    place = {"name": "place", "type": "struct<country: string, city: string>"}
    plain = new_table(
        schema={"fields": [*FIELDS, place]}, record_key=[], partition_by=["place.country", "truncate(2, day)"]
    )
    plain.run_write(
        "insert", [row(1) | {"place": {"country": "DE", "city": "B"}}, row(2, day="tue") | {"place": None}]
    )
    query = "SELECT DISTINCT partition_path FROM files WHERE dataset_id = %s ORDER BY 1"
    paths = [path for (path,) in plain.deployment.query(query, plain.id)]
    assert paths == [
        "place.country=DE/day_trunc=mo",
        "place.country=__HIVE_DEFAULT_PARTITION__/day_trunc=tu",
    ]
    keyed = new_table(**SCHEMA, record_key=["id", "day"], partition_by=["day"])
    keyed.run_write("upsert", [row(1), row(1, "b", day="tue")])
    assert len(keyed.sound()) == 2


MERGES: dict[str, tuple[Row, str | None]] = {
    "event_time": ({"ordering_field": "ts"}, "b"),
    "commit_time": ({"merge_mode": "commit_time"}, None),
    "first": ({"merge_mode": "first"}, "a"),
    "partial": ({"merge_mode": "partial"}, "b"),
    "aggregate": ({"merge_mode": "aggregate", "aggregates": {"note": "max"}}, "b"),
}


@pytest.mark.parametrize("mode", MERGES)
def test_merge_modes_decide_the_result_of_upserts(new_table: NewTable, mode: str) -> None:
    settings, outcome = MERGES[mode]
    table = new_table(**SCHEMA, **settings)
    table.run_write("upsert", [row(1, "a", ts=1)])
    table.run_write("upsert", [row(1, "b", ts=3)])
    table.run_write("upsert", [{"id": 1, "day": "mon", "ts": 2, "note": None}])
    assert notes(table) == {1: outcome}


def test_drop_duplicates_counts_the_dropped_rows(new_table: NewTable) -> None:
    table = new_table(**SCHEMA)
    table.run_write("insert", [row(1)])
    refused = problem(table, "duplicate-key", "insert", [row(1, "b"), row(2)])
    assert refused["keys"] == [{"id": 1}]
    job = table.run_write("insert", [row(1, "b"), row(2)], drop_duplicates=True)
    assert (job["rows"]["inserted"], job["rows"]["unchanged"]) == (1, 1)
    assert notes(table) == {1: "a", 2: "a"}


def test_bad_record_is_quarantined_and_its_job_succeeds(new_table: NewTable) -> None:
    table = new_table(**SCHEMA)
    job = table.run_write("upsert", [row(1), {"id": "two"}, row(3)], on_error="quarantine")
    assert (job["rows"]["inserted"], job["rows"]["quarantined"]) == (2, 1)
    [record] = table.client.get(f"{table.path}/quarantine").json()["items"]
    assert (record["position"], record["job_id"]) == (1, job["id"])
    repaired = {"records": [{"id": record["id"], "payload": '{"id": 2, "day": "mon", "ts": 1, "note": "r"}'}]}
    answer = table.client.post(f"{table.path}/quarantine/redrives", json=repaired)
    assert answer.status_code == 202, answer.text
    table.succeeded(answer.json()["id"])
    assert notes(table) == {1: "a", 2: "r", 3: "a"}


@pytest.mark.parametrize("producer", ["full", "input", "deferred", "none"])
def test_merge_on_read_inserts_append_to_logs(new_table: NewTable, producer: str) -> None:
    table = new_table(**SCHEMA, table_type="merge_on_read", changelog={"producer": producer})
    table.run_write("upsert", [row(1), row(2)])
    table.run_write("insert", [row(3)])
    table.run_write("upsert", [row(1, "b")])
    table.run_write("delete", [{"id": 2}])
    before = {each["id"]: each["note"] for each in table.rows()}
    assert before == {1: "b", 3: "a"}
    query = "SELECT DISTINCT kind FROM files WHERE dataset_id = %s AND removed_version IS NULL"
    kinds = {kind for (kind,) in table.deployment.query(query, table.id)}
    assert kinds == ({"base"} if producer == "full" else {"log"})
    table.compact()
    assert {kind for (kind,) in table.deployment.query(query, table.id)} == {"base"}
    assert {each["id"]: each["note"] for each in table.rows()} == before
    assert problem(table, "duplicate-key", "insert", [row(3)])["keys"] == [{"id": 3}]
    ops = [(change["op"], change["row"]["id"]) for change in table.changes()]
    if producer in ("full", "deferred"):
        assert notes(table) == before
    elif producer == "none":
        assert ops == []
    else:
        assert sorted(ops) == sorted([("+A", 1), ("+A", 2), ("+A", 3), ("+A", 1), ("-R", 2)])


@pytest.mark.parametrize("table_type", ["copy_on_write", "merge_on_read"])
def test_save_modes_append_overwrite_ignore_or_refuse(new_table: NewTable, table_type: str) -> None:
    table = new_table(**SCHEMA, table_type=table_type)
    table.run_write("insert", [row(1)], mode="error_if_exists")
    assert problem(table, "data-exists", "insert", [row(2)], mode="error_if_exists")["version"] == 1
    assert table.run_write("insert", [row(2)], mode="ignore")["rows"]["unchanged"] == 1
    table.run_write("upsert", [row(3)], mode="append")
    assert notes(table) == {1: "a", 3: "a"}
    table.run_write("upsert", [row(4)], mode="overwrite")
    assert notes(table) == {4: "a"}


@pytest.mark.parametrize("key", [["id", "day"], []], ids=["keyed", "append-only"])
def test_overwrite_and_delete_replace_partitions_or_filtered_rows(
    new_table: NewTable, key: list[str]
) -> None:
    table = new_table(**SCHEMA, record_key=key, partition_by=["day"])
    table.run_write("insert", [row(1), row(2), row(3, day="tue"), row(4, day="wed")])
    table.run_write("overwrite", [row(9)], overwrite={"scope": "partitions"})
    assert sorted(notes(table)) == [3, 4, 9]
    table.run_write(
        "overwrite", [row(8, day="wed")], overwrite={"scope": "filter", "where": "day IN ('tue', 'wed')"}
    )
    assert sorted(notes(table)) == [8, 9]
    outside = problem(
        table, "invalid-request", "overwrite", [row(7)], overwrite={"scope": "filter", "where": "day = 'tue'"}
    )
    assert "does not match the filter" in outside["detail"]
    table.run_write("delete_partition", partitions=["day=m*"])
    assert sorted(notes(table)) == [8]


def test_merge_schema_adds_columns_and_explicit_cast_converts_values(new_table: NewTable) -> None:
    table = new_table()
    table.run_write("upsert", [{"id": 1, "note": "a"}])
    problem(table, "schema-mismatch", "upsert", [{"id": 2, "note": "b", "size": 7}])
    table.run_write("upsert", [{"id": 2, "note": "b", "size": 7}], merge_schema=True)
    assert {each["id"]: each["size"] for each in table.sound()} == {1: None, 2: 7}
    assert [change["row"]["size"] for change in table.changes()] == [None, 7]


BUCKETS: dict[str, Row] = {
    "hash fixed": {"bucket": {"count": 3}},
    "hash fixed by a function": {"bucket": {"count": 3, "function": "mod"}},
    "hash dynamic": {"bucket": {"mode": "dynamic", "count": 1, "target_rows": 4, "max_buckets": 3}},
    "key dynamic": {"bucket": {"mode": "key_dynamic", "count": 2}, "partition_by": ["day"]},
    "postpone": {"bucket": {"mode": "postpone"}},
    "postpone with fixed buckets": {"bucket": {"mode": "postpone", "fixed_now": True, "count": 2}},
}


@pytest.mark.parametrize("mode", BUCKETS)
def test_every_bucket_mode_distributes_rows(new_table: NewTable, mode: str) -> None:
    table = new_table(**SCHEMA, **BUCKETS[mode])
    table.run_write("upsert", [row(number) for number in range(10)])
    table.run_write("upsert", [row(number, "b", day="tue") for number in range(5, 15)])
    if mode == "postpone":
        assert table.rows() == []
        table.compact()
    assert notes(table) == {number: "a" if number < 5 else "b" for number in range(15)}
    query = "SELECT bucket, partition_path FROM files WHERE dataset_id = %s AND removed_version IS NULL"
    places = table.deployment.query(query, table.id)
    if mode == "hash dynamic":
        assert {bucket for bucket, _ in places} == {0, 1, 2}
    if mode == "key dynamic":
        assert {path for _, path in places} == {"day=mon", "day=tue"}


@pytest.mark.parametrize("shuffled", [False, True])
def test_keyless_inserts_work_with_and_without_partition_shuffle(new_table: NewTable, shuffled: bool) -> None:
    table = new_table(
        **SCHEMA, record_key=[], partition_by=["day"], bucket={"shuffle_by_partition": shuffled}
    )
    table.run_write("insert", [row(1), row(2, day="tue"), row(1)])
    assert sorted(each["id"] for each in table.sound()) == [1, 1, 2]


def test_writer_batch_commits_once(new_table: NewTable) -> None:
    table = new_table(**SCHEMA)
    first = table.run_write("upsert", [row(1)], writer_id="stream-1", batch_id=7)
    again = table.run_write("upsert", [row(1)], writer_id="stream-1", batch_id=7)
    assert (again["id"], table.version) == (first["id"], 1)
    table.run_write("upsert", [row(2)], writer_id="stream-1", batch_id=8)
    assert problem(table, "batch-out-of-order", "upsert", [row(3)], writer_id="stream-1", batch_id=6)
    assert notes(table) == {1: "a", 2: "a"}


def test_snapshot_writes_the_difference_with_and_without_a_key(new_table: NewTable) -> None:
    keyed, heap = new_table(**SCHEMA), new_table(**SCHEMA, record_key=[])
    for table in (keyed, heap):
        table.run_write("snapshot", [row(1), row(2), row(3)])
        job = table.run_write("snapshot", [row(1), row(2, "b"), row(4)])
        assert job["rows"]["unchanged"] == 1
        assert notes(table) == {1: "a", 2: "b", 4: "a"}
    emitted = [(change["op"], change["row"]["id"]) for change in keyed.changes()][3:]
    assert sorted(emitted) == sorted([("-C", 2), ("+C", 2), ("-R", 3), ("+A", 4)])
    emitted = [(change["op"], change["row"]["id"]) for change in heap.changes()][3:]
    assert sorted(emitted) == sorted([("-R", 2), ("+A", 2), ("-R", 3), ("+A", 4)])


def test_changelog_writes_apply_corrections_and_retractions(new_table: NewTable) -> None:
    table = new_table(**SCHEMA)
    table.run_write("changelog", [{"op": "+A", "row": row(1)}, {"op": "+A", "row": row(2)}])
    pair = [{"op": "-C", "row": row(1)}, {"op": "+C", "row": row(1, "b")}, {"op": "-R", "row": row(2)}]
    table.run_write("changelog", pair)
    table.run_write("changelog", [{"op": "u", "before": row(1, "b"), "after": row(1, "c"), "ts_ms": 1}])
    assert notes(table) == {1: "c"}
    assert [change["op"] for change in table.changes()].count("-R") == 1


def test_transaction_writes_several_datasets_atomically(new_table: NewTable) -> None:
    one, other = new_table(**SCHEMA), new_table(**SCHEMA)
    other.run_write("insert", [row(1)])

    def writes(operation: str) -> Row:
        source = {"kind": "rows", "rows": [row(1, "b")]}
        return {
            "writes": [
                {"dataset": each.id, "operation": operation, "source": source} for each in (one, other)
            ]
        }

    wait = {"Prefer": "wait=30"}
    refused = one.client.post("/transactions", json=writes("insert"), headers=wait)
    assert refused.json()["type"] == "/problems/duplicate-key", refused.text
    assert (one.version, other.version) == (0, 1)
    done = one.client.post("/transactions", json=writes("upsert"), headers=wait)
    assert done.status_code == 200, done.text
    assert (notes(one), notes(other)) == ({1: "b"}, {1: "b"})
