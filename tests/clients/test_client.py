"""The typed client against the live service."""

import gzip
import threading
from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from msgspec.structs import replace

from headwater_client import NewDataset, NewField, Problem
from tests.support.shares import share


@pytest.fixture(autouse=True)
def worker(service):
    with service.working():
        yield


def rows_of(headwater, dataset, **options):
    return sorted((row["id"], row["note"]) for row in headwater.rows(dataset, **options))


def test_datasets_are_registered_found_listed_and_deleted(headwater, orders):
    assert orders.record_key == ("id",)
    assert [field.type for field in orders.schema.fields] == ["int64", "string"]
    dataset = headwater.get_dataset("orders")
    assert dataset == headwater.get_dataset(orders)
    assert "DuckDB" in [each.engine for each in dataset.read_with]
    assert replace(dataset, read_with=None) == orders
    assert [each.name for each in headwater.datasets()] == ["orders"]
    headwater.delete_dataset(orders)
    assert list(headwater.datasets()) == []


def test_registration_returns_the_requested_definition(headwater):
    fields = (
        NewField(name="id", type="int64", doc="the number"),
        NewField(name="region", type="string"),
        NewField(name="at", type="timestamp", nullable=False),
    )
    found = headwater.create_dataset(
        NewDataset(
            name="everything", fields=fields, record_key=("id", "region"), ordering_field="at",
            event_time_field="at", partition_by=("region",), buckets=3, merge_mode="event_time",
            services={"compaction": None, "tags": {"period": "day"}},
        )
    )  # fmt: skip
    assert (found.record_key, found.partition_by) == (("id", "region"), ("region",))
    assert (found.ordering_field, found.event_time_field) == ("at", "at")
    assert found.schema.fields[0].doc == "the number"
    assert not found.schema.fields[2].nullable
    assert found.services.compaction is None
    assert (found.services.tags.period, found.services.tags.keep) == ("day", None)
    changed = headwater.change_services(found, {"compaction": {"logs": 4}})
    assert (changed.services.compaction.logs, changed.services.tags) == (4, None)


def test_python_values_round_trip(headwater, readings):
    row = {
        "sensor": "ä \u2028 1",
        "at": datetime(2026, 11, 21, 10, 0, 0, 123456, tzinfo=UTC),
        "local": datetime(2026, 11, 21, 11, 0),  # noqa: DTZ001 - a wall clock
        "day": date(2026, 11, 21),
        "price": Decimal("19.90"),
        "raw": b"\x00\xff",
        "value": 0.1,
    }
    job = headwater.write_rows(readings, [row], wait=30)
    assert (job.state, job.rows.inserted) == ("succeeded", 1)
    [page] = headwater.row_tables(readings)
    assert page.table.to_pylist() == [row]
    assert page.version == job.committed_version


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_float_without_a_json_form_is_refused(headwater, readings, value):
    with pytest.raises(ValueError, match="JSON"):
        headwater.write_rows(readings, [{"sensor": "a", "value": value}])


def test_value_without_a_json_form_is_named(headwater, readings):
    with pytest.raises(TypeError, match="object has no JSON form"):
        headwater.write_rows(readings, [{"sensor": object()}])


def test_rows_are_written_in_every_form(headwater, orders, tmp_path):
    table = pa.table({"id": [2, 3], "note": ["arrow", None]})
    parquet, csv = tmp_path / "rows.parquet", tmp_path / "rows.csv.gz"
    pq.write_table(pa.table({"id": [6], "note": ["parquet"]}), parquet)
    csv.write_bytes(gzip.compress(b"id,note\n7,csv\n"))
    stream = pa.RecordBatch.from_pydict({"id": [5], "note": ["stream"]})
    upload = headwater.upload(orders, parquet)
    assert upload.size_bytes == parquet.stat().st_size
    jobs = [
        headwater.write_rows(orders, [{"id": 1, "note": "rows"}]),
        headwater.write_arrow(orders, table),
        headwater.write_arrow(orders, pa.RecordBatch.from_pydict({"id": [4], "note": ["batch"]})),
        headwater.write_arrow(orders, pa.RecordBatchReader.from_batches(stream.schema, [stream])),
        headwater.write_upload(orders, upload, "parquet"),
        headwater.write(orders, csv, "csv", gzip=True),
        headwater.write(orders, b'{"id": 8, "note": "ndjson"}\n', "ndjson", operation="insert"),
    ]  # fmt: skip
    assert [headwater.wait(job).state for job in jobs] == ["succeeded"] * len(jobs)
    assert rows_of(headwater, orders) == [
        (1, "rows"), (2, "arrow"), (3, None), (4, "batch"), (5, "stream"), (6, "parquet"), (7, "csv"), (8, "ndjson"),
    ]  # fmt: skip
    headwater.write_rows(orders, [{"id": number} for number in range(2, 9)], operation="delete", wait=30)
    assert rows_of(headwater, orders) == [(1, "rows")]


