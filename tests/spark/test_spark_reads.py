"""Batch reads of tables and of the feed with Spark."""

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import pytest

from app.access.tenants.values import Grant, KeyScope
from headwater_client import AddField, NewDataset, NewField
from tests.support.left_out import left_out

pytestmark = pytest.mark.spark
LONG = left_out("SPARK", "test-spark")

PUSHDOWN = "spark.sql.python.filterPushdown.enabled"
DAYS = [date(2026, 11, 20), date(2026, 11, 21)]


def write(headwater, dataset, *rows, operation="upsert"):
    values = [{"id": number, "note": note, "day": DAYS[number % 2]} for number, note in rows]
    return headwater.write_rows(dataset, values, operation=operation, wait=60)


def pairs(frame):
    return sorted((row.id, row.note) for row in frame.collect())


@LONG
def test_snapshot_and_time_travel(headwater, orders, read):
    write(headwater, orders, (1, "a"), (2, "b"))
    first = read("orders")
    between = datetime.now(UTC)
    headwater.create_tag(orders, "before", wait=60)
    write(headwater, orders, (2, "c"), (3, "d"))
    latest = [(1, "a"), (2, "c"), (3, "d")]
    assert pairs(read("orders")) == latest
    for options in ({"version": 1}, {"as_of": between.isoformat()}, {"tag": "before"}):
        assert pairs(read("orders", **options)) == [(1, "a"), (2, "b")]
    # A data frame reads the version that it was made of.
    assert pairs(first) == [(1, "a"), (2, "b")]


@LONG
def test_incremental_reads_between_two_versions(headwater, orders, read):
    write(headwater, orders, (1, "a"), (2, "b"))
    write(headwater, orders, (2, "c"))
    write(headwater, orders, (2, "d"), (3, "e"))
    assert pairs(read("orders", query="incremental", begin=1)) == [(2, "d"), (3, "e")]
    assert pairs(read("orders", query="incremental", begin=1, end=2)) == [(2, "c")]


def test_columns_filters_and_partitions_are_options(headwater, orders, read):
    write(headwater, orders, *[(number, f"n{number}_%") for number in range(20)])
    plain = read("orders", columns="id,note", where="id >= 4", partitions="day=2026-11-20")
    assert plain.columns == ["id", "note"]
    assert sorted(row.id for row in plain.collect()) == list(range(4, 20, 2))


def test_a_data_frame_can_be_used_in_any_number_of_queries(headwater, orders, read):
    write(headwater, orders, *[(number, f"n{number}") for number in range(6)])
    frame = read("orders")
    assert frame.where("id = 1").count() == 1
    assert frame.count() == 6
    assert sorted(row.id for row in frame.where("id = 2").union(frame.where("id > 3")).collect()) == [2, 4, 5]
    assert frame.alias("a").join(frame.where("id < 2").alias("b"), "id").count() == 2
    # All of them read the files of one version, without a job.
    write(headwater, orders, (6, "later"))
    assert frame.count() == 6
    assert list(headwater.jobs(dataset=orders, kinds=["read"])) == []


def test_files_logs_and_deleted_rows_are_read_as_a_read_job_reads_them(headwater, read):
    fields = (NewField(name="id", type="int64"), NewField(name="note", type="string"))
    for kind, producer in (("copy_on_write", "full"), ("merge_on_read", "full"), ("merge_on_read", "input")):
        name = f"{kind}_{producer}"
        headwater.create_dataset(
            NewDataset(
                name=name, fields=fields, record_key=("id",), table_type=kind, producer=producer, buckets=2
            )
        )
        headwater.write_rows(name, [{"id": at, "note": f"{at}"} for at in range(30)], wait=60)
        headwater.write_rows(name, [{"id": at, "note": "new"} for at in range(5)], wait=60)
        headwater.write_rows(name, [{"id": 7}], operation="delete", wait=60)
        headwater.change_schema(name, AddField(field=NewField(name="late", type="int32")))
        headwater.write_rows(name, [{"id": 99, "late": 1}], wait=60)
        for columns in (("id", "late"), ("note", "id")):
            rows = read(name, columns=",".join(columns)).collect()
            found = sorted(map(repr, map(tuple, rows)))
            job = headwater.read(name, columns=list(columns), wait=60).to_arrow()
            assert found == sorted(map(repr, zip(*job.to_pydict().values(), strict=True)))
            assert len(found) == 30
    formats = {part.format for part in headwater.scan("merge_on_read_full").parts}
    assert "arrow" in formats
    # Only the comparison ran jobs.
    assert len(list(headwater.jobs(kinds=["read"]))) == 6


