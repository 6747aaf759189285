"""A table of files without a service: its tasks run anywhere, and this plays planner and catalogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec
import pyarrow as pa

from app.files.deletion_vector_file import VectorReader
from app.files.file_slice import SliceReader
from app.files.merged_slice import merged_blocks
from app.files.parquet_file import ParquetReader
from app.files.slice_merge import Memory
from app.files.staged_file import StagedFileStore
from app.files.storage import LocalStorage
from app.lake.changelog import OP_COLUMN, OP_FIELD
from app.lake.commit_message import CommitMessage, KeyConflict, failed_writes
from app.lake.dataset import DatasetDefinition
from app.lake.file_group import ChangelogFile, DataFile, FileKind, bucket_slot
from app.lake.instant import RowCounts
from app.lake.meta_columns import CORRECTS_COLUMN, META_NAMES, resolved_offsets
from app.lake.operation import Operation
from app.lake.staging import StagedFile
from app.lake.write_plan import MergeTask, Scope, WriteIntent, plan_merge

Row = dict[str, Any]
Run = Callable[[Sequence[MergeTask]], Sequence[CommitMessage]]
_tables = count(1)


@dataclass(frozen=True, kw_only=True)
class Write:
    """One write of a group; rows of a changelog carry `_hw_op`."""

    operation: Operation
    rows: Sequence[Row] = ()
    drop_duplicates: bool = False
    quarantine: bool = False

    @property
    def intent(self) -> WriteIntent:
        return WriteIntent(
            operation=self.operation, drop_duplicates=self.drop_duplicates, quarantine=self.quarantine
        )


@dataclass(kw_only=True)
class LakeTable:
    """`files` are those live at `version`; `feed` are the changes so far with their versions."""

    storage: LocalStorage
    dataset: DatasetDefinition
    run: Run
    name: str = field(default_factory=lambda: f"table-{next(_tables)}")
    version: int = 0
    next_offset: int = 0
    attempts: int = 0
    files: dict[str, DataFile] = field(default_factory=dict)
    feed: list[tuple[int, int, ChangelogFile]] = field(default_factory=list)

    def write(self, *writes: Write, scope: Scope | None = None) -> list[RowCounts] | list[KeyConflict]:
        """Commits the writes as one group; the counts of each, or the conflicts that kept all from it."""
        self.attempts += 1
        staged = {number: self._staged(number, write) for number, write in enumerate(writes)}
        intents = {number: write.intent for number, write in enumerate(writes)}
        messages = list(self.run(self._tasks(staged, intents, scope)))
        if failed_writes(messages):
            return [conflict for message in messages for conflict in message.conflicts]
        self._publish(messages)
        return [
            sum((message.counts.get(number, RowCounts()) for message in messages), RowCounts())
            for number in intents
        ]

    def compact(self) -> None:
        """Folds logs, postponed writes and deletion vectors into base files."""
        self.attempts += 1
        tasks = [
            MergeTask(
                dataset=self.dataset,
                slot=bucket_slot(name),
                file_group=name,
                files=self._of_group(name),
                segments=(),
                intents={},
                attempt=self._attempt(),
                data_prefix=self.name,
                compact=True,
            )
            for name in {file.file_group for file in self.files.values()}
        ]
        self._publish(list(self.run(tasks)))

    def _attempt(self) -> str:
        return f"20260102030405000000-{self.attempts:06x}-1-0"

    def _staged(self, number: int, write: Write) -> list[StagedFile]:
        fields = [entry.with_nullable(True) for entry in self.dataset.schema.to_arrow()]
        if write.operation is Operation.CHANGELOG:
            fields.insert(0, OP_FIELD)
        rows = pa.Table.from_pylist(list(write.rows), schema=pa.schema(fields))
        path = f"{self.name}/staged/{self.attempts}-{number}.arrow"
        staged = StagedFileStore(self.storage).write(self.dataset, write.operation, [rows], path)
        return [] if staged is None else [staged]

    def _of_group(self, name: str) -> tuple[DataFile, ...]:
        mine = [file for file in self.files.values() if file.file_group == name]
        return tuple(sorted(mine, key=lambda file: (file.added_version, file.path)))

    def _tasks(
        self,
        staged: Mapping[int, Sequence[StagedFile]],
        intents: Mapping[int, WriteIntent],
        scope: Scope | None,
    ) -> list[MergeTask]:
        return plan_merge(
            self.dataset,
            staged,
            intents,
            self.files.values(),
            scope=scope,
            attempt=self._attempt(),
            data_prefix=self.name,
        )

    def _publish(self, messages: Sequence[CommitMessage]) -> None:
        if not any(message.added or message.removed or message.changelog for message in messages):
            return
        self.version += 1
        for message in sorted(messages, key=lambda message: message.file_group):
            first_offset = self.next_offset if message.changelog else None
            for changes in message.changelog:
                self.feed.append((self.version, self.next_offset, changes))
                self.next_offset += changes.row_count
            for path in message.removed:
                del self.files[path]
            for file in message.added:
                assert file.path not in self.files
                listed = file.written_version is not None
                self.files[file.path] = msgspec.structs.replace(
                    file,
                    added_version=self.version,
                    written_version=file.written_version if listed else self.version,
                    first_offset=file.first_offset if listed else first_offset,
                )

    def rows(self, *, meta: bool = False) -> list[Row]:
        """The live rows, in no particular order."""
        slices = SliceReader(ParquetReader(self.storage), VectorReader(self.storage))
        found: list[Row] = []
        for name in {file.file_group for file in self.files.values()}:
            memory = Memory(bytes_max=2**26)
            for block in merged_blocks(slices, self.dataset, self._of_group(name), memory):
                table = block.rows if meta else block.rows.drop_columns(list(META_NAMES))
                found += table.to_pylist()
        return found

    def changes(self) -> list[tuple[int, int, int | None, Row]]:
        """The feed: (version, op, offset of the change it takes back, row), in the order of offsets."""
        reader = ParquetReader(self.storage)
        found = []
        for version, first_offset, file in self.feed:
            table = reader.open(file).read()
            corrects = resolved_offsets(table.column(CORRECTS_COLUMN), first_offset).to_pylist()
            ops = table.column(OP_COLUMN).to_pylist()
            rows = table.drop_columns([OP_COLUMN, CORRECTS_COLUMN]).to_pylist()
            found += list(zip([version] * len(rows), ops, corrects, rows, strict=True))
        return found

    def kinds(self) -> set[FileKind]:
        """What kinds of files are live."""
        return {file.kind for file in self.files.values()}
