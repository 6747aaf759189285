"""How rows are laid out in files: target sizes, small files folded in, buckets opened by rows, and keys that stay."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import numpy as np
import pytest

from app.infra.files import data_sink
from app.infra.files.lookups.key_index_file import read_index
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.dataset import BucketMode, ChangelogProducer, IndexType, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateIndex,
    CreateSchema,
)
from app.kernel.format.errors import InvalidDataset
from app.kernel.format.file_group import DataFile, FileKind
from app.kernel.format.index.key_index import KeyIndex
from app.kernel.format.operation import Operation
from app.kernel.format.rows.record_key import encode_keys
from tests.support.lake_table import LakeTable, Row, Write
from workers.engine.merge import task_report
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.task_files import TaskResources

_TARGET: Final = 64 * 1024
_FIELDS: Final = [
    CreateField(name="id", type="int64"),
    CreateField(name="p", type="string"),
    CreateField(name="text", type="string"),
]


def _table(folder: Path, **parts: Any) -> LakeTable:
    parts = {"record_key": ["id"], "target_bytes": _TARGET, **parts}
    dataset = define_dataset(CreateDataset(name="t", schema=CreateSchema(fields=_FIELDS), **parts))
    handle = MergeHandle(TaskResources.on(LocalStorage(folder), MemoryBudget(bytes_max=2**28)))
    return LakeTable(
        storage=LocalStorage(folder), dataset=dataset, run=lambda tasks: [handle.run(task) for task in tasks]
    )


def _rows(keys: Iterable[int], p: str = "x", seed: int = 0) -> list[Row]:
    """Rows of some 60 bytes even when compressed."""
    one = random.Random(seed)
    return [{"id": key, "p": p, "text": one.randbytes(50).hex()} for key in keys]


def _upsert(table: LakeTable, rows: list[Row]) -> None:
    table.write(Write(operation=Operation.UPSERT, rows=rows))


def _base(table: LakeTable) -> list[DataFile]:
    return [file for file in table.files.values() if file.kind is FileKind.BASE]


def _ids(table: LakeTable, file: DataFile) -> set[int]:
    return set(table.reader.open(file).read(columns=["id"]).column("id").to_pylist())


def _buckets(table: LakeTable) -> Counter[int]:
    """Live rows by bucket."""
    rows: Counter[int] = Counter()
    for file in _base(table):
        rows[file.slot.bucket] += file.live_rows
    return rows


def _homes(table: LakeTable) -> dict[int, int]:
    """By key the bucket it is in."""
    return {key: file.slot.bucket for file in _base(table) for key in _ids(table, file)}


@pytest.mark.parametrize("table_type", TableType)
@pytest.mark.parametrize("key", [["id"], []], ids=["keyed", "unkeyed"])
def test_file_ends_at_the_target_size(tmp_path: Path, table_type: TableType, key: list[str]) -> None:
    table = _table(
        tmp_path, table_type=table_type, record_key=key, bucket=CreateBucket(count=1) if key else None
    )
    rows = _rows(range(10_000))
    table.write(Write(operation=Operation.BULK_INSERT, rows=rows))
    sizes = sorted(file.size_bytes for file in _base(table))
    assert len(sizes) > 5
    assert sum(size >= _TARGET for size in sizes) >= len(sizes) - 1
    assert sizes[-1] < 2 * _TARGET
    assert {file.slot.bucket for file in _base(table)} == {0}
    assert sorted(row["id"] for row in table.rows()) == list(range(10_000))


@pytest.mark.parametrize("operation", [Operation.BULK_INSERT, Operation.UPSERT])
def test_key_indexes_of_a_load_have_the_places_of_its_keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: Operation
) -> None:
    # Few rows are written once, as rows and as changes, in several row groups and files that have an index.
    monkeypatch.setattr(data_sink, "KEPT_ROWS_MIN", 1)
    monkeypatch.setattr(data_sink, "SHARED_ROW_GROUP_ROWS", 300)
    monkeypatch.setattr(task_report, "SMALL_CHANGES_BYTES", 1)
    table = _table(tmp_path, table_type=TableType.MERGE_ON_READ, bucket=CreateBucket(count=1))
    ids = np.random.default_rng(1).permutation(6_000).tolist()
    table.write(Write(operation=operation, rows=_rows(ids)))
    files = _base(table)
    assert len(files) > 2
    for file in files:
        parquet = table.reader.open(file)
        assert parquet.metadata.num_row_groups > 1
        keys = encode_keys(parquet.read(), ("id",))
        assert file.index_file is not None
        index, expected = read_index(table.storage, file.index_file), KeyIndex.build(keys)
        assert isinstance(index, KeyIndex)
        assert index.hashes.tolist() == expected.hashes.tolist()
        assert index.positions.tolist() == expected.positions.tolist()


@pytest.mark.parametrize("index", [IndexType.SIMPLE, IndexType.BLOOM, IndexType.RECORD])
def test_small_files_receive_new_rows_and_large_ones_are_unchanged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: IndexType
) -> None:
    # Files of few rows get no index: here they do.
    monkeypatch.setattr(data_sink, "KEPT_ROWS_MIN", 1)
    table = _table(
        tmp_path,
        table_type=TableType.COPY_ON_WRITE,
        bucket=CreateBucket(count=1),
        index=CreateIndex(type_=index),
    )
    _upsert(table, _rows(range(2_500)))
    large = {file.path for file in _base(table) if file.size_bytes * 4 >= _TARGET}
    assert len(large) >= 2
    _upsert(table, _rows(range(10_000, 10_010)))
    _upsert(table, _rows(range(20_000, 20_010)))
    assert large <= set(table.files)
    assert sum(not _ids(table, file).isdisjoint(range(10_000, 30_000)) for file in _base(table)) == 1
    # A known key brings in the file that holds it, and no other.
    _upsert(table, _rows([5], seed=1))
    assert len(large - set(table.files)) == 1
    assert len(table.rows()) == 2_520


_KEYED: Final[dict[str, Any]] = {"record_key": ["id"], "bucket": CreateBucket(count=1)}
_COPY_ON_WRITE: Final[dict[str, Any]] = _KEYED | {"table_type": TableType.COPY_ON_WRITE}
# What concepts.md says of 20 inserts of 10 rows: a table and the number of its files.
_INSERTS: Final[dict[str, tuple[dict[str, Any], int]]] = {
    "merge_on_read": (_KEYED | {"table_type": TableType.MERGE_ON_READ}, 3),
    "copy_on_write": (_COPY_ON_WRITE, 1),
    "copy_on_write, record": (_COPY_ON_WRITE | {"index": CreateIndex(type_=IndexType.RECORD)}, 3),
    "copy_on_write, bloom": (_COPY_ON_WRITE | {"index": CreateIndex(type_=IndexType.BLOOM)}, 3),
    "copy_on_write, simple": (_COPY_ON_WRITE | {"index": CreateIndex(type_=IndexType.SIMPLE)}, 3),
    "no key": ({"record_key": []}, 20),
}


@pytest.mark.parametrize("target_bytes", [64 * 1024, 256 * 1024 * 1024])
@pytest.mark.parametrize("name", _INSERTS)
def test_small_inserts_leave_the_documented_number_of_files(
    tmp_path: Path, name: str, target_bytes: int
) -> None:
    parts, count = _INSERTS[name]
    table = _table(tmp_path, target_bytes=target_bytes, **parts)
    for number in range(20):
        rows = _rows(range(number * 10, number * 10 + 10), seed=number)
        table.write(Write(operation=Operation.INSERT, rows=rows))
    assert len(_base(table)) == count
    before = {row["id"]: row for row in table.rows(meta=True)}
    assert len(before) == 200
    table.compact()
    assert len(_base(table)) == 1
    assert {row["id"]: row for row in table.rows(meta=True)} == before


@pytest.mark.parametrize("index", [IndexType.SIMPLE, IndexType.BLOOM, IndexType.RECORD])
@pytest.mark.parametrize("mode", [BucketMode.FIXED, BucketMode.DYNAMIC])
def test_new_keys_rewrite_no_large_file(tmp_path: Path, mode: BucketMode, index: IndexType) -> None:
    table = _table(
        tmp_path,
        table_type=TableType.COPY_ON_WRITE,
        bucket=CreateBucket(mode=mode, count=1),
        index=CreateIndex(type_=index),
        target_bytes=256 * 1024 * 1024,
    )
    _upsert(table, _rows(range(3_000)))
    [large] = _base(table)
    _upsert(table, _rows(range(10_000, 10_010)))
    assert large.path in table.files
    assert len(_base(table)) == 2
    _upsert(table, _rows([5], seed=1))
    assert large.path not in table.files
    assert len(table.rows()) == 3_010


def test_compaction_folds_small_files(tmp_path: Path) -> None:
    table = _table(tmp_path, bucket=CreateBucket(count=1), table_type=TableType.MERGE_ON_READ)
    # Each write is less than half of the one before, so that it leaves a file of its own.
    for number, count in enumerate((80, 30, 10, 3)):
        _upsert(table, _rows(range(number * 10, number * 10 + count), seed=number))
    assert len(_base(table)) == 4
    assert any(file.deletion_vector for file in _base(table))
    table.compact()
    [file] = _base(table)
    assert file.row_count == 80
    assert file.deletion_vector is None


_SIZED: Final = [
    (BucketMode.DYNAMIC, TableType.COPY_ON_WRITE, ChangelogProducer.FULL),
    (BucketMode.DYNAMIC, TableType.MERGE_ON_READ, ChangelogProducer.FULL),
    (BucketMode.DYNAMIC, TableType.MERGE_ON_READ, ChangelogProducer.INPUT),
    (BucketMode.KEY_DYNAMIC, TableType.COPY_ON_WRITE, ChangelogProducer.FULL),
    (BucketMode.KEY_DYNAMIC, TableType.MERGE_ON_READ, ChangelogProducer.DEFERRED),
    (BucketMode.POSTPONE, TableType.COPY_ON_WRITE, ChangelogProducer.FULL),
    (BucketMode.POSTPONE, TableType.MERGE_ON_READ, ChangelogProducer.NONE),
]


@pytest.mark.parametrize(("mode", "table_type", "producer"), _SIZED)
def test_dynamic_buckets_open_by_row_count_and_keys_stay_in_their_buckets(
    tmp_path: Path, mode: BucketMode, table_type: TableType, producer: ChangelogProducer
) -> None:
    table = _table(
        tmp_path,
        bucket=CreateBucket(mode=mode, count=2, target_rows=10, max_buckets=7),
        table_type=table_type,
        changelog=CreateChangelog(producer=producer),
    )
    _upsert(table, _rows(range(30)))
    table.compact()
    buckets = _buckets(table)
    assert buckets.total() == 30
    assert max(buckets.values()) <= 10
    # Each of the two segments fills one bucket before it opens the next.
    segments = Counter(bucket % 2 for bucket, rows in buckets.items() if rows < 10)
    assert all(open_ones == 1 for open_ones in segments.values())
    homes = _homes(table)
    _upsert(table, _rows(range(60), seed=1))
    table.compact()
    assert homes.items() <= _homes(table).items()
    _upsert(table, _rows(range(200), seed=2))
    table.compact()
    # Nothing opens beyond max_buckets: those there are take what comes.
    assert len(_buckets(table)) == 7
    assert _buckets(table).total() == 200
    assert homes.items() <= _homes(table).items()


def test_more_segments_than_buckets_are_refused() -> None:
    def define(**bucket: Any) -> int:
        schema = CreateSchema(fields=_FIELDS)
        new = CreateDataset(
            name="t",
            schema=schema,
            record_key=["id"],
            bucket=CreateBucket(mode=BucketMode.DYNAMIC, **bucket),
        )
        return define_dataset(new).bucket.count

    with pytest.raises(InvalidDataset) as refusal:
        define(count=3, max_buckets=2)
    [error] = refusal.value.facts["errors"]
    assert error["pointer"] == "/bucket/max_buckets"
    assert define(count=2, max_buckets=2) == 2
    assert define(max_buckets=2) == 2
    assert define() == 4


def test_moved_row_takes_a_bucket_of_its_new_partition(tmp_path: Path) -> None:
    bucket = CreateBucket(mode=BucketMode.KEY_DYNAMIC, count=1, target_rows=5)
    table = _table(tmp_path, table_type=TableType.COPY_ON_WRITE, bucket=bucket, partition_by=["p"])
    _upsert(table, _rows(range(8), p="x"))
    _upsert(table, _rows([1, 2], p="y", seed=1))
    found = {(file.slot.partition_path, key) for file in _base(table) for key in _ids(table, file)}
    assert found == {("p=y" if key in (1, 2) else "p=x", key) for key in range(8)}


@pytest.mark.parametrize(
    "producer", [ChangelogProducer.INPUT, ChangelogProducer.DEFERRED, ChangelogProducer.NONE]
)
def test_rows_of_logs_are_deleted_with_their_partition_where_keys_move(
    tmp_path: Path, producer: ChangelogProducer
) -> None:
    """Under key_dynamic a log has rows of several partitions, also of those that no base file is in."""
    table = _table(
        tmp_path,
        table_type=TableType.MERGE_ON_READ,
        bucket=CreateBucket(mode=BucketMode.KEY_DYNAMIC, count=1),
        partition_by=["p"],
        changelog=CreateChangelog(producer=producer),
    )
    for compacted in (False, True):
        _upsert(table, [*_rows(range(3), p="x"), *_rows(range(3, 6), p="y"), *_rows(range(6, 8), p="z")])
        if compacted:
            table.compact()
            _upsert(table, _rows([1], p="y", seed=1))
        globs = WriteOptions(partitions=("p=y", "p=[z]"))
        table.write(Write(operation=Operation.DELETE_PARTITION, options=globs))
        expected = {(number, "x") for number in range(3)} - ({(1, "x")} if compacted else set())
        assert {(row["id"], row["p"]) for row in table.rows()} == expected
