"""Quarantine files: what is quarantined is read back as it was sent, by ranges, and sent again."""

from __future__ import annotations

import pyarrow as pa
import pytest

from app.infra.errors import StorageFull
from app.infra.files.errors import CorruptFile
from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.storage import Storage, open_storage
from app.kernel.codecs import BadRecord, BadRecords, Split, decode_ndjson
from app.kernel.codecs.records import iter_record_tables
from app.kernel.codecs.splits import plan_splits
from app.kernel.format.errors import FieldError
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.formats import Format
from tests.kernel.codecs.samples import schema_of

SCHEMA = schema_of({"id": "int32!", "name": "string"})


@pytest.fixture
def storage(tmp_path) -> Storage:
    return open_storage(tmp_path.as_uri())


def record(position: int, payload: bytes, header: bytes | None = None) -> BadRecord:
    errors = (FieldError(pointer="/id", detail=f"näïve {position}"), FieldError(pointer="", detail=""))
    return BadRecord(position=position, errors=errors, payload=payload, header=header)


RECORDS = [record(3 * number, b"\xff\x00%d" % number, b"id" if number % 2 else None) for number in range(50)]


def test_records_are_read_in_ranges_across_writes(storage):
    store = QuarantineFileStore(storage)
    with store.sink("t/d/quarantine/a.parquet") as sink:
        for start in range(0, 50, 7):
            sink.write(RECORDS[start : start + 7])
    assert sink.file is not None
    assert sink.file.row_count == 50
    for first, count in ((0, 50), (0, 1), (6, 2), (49, 5), (13, 0), (10, 30)):
        assert list(store.read(sink.file, first, count)) == RECORDS[first : first + count]


def test_file_without_records_is_not_created(storage):
    store = QuarantineFileStore(storage)
    with store.sink("t/a.parquet") as sink:
        pass
    assert sink.file is None
    assert store.write([], "t/b.parquet") is None
    with pytest.raises(StorageFull):
        fill(store, "t/c.parquet")
    assert list(storage.list("t")) == []


def fill(store: QuarantineFileStore, path: str) -> None:
    with store.sink(path) as sink:
        sink.write(RECORDS)
        raise StorageFull("no more")


def test_damaged_file_is_refused(storage):
    store = QuarantineFileStore(storage)
    file = store.write(RECORDS, "t/a.parquet")
    with pytest.raises(CorruptFile):
        next(store.read(QuarantineFile(path=file.path, size_bytes=9, checksum="x", row_count=50), 0, 1))
    with pytest.raises(CorruptFile):
        next(store.read(QuarantineFile(path="t/none", size_bytes=9, checksum="x", row_count=50), 0, 1))


def test_rows_refused_by_the_merge_are_stored_as_json(storage):
    store = QuarantineFileStore(storage)
    rows = pa.concat_tables(
        [decode_ndjson(text, SCHEMA) for text in (b'{"id":1,"name":"a"}', b'{"id":2}\n{"id":3}')]
    )
    error = FieldError(pointer="", detail="the key is already in the table")
    file = store.write_rows(rows, [4, 7, 9], [error] * 3, "t/a.parquet")
    found = list(store.read(file, 0, 9))
    assert [(each.position, each.payload) for each in found] == [
        (4, b'{"id":1,"name":"a"}'),
        (7, b'{"id":2,"name":null}'),
        (9, b'{"id":3,"name":null}'),
    ]
    assert found[0].errors == (FieldError(pointer="", detail="the key is already in the table"),)
    assert store.write_rows(rows.slice(0, 0), [], [], "t/b.parquet") is None


REDRIVEN = [
    record(0, b'{"id":1}'),
    record(0, b'{"id":\n2,\r\n"name":"b"}'),
    record(0, b'{"id":'),
    record(0, b"3,c", b"id,name"),
    record(0, b'4,"never closed', b"id,name"),
    record(0, b'5,"d\ne"', b"id,name"),
    record(0, b'",6', b"id,name"),
    record(0, b"7,f\n8,g", b"id,name"),
    record(0, b"h,9", b"name,id"),
    record(0, b"", b"id,name"),
    record(0, b"10,i,j", b"id,name"),
    record(0, b""),
    record(0, b'{"id":11}'),
]


@pytest.mark.parametrize("step", [1, 2, 100])
@pytest.mark.parametrize("target", [1, 1 << 20])
def test_redriven_records_are_each_decoded_alone(storage, step, target):
    store = QuarantineFileStore(storage)
    with store.sink("t/a.parquet") as sink:
        for start in range(0, len(REDRIVEN), step):
            sink.write(REDRIVEN[start : start + step])
    source = storage.open("t/a.parquet")
    kept: list[BadRecord] = []
    bad_records = BadRecords(write=kept.extend)
    tables = [SCHEMA.to_arrow().empty_table()]
    for split in plan_splits(Format.PARQUET, source, sink.file.size_bytes, target):
        tables += iter_record_tables(source, SCHEMA, split=split, bad_records=bad_records)
    bad_records.close()
    assert pa.concat_tables(tables).to_pylist() == [
        {"id": 1, "name": None},
        {"id": 2, "name": "b"},
        {"id": 3, "name": "c"},
        {"id": 5, "name": "d\ne"},
        {"id": 9, "name": "h"},
        {"id": 11, "name": None},
    ]
    bad = sorted(kept, key=lambda each: each.position)
    assert [each.position for each in bad] == [2, 4, 6, 7, 9, 10, 11]
    for each in bad:
        sent = REDRIVEN[each.position]
        assert (each.payload, each.header) == (sent.payload, sent.header)


def test_record_file_may_be_a_single_split(storage):
    file = QuarantineFileStore(storage).write([record(0, b'{"id":1}')], "t/a.parquet")
    (table,) = iter_record_tables(storage.open(file.path), SCHEMA, split=Split())
    assert table["id"].to_pylist() == [1]
