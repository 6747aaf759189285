"""Every way to write, through the typed client, against the live service."""

import pytest

from headwater_client import (
    AddField,
    Bucket,
    DatasetWrite,
    DropField,
    NewDataset,
    NewField,
    NewSchema,
    NewTable,
    NewView,
    Overwrite,
    Problem,
    RelaxField,
    RenameField,
    ReorderFields,
    SequenceGroup,
    WidenField,
    WriteOptions,
    sent_bytes,
)


@pytest.fixture(autouse=True)
def worker(service):
    with service.working():
        yield


def register(headwater, name, **definition):
    fields = (NewField(name="id", type="int64"), NewField(name="note", type="string"))
    return headwater.create_dataset(
        NewDataset(**{"name": name, "fields": fields, "record_key": ("id",)} | definition)
    )


def notes(headwater, dataset, **options):
    return sorted((row["id"], row["note"]) for row in headwater.rows(dataset, **options))


def rows(*ids, note="a"):
    return [{"id": number, "note": note} for number in ids]


def test_registration_accepts_every_part_of_a_definition(headwater):
    fields = (
        NewField(name="id", type="int64"),
        NewField(name="country", type="string"),
        NewField(name="place", type="string"),
        NewField(name="seen", type="int32"),
        NewField(name="gone", type="boolean"),
    )
    bucket = Bucket(mode="key_dynamic", count=2, target_rows=100, max_buckets=4)
    found = register(
        headwater, "everything", fields=fields, partition_by=("country",), table_type="merge_on_read",
        bucket=bucket, index="simple", merge_mode="partial", delete_marker="gone", producer="deferred",
        sequence_groups=(SequenceGroup(ordering_field="seen", fields=("place",)),), target_bytes=2**20,
        compression="lz4",
    )  # fmt: skip
    assert (found.table_type, found.merge_mode, found.compression) == ("merge_on_read", "partial", "lz4")
    assert headwater.change_compression(found, "zstd").compression == "zstd"
    ordered = register(headwater, "ordered", ordering_field="id2", keep_seconds=60, fields=(
        NewField(name="id", type="int64"), NewField(name="id2", type="int64")))  # fmt: skip
    assert ordered.deletes.keep_seconds == 60
    assert headwater.change_keep_seconds(ordered, 0).deletes.keep_seconds == 0
    noted = register(headwater, "noted", description="Notes.", labels={"team": "ops"})
    assert (noted.description, noted.labels) == ("Notes.", {"team": "ops"})
    assert [each.name for each in headwater.datasets(labels={"team": "ops"})] == ["noted"]
    assert headwater.change_labels(noted, {"team": "sales"}).labels == {"team": "sales"}
    assert headwater.change_description(noted, None).description is None
    assert list(headwater.datasets(labels={"team": "ops"})) == []
    sums = register(headwater, "sums", merge_mode="aggregate", aggregates={"note": "max"})
    headwater.write_rows(sums, [*rows(1, note="a"), *rows(1, note="b"), *rows(1, note="a")], wait=30)
    assert notes(headwater, sums) == [(1, "b")]
    with pytest.raises(Problem, match="422 invalid-dataset"):
        register(headwater, "wrong", bucket=Bucket(mode="unaware"))


def test_snapshot_and_overwrite_write_the_differences(headwater, orders):
    headwater.write_rows(orders, rows(1, 2, 3), wait=30)
    job = headwater.write_rows(
        orders, [*rows(1), *rows(2, note="b"), *rows(4)], operation="snapshot", wait=30
    )
    assert (job.rows.inserted, job.rows.updated, job.rows.deleted, job.rows.unchanged) == (1, 1, 1, 1)
    part = WriteOptions(overwrite=Overwrite(scope="filter", where="id >= 2 AND id < 4"))
    headwater.write_rows(orders, rows(3), operation="overwrite", options=part, wait=30)
    assert notes(headwater, orders) == [(1, "a"), (3, "a"), (4, "a")]
    headwater.write_rows(orders, rows(9), options=WriteOptions(mode="overwrite"), wait=30)
    assert notes(headwater, orders) == [(9, "a")]


def test_changelog_writes_accept_a_feed_and_debezium(headwater, orders):
    headwater.write_rows(orders, rows(1, 2), wait=30)
    headwater.write_rows(orders, rows(2, note="b"), wait=30)
    copy = register(headwater, "copy")
    changes = [{"op": change.op, "row": change.row} for change in headwater.changes(orders)]
    headwater.write_rows(copy, changes, operation="changelog", wait=30)
    assert notes(headwater, copy) == notes(headwater, orders) == [(1, "a"), (2, "b")]
    gone = {"op": "d", "before": {"id": 1, "note": "a"}, "after": None}
    assert headwater.write_rows(copy, [gone], operation="changelog", wait=30).rows.deleted == 1
    assert notes(headwater, copy) == [(2, "b")]


