"""A table of files without a service: its tasks run anywhere, and this plays planner and catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa

from app.features.exports.tasks import ExportFormat, ExportQuery, ExportSpec, changed_row_parts
from app.infra.files.deletion_vector_file import VectorReader
from app.infra.files.parquet_file import ParquetReader
from app.infra.files.slices.file_slice import SliceReader
from app.infra.files.slices.memory_budget import MemoryBudget
from app.infra.files.slices.merged_slice import merged_blocks
from app.infra.files.staged_file import StagedFileStore, with_own_rows
from app.infra.files.storage import LocalStorage
from app.kernel.changelog.delivery_forms import ChangeForm
from app.kernel.commit.commit_message import CommitMessage, KeyConflict, failed_writes, removed_of
from app.kernel.commit.compaction_plan import plan_compaction
from app.kernel.commit.conflict import CommittedChange
from app.kernel.commit.merge_bundle import bundled
from app.kernel.commit.watermarks import latest
from app.kernel.commit.write_options import DEFAULT_OPTIONS, OnError, WriteOptions
from app.kernel.commit.write_plan import MergeTask, WriteIntent, plan_merge
from app.kernel.commit.write_rules import applies_by_arrival, row_order
from app.kernel.commit.write_scope import scope_of
from app.kernel.format.dataset import DatasetDefinition
from app.kernel.format.file_group import ChangelogFile, DataFile, FileKind
from app.kernel.format.instant import RowCounts
from app.kernel.format.operation import Operation
from app.kernel.format.quarantine import QuarantineFile
from app.kernel.format.rows.changelog import OP_COLUMN, OP_FIELD
from app.kernel.format.rows.kept_fields import KEPT_COLUMN, KEPT_FIELD
from app.kernel.format.rows.meta_columns import CORRECTS_COLUMN, META_NAMES, resolved_offsets
from app.kernel.format.rows.staged import StagedFile
from workers.engine.merge.merge_handle import MergeHandle
from workers.engine.read.export_handle import changed_rows
from workers.engine.task_files import TaskResources

Row = dict[str, Any]
Run = Callable[[Sequence[MergeTask]], Sequence[CommitMessage]]
_tables = count(1)


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write of a group; rows of a changelog carry `_hw_op`. Without an operation it is a compaction."""

    operation: Operation | None
    rows: Sequence[Row] = ()
    options: WriteOptions = DEFAULT_OPTIONS

    @property
    def intent(self) -> WriteIntent:
        return WriteIntent(
            operation=self.operation,
            drop_duplicates=self.options.drop_duplicates,
            quarantine=self.options.on_error is OnError.QUARANTINE,
            by_arrival=self.operation is not None and applies_by_arrival(self.operation, self.options),
        )


COMPACT = Write(operation=None)


@dataclass(frozen=True, kw_only=True)
class Change:
    """One change of the feed; `corrects`: the offset of the change whose values it takes back."""

    version: int
    offset: int
    op: int
    corrects: int | None
    row: Row


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """The result of a group of writes: by write the counts and the quarantine, or the conflicts that kept all out."""

    counts: list[RowCounts]
    conflicts: list[KeyConflict]
    quarantined: list[QuarantineFile]