def test_idempotency_key_makes_a_write_happen_once(headwater, orders):
    first = headwater.write_rows(orders, [{"id": 1, "note": "a"}], idempotency_key="k", wait=30)
    again = headwater.write_rows(orders, [{"id": 1, "note": "a"}], idempotency_key="k", wait=30)
    assert again == first
    with pytest.raises(Problem) as refused:
        headwater.write_rows(orders, [{"id": 1, "note": "b"}], idempotency_key="k")
    assert (refused.value.code, refused.value.status) == ("idempotency-mismatch", 422)


def test_problem_has_all_members_of_the_response(headwater, orders):
    with pytest.raises(Problem) as refused:
        headwater.write_rows(orders, [{"id": 1, "note": "a"}, {"id": None, "note": "b"}])
    problem = refused.value
    assert (problem.status, problem.type) == (422, "/problems/schema-mismatch")
    [error] = problem.errors
    assert "1" in error.pointer
    assert error.pointer in str(problem)
    assert problem.document["instance"].endswith("/writes")
    with pytest.raises(Problem, match="404 not-found"):
        headwater.get_dataset("nowhere/../else")


def test_failed_job_raises_its_problem(headwater, orders):
    headwater.write_rows(orders, [{"id": 1, "note": "a"}], wait=30)
    with pytest.raises(Problem) as at_once:
        headwater.write_rows(orders, [{"id": 1, "note": "b"}], operation="insert", wait=30)
    job = headwater.write_rows(orders, [{"id": 1, "note": "b"}], operation="insert")
    with pytest.raises(Problem) as later:
        headwater.wait(job)
    for problem in (at_once.value, later.value):
        assert problem.code == "duplicate-key"
        assert problem.document["job"]["state"] == "failed"
    assert at_once.value.status == later.value.status
    assert headwater.get_job(job).state == "failed"


def test_change_pages_resume_at_a_position(headwater, orders):
    for note in ("a", "b", "c"):
        headwater.write_rows(orders, [{"id": 1, "note": note}, {"id": 2, "note": note}], wait=30)
    whole = list(headwater.changes(orders))
    assert [change.offset for change in whole] == list(range(10))
    assert [change.op for change in whole] == ["+A"] * 2 + ["-C", "+C"] * 4
    taken = [change.corrects_offset for change in whole if change.op == "-C"]
    assert sorted(taken[:2]) == [0, 1]
    assert sorted(taken[2:]) == [3, 5]
    assert all(change.corrects_offset is None for change in whole if change.op != "-C")
    paged, position = [], 0
    while page := next(iter(headwater.change_pages(orders, since=position, limit=3))):
        paged += page.changes
        position = page.next_since
        if page.pending == 0:
            break
    assert paged == whole
    tables = list(headwater.change_tables(orders, since=2, limit=3))
    assert [table.pending for table in tables] == [4, 0]
    assert pa.concat_tables(table.table for table in tables)["op"].to_pylist() == [2, 3] * 4
    assert list(headwater.changes(orders, since="now")) == []
    assert list(headwater.changes(orders, since="earliest")) == whole
    with pytest.raises(Problem) as ahead:
        list(headwater.changes(orders, since=11))
    assert (ahead.value.code, ahead.value.document["head"]) == ("offset-ahead", 10)


