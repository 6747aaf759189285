"""Tables of every kind with a past: their files at each version, and what a plain model says of their rows."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Final

from app.core.catalog.values import Dataset
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.storage import LocalStorage
from app.kernel.commit.write_options import WriteOptions
from app.kernel.format.dataset import (
    BucketMode,
    ChangelogProducer,
    DatasetDefinition,
    IndexType,
    MergeMode,
    TableType,
)
from app.kernel.format.definition.dataset_definition import define_dataset
from app.kernel.format.definition.new_dataset import (
    CreateBucket,
    CreateChangelog,
    CreateDataset,
    CreateField,
    CreateIndex,
    CreateSchema,
)
from app.kernel.format.file_group import DataFile, bucket_prefix
from app.kernel.format.operation import Operation
from app.kernel.format.schema.schema import Schema
from tests.support.groups_of_files import GroupsOfFiles
from tests.support.lake_table import COMPACT, LakeTable, Write, merged
from tests.support.small_files import without_small_files
from workers.engine.task_files import TaskResources

Row = dict[str, Any]
DAYS: Final = ("2026-11-20", "2026-11-21", "2026-11-22")
_FIELDS: Final = [
    CreateField(name="id", type="int64"),
    CreateField(name="day", type="string"),
    CreateField(name="n", type="int32"),
    CreateField(name="note", type="string"),
]
_COPY_ON_WRITE: Final = {"table_type": TableType.COPY_ON_WRITE}
_MERGE_ON_READ: Final = {"table_type": TableType.MERGE_ON_READ}


def _logs(producer: ChangelogProducer) -> dict[str, Any]:
    return _MERGE_ON_READ | {"changelog": CreateChangelog(producer=producer)}


def _sized(mode: BucketMode) -> dict[str, Any]:
    return {"bucket": CreateBucket(mode=mode, count=2, target_rows=3, max_buckets=5)}


# What each kind adds to a registration.
KINDS: Final[dict[str, dict[str, Any]]] = {
    "copy_on_write": _COPY_ON_WRITE | {"bucket": CreateBucket(count=2)},
    "copy_on_write, bloom": (
        _COPY_ON_WRITE | {"bucket": CreateBucket(count=1), "index": CreateIndex(type_=IndexType.BLOOM)}
    ),
    "merge_on_read full": _MERGE_ON_READ | {"bucket": CreateBucket(count=2)},
    "merge_on_read input": _logs(ChangelogProducer.INPUT),
    "merge_on_read none": _logs(ChangelogProducer.NONE) | {"bucket": CreateBucket(count=1)},
    "merge_on_read deferred": _logs(ChangelogProducer.DEFERRED),
    "halved": {"bucket": CreateBucket(target_rows=2)},
    "halved, copy_on_write": _COPY_ON_WRITE | {"bucket": CreateBucket(target_rows=2)},
    "dynamic": _COPY_ON_WRITE | _sized(BucketMode.DYNAMIC),
    "dynamic with logs": _sized(BucketMode.DYNAMIC) | _logs(ChangelogProducer.NONE),
    "key_dynamic": _COPY_ON_WRITE | _sized(BucketMode.KEY_DYNAMIC) | {"record_key": ["id"]},
    "key_dynamic with deletion vectors": (
        _sized(BucketMode.KEY_DYNAMIC) | _MERGE_ON_READ | {"record_key": ["id"]}
    ),
    "key_dynamic with logs": (
        _sized(BucketMode.KEY_DYNAMIC) | _logs(ChangelogProducer.NONE) | {"record_key": ["id"]}
    ),
    "unaware": {"record_key": [], "bucket": CreateBucket(mode=BucketMode.UNAWARE)},
    "unaware with deletion vectors": (
        {"record_key": [], "bucket": CreateBucket(mode=BucketMode.UNAWARE)} | _MERGE_ON_READ
    ),
    "postpone": _COPY_ON_WRITE | {"bucket": CreateBucket(mode=BucketMode.POSTPONE)},
    "postpone, fixed_now": (
        _COPY_ON_WRITE | {"bucket": CreateBucket(mode=BucketMode.POSTPONE, count=2, fixed_now=True)}
    ),
}  # fmt: skip

# These mark old rows in every file, however small it is.
_MARKED: Final = ("merge_on_read full", "key_dynamic with deletion vectors")


def registration_of(name: str, **more: Any) -> CreateDataset:
    """A dataset of a kind, partitioned by day; the later row of a key wins."""
    parts = {"record_key": ["day", "id"], "partition_by": ["day"], **KINDS[name], **more}
    if parts["record_key"]:
        parts["merge_mode"] = MergeMode.COMMIT_TIME
    return CreateDataset(name="t", schema=CreateSchema(fields=_FIELDS), **parts)


def kind_of(name: str, **more: Any) -> DatasetDefinition:
    """The dataset that is registered so."""
    definition = define_dataset(registration_of(name, **more))
    return without_small_files(definition) if name in _MARKED else definition


def committed_at(version: int) -> datetime:
    """When a version was committed, in these pasts."""
    return datetime(2026, 11, 21, 10, 0, tzinfo=UTC) + timedelta(seconds=version, microseconds=7)


@dataclass(kw_only=True)
class VersionedTable(GroupsOfFiles):
    """A table, its files at each version, and the rows that it must have there. A timeline for readers of it."""

    table: LakeTable
    files: list[list[DataFile]] = field(default_factory=lambda: [[]])
    rows: list[list[Row]] = field(default_factory=lambda: [[]])
    schemas: dict[int, Schema] = field(default_factory=dict)

    @property
    def dataset(self) -> Dataset:
        return Dataset(
            id="d", tenant_id="t", definition=self.table.dataset, version=len(self.files) - 1,
            next_offset=self.table.next_offset, created_at=committed_at(0), committed_at=None,
        )  # fmt: skip

    def write(self, write: Write, rows: Sequence[Row]) -> None:
        """Commits a write, after which the table must have these rows."""
        before = self.table.version
        self.table.write(write)
        if self.table.version > before:
            self.note(rows)

    def note(self, rows: Sequence[Row]) -> None:
        """Keeps the version that the table is at, which must have these rows."""
        self.files.append(list(self.table.files.values()))
        self.rows.append(list(rows))
        self.schemas[self.table.version] = self.table.dataset.schema

    def get(self, tenant_id: str, reference: str) -> Dataset:
        return self.dataset

    def live_files(
        self,
        tenant_id: str,
        dataset_id: str,
        version: int,
        file_groups: Sequence[str] | None,
        partitions: Sequence[str] = (),
    ) -> list[DataFile]:
        found = [
            file
            for file in self.files[version]
            if file_groups is None
            or file.file_group in file_groups
            or file.file_group.startswith(tuple(bucket_prefix(path) for path in partitions))
        ]
        return sorted(found, key=lambda file: file.path)

    def files_at(self, version: int) -> Sequence[DataFile]:
        return self.files[version]

    def schema_at(self, tenant_id: str, dataset_id: str, version: int) -> Schema:
        return self.schemas.get(version, self.schemas[1])

    def next_offset(self, tenant_id: str, dataset_id: str, version: int) -> int:
        ends = [first + file.row_count for written, first, file in self.table.feed if written <= version]
        return max(ends, default=0)

    def version_of(self, tenant_id: str, dataset_id: str, offset: int) -> int:
        ends = [written for written, first, file in self.table.feed if first + file.row_count >= offset]
        return min(ends, default=0) if offset else 0

    def version_at(self, tenant_id: str, dataset_id: str, moment: datetime) -> int:
        return max(0, (moment - committed_at(0)) // timedelta(seconds=1))

    def next_commit_time(self, tenant_id: str, dataset_id: str) -> datetime:
        return self.table.now

    def commit_times(self, tenant_id: str, dataset_id: str, versions: Sequence[int]) -> dict[int, datetime]:
        return {version: committed_at(version) for version in versions}


def new_versioned_table(storage: LocalStorage, definition: DatasetDefinition) -> VersionedTable:
    """An empty table whose tasks run in this process."""
    resources = TaskResources.on(storage, MemoryBudget(bytes_max=2**26))
    return VersionedTable(
        table=LakeTable(storage=storage, dataset=definition, run=partial(merged, resources))
    )


def written_versioned_table(
    storage: LocalStorage, name: str, *, seed: int = 1, writes: int = 9, compacted: bool = True, **more: Any
) -> VersionedTable:
    """A table of a kind after writes of random rows, some of them deletes, compacted in the middle and at the end."""
    definition = kind_of(name, **more)
    versioned, chance = new_versioned_table(storage, definition), random.Random(seed)
    model: list[Row] = []
    for number in range(writes):
        if number == writes // 2:
            model = _compacted(versioned, model)
        rows = [random_row(chance, number) for _ in range(chance.randint(4, 12))]
        if number % 3 == 2:
            model = _deleted(versioned, model, rows[:4])
        else:
            operation = Operation.UPSERT if definition.keyed else Operation.INSERT
            model = put_rows(definition, model, rows)
            versioned.write(Write(operation=operation, rows=rows), _visible(versioned, model))
    if compacted:
        _compacted(versioned, model)
    return versioned


def random_row(chance: random.Random, number: int) -> Row:
    """A row of one of few keys, for write `number`."""
    note = f"write {number}" if chance.random() < 0.9 else None
    return {"id": chance.randrange(20), "day": chance.choice(DAYS), "n": chance.randrange(100), "note": note}


def _compacted(versioned: VersionedTable, model: list[Row]) -> list[Row]:
    versioned.write(COMPACT, model)
    return model


def _deleted(versioned: VersionedTable, model: list[Row], rows: Sequence[Row]) -> list[Row]:
    definition = versioned.table.dataset
    if definition.keyed:
        gone = {_key(definition, row) for row in rows}
        kept = [row for row in model if _key(definition, row) not in gone]
        bare = [{name: row[name] for name in definition.record_key} for row in rows]
        versioned.write(Write(operation=Operation.DELETE, rows=bare), _visible(versioned, kept))
        return kept
    kept = [row for row in model if row["n"] >= 30]
    versioned.write(Write(operation=Operation.DELETE, options=WriteOptions(where="n < 30")), kept)
    return kept


def put_rows(definition: DatasetDefinition, model: Sequence[Row], rows: Sequence[Row]) -> list[Row]:
    """The rows of a table after others were written to it."""
    if not definition.keyed:
        return [*model, *rows]
    return list({_key(definition, row): row for row in (*model, *rows)}.values())


def _visible(versioned: VersionedTable, model: Sequence[Row]) -> Sequence[Row]:
    """What readers see of the rows: postponed ones wait for compaction."""
    bucket = versioned.table.dataset.bucket
    waits = bucket.mode is BucketMode.POSTPONE and not bucket.fixed_now
    return versioned.rows[-1] if waits else model


def _key(definition: DatasetDefinition, row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in definition.record_key)


def kinds_of_files(versioned: VersionedTable) -> set[str]:
    """What its versions were made of: kinds of files, and `vector` where a file had a deletion vector."""
    every = [file for files in versioned.files for file in files]
    return {file.kind.value for file in every} | {"vector" for file in every if file.deletion_vector}


def comparable(
    rows: Sequence[Row], by: Callable[[Row], str] = lambda row: repr(sorted(row.items()))
) -> list[Row]:
    """The rows in an order of their own."""
    return sorted(rows, key=by)