def test_deletes_select_rows_by_filter_and_partition(headwater):
    fields = (NewField(name="id", type="int64"), NewField(name="note", type="string"))
    dated = register(
        headwater, "dated", fields=(*fields, NewField(name="day", type="date")), record_key=("id", "day"),
        partition_by=("day",),
    )  # fmt: skip
    sent = [{**row, "day": f"2026-11-{row['id']:02}"} for row in rows(1, 2, 3, 11)]
    headwater.write_rows(dated, sent, wait=30)
    assert headwater.delete_where(dated, "id = 1", expected_version=1, wait=30).rows.deleted == 1
    assert headwater.delete_partitions(dated, ["day=2026-11-0*"], wait=30).rows.deleted == 2
    assert notes(headwater, dated) == [(11, "a")]
    with pytest.raises(Problem) as refused:
        headwater.delete_where(dated, "nothing = 1")
    assert (refused.value.code, refused.value.status) == ("invalid-filter", 400)
    with pytest.raises(Problem) as late:
        headwater.delete_partitions(dated, ["day=*"], expected_version=1, wait=30)
    assert late.value.code == "commit-conflict"


def test_write_options_take_effect(headwater, orders):
    drop, batch = WriteOptions(drop_duplicates=True), WriteOptions(writer_id="w", batch_id=7)
    first = headwater.write_rows(orders, rows(1), options=batch, wait=30)
    assert headwater.write_rows(orders, rows(1), options=batch, wait=30).id == first.id
    job = headwater.write_rows(orders, rows(1, 2), operation="insert", options=drop, wait=30)
    assert (job.rows.inserted, job.rows.unchanged) == (1, 1)
    there = WriteOptions(mode="error_if_exists")
    with pytest.raises(Problem) as refused:
        headwater.write_rows(orders, rows(3), options=there, wait=30)
    assert refused.value.code == "data-exists"
    ignored = headwater.write_rows(orders, rows(3), options=WriteOptions(mode="ignore"), wait=30)
    assert ignored.rows.unchanged == 1
    in_order = WriteOptions(sort_by=("note", "id"))
    headwater.write(
        orders, b"id,note\n3,c\n", format="csv", operation="bulk_insert", options=in_order, wait=30
    )
    assert "linear" in [file.clustered for file in headwater.files(orders)]
    upload = headwater.upload(orders, b"id,note\n5,x\nfive,x\n")
    quarantine = WriteOptions(on_error="quarantine")
    assert headwater.write_upload(orders, upload, "csv", options=quarantine, wait=30).rows.quarantined == 1


def test_rows_without_a_key_are_stored_as_sent(headwater):
    raw = register(headwater, "raw", record_key=())
    as_sent, twice = WriteOptions(combine=False), [*rows(1), *rows(1)]
    job = headwater.write_rows(raw, twice, operation="bulk_insert", options=as_sent, wait=30)
    assert job.rows.inserted == 2
    upload = headwater.upload(raw, b"id,note\n1,a\n")
    sent = headwater.write_upload(raw, upload, "csv", operation="insert", options=as_sent, wait=30)
    assert sent.rows.inserted == 1
    assert notes(headwater, raw) == [(1, "a")] * 3


def test_write_registers_its_dataset(headwater):
    new = WriteOptions(create=NewTable(record_key=("id", "note"), partition_by=("note",)))
    headwater.write_rows("raw", rows(1), options=new, wait=30)
    raw = headwater.get_dataset("raw")
    assert (raw.record_key, raw.partition_by) == (("id", "note"), ("note",))
    columns = (NewField(name="id", type="int32"), NewField(name="a `b`", type="map<string, decimal(9, 2)>"))
    stated = WriteOptions(create=NewTable(record_key=("id",), schema=NewSchema(fields=columns)))
    headwater.write_rows("stated", [{"id": 1}], options=stated, wait=30)
    fields = headwater.get_dataset("stated").schema.fields
    assert [(field.name, field.type) for field in fields] == [(field.name, field.type) for field in columns]
    described = NewTable(schema=NewSchema(fields=(NewField(name="id", type="int32", doc="its number"),)))
    with pytest.raises(ValueError, match="id has a doc"):
        headwater.write_rows("none", [{"id": 1}], options=WriteOptions(create=described))


def test_write_merges_its_schema(headwater, orders):
    wider = WriteOptions(merge_schema=True, explicit_cast=True)
    headwater.write_rows(orders, [{"id": 1, "note": "a", "seen": "2026-11-21"}], options=wider, wait=30)
    assert [field.type for field in headwater.get_dataset(orders).schema.fields] == [
        "int64",
        "string",
        "date",
    ]