def test_key_that_sees_a_part_of_the_rows_reads_rendered_files(headwater, orders, service, spark, connection):
    write(headwater, orders, (1, "a"), (2, "b"))
    grants = (Grant(datasets="orders", scopes=(KeyScope.READ,), where="id > 1", mask=("note",)),)
    key = service.tenants.make_key(headwater.me().tenant.id, (KeyScope.READ,), grants=grants).api_key
    frame = spark.read.format("headwater").options(**{**connection, "api_key": key}).load("orders")
    assert [(row.id, row.note) for row in frame.collect()] == [(2, None)]
    assert list(headwater.jobs(dataset=orders, kinds=["read"])) == []


def test_filters_are_pushed_down_on_request(headwater, orders, read, configure):
    write(headwater, orders, *[(number, f"n{number}_%") for number in range(20)])
    conditions = [
        "id > 2 AND id != 4 AND note IS NOT NULL",
        "id IN (1, 3, 5, 12, 13, 15, 99)",
        "day = DATE '2026-11-21'",
        "NOT (id <=> 5)",
        "note LIKE 'n1%' AND contains(note, '_%')",
        "id = 13 OR note = 'n15_%'",
    ]
    configure(PUSHDOWN, "true")
    chosen = read("orders", push_filters="true").where(" AND ".join(f"({each})" for each in conditions))
    assert sorted(row.id for row in chosen.collect()) == [13, 15]
    [job] = list(headwater.jobs(dataset=orders, kinds=["read"]))
    assert headwater.result_files(job).rows == 2


@LONG
def test_sql_over_a_view(headwater, orders, read, spark):
    write(headwater, orders, *[(number, "even" if number % 2 == 0 else "odd") for number in range(10)])
    read("orders").createOrReplaceTempView("orders_of_the_day")
    rows = spark.sql(
        "SELECT note, COUNT(*) AS n, MAX(id) AS top FROM orders_of_the_day GROUP BY note"
    ).collect()
    assert sorted((row.note, row.n, row.top) for row in rows) == [("even", 5, 8), ("odd", 5, 9)]


@LONG
def test_empty_table_and_empty_selection(headwater, orders, read):
    assert read("orders").collect() == []
    write(headwater, orders, (1, "a"))
    assert read("orders").where("id = 2").count() == 0
    assert read("orders", version=0).count() == 0


def test_incremental_rows_have_their_meta_columns_and_corrections(headwater, orders, read):
    write(headwater, orders, (1, "a"), (2, "b"))
    write(headwater, orders, (2, "c"), (3, "c"), (5, "c"))
    write(headwater, orders, (3, "d"))
    write(headwater, orders, (5, "c"), operation="delete")
    changed = read("orders", query="incremental", begin=1, end=2, meta="true", corrected_since="true")
    assert changed.columns[:3] == ["id", "note", "day"]
    assert changed.columns[-2:] == ["_hw_corrected_by", "_hw_corrected_version"]
    rows = {row.id: row for row in changed.where("_hw_commit_seqno LIKE '2-%'").collect()}
    assert {number: row.note for number, row in rows.items()} == {2: "c", 3: "c", 5: "c"}
    assert {number: row._hw_corrected_version for number, row in rows.items()} == {2: None, 3: 3, 5: 4}
    assert all(row._hw_file_name and row._hw_commit_time for row in rows.values())


@LONG
def test_earlier_version_says_what_has_corrected_its_rows(headwater, orders, read):
    write(headwater, orders, (1, "a"), (2, "b"))
    write(headwater, orders, (2, "c"))
    frame = read("orders", version=1, corrected_since="true", columns="id")
    assert frame.columns == ["id", "_hw_corrected_by", "_hw_corrected_version"]
    assert sorted((row.id, row._hw_corrected_version) for row in frame.collect()) == [(1, None), (2, 2)]
    assert frame.where("_hw_corrected_version IS NOT NULL").count() == 1


def test_meta_columns(headwater, orders, read):
    write(headwater, orders, (1, "a"), (2, "b"))
    rows = read("orders", meta="true").where("_hw_commit_seqno = '1-0' OR id = 2").collect()
    assert {row._hw_record_key for row in rows} <= {"id:1,day:2026-11-21", "id:2,day:2026-11-20"}
    assert {row.id for row in rows} >= {2}
    assert all(row._hw_file_name.endswith(".parquet") for row in rows)


def test_changes_are_read_with_their_columns(headwater, orders, read):
    write(headwater, orders, (1, "a"), (2, "b"))
    write(headwater, orders, (2, "c"))
    write(headwater, orders, (1, None), operation="delete")
    expected = [(0, 0, "?"), (1, 0, "?"), (2, 2, "b"), (3, 3, "c"), (4, 1, "a")]
    # Ranges that begin and end within a pair of -C and +C, too.
    for size in (1, 2, 3, 100):
        frame = read("orders", query="changes", changes_per_task=size)
        assert frame.columns[:6] == [
            "offset", "op", "system_time", "event_time", "version", "corrects_offset",
        ]  # fmt: skip
        rows = sorted((row.offset, row.op, row.note) for row in frame.collect())
        assert [(offset, op) for offset, op, _ in rows] == [(offset, op) for offset, op, _ in expected]
        assert [note for _, op, note in rows if op] == ["b", "c", "a"]
    assert [row.offset for row in read("orders", query="changes", since_version=2, until=4).collect()] == [
        2,
        3,
    ]
    assert read("orders", query="changes", since="now").count() == 0
    filtered = read("orders", query="changes", where="note = 'c'", changes_per_task=3, columns="note")
    assert sorted(row.note for row in filtered.collect()) == ["b", "c"]