@dataclass(kw_only=True)
class LakeTable:
    """`files` are those live at `version`; `feed` are the files of changes so far with version and first offset,
    `window` the files that came and went. `now`: the time of the next commit.
    """

    storage: LocalStorage
    dataset: DatasetDefinition
    run: Run | None = None
    name: str = field(default_factory=lambda: f"table-{next(_tables)}")
    version: int = 0
    next_offset: int = 0
    attempts: int = 0
    files: dict[str, DataFile] = field(default_factory=dict)
    feed: list[tuple[int, int, ChangelogFile]] = field(default_factory=list)
    window: list[CommittedChange] = field(default_factory=list)
    watermark: datetime | None = None
    now: datetime = datetime(2026, 1, 2, tzinfo=UTC)
    reader: ParquetReader = field(init=False)

    def __post_init__(self) -> None:
        self.reader = ParquetReader(self.storage)

    def fork(self) -> LakeTable:
        """A table of its own with the same past: files never change, so both may list them."""
        name = f"table-{next(_tables)}"
        return replace(
            self, name=name, files=dict(self.files), feed=list(self.feed), window=list(self.window)
        )

    def write(self, *writes: Write) -> Outcome:
        """Commits the writes as one group."""
        assert self.run is not None
        return self.commit(writes, self.run(self.plan(*writes)))

    def compact(self) -> Outcome:
        """Folds logs, postponed writes, deletion vectors and small files into base files."""
        return self.write(COMPACT)

    def plan(self, *writes: Write) -> list[MergeTask]:
        """The tasks that the writes take as one group. One with a scope, or a compaction, is the only one."""
        self.attempts += 1
        attempt = f"20260102030405000000-{self.attempts:06x}-1-0"
        first = writes[0]
        if first.operation is None:
            return plan_compaction(
                self.dataset,
                self.files.values(),
                attempt=attempt,
                data_prefix=self.name,
                planned_at=self.now,
            )
        staged = {number: self._staged(number, write) for number, write in enumerate(writes)}
        live = list(self.files.values())
        scope = scope_of(first.operation, first.options, self.dataset, staged[0], live)
        assert scope is None or len(writes) == 1
        return plan_merge(
            self.dataset,
            staged,
            {number: write.intent for number, write in enumerate(writes)},
            live,
            scope=scope,
            cluster=row_order(first.options, self.dataset),
            attempt=attempt,
            data_prefix=self.name,
            checks_lateness=self.dataset.watermark is not None,
            watermark=self.watermark,
        )

    def commit(self, writes: Sequence[Write], messages: Sequence[CommitMessage]) -> Outcome:
        """Publishes what the tasks of the writes answered; nothing if any of the writes failed."""
        if failed_writes(list(messages)):
            conflicts = [conflict for message in messages for conflict in message.conflicts]
            return Outcome(counts=[], conflicts=conflicts, quarantined=[])
        self.publish(messages)
        numbers = range(len(writes))
        return Outcome(
            counts=[_total(message.counts.get(number) for message in messages) for number in numbers],
            conflicts=[],
            quarantined=[
                file
                for message in messages
                for number in numbers
                for file in message.quarantined.get(number, ())
            ],
        )

    def _staged(self, number: int, write: Write) -> list[StagedFile]:
        fields = [entry.with_nullable(True) for entry in self.dataset.schema.to_arrow()]
        if write.operation is Operation.CHANGELOG:
            fields.insert(0, OP_FIELD)
            fields += [KEPT_FIELD] if any(KEPT_COLUMN in row for row in write.rows) else []
        rows = pa.Table.from_pylist(list(write.rows), schema=pa.schema(fields))
        path = f"{self.name}/staged/{self.attempts}-{number}.arrow"
        store = StagedFileStore(self.storage, inline_bytes_max=64 * 1024)
        staged = store.stage(self.dataset, write.operation, rows, path)
        return [] if staged is None else [staged]

    def publish(self, messages: Sequence[CommitMessage]) -> None:
        """Lists the files of the messages at the next version, unless there are none."""
        if not any(message.added or message.removed or message.changelog for message in messages):
            return
        self.version += 1
        judged = (message.lateness for message in messages if message.lateness is not None)
        self.watermark = latest([self.watermark, *(each.watermark for each in judged)])
        for path in removed_of(messages):
            self._note(self.files.pop(path), removed=True)
        starts: dict[str, int] = {}
        for message in sorted(messages, key=lambda message: message.file_group):
            first_offset = None
            for changes in message.changelog:
                if changes.path not in starts:
                    starts[changes.path] = self.next_offset
                    self.feed.append((self.version, self.next_offset, changes))
                    self.next_offset += changes.row_count
                if first_offset is None:
                    first_offset = starts[changes.path] + message.first_change
            for file in message.added:
                self._note(file, removed=False)
                assert file.path not in self.files
                listed = file.written_version is not None
                self.files[file.path] = msgspec.structs.replace(
                    file,
                    added_version=self.version,
                    written_version=file.written_version if listed else self.version,
                    written_at=file.written_at if listed else self.now,
                    first_offset=file.first_offset if listed else first_offset,
                )

    def _note(self, file: DataFile, *, removed: bool) -> None:
        self.window.append(
            CommittedChange(
                version=self.version,
                instant_id=f"i{self.version}",
                file_group=file.file_group,
                partition_path=file.slot.partition_path,
                path=file.path,
                removed=removed,
            )
        )

    def groups(self) -> dict[str, tuple[DataFile, ...]]:
        """The live files by file group, in the order of their commits."""
        found: dict[str, list[DataFile]] = {}
        for file in sorted(self.files.values(), key=lambda file: (file.added_version, file.path)):
            found.setdefault(file.file_group, []).append(file)
        return {name: tuple(files) for name, files in found.items()}

    def rows(self, *, meta: bool = False) -> list[Row]:
        """The live rows, in no particular order."""
        slices = self.slices
        found: list[Row] = []
        for files in self.groups().values():
            for block in merged_blocks(slices, self.dataset, files, MemoryBudget(bytes_max=2**26)):
                table = block.rows if meta else block.rows.drop_columns(list(META_NAMES))
                found += table.to_pylist()
        return found

    @property
    def slices(self) -> SliceReader:
        """Reads slices of the table's files."""
        return SliceReader(self.reader, VectorReader(self.storage))

    def changed_rows(self, begin: int) -> list[Row]:
        """The live rows with values from commits after version `begin`, as an incremental export reads them."""
        spec = ExportSpec(
            dataset=self.dataset, query=ExportQuery.INCREMENTAL, format=ExportFormat.ARROW,
            form=ChangeForm.TWO_EVENT, columns=None, where=None, partitions=None, target_bytes=1,
        )  # fmt: skip
        parts = changed_row_parts(
            spec,
            self.files.values(),
            None,
            begin=begin,
            since=0,
            until=self.next_offset,
            earliest=0,
            prefix="",
        )
        memory = MemoryBudget(bytes_max=2**26)
        return [
            row
            for part in parts
            for rows in changed_rows(part, self.slices, memory)
            for row in rows.to_pylist()
        ]

    def changes(self, *, after: int = 0) -> list[Change]:
        """The feed behind a version, in the order of offsets."""
        found: list[Change] = []
        for version, first_offset, file in self.feed:
            if version <= after:
                continue
            table = self.reader.open(file).read()
            corrects = resolved_offsets(table.column(CORRECTS_COLUMN), first_offset).to_pylist()
            ops = table.column(OP_COLUMN).to_pylist()
            # A data file may be a changelog file, too.
            own = {OP_COLUMN, CORRECTS_COLUMN, *META_NAMES}
            rows = table.select([name for name in table.column_names if name not in own]).to_pylist()
            found += [
                Change(version=version, offset=first_offset + at, op=op, corrects=corrected, row=row)
                for at, (op, corrected, row) in enumerate(zip(ops, corrects, rows, strict=True))
            ]
        return found

    def kinds(self) -> set[FileKind]:
        """What kinds of files are live."""
        return {file.kind for file in self.files.values()}


def advance(run: Run, steps: Mapping[str, tuple[LakeTable, Sequence[Write]]]) -> dict[str, Outcome]:
    """One group of writes on each of many tables, with the tasks of all of them in one run."""
    planned = {name: table.plan(*writes) for name, (table, writes) in steps.items()}
    messages = iter(run([task for tasks in planned.values() for task in tasks]))
    return {
        name: table.commit(writes, [next(messages) for _ in planned[name]])
        for name, (table, writes) in steps.items()
    }


def merged(resources: TaskResources, tasks: Sequence[MergeTask]) -> list[CommitMessage]:
    """What Spark makes of the tasks, made in this process."""
    handle = MergeHandle(resources)
    bundles = bundled(with_own_rows(task) for task in tasks)
    return [message for bundle in bundles for message in handle.run_all(bundle).messages]


def _total(parts: Any) -> RowCounts:
    return sum((part for part in parts if part is not None), RowCounts())