def test_change_pages_apply_a_filter(headwater, orders):
    for note in ("a", "b"):
        headwater.write_rows(orders, [{"id": 1, "note": note}, {"id": 2, "note": f"{note}2"}], wait=30)
    query = {"where": "note = 'b'", "columns": ["note"]}
    found = list(headwater.changes(orders, **query))
    assert [(change.op, change.row) for change in found] == [("-C", {"note": "a"}), ("+C", {"note": "b"})]
    (table,) = headwater.change_tables(orders, **query)
    assert (table.table["note"].to_pylist(), table.next_since) == (["a", "b"], 6)
    with pytest.raises(Problem) as refused:
        list(headwater.change_pages(orders, partitions=["id=1"]))
    assert refused.value.document["errors"][0]["pointer"] == "/partitions"


def test_following_reader_waits_for_changes(headwater, orders):
    pages = headwater.change_pages(orders, follow=True, poll_seconds=1)
    assert next(pages).changes == ()
    writer = threading.Timer(0.2, headwater.write_rows, [orders, [{"id": 1, "note": "later"}]])
    writer.start()
    found = next(page for page in pages if page.changes)
    writer.join()
    assert [change.row for change in found.changes] == [{"id": 1, "note": "later"}]


def test_row_pages_keep_to_one_version(headwater, orders):
    first = headwater.write_rows(orders, [{"id": number, "note": "old"} for number in range(5)], wait=30)
    walk = headwater.row_tables(orders, limit=2, columns=["note"])
    pages = [next(walk)]
    headwater.write_rows(orders, [{"id": number, "note": "new"} for number in range(5)], wait=30)
    pages += walk
    assert {page.version for page in pages} == {first.committed_version}
    # The first page was read before the correction.
    assert [page.corrected for page in pages] == [None, True, True]
    assert (headwater.row(orders, 1, version=1).corrected, headwater.row(orders, 1).corrected) == (True, None)
    assert pa.concat_tables(page.table for page in pages).to_pydict() == {"note": ["old"] * 5}
    assert rows_of(headwater, orders) == [(number, "new") for number in range(5)]
    assert rows_of(headwater, orders, version=1, limit=3) == [(number, "old") for number in range(5)]
    assert rows_of(headwater, orders, as_of=first.finished_at.replace(year=2000)) == []


def test_timeline_lists_every_write(headwater, orders):
    jobs = [headwater.write_rows(orders, [{"id": number, "note": ""}], wait=30) for number in range(3)]
    instants = list(headwater.timeline(orders))
    assert [instant.job_id for instant in instants] == [job.id for job in reversed(jobs)]
    assert {instant.state for instant in instants} == {"completed"}
    assert all(instant.completed_at >= instant.requested_at for instant in instants)
    assert {instant.actor for instant in instants} == {job.actor for job in jobs}
    middle = instants[1].requested_at
    assert list(headwater.timeline(orders, since=middle, states=["completed"])) == instants[:2]
    assert list(headwater.timeline(orders, until=middle, actions=["commit", "clean"])) == instants[2:]


def test_files_partitions_and_statistics_describe_the_table(headwater, orders):
    for number in range(3):
        headwater.write_rows(orders, [{"id": number, "note": f"n{number}"}], wait=30)
    files = list(headwater.files(orders, statistics=True))
    [partition] = headwater.partitions(orders)
    totals = headwater.statistics(orders, columns=["id"])
    assert sum(file.live_rows for file in files) == partition.rows == totals.rows.live == 3
    assert (totals.version, totals.columns[0].minimum, totals.columns[0].maximum) == (3, 0, 2)
    assert all(file.statistics["note"].null_count == 0 for file in files)
    assert [file.live_rows for file in headwater.files(orders, version=1, partition="", kind="base")] == [1]
    assert [each.rows for each in headwater.partitions(orders, version=2)] == [2]


@share(2)
def test_corrections_are_listed_and_joined_to_earlier_rows(headwater, orders):
    headwater.write_rows(orders, [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}], wait=30)
    headwater.write_rows(orders, [{"id": 1, "note": "c"}], wait=30)
    first = next(change.offset for change in headwater.changes(orders) if change.row["id"] == 1)
    assert [(each.offset, each.corrected_by, each.op) for each in headwater.corrections(orders)] == [
        (first, 2, "-C")
    ]
    assert list(headwater.corrections(orders, 2)) == []
    back = headwater.rows(orders, version=1, corrected_since=True)
    assert {row["id"]: row["_hw_corrected_by"] for row in back} == {1: 2, 2: None}
