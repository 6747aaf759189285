"""Late rows in the tasks of every kind of dataset."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from app.infra.files.quarantine_file import QuarantineFileStore
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.dataset import BucketMode, ChangelogProducer, Late, TableType, Watermark
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateSchema,
)
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from tests.support.lake_table import LakeTable, Write, merged
from workers.engine.task_files import TaskResources

NOON = datetime(2026, 11, 23, 12, tzinfo=UTC)
_LOGGED = CreateChangelog(producer=ChangelogProducer.INPUT)
KINDS: dict[str, dict[str, Any]] = {
    "append": {},
    "copy on write": {"record_key": ["id"], "table_type": TableType.COPY_ON_WRITE},
    "marked": {"record_key": ["id"], "bucket": CreateBucket(count=2)},
    "halved": {"record_key": ["id"]},
    "logs": {"record_key": ["id"], "bucket": CreateBucket(count=2), "changelog": _LOGGED},
    "postponed": {
        "record_key": ["id"],
        "bucket": CreateBucket(mode=BucketMode.POSTPONE),
        "changelog": CreateChangelog(producer=ChangelogProducer.NONE),
    },
}
Row = dict[str, Any]


@pytest.fixture
def storage(tmp_path: Path) -> LocalStorage:
    return LocalStorage(tmp_path)


def table_of(storage: LocalStorage, kind: str, late: Late) -> LakeTable:
    fields = [CreateField(name="id", type="int64"), CreateField(name="at", type="timestamp")]
    dataset = define_dataset(
        CreateDataset(
            name="events",
            schema=CreateSchema(fields=fields),
            watermark=Watermark(field="at", delay_seconds=60, late=late),
            **KINDS[kind],
        )
    )
    resources = TaskResources.on(storage, MemoryBudget(bytes_max=2**26))
    return LakeTable(storage=storage, dataset=dataset, run=lambda tasks: merged(resources, tasks))


def row(number: int, minutes: int | None) -> Row:
    return {"id": number, "at": None if minutes is None else NOON + timedelta(minutes=minutes)}


def upsert(kind: str, *rows: Row, **options: Any) -> Write:
    operation = Operation.INSERT if kind == "append" else Operation.UPSERT
    return Write(operation=operation, rows=rows, options=WriteOptions(**options))


def late_rows(table: LakeTable, *writes: Write) -> Sequence[int]:
    """The late rows of each write of a group, which is committed."""
    assert table.run is not None
    messages = table.run(table.plan(*writes))
    table.commit(writes, messages)
    found = [message.lateness for message in messages]
    return [sum(each.rows.get(job, 0) for each in found if each) for job in range(len(writes))]


def ids(table: LakeTable) -> list[int]:
    return sorted(each["id"] for each in table.rows())


@pytest.mark.parametrize("kind", KINDS)
def test_watermark_moves_with_commits_and_rows_behind_it_are_counted(
    storage: LocalStorage, kind: str
) -> None:
    table = table_of(storage, kind, Late.ACCEPT)
    assert late_rows(table, upsert(kind, row(1, None))) == [0]
    assert table.watermark is None
    # The rows of the commit that moves the watermark are compared with the one before.
    assert late_rows(table, upsert(kind, row(2, 10), row(3, -100))) == [0]
    assert table.watermark == NOON + timedelta(minutes=9)
    assert late_rows(table, upsert(kind, row(4, 8), row(5, 9)), upsert(kind, row(6, 30), row(7, 0))) == [1, 1]
    assert table.watermark == NOON + timedelta(minutes=29)
    assert late_rows(table, upsert(kind, row(8, 0))) == [1]
    assert table.watermark == NOON + timedelta(minutes=29)
    if kind != "postponed":
        assert ids(table) == [1, 2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize("kind", KINDS)
def test_late_rows_are_dropped_and_count_as_unchanged(storage: LocalStorage, kind: str) -> None:
    table = table_of(storage, kind, Late.DROP)
    table.write(upsert(kind, row(1, 10)))
    before = table.version
    outcome = table.write(upsert(kind, row(2, 0), row(3, 5)))
    assert (outcome.counts, table.version) == ([RowCounts(unchanged=2)], before)
    mixed = table.write(upsert(kind, row(4, 0), row(5, 20)))
    assert mixed.counts[0].unchanged == 1
    assert sum(getattr(mixed.counts[0], name) for name in RowCounts.__struct_fields__) == 2
    assert table.watermark == NOON + timedelta(minutes=19)
    if kind != "postponed":
        assert ids(table) == [1, 5]


@pytest.mark.parametrize("kind", KINDS)
def test_late_rows_are_quarantined_with_the_reason(storage: LocalStorage, kind: str) -> None:
    table = table_of(storage, kind, Late.QUARANTINE)
    table.write(upsert(kind, row(1, 10)))
    outcome = table.write(upsert(kind, row(2, 20), row(3, 0)))
    [file] = outcome.quarantined
    [record] = QuarantineFileStore(storage).read(file, 0, 1)
    assert (record.position, record.errors[0].pointer) == (1, "/at")
    assert "2026-11-23T12:09:00Z" in record.errors[0].detail
    assert b'"id":3' in record.payload
    if kind != "postponed":
        assert ids(table) == [1, 2]


def test_writes_that_state_the_whole_table_keep_late_rows(storage: LocalStorage) -> None:
    table = table_of(storage, "marked", Late.DROP)
    table.write(upsert("marked", row(1, 10), row(2, 10)))
    late = late_rows(table, Write(operation=Operation.SNAPSHOT, rows=[row(1, 10), row(3, 0)]))
    assert (late, ids(table)) == ([1], [1, 3])


def test_deletions_are_not_late(storage: LocalStorage) -> None:
    table = table_of(storage, "marked", Late.DROP)
    table.write(upsert("marked", row(1, 10), row(2, 10)))
    assert late_rows(table, Write(operation=Operation.DELETE, rows=[row(1, 0)])) == [0]
    assert ids(table) == [2]