def test_all_types_are_read(headwater, read, configure):
    types = {
        "key": "int64", "truth": "boolean", "tiny": "int8", "unsigned": "uint32", "real": "float",
        "price": "decimal(9, 2)", "text": "string", "raw": "binary", "day": "date", "at": "timestamp",
        "at_ms": "timestamp(ms)",
        "local": "timestamp_ntz", "tags": "list<string>", "counts": "map<string, int32>",
        "place": "struct<city: string, at: uint8>",
    }  # fmt: skip
    fields = tuple(NewField(name=name, type=kind) for name, kind in types.items())
    dataset = headwater.create_dataset(NewDataset(name="types", fields=fields, record_key=("key",)))
    row = {
        "key": 1, "truth": True, "tiny": -1, "unsigned": 2**32 - 1, "real": 0.5, "price": Decimal("-1.50"), "text": "ü",
        "raw": b"\x00\xff", "day": date(2026, 11, 21), "at": "2026-11-21T10:00:00.25Z",
        "at_ms": "2026-11-21T10:00:00.250Z",
        "local": "2026-11-21T10:00:00", "tags": ["a", None], "counts": {"a": 1}, "place": {"city": "Ulm", "at": 255},
    }  # fmt: skip
    headwater.write_rows(dataset, [row, {"key": 2}], wait=60)
    for frame in (read("types"), read("types", query="changes")):
        full, empty = sorted(frame.collect(), key=lambda each: each.key)
        assert (full.truth, full.tiny, full.unsigned, full.real, full.price) == (
            True,
            -1,
            2**32 - 1,
            0.5,
            row["price"],
        )
        assert (full.text, bytes(full.raw), full.day) == ("ü", row["raw"], row["day"])
        assert full.local.isoformat() == "2026-11-21T10:00:00"
        # As seconds, since Spark's rows have the zone of the driver.
        seconds = datetime(2026, 11, 21, 10, tzinfo=UTC) + timedelta(milliseconds=250)
        assert full.at.astimezone(UTC) == full.at_ms.astimezone(UTC) == seconds
        assert (full.tags, full.counts, full.place.asDict()) == (
            ["a", None],
            {"a": 1},
            {"city": "Ulm", "at": 255},
        )
        assert [empty[name] for name in types if name != "key"] == [None] * (len(types) - 1)
    conditions = [
        "price = -1.50", "at = TIMESTAMP '2026-11-21T10:00:00.25Z'", "at_ms > TIMESTAMP '2026-11-21T10:00:00Z'",
        "local = TIMESTAMP_NTZ '2026-11-21T10:00:00'", "raw = X'00FF'", "real < 0.6", "place.city = 'Ulm'",
        "unsigned > 4294967294", "truth", "tiny = -1", "text != 'x'", "day IN (DATE '2026-11-21')",
    ]  # fmt: skip
    configure(PUSHDOWN, "true")
    for selected in (conditions, ["truth IS NULL", "NOT (text <=> 'ü')"]):
        assert read("types", push_filters="true").where(" AND ".join(selected)).count() == 1
    assert [
        headwater.result_files(job).rows for job in list(headwater.jobs(dataset=dataset, kinds=["read"]))[:2]
    ] == [1, 1]


def test_uuids_are_texts_at_any_depth(headwater, read):
    one, two = "0190163d-8694-739b-aea5-966c26f8ad91", "ffffffff-ffff-4fff-8fff-ffffffffffff"
    fields = (
        NewField(name="id", type="uuid"),
        NewField(name="others", type="list<uuid>"),
        NewField(name="by", type="map<uuid, struct<a: uuid>>"),
    )
    people = headwater.create_dataset(NewDataset(name="people", fields=fields, record_key=("id",)))
    headwater.write_rows(
        people, [{"id": one, "others": [two, None], "by": {two: {"a": one}}}, {"id": two}], wait=60
    )
    for options in ({}, {"query": "incremental", "begin": 0}):
        first, second = sorted(read("people", **options).collect())
        assert (first.id, first.others, {key: each.a for key, each in first.by.items()}) == (
            one,
            [two, None],
            {two: one},
        )
        assert (second.id, second.others, second.by) == (two, None, None)
