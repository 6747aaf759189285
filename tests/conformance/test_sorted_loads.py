"""Bulk inserts with `sort_by`: files whose rows are sorted by its columns, and a feed in its usual order."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.dataset import BucketMode, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import CreateBucket, CreateDataset, CreateField, CreateSchema
from app.kernel.format.errors import InvalidRequest
from app.kernel.format.file_group import DataFile
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from app.kernel.format.rows.meta_columns import META_NAMES, OFFSET_COLUMN, VERSION_COLUMN
from app.kernel.sql.conditions.parse import parse_filter
from app.kernel.sql.conditions.prune import may_match
from tests.support.lake_table import LakeTable, Row, Write, merged
from tests.support.verification import verified
from workers.engine.merge import append_write, task_report
from workers.engine.task_files import TaskResources

NewTable = Callable[..., LakeTable]
BY_CITY = WriteOptions(sort_by=("city", "at"))
MARK = "linear:3,4"
WAYS = [*((["id"], kind) for kind in TableType), ([], TableType.COPY_ON_WRITE)]


@pytest.fixture
def new_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> NewTable:
    """Tables with files of 64 KiB. Few changes count as many."""
    for module in (append_write, task_report):
        monkeypatch.setattr(module, "SMALL_CHANGES_BYTES", 1_000)

    def create(key: list[str], table_type: TableType, memory_bytes: int = 2**28, **parts: Any) -> LakeTable:
        types = {"id": "string", "text": "string", "city": "string", "at": "int64", "day": "string"}
        dataset = define_dataset(
            CreateDataset(
                name="t",
                schema=CreateSchema(
                    fields=[CreateField(name=name, type=kind) for name, kind in types.items()]
                ),
                record_key=key,
                table_type=table_type,
                target_bytes=64 * 1024,
                **({"bucket": CreateBucket(count=1)} if key else {}) | parts,
            )
        )
        memory = MemoryBudget(bytes_max=memory_bytes, scratch=tmp_path / "scratch")
        resources = TaskResources.on(LocalStorage(tmp_path), memory)
        return LakeTable(
            storage=LocalStorage(tmp_path), dataset=dataset, run=lambda tasks: merged(resources, tasks)
        )

    return create


def rows(count: int, *, first: int = 0) -> list[Row]:
    """Rows in no order; every tenth has no city."""
    dice = random.Random(first)
    found = [
        {
            "id": f"{number:06}",
            "text": dice.randbytes(40).hex(),
            "city": None if number % 10 == 0 else f"city-{dice.randrange(200):03}",
            "at": dice.randrange(10**6),
            "day": f"2026-11-{1 + number % 2:02}",
        }
        for number in range(first, first + count)
    ]
    dice.shuffle(found)
    return found


def place(row: Row) -> tuple[bool, str, int]:
    return row["city"] is None, row["city"] or "", row["at"]


def stored(table: LakeTable) -> list[tuple[DataFile, list[Row]]]:
    """The live files, each with its rows."""
    return [(file, table.reader.open(file).read().to_pylist()) for file in table.files.values()]


def load(table: LakeTable, new: list[Row], options: WriteOptions = BY_CITY) -> None:
    outcome = table.write(Write(operation=Operation.BULK_INSERT, rows=new, options=options))
    assert outcome.conflicts == []
    assert outcome.counts[0].inserted == len(new)


def check(table: LakeTable, expected: list[Row]) -> None:
    """The table has the rows, and each row has the offset of its change in the feed."""
    found = {(row[VERSION_COLUMN], row[OFFSET_COLUMN]): row for row in table.rows(meta=True)}
    assert sorted(row["id"] for row in found.values()) == sorted(row["id"] for row in expected)
    changed = {(change.version, change.offset): change for change in table.changes()}
    for at, row in found.items():
        assert {name: value for name, value in row.items() if name not in META_NAMES} == changed[at].row
    if table.dataset.keyed:
        assert verified(table).differences == 0


@pytest.mark.parametrize("memory_bytes", [2**28, 2**18])
@pytest.mark.parametrize(("key", "table_type"), WAYS)
def test_files_are_sorted_by_the_columns_with_nulls_last(
    new_table: NewTable, key: list[str], table_type: TableType, memory_bytes: int
) -> None:
    table = new_table(key, table_type, memory_bytes)
    new = rows(4_000)
    load(table, new)
    files = stored(table)
    assert len(files) > 2
    for file, of_file in files:
        assert of_file == sorted(of_file, key=place)
        assert file.clustered_by == MARK
    check(table, new)


@pytest.mark.parametrize(("key", "table_type"), WAYS)
def test_statistics_of_sorted_files_exclude_other_values(
    new_table: NewTable, key: list[str], table_type: TableType
) -> None:
    table, other = new_table(key, table_type), new_table(key, table_type)
    load(table, rows(4_000))
    load(other, rows(4_000), WriteOptions())
    where = parse_filter("city = 'city-100'", table.dataset.schema)

    def read(loaded: LakeTable) -> int:
        schema = loaded.dataset.schema
        return sum(
            may_match(where, file.statistics, schema, file.row_count) for file in loaded.files.values()
        )

    assert read(table) <= 2
    assert read(other) == len(other.files) > 2


@pytest.mark.parametrize(("key", "table_type"), WAYS)
def test_feed_is_the_same_as_without_the_order(
    new_table: NewTable, key: list[str], table_type: TableType
) -> None:
    table, other = new_table(key, table_type), new_table(key, table_type)
    new = rows(2_000)
    load(table, new)
    load(other, new, WriteOptions())
    feed = [change.row["id"] for change in table.changes()]
    assert feed == [change.row["id"] for change in other.changes()]
    assert feed == (sorted(feed) if key else [row["id"] for row in new])
    # Rows whose changes have another order are not their changelog.
    assert not {file.path for _, _, file in table.feed} & table.files.keys()


@pytest.mark.parametrize(("key", "table_type"), WAYS)
def test_each_partition_is_sorted_by_itself(
    new_table: NewTable, key: list[str], table_type: TableType
) -> None:
    table = new_table([*key, "day"] if key else key, table_type, partition_by=["day"])
    new = rows(2_000)
    load(table, new)
    for _, of_file in stored(table):
        assert len({row["day"] for row in of_file}) == 1
        assert of_file == sorted(of_file, key=place)
    check(table, new)


@pytest.mark.parametrize(("key", "table_type"), WAYS)
def test_later_loads_and_writes_find_the_rows_of_sorted_files(
    new_table: NewTable, key: list[str], table_type: TableType
) -> None:
    table = new_table(key, table_type)
    new = rows(1_000)
    load(table, new, WriteOptions())
    more = rows(1_000, first=1_000)
    load(table, more)
    load(table, rows(100, first=2_000), WriteOptions(sort_by=("at",)))
    new += [*more, *rows(100, first=2_000)]
    check(table, new)
    if key:
        again = Write(
            operation=Operation.BULK_INSERT,
            rows=[*new[:200], *rows(100, first=3_000)],
            options=WriteOptions(sort_by=("city", "at"), drop_duplicates=True),
        )
        outcome = table.write(again)
        assert (outcome.counts[0].inserted, outcome.counts[0].unchanged) == (100, 200)
        new += rows(100, first=3_000)
        check(table, new)
        [conflict, *_] = table.write(
            Write(operation=again.operation, rows=new[:1], options=BY_CITY)
        ).conflicts
        assert conflict.keys == ({"id": new[0]["id"]},)
        replaced = [{**row, "text": "again"} for row in new[500:700]]
        table.write(Write(operation=Operation.UPSERT, rows=replaced))
        table.write(Write(operation=Operation.DELETE, rows=[dict.fromkeys(new[0]) | {"id": new[0]["id"]}]))
        assert [change.op for change in table.changes()].count(Op.CORRECT_FROM) == 200
        new = [*new[1:500], *replaced, *new[700:]]
        check(table, new)
    table.compact()
    check(table, new)


@pytest.mark.parametrize("table_type", TableType)
@pytest.mark.parametrize(
    "bucket", [CreateBucket(target_rows=300), CreateBucket(mode=BucketMode.KEY_DYNAMIC, count=2)]
)
def test_buckets_that_open_or_move_keys_are_sorted_by_themselves(
    new_table: NewTable, table_type: TableType, bucket: CreateBucket
) -> None:
    parts = {"partition_by": ["day"]} if bucket.mode is BucketMode.KEY_DYNAMIC else {}
    table = new_table(["id"], table_type, bucket=bucket, **parts)
    new = rows(1_000)
    load(table, new)
    check(table, new)
    load(table, rows(1_000, first=1_000), WriteOptions(sort_by=("at",)))
    assert len({file.file_group for file in table.files.values()}) > 1
    for file, of_file in stored(table):
        assert of_file == sorted(of_file, key=place if file.clustered_by == MARK else lambda row: row["at"])
    check(table, [*new, *rows(1_000, first=1_000)])


def test_column_that_is_gone_is_an_error_of_the_plan(new_table: NewTable) -> None:
    table = new_table(["id"], TableType.MERGE_ON_READ)
    with pytest.raises(InvalidRequest) as refused:
        load(table, rows(1), WriteOptions(sort_by=("gone",)))
    assert [error["pointer"] for error in refused.value.facts["errors"]] == ["/sort_by/0"]
    assert table.version == 0
