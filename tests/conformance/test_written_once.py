"""Many new rows are written once: their data files are the changelog files of their appends."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.infra.files.lookups import hot_copy
from app.infra.files.lookups.hot_folder import HotFolder
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.format.dataset import BucketMode, ChangelogProducer, IndexType, MergeMode, TableType
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateIndex,
    CreateSchema,
)
from app.kernel.format.operation import Operation
from app.kernel.format.rows.changelog import Op
from app.kernel.format.rows.meta_columns import OFFSET_COLUMN, VERSION_COLUMN
from tests.support.lake_table import LakeTable, Row, Write, merged
from tests.support.verification import verified
from workers.engine.merge import append_write, task_report
from workers.engine.task_files import TaskResources

NewTable = Callable[..., LakeTable]


@pytest.fixture
def hot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> HotFolder:
    """The folder for copies of the data files, which are all large enough for one."""
    monkeypatch.setattr(hot_copy, "COPIED_ROWS_MIN", 1)
    return HotFolder(tmp_path / "hot", 2**28)


@pytest.fixture
def new_table(tmp_path: Path, hot: HotFolder, monkeypatch: pytest.MonkeyPatch) -> NewTable:
    """Tables with files of 64 KiB. Few changes count as many."""
    for module in (append_write, task_report):
        monkeypatch.setattr(module, "SMALL_CHANGES_BYTES", 1_000)

    def create(memory_bytes: int = 2**28, **parts: Any) -> LakeTable:
        fields = [CreateField(name="id", type="string"), CreateField(name="text", type="string")]
        settings: dict[str, Any] = {"record_key": ["id"], "bucket": CreateBucket(count=2), **parts}
        if not settings["record_key"]:
            del settings["bucket"]
        dataset = define_dataset(
            CreateDataset(name="t", schema=CreateSchema(fields=fields), target_bytes=64 * 1024, **settings)
        )
        memory = MemoryBudget(bytes_max=memory_bytes, scratch=tmp_path / "scratch")
        resources = TaskResources.on(LocalStorage(tmp_path), memory, hot)
        return LakeTable(
            storage=LocalStorage(tmp_path), dataset=dataset, run=lambda tasks: merged(resources, tasks)
        )

    return create


def rows(count: int, *, first: int = 0) -> list[Row]:
    """Rows in no order, of some 60 bytes even when compressed."""
    dice = random.Random(first)
    found = [
        {"id": f"{number:06}", "text": dice.randbytes(50).hex()} for number in range(first, first + count)
    ]
    dice.shuffle(found)
    return found


def load(table: LakeTable, new: list[Row], operation: Operation = Operation.BULK_INSERT) -> None:
    outcome = table.write(Write(operation=operation, rows=new))
    assert outcome.conflicts == []
    assert outcome.counts[0].inserted == len(new)


def feed_paths(table: LakeTable) -> list[str]:
    return [file.path for _, _, file in table.feed]


def check(table: LakeTable, expected: list[Row]) -> None:
    """The table has the rows, the feed folds to them at every version, and each row knows its change."""
    found = {(row[VERSION_COLUMN], row[OFFSET_COLUMN]): row for row in table.rows(meta=True)}
    assert sorted(row["id"] for row in found.values()) == sorted(row["id"] for row in expected)
    for change in table.changes():
        row = found.pop((change.version, change.offset), None)
        if row is not None:
            assert {"id": row["id"], "text": row["text"]} == change.row
            assert change.op in (Op.APPEND, Op.CORRECT_TO)
    assert found == {}
    if table.dataset.keyed:
        assert verified(table).differences == 0


@pytest.mark.parametrize("table_type", TableType)
@pytest.mark.parametrize(
    ("operation", "key"),
    [
        (Operation.BULK_INSERT, ["id"]),
        (Operation.INSERT, ["id"]),
        (Operation.UPSERT, ["id"]),
        (Operation.BULK_INSERT, []),
    ],
)
def test_new_rows_are_stored_once_and_later_writes_change_both_table_and_feed(
    new_table: NewTable, table_type: TableType, operation: Operation, key: list[str]
) -> None:
    table = new_table(table_type=table_type, record_key=key)
    new = rows(4_000)
    load(table, new, operation)
    assert len(table.files) > 2
    assert sorted(feed_paths(table)) == sorted(table.files)
    assert table.next_offset == 4_000
    check(table, new)
    if key:
        replaced = [{**row, "text": "again"} for row in new[:500]]
        table.write(Write(operation=Operation.UPSERT, rows=replaced))
        table.write(Write(operation=Operation.DELETE, rows=[{"id": new[-1]["id"], "text": None}]))
        assert [change.op for change in table.changes(after=1)].count(Op.CORRECT_FROM) == 500
        new = [*replaced, *new[500:-1]]
        check(table, new)
    table.compact()
    check(table, new)


@pytest.mark.parametrize("table_type", TableType)
def test_bulk_insert_has_its_changes_in_the_order_of_its_keys(
    new_table: NewTable, table_type: TableType
) -> None:
    table = new_table(table_type=table_type, bucket=CreateBucket(count=1))
    load(table, rows(3_000))
    found = [change.row["id"] for change in table.changes()]
    assert found == sorted(found)


def test_insert_has_its_changes_in_the_order_of_arrival(new_table: NewTable) -> None:
    table = new_table(bucket=CreateBucket(count=1))
    new = rows(3_000)
    load(table, new, Operation.INSERT)
    assert [change.row for change in table.changes()] == new


@pytest.mark.parametrize("table_type", TableType)
def test_loads_into_buckets_that_grow_are_written_once_and_halved(
    new_table: NewTable, table_type: TableType
) -> None:
    table = new_table(table_type=table_type, bucket=CreateBucket(target_rows=1_000))
    first, second = rows(3_000), rows(3_000, first=3_000)
    load(table, first)
    assert sorted(feed_paths(table)) == sorted(table.files)
    load(table, second)
    assert {file.slot.of for file in table.files.values()} == {8}
    check(table, [*first, *second])


def test_repeated_keys_of_a_load_are_merged_and_written_once(new_table: NewTable) -> None:
    table = new_table(bucket=CreateBucket(count=1))
    new = rows(1_000)
    outcome = table.write(
        Write(operation=Operation.BULK_INSERT, rows=[*({**row, "text": "older"} for row in new[:10]), *new])
    )
    assert outcome.counts[0].unchanged == 10
    assert sorted(feed_paths(table)) == sorted(table.files)
    check(table, new)


def test_rows_beside_live_ones_are_written_once_where_these_are_not_rewritten(new_table: NewTable) -> None:
    first, second = rows(1_000), rows(1_000, first=1_000)
    for table_type, index, once in (
        (TableType.MERGE_ON_READ, IndexType.RECORD, True),
        (TableType.COPY_ON_WRITE, IndexType.RECORD, True),
        (TableType.COPY_ON_WRITE, IndexType.BUCKET, False),
    ):
        table = new_table(table_type=table_type, bucket=CreateBucket(count=1), index=CreateIndex(type_=index))
        load(table, first)
        load(table, second)
        assert (feed_paths(table)[-1] in table.files) is once
        check(table, [*first, *second])


@pytest.mark.parametrize("table_type", TableType)
def test_load_that_does_not_fit_into_memory_equals_the_table(
    new_table: NewTable, table_type: TableType
) -> None:
    table = new_table(memory_bytes=200_000, table_type=table_type)
    new = rows(4_000)
    load(table, new)
    assert not set(feed_paths(table)) & set(table.files)
    check(table, new)


@pytest.mark.parametrize(
    "parts",
    [
        {"bucket": CreateBucket(mode=BucketMode.DYNAMIC, target_rows=300)},
        {"merge_mode": MergeMode.PARTIAL},
        {"merge_mode": MergeMode.FIRST},
        {"changelog": CreateChangelog(producer=ChangelogProducer.INPUT)},
        {
            "changelog": CreateChangelog(producer=ChangelogProducer.DEFERRED),
            "table_type": TableType.MERGE_ON_READ,
        },
        {"changelog": CreateChangelog(producer=ChangelogProducer.NONE)},
    ],
    ids=["dynamic", "partial", "first", "input", "deferred", "none"],
)
def test_loads_of_other_datasets_have_all_rows(new_table: NewTable, parts: dict[str, Any]) -> None:
    table = new_table(**parts)
    new = rows(1_500)
    load(table, new)
    table.compact()
    assert {row["id"]: row["text"] for row in table.rows()} == {row["id"]: row["text"] for row in new}
    if (target := table.dataset.bucket.target_rows) is not None:
        assert max(file.live_rows for file in table.files.values()) <= target
    emits = table.dataset.changelog.producer is not ChangelogProducer.NONE
    assert len(table.changes()) == (len(new) if emits else 0)


def test_changes_of_logs_stay_before_those_of_the_rows_that_replace_the_table(new_table: NewTable) -> None:
    table = new_table(
        bucket=CreateBucket(count=1),
        table_type=TableType.MERGE_ON_READ,
        changelog=CreateChangelog(producer=ChangelogProducer.DEFERRED),
    )
    new = rows(200)
    load(table, new)
    table.compact()
    table.write(Write(operation=Operation.DELETE, rows=[{**row, "text": None} for row in new]))
    table.write(Write(operation=Operation.OVERWRITE, rows=new))
    ops = [change.op for change in table.changes(after=3)]
    assert ops == [Op.RETRACT] * len(new) + [Op.APPEND] * len(new)
    assert {row["id"] for row in table.rows()} == {row["id"] for row in new}


def test_refused_load_leaves_no_file(new_table: NewTable, tmp_path: Path) -> None:
    table = new_table(bucket=CreateBucket(count=1))
    new = rows(500)
    load(table, new)
    before = {*tmp_path.rglob("*.parquet")}
    outcome = table.write(Write(operation=Operation.BULK_INSERT, rows=[new[7], *rows(500, first=1_000)]))
    assert [conflict.count for conflict in outcome.conflicts] == [1]
    assert {*tmp_path.rglob("*.parquet")} == before


def test_loaded_files_are_copied_once_their_rows_are_often_replaced(
    new_table: NewTable, tmp_path: Path
) -> None:
    table = new_table(table_type=TableType.MERGE_ON_READ)
    expected = {row["id"]: row for row in rows(4_000)}
    load(table, list(expected.values()))
    loaded = set(table.files)
    for number, made in enumerate((0, len(loaded))):
        before, files = _copies(tmp_path), set(table.files)
        # Rows of every row group, of the loaded files both times.
        replaced = [row | {"text": "replaced"} for row in list(expected.values())[number::3]]
        expected |= {row["id"]: row for row in replaced}
        table.write(Write(operation=Operation.UPSERT, rows=replaced))
        assert loaded < set(table.files)
        # And those of the new files, at once.
        assert _copies(tmp_path) == before + made + len(set(table.files) - files)
    check(table, list(expected.values()))


def _copies(folder: Path) -> int:
    return sum(1 for path in (folder / "hot").rglob("*") if path.is_file())