def test_schema_is_changed_and_its_history_listed(headwater, orders):
    headwater.write_rows(orders, rows(1), wait=30)
    changed = headwater.change_schema(
        headwater.get_dataset(orders),
        AddField(field=NewField(name="pieces", type="int32", doc="how many")),
        WidenField(name="pieces", type="int64"),
        RenameField(name="note", to="remark"),
        ReorderFields(names=("id", "pieces", "remark")),
    )
    assert changed.version == 2
    assert list(headwater.rows(orders)) == [{"id": 1, "pieces": None, "remark": "a"}]
    assert list(headwater.rows(orders, version=1)) == [{"id": 1, "note": "a"}]
    headwater.change_schema("orders", DropField(name="remark"))
    strict = NewField(name="must", type="int32", nullable=False)
    required = register(headwater, "required", fields=(NewField(name="id", type="int64"), strict))
    relaxed = headwater.change_schema(required, RelaxField(name="must"))
    assert [field.nullable for field in relaxed.schema.fields] == [False, True]
    assert [schema.id for schema in headwater.schemas(orders)] == [3, 2, 1]
    assert [field.id for field in headwater.get_schema(orders).fields] == [1, 3]
    assert [field.name for field in headwater.get_schema(orders, 1).fields] == ["id", "note"]
    assert {page.schema_id for page in headwater.change_pages(orders)} == {3}
    with pytest.raises(Problem, match="412 precondition-failed"):
        headwater.change_schema(changed, DropField(name="pieces"))


def test_schema_change_that_breaks_a_view_is_made_with_cascade(headwater, orders):
    headwater.create_view(NewView(name="notes", sql="SELECT id, note FROM orders"))
    [reader] = headwater.get_schema(orders).readers
    assert (reader.kind, reader.name, list(reader.columns)) == ("view", "notes", ["id", "note"])
    with pytest.raises(Problem, match="409 schema-in-use"):
        headwater.change_schema(orders, DropField(name="note"))
    assert headwater.change_schema(orders, DropField(name="note"), cascade="pause").version == 1
    assert headwater.get_view("notes").state == "paused"


def test_quarantined_records_are_listed_repaired_redriven_and_discarded(headwater, orders):
    quarantine = WriteOptions(on_error="quarantine")
    sent = [*rows(1), {"id": "two", "note": "b"}, {"id": 3, "note": 3}]
    job = headwater.write_rows(orders, sent, options=quarantine, wait=30)
    assert (job.rows.inserted, job.rows.quarantined) == (1, 2)
    second, third = headwater.quarantine(orders)
    assert [record.position for record in (second, third)] == [1, 2]
    assert [error.pointer for error in second.errors] == ["/id"]
    assert sent_bytes(second) == b'{"id":"two","note":"b"}'
    again = headwater.redrive(orders, {second.id: '{"id": 2, "note": "b"}'}, wait=30)
    assert again.rows.inserted == 1
    assert [record.state for record in headwater.quarantine(orders, job=job)] == ["redriven", "quarantined"]
    unrepaired = headwater.redrive_job(orders, job, accept_late=True, wait=30)
    assert unrepaired.rows.quarantined == 1
    with pytest.raises(Problem) as refused:
        headwater.redrive(orders, {third.id: None})
    assert refused.value.code == "already-redriven"
    headwater.discard_quarantine(orders, job)
    assert [record.job_id for record in headwater.quarantine(orders)] == [unrepaired.id]
    assert notes(headwater, orders) == [(1, "a"), (2, "b")]


def test_every_way_to_write_has_metadata(headwater, orders):
    options = WriteOptions(metadata={"run": "a:1"})
    headwater.write_rows(orders, rows(1, 2), options=options, wait=30)
    headwater.write(orders, b"id,note\n3,c\n", format="csv", options=options, wait=30)
    headwater.delete_where(orders, "id = 3", metadata={"run": "b"}, wait=30)
    page = next(iter(headwater.change_pages(orders)))
    assert [commit.metadata for commit in page.commits] == [({"run": run},) for run in ("a:1", "a:1", "b")]
    assert next(iter(headwater.jobs(dataset=orders))).metadata == {"run": "b"}


