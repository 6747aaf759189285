"""Staged, base and changelog files: what comes back, what is refused, and what the catalogue keeps of them."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.ipc as ipc
import pyarrow.parquet as pq
import pytest
import xxhash

from app.infra.files import parquet_file
from app.infra.files.errors import CorruptFile
from app.infra.files.parquet_file import ParquetReader, create_parquet, read_row_group
from app.infra.files.staged_file import StagedFileStore, only_parts
from app.infra.files.statistics import column_statistics
from app.infra.files.storage import LocalStorage
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.evolution import evolve
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.definition.schema_change import AddField, DropField, RenameField, WidenField
from app.kernel.format.file_group import ColumnStatistics, StoredFile
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD, Op
from app.kernel.format.rows.staging import ROW_COLUMN

DATASET = define_dataset(
    CreateDataset(
        name="t",
        schema=CreateSchema(
            fields=[
                CreateField(name="id", type="string"),
                CreateField(name="day", type="date"),
                CreateField(name="fare", type="double"),
                CreateField(name="price", type="decimal(10, 2)"),
                CreateField(name="tags", type="map<string, list<int32>>"),
                CreateField(name="note", type="string"),
            ]
        ),
        record_key=["id", "day"],
        partition_by=["day"],
        bucket=CreateBucket(count=3),
    )
)
SCHEMA = DATASET.schema.to_arrow()


def rows(count: int) -> pa.Table:
    values = [
        {
            "id": f"key-{at}",
            "day": dt.date(2013, 1, 1 + at % 2),
            "fare": at / 4,
            "price": Decimal(at).scaleb(-2),
            "tags": [("x", [at, None])] if at % 3 else None,
            "note": None if at else "n" * 80,
        }
        for at in range(count)
    ]
    return pa.Table.from_pylist(values, schema=SCHEMA)


def write(storage: LocalStorage, path: str, table: pa.Table, row_group_rows: int) -> tuple[StoredFile, Any]:
    with create_parquet(storage, path, table.schema, row_group_rows=row_group_rows) as sink:
        for start in range(0, table.num_rows, 7):
            sink.write(table.slice(start, 7))
        sink.finish()
    return sink.stored(1), sink.metadata[0]


@pytest.mark.parametrize(("operation", "op"), [(Operation.DELETE, Op.RETRACT), (Operation.UPSERT, Op.APPEND)])
def test_staged_rows_of_an_earlier_release_keep_their_operation(
    tmp_path: Path, operation: Operation, op: Op
) -> None:
    """A write that was acknowledged before an upgrade is carried out after it."""
    store = StagedFileStore(LocalStorage(tmp_path))
    file = store.write(DATASET, Operation.UPSERT, [rows(10)], "s/new.arrow")
    assert file is not None
    with ipc.open_file(pa.memory_map(str(tmp_path / "s/new.arrow"))) as reader:
        batches = [reader.get_batch(number) for number in range(reader.num_record_batches)]
    earlier = [batch.drop_columns([OP_COLUMN]) for batch in batches]
    with ipc.new_file(str(tmp_path / "s/old.arrow"), earlier[0].schema) as writer:
        for batch in earlier:
            writer.write_batch(batch)
    content = (tmp_path / "s/old.arrow").read_bytes()
    old = msgspec.structs.replace(
        file, path="s/old.arrow", size_bytes=len(content), checksum=xxhash.xxh3_128_hexdigest(content)
    )
    table = store.read(old, range(len(earlier)), DATASET, operation)
    assert set(table.column(OP_COLUMN).to_pylist()) == {op}
    assert table.num_rows == 10


def test_staged_rows_are_read_by_slot_in_order(tmp_path: Path) -> None:
    store = StagedFileStore(LocalStorage(tmp_path))
    table = rows(100)
    file = store.write(DATASET, Operation.UPSERT, [table.slice(0, 60), table.slice(60)], "s/a.arrow")
    assert file is not None
    assert file.rows == 100
    # As one that follows files of 1,000 rows.
    file = msgspec.structs.replace(file, first_row=1_000)
    seen: list[dict[str, Any]] = []
    for batch in file.batches:
        part = store.read(file, [batch.index], DATASET).to_pylist()
        assert len(part) == batch.rows
        assert [row[ROW_COLUMN] for row in part] == sorted(row[ROW_COLUMN] for row in part)
        assert {f"day={row['day']}" for row in part} == {batch.slot.partition_path}
        seen += part
    seen.sort(key=lambda row: row[ROW_COLUMN])
    assert [row.pop(ROW_COLUMN) for row in seen] == list(range(1_000, 1_100))
    assert {row.pop(OP_COLUMN) for row in seen} == {Op.APPEND}
    assert seen == table.to_pylist()


@pytest.mark.parametrize(("text", "compressed"), [("x" * 60, True), (None, False)], ids=["equal", "random"])
def test_staged_rows_are_compressed_where_that_makes_them_much_smaller(
    tmp_path: Path, text: str | None, compressed: bool
) -> None:
    store = StagedFileStore(LocalStorage(tmp_path))
    dice = random.Random(1)
    table = rows(1_000)
    notes = pa.array([text or dice.randbytes(30).hex() for _ in range(1_000)])
    fares = pa.array([1.0 if text else dice.random() for _ in range(1_000)])
    for name, values in (("note", notes), ("fare", fares)):
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), values)
    file = store.write(DATASET, Operation.UPSERT, [table], "s/a.arrow")
    assert file is not None
    assert (file.size_bytes < 0.6 * table.nbytes) is compressed
    found = store.read(file, [batch.index for batch in file.batches], DATASET).sort_by(ROW_COLUMN)
    assert found.select(table.column_names).to_pylist() == table.to_pylist()


@pytest.mark.parametrize("operation", [Operation.UPSERT, Operation.DELETE])
def test_rows_that_are_part_of_the_value_equal_those_of_a_file(tmp_path: Path, operation: Operation) -> None:
    store = StagedFileStore(LocalStorage(tmp_path), inline_bytes_max=100_000)
    table = rows(100)
    stored = store.write(DATASET, operation, [table], "s/a.arrow")
    inline = store.stage(DATASET, operation, table, "s/b.arrow")
    assert stored is not None
    assert inline is not None
    assert not (tmp_path / "s/b.arrow").exists()
    assert inline.batches == stored.batches
    for file in (inline, msgspec.structs.replace(inline, first_row=7)):
        expected = msgspec.structs.replace(stored, first_row=file.first_row)
        for indices in ([0], [3, 1], list(range(len(file.batches)))):
            one = only_parts(file, indices)
            assert len(one.content or b"") == one.size_bytes <= file.size_bytes
            assert one.rows == sum(file.batches[index].rows for index in indices)
            wanted = store.read(expected, indices, DATASET)
            assert store.read(file, indices, DATASET).equals(wanted)
            assert store.read(one, range(len(indices)), DATASET).equals(wanted)


@pytest.mark.parametrize(("bytes_max", "inline"), [(0, False), (2_000, False), (100_000, True)])
def test_only_small_rows_are_part_of_the_value(tmp_path: Path, bytes_max: int, inline: bool) -> None:
    store = StagedFileStore(LocalStorage(tmp_path), inline_bytes_max=bytes_max)
    file = store.stage(DATASET, Operation.UPSERT, rows(50), "s/a.arrow")
    assert file is not None
    assert (file.content is not None, (tmp_path / "s/a.arrow").exists()) == (inline, not inline)
    assert store.stage(DATASET, Operation.UPSERT, rows(0), "s/b.arrow") is None


def test_damaged_rows_in_a_value_are_refused_and_named(tmp_path: Path) -> None:
    store = StagedFileStore(LocalStorage(tmp_path), inline_bytes_max=100_000)
    file = store.stage(DATASET, Operation.UPSERT, rows(50), "f")
    assert file is not None
    assert file.content is not None
    damaged = msgspec.structs.replace(file, content=file.content[:-9] + b"x" + file.content[-8:])
    with pytest.raises(CorruptFile) as caught:
        store.read(damaged, [0], DATASET)
    assert caught.value.facts["path"] == "f"


def test_empty_write_stages_no_file(tmp_path: Path) -> None:
    assert (
        StagedFileStore(LocalStorage(tmp_path)).write(DATASET, Operation.UPSERT, [rows(0)], "s/a.arrow")
        is None
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("first", "count"), [(0, 1), (0, 50), (9, 2), (10, 10), (45, 5), (50, 0)])
def test_slice_reads_only_its_rows(tmp_path: Path, first: int, count: int) -> None:
    storage = LocalStorage(tmp_path)
    table = rows(50)
    file, metadata = write(storage, "d/a.parquet", table, 10)
    assert [metadata.row_group(at).num_rows for at in range(5)] == [10] * 5
    schema = DATASET.schema.select(["fare", "id"]).to_arrow()
    found = ParquetReader(storage).read_slice(file, schema, first, count)
    assert found.to_pylist() == table.slice(first, count).select(["fare", "id"]).to_pylist()


def test_file_is_read_by_column_id(tmp_path: Path) -> None:
    """Whatever its columns are called now: what was dropped is gone, what was added null, what was widened cast."""
    storage = LocalStorage(tmp_path)
    table = rows(50)
    file, _ = write(storage, "d/a.parquet", table, 10)
    later = evolve(
        DATASET,
        [
            DropField(name="note"),
            RenameField(name="fare", to="note"),
            AddField(field=CreateField(name="fare", type="string")),
            WidenField(name="price", type_="decimal(20, 2)"),
            WidenField(name="tags", type_="map<string, list<int64>>"),
        ],
    ).schema.to_arrow()
    expected = [
        {
            "id": row["id"],
            "day": row["day"],
            "note": row["fare"],
            "price": row["price"],
            "tags": row["tags"],
            "fare": None,
        }
        for row in table.to_pylist()
    ]
    reader = ParquetReader(storage)
    # Under one schema after the other, since a row group that was begun is kept.
    for _ in range(2):
        assert reader.read_slice(file, later, 15, 20).to_pylist() == expected[15:35]
        assert reader.read_slice(file, SCHEMA, 15, 20).to_pylist() == table.slice(15, 20).to_pylist()
    assert read_row_group(reader.open(file), 4, later).schema == later
    assert read_row_group(reader.open(file), 4, later).to_pylist() == expected[40:]
    only_new = pa.schema([later.field("fare")])
    assert reader.read_slice(file, only_new, 48, 5).to_pylist() == [{"fare": None}] * 2
    assert read_row_group(reader.open(file), 0, only_new).to_pylist() == [{"fare": None}] * 10


def test_staged_rows_are_read_under_a_later_schema(tmp_path: Path) -> None:
    store = StagedFileStore(LocalStorage(tmp_path))
    file = store.write(DATASET, Operation.UPSERT, [rows(10)], "s/a.arrow")
    assert file is not None
    later = evolve(
        DATASET,
        [RenameField(name="note", to="remark"), AddField(field=CreateField(name="note", type="date"))],
    )
    found = store.read(file, [batch.index for batch in file.batches], later)
    assert found.column_names == [OP_COLUMN, *later.schema.names(), ROW_COLUMN]
    by_key = {row["id"]: row for row in found.to_pylist()}
    assert [by_key[row["id"]]["remark"] for row in rows(10).to_pylist()] == rows(10)["note"].to_pylist()
    assert found["note"].null_count == 10


@pytest.mark.parametrize("step", [1, 7, 10, 25])
def test_consecutive_slices_join_to_the_file(tmp_path: Path, step: int) -> None:
    """A reader that goes on within a row group gets it from memory; two at once do not disturb each other."""
    storage = LocalStorage(tmp_path)
    table = rows(50)
    file, _ = write(storage, "d/a.parquet", table, 10)
    reader = ParquetReader(storage)
    for columns in (["fare", "id"], DATASET.schema.names(), ["id"]):
        wanted = table.select(columns)
        schema = DATASET.schema.select(columns).to_arrow()
        for first in range(0, 50, step):
            slices = [reader.read_slice(file, schema, first, step) for _ in range(2)]
            for found in slices:
                assert found.to_pylist() == wanted.slice(first, step).to_pylist()


@pytest.mark.parametrize("small", [True, False])
def test_caches_of_many_files_stay_within_their_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: bool
) -> None:
    """What is counted of a footer or a table is about what it takes, which is far more than its values."""
    if not small:
        monkeypatch.setattr(parquet_file, "_SMALL_BYTES", 0)
    storage = LocalStorage(tmp_path)
    files = [write(storage, f"d/{number}.parquet", rows(200 + number), 100)[0] for number in range(60)]
    reader = ParquetReader(storage, 200_000)
    largest = 0
    for file in files:
        reader.read_slice(file, DATASET.schema.to_arrow(), 0, 50, bytes_max=2**20)
        largest = max(largest, reader.cached_bytes)
    # Small files leave nothing behind but that they were verified.
    assert (largest == 0) if small else (150_000 < largest <= 200_000)


def test_statistics_are_bounds_by_field_id(tmp_path: Path) -> None:
    table = rows(50)
    _, metadata = write(LocalStorage(tmp_path), "d/a.parquet", table, 10)
    found = column_statistics(metadata, DATASET.schema)
    assert found["2"] == ColumnStatistics(minimum="2013-01-01", maximum="2013-01-02", null_count=0)
    assert found["3"] == ColumnStatistics(minimum=0.0, maximum=12.25, null_count=0)
    assert found["4"] == ColumnStatistics(minimum="0.00", maximum="0.49", null_count=0)
    assert found["6"] == ColumnStatistics(minimum=None, maximum=None, null_count=49)
    assert "5" not in found


def test_op_is_stored_dictionary_encoded_as_int32(tmp_path: Path) -> None:
    changes = rows(30).add_column(0, OP_FIELD, pa.array([0, 2, 3] * 10, pa.uint8()))
    write(LocalStorage(tmp_path), "c/a.parquet", changes, 10)
    parquet = pq.ParquetFile(tmp_path / "c" / "a.parquet")
    column = parquet.metadata.row_group(0).column(0)
    assert (column.path_in_schema, column.physical_type) == (OP_COLUMN, "INT32")
    assert "RLE_DICTIONARY" in column.encodings
    assert parquet.schema_arrow.field(OP_COLUMN).type == pa.uint8()


def test_files_carry_field_ids(tmp_path: Path) -> None:
    write(LocalStorage(tmp_path), "d/a.parquet", rows(3), 10)
    read = pq.read_schema(tmp_path / "d" / "a.parquet")
    assert [field.metadata[b"PARQUET:field_id"] for field in read] == [b"1", b"2", b"3", b"4", b"5", b"6"]


def test_unfinished_file_is_removed(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    with create_parquet(storage, "d/a.parquet", SCHEMA, row_group_rows=10) as sink:
        sink.write(rows(25))
    assert list(storage.list("")) == []


@pytest.mark.parametrize("damage", ["flipped", "shorter", "longer", "gone"])
@pytest.mark.parametrize("kind", ["parquet", "staged"])
def test_damaged_file_is_refused_and_named(tmp_path: Path, damage: str, kind: str) -> None:
    storage = LocalStorage(tmp_path)
    if kind == "staged":
        staged = StagedFileStore(storage).write(DATASET, Operation.UPSERT, [rows(50)], "f")
        assert staged is not None
        read = partial(StagedFileStore(storage).read, staged, [0], DATASET)
    else:
        stored, _ = write(storage, "f", rows(50), 10)
        read = partial(ParquetReader(storage).read_slice, stored, SCHEMA, 0, 1)
    path = tmp_path / "f"
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    match damage:
        case "flipped":
            content[middle] ^= 1
        case "shorter":
            del content[middle:]
        case "longer":
            content += b"x"
    path.unlink()
    if damage != "gone":
        path.write_bytes(content)
    with pytest.raises(CorruptFile) as caught:
        read()
    assert caught.value.facts["path"] == "f"


def test_file_with_another_row_count_is_refused(tmp_path: Path) -> None:
    storage = LocalStorage(tmp_path)
    file, _ = write(storage, "f", rows(50), 10)
    wrong = StoredFile(
        path=file.path, size_bytes=file.size_bytes, checksum=file.checksum, row_count=49, schema_id=1
    )
    with pytest.raises(CorruptFile, match="50 rows, but its commit recorded 49"):
        ParquetReader(storage).read_slice(wrong, SCHEMA, 0, 1)