def test_transaction_writes_all_its_datasets_or_none(headwater, orders):
    others = register(headwater, "others")
    upload = headwater.upload(others, b"id,note\n7,from a file\n")
    writes = [
        DatasetWrite(dataset=orders, rows=rows(1, 2), operation="insert"),
        DatasetWrite(dataset="others", upload=upload, format="csv"),
    ]
    done = headwater.transact(writes, idempotency_key="once", wait=30)
    assert (done.state, [job.committed_version for job in done.jobs]) == ("succeeded", [1, 1])
    assert headwater.transact(writes, idempotency_key="once").id == done.id
    assert (notes(headwater, orders), notes(headwater, others)) == (
        [(1, "a"), (2, "a")],
        [(7, "from a file")],
    )
    broken = [
        DatasetWrite(dataset=others, where="id = 7", operation="delete"),
        DatasetWrite(dataset=orders, rows=rows(2), operation="insert"),
    ]
    with pytest.raises(Problem) as at_once:
        headwater.transact(broken, wait=30)
    failed = headwater.transact(broken)
    with pytest.raises(Problem) as later:
        headwater.wait_for_transaction(failed)
    assert (at_once.value.code, later.value.code) == ("duplicate-key", "duplicate-key")
    assert headwater.get_transaction(failed).state == "failed"
    assert headwater.wait_for_transaction(done.id) == headwater.get_transaction(done)
    assert notes(headwater, others) == [(7, "from a file")]


def test_deferred_log_is_compacted_and_clustered(headwater):
    log = register(headwater, "log", table_type="merge_on_read", producer="deferred")
    headwater.write_rows(log, rows(1), wait=30)
    headwater.write_rows(log, rows(1, note="b"), wait=30)
    assert notes(headwater, log) == [(1, "b")]
    assert notes(headwater, log, query_type="read_optimized") == []
    assert list(headwater.changes(log)) == []
    compacted = headwater.compact(log, wait=30)
    assert compacted.result is not None
    assert (compacted.result["file_groups"], compacted.result["file_groups_left"]) == (1, 0)
    assert (compacted.kind, compacted.operation, compacted.committed_version) == ("compaction", None, 3)
    assert [(change.op, change.row["note"]) for change in headwater.changes(log)] == [
        ("+A", "a"), ("-C", "a"), ("+C", "b"),
    ]  # fmt: skip
    assert next(headwater.timeline(log)).action == "compaction"
    verified = headwater.verify(log, version=3, wait=30)
    assert (verified.kind, verified.operation) == ("verify", None)
    assert verified.result is not None
    assert (verified.result["equal"], verified.result["version"], verified.result["changes"]) == (True, 3, 3)
    assert notes(headwater, log, query_type="read_optimized") == [(1, "b")]
    clustered = headwater.cluster(log, ["note", "id"], order="z_order", wait=30)
    assert (clustered.kind, clustered.committed_version) == ("clustering", 4)
    assert notes(headwater, log) == [(1, "b")]
    analyzed = headwater.analyze(log, wait=30)
    assert (analyzed.kind, analyzed.result) == ("analysis", {"version": 4, "rows": 1, "columns": 2})
    [summary] = headwater.statistics(log, columns=["note"]).columns
    assert (summary.distinct_count, summary.analyzed_version) == (1, 4)


def test_rows_are_selected_by_filter_and_partition_and_carry_metadata(headwater):
    fields = (NewField(name="id", type="int64"), NewField(name="note", type="string"))
    parts = register(headwater, "parts", fields=fields, record_key=("id", "note"), partition_by=("note",))
    headwater.write_rows(parts, [*rows(1, 2, 3), *rows(4, note="b")], wait=30)
    assert notes(headwater, parts, where="id > 1 AND id != 3") == [(2, "a"), (4, "b")]
    assert notes(headwater, parts, partitions=["note=b"]) == [(4, "b")]
    [row] = headwater.rows(parts, where="id = 4", meta=True)
    assert row["_hw_partition_path"] == "note=b"
    assert row["_hw_commit_seqno"].startswith("1-")
    [page] = headwater.row_tables(parts, where="id = 4", meta=True, columns=["id"])
    assert page.schema_id == 1
    assert page.table.column_names[0] == "id"
    assert len(page.table.column_names) == 6


def test_write_is_explained_without_being_committed(headwater, orders):
    headwater.write_rows(orders, rows(1, note="a"), wait=30)
    explained = headwater.explain_keys(orders, [{"id": 1}, {"id": 2}])
    found = {key.key["id"]: key for group in explained.file_groups for key in group.keys}
    assert (explained.version, explained.bucket.count, explained.index) == (1, 2, "bucket")
    assert found[1].live is not None
    assert (found[1].live.version, found[2].live) == (1, None)
    both = headwater.explain_write(orders, [*rows(1, note="b"), *rows(2)])
    assert sum(group.rows for group in both.file_groups) == 2
    assert {group.storing for group in both.file_groups} == {"mark"}
    taken = headwater.explain_write(orders, rows(7), operation="snapshot")
    assert taken.operation == "snapshot"
    assert headwater.get_dataset(orders).version == 1
    with pytest.raises(Problem, match="422 schema-mismatch"):
        headwater.explain_keys(orders, [{"note": "a"}])
